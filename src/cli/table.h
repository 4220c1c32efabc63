// Columns for people.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"

namespace godwit::cli {

// One line a row, the first one the titles; each column as wide as its longest cell, the last one as it is. Cells are made
// printable. Rows have equally many.
void print_table(const std::vector<std::vector<std::string>>& rows, Output& out);

}  // namespace godwit::cli
