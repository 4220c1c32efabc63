#include "base/canonical_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <locale>

namespace godwit {
namespace {

std::string of(std::string_view text) { return canonical_json(parse_json(text, "test")); }

TEST(CanonicalJson, keys_are_sorted_bytewise_at_every_depth) {
  EXPECT_EQ(of(R"({"b": 1, "a": {"z": [1, {"y": 2, "B": 3}], "é": 4, "Z": 5}})"),
            R"({"a":{"Z":5,"z":[1,{"B":3,"y":2}],"é":4},"b":1})");
}

TEST(CanonicalJson, a_number_has_one_spelling) {
  EXPECT_EQ(of("[1, 1.0, 1e0, 10e-1]"), "[1,1,1,1]");
  EXPECT_EQ(of("[-0.0, 0]"), "[0,0]");
  EXPECT_EQ(of("[1e-6, 0.000001, 2.5, 1e300, 0.1]"), "[1e-06,1e-06,2.5e+00,1e+300,1e-01]");
  EXPECT_EQ(of("[1152921504606846976, 1152921504606846976.0]"), "[1152921504606846976,1152921504606846976]");
  EXPECT_EQ(of("[18446744073709551615]"), "[18446744073709551615]");
  // The next double is another number.
  EXPECT_NE(canonical_json(Json(0.1)), canonical_json(Json(std::nextafter(0.1, 1.0))));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(canonical_json(Json{infinity, -infinity, std::nan("")}), "[Infinity,-Infinity,NaN]");
}

TEST(CanonicalJson, values_of_other_types_stay_apart) {
  EXPECT_EQ(of(R"(["1", true, null, "a\"\\\n\u0001é"])"), "[\"1\",true,null,\"a\\\"\\\\\\n\\u0001é\"]");
  EXPECT_EQ(of("[{}, [], \"\"]"), "[{},[],\"\"]");
}

// A decimal comma and grouped thousands, as a locale of the process may have them.
struct Commas : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(CanonicalJson, the_locale_changes_nothing) {
  const std::string before = of("[1234567, 1234567.25]");
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new Commas));
  const std::string within = of("[1234567, 1234567.25]");
  std::locale::global(old);
  EXPECT_EQ(before, "[1234567,1.23456725e+06]");
  EXPECT_EQ(within, before);
}

}  // namespace
}  // namespace godwit
