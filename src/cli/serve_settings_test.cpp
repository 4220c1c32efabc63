#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "cli/config_file.h"
#include "cli/serve_log.h"
#include "cli/settings.h"

namespace godwit::cli {
namespace {

TEST(ServeLog, control_characters_are_spelled) {
  EXPECT_EQ(escape_controls("a\nb\x1b[31m\x7f\t"), "a\\x0ab\\x1b[31m\\x7f\\x09");
  EXPECT_EQ(escape_controls("héllo \\n"), "héllo \\n");
}

struct Flags {
  Flags() {
    app.add_option("--port", port);
    app.add_option("--names", names);
    app.add_flag("--fast", fast);
  }
  CLI::App app;
  int port = 1;
  std::vector<std::string> names;
  bool fast = false;
};

TEST(Settings, an_earlier_source_counts) {
  Flags flags;
  flags.app.parse("--port 5", /*program_name_included=*/false);
  Settings settings(flags.app);
  settings.take(Environment({{"GODWIT_PORT", "6"}, {"GODWIT_NAMES", "x"}, {"GODWIT_FAST", ""}}));
  std::string warning;
  const Log log([&warning](LogLevel, std::string_view text) { warning = text; });
  settings.take({{"port", {"7"}, 1}, {"names", {"a", "b"}, 2}, {"fast", {"true"}, 3}, {"slow", {"1"}, 4}},
                "f.toml", log);
  EXPECT_EQ(flags.port, 5);
  EXPECT_EQ(flags.names, std::vector<std::string>{"x"});
  EXPECT_TRUE(flags.fast);
  EXPECT_EQ(warning, "f.toml:4: there is no setting 'slow'");
  EXPECT_EQ(settings.effective(),
            "port = 5  # flag\nnames = [\"x\"]  # GODWIT_NAMES\nfast = true  # f.toml:3\n");
}

TEST(Settings, what_does_not_fit_names_its_source) {
  Flags flags;
  flags.app.parse("", /*program_name_included=*/false);
  try {
    Settings(flags.app).take({{"port", {"x"}, 9}}, "f.toml", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("f.toml:9"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace godwit::cli
