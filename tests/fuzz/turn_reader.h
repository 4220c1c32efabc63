// A model's answer as a fuzzer's input: the first byte chooses the format, the second how the text is cut.
#pragma once

#include <string>
#include <vector>

namespace godwit::fuzz {

// Throws std::logic_error where a cut changes the parse, arguments are no JSON, or content is lost.
void read_turn(const std::string& bytes);
std::vector<std::string> turn_seeds();

}  // namespace godwit::fuzz
