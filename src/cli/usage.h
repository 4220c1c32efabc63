// What a person reads after a mistyped command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace godwit::cli {

// One or two lines: what was wrong, a near word for an unknown flag or verb, and where to find help.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace godwit::cli
