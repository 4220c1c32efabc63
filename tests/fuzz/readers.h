// What a fuzzer feeds: one function for each kind of file. Each either reads the bytes, and then everything
// the file promises, or throws godwit::Error. Anything else that leaves them is a fault.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::fuzz {

struct Reader {
  std::string_view name;  // also its folder in the corpus
  void (*read)(const std::string& bytes);
};

std::span<const Reader> readers();

// Runs a reader; true when the bytes were accepted, false when an Error refused them.
bool accepts(const Reader& reader, const std::string& bytes);

}  // namespace godwit::fuzz
