// Entry point of clang's libFuzzer for the reader GODWIT_FUZZ_READER.
#include <cstddef>
#include <cstdint>

#include "readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const godwit::fuzz::Reader& reader : godwit::fuzz::readers())
    if (reader.name == GODWIT_FUZZ_READER)
      godwit::fuzz::accepts(reader, {reinterpret_cast<const char*>(data), size});
  return 0;
}
