// Small valid files for each reader: what mutations start from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace godwit::fuzz {

std::vector<std::string> seeds(std::string_view reader);

}  // namespace godwit::fuzz
