// What a person reads after a mistyped command line.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace godwit::cli {

// The group of flags that --help leaves out, which is to fit a screen. They keep their names in messages.
inline constexpr const char* kUnlisted = "unlisted";

// Help as CLI11 writes it, without that group.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// One or two lines: what was wrong, a near word for an unknown flag or verb, and where to find help.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

// Makes every number flag of every verb take plain decimal numbers only. CLI11 alone reads "" as 0 and 010
// as 8.
void take_plain_numbers_only(CLI::App& app);

// A lower bound, said in words. (CLI11's own bounds print the largest double in full.)
CLI::Validator at_least(int least);

// Makes every flag whose value is a name or a path refuse "--something": its own value was forgotten, and
// CLI11 would take the next flag for it. Texts for the model (prompt, system message, stop string) may begin
// so.
void take_no_flag_as_value(CLI::App& app);

// Makes every flag take one value at a time, as it is. CLI11 alone lets a repeatable flag swallow the words behind it, and
// reads "[END]" as a list of one.
void take_one_value_as_it_is(CLI::App& app);

}  // namespace godwit::cli
