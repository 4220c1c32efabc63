// What a person reads after a mistyped command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace godwit::cli {

// One or two lines: what was wrong, a near word for an unknown flag or verb, and where to find help.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

// Makes every number flag of every verb take plain decimal numbers only. CLI11 alone reads "" as 0 and 010
// as 8.
void take_plain_numbers_only(CLI::App& app);

}  // namespace godwit::cli
