// What a test that hangs was waiting for: one that runs into its time limit is killed and says nothing.
#pragma once

namespace godwit::testing_support {

// A test that has run for GODWIT_TEST_PATIENCE seconds (of the environment; absent: never) writes to standard error where
// each thread of the process stands: its name, its system call and its stack; then it goes on. Call after
// InitGoogleTest(). Nothing happens where the C library is not glibc.
void report_hangs();

}  // namespace godwit::testing_support
