#include "cli/table.h"

#include <algorithm>

namespace godwit::cli {

void print_table(const std::vector<std::vector<std::string>>& given, Output& out) {
  std::vector<std::vector<std::string>> rows = given;
  std::vector<std::size_t> width;
  for (auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      width[i] = std::max(width[i], row[i].size());
    }
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], width[i]);
    out.print("{}{}\n", line, row.back());
  }
}

}  // namespace godwit::cli
