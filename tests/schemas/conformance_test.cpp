// Grammars of JSON Schemas against a validator: what satisfies a schema is let through byte by byte, what
// does not is not.
#include <gtest/gtest.h>

#include "base/json.h"
#include "text/test_grammars.h"

namespace godwit::text {
namespace {

TEST(Schemas, LetThroughWhatAValidatorAccepts) {
  const Json file = read_json_file(GODWIT_PAIRS);
  SCOPED_TRACE(file["seed"].dump());
  const ByteGrammars grammars;
  int texts = 0, refused = 0;
  for (const Json& one : file["cases"]) {
    const std::string schema = dump_json(one["schema"]);
    std::shared_ptr<const CompiledGrammar> grammar;
    try {
      grammar = grammars.compile(GrammarKind::json_schema, schema);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what() << "\n" << schema;
      ++refused;
      continue;
    }
    for (const Json& text : one["valid"])
      EXPECT_TRUE(ByteGrammars::accepts(grammar, text.get<std::string>())) << schema << "\n" << text;
    for (const Json& text : one["invalid"])
      EXPECT_FALSE(ByteGrammars::accepts(grammar, text.get<std::string>())) << schema << "\n" << text;
    texts += static_cast<int>(one["valid"].size() + one["invalid"].size());
  }
  EXPECT_GE(texts, 1000);
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace godwit::text
