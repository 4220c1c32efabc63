#include "one_answer/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "cache/prefix_cache.h"
#include "decode/row_runner.h"
#include "one_answer/tiny_gguf.h"

namespace godwit::one_answer {
namespace {

namespace fs = std::filesystem;

Json to_json(const Question& q) {
  return {{"kv", q.kv}, {"start", q.start}, {"tokens", q.tokens}, {"length", q.length}, {"plan", q.plan}};
}

Question question_from(const Json& json) {
  return {json["kv"].get<std::string>(), json["start"].get<int>(), json["tokens"].get<std::vector<int>>(),
          json["length"].get<int>(), json["plan"].get<std::vector<int>>()};
}

void write_finding(std::ofstream& file, const Finding& finding) {
  const std::int64_t head[] = {finding.position, static_cast<std::int64_t>(finding.logits.size())};
  file.write(reinterpret_cast<const char*>(head), sizeof head);
  file.write(reinterpret_cast<const char*>(finding.logits.data()),
             static_cast<std::streamsize>(finding.logits.size() * sizeof(float)));
}

Finding read_finding(std::ifstream& file) {
  std::int64_t head[2] = {};
  file.read(reinterpret_cast<char*>(head), sizeof head);
  Finding finding{static_cast<int>(head[0]), Logits(static_cast<std::size_t>(head[1]))};
  file.read(reinterpret_cast<char*>(finding.logits.data()),
            static_cast<std::streamsize>(finding.logits.size() * sizeof(float)));
  return finding;
}

// The spans of the plan that lie behind `position`.
Logits go_on_by_plan(decode::RowRunner& runner, const Question& q, int position) {
  Logits all;
  int at = 0;
  for (const int span : q.plan) {
    if (at >= position) {
      const auto tokens = std::span(q.tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(span));
      const Logits some = runner.logits(tokens);
      all.insert(all.end(), some.begin(), some.end());
    }
    at += span;
  }
  return all;
}

}  // namespace

Finding look_up(const models::ModelBundle& model, const fs::path& folder, const Question& q) {
  cache::KvPolicy policy = cache::parse_kv_policy(q.kv);
  policy.start = q.start;
  const auto store = model.make_store(policy);
  cache::ColdTier cold({.folder = folder, .hooks = {}}, Log());
  cache::PrefixCache prefixes(*store, {.identity = kIdentity}, &cold);
  const bool is_native = model.mode == NumericMode::native;
  std::optional<cache::Row> row =
      prefixes.find(std::span(q.tokens).first(static_cast<std::size_t>(q.length)), is_native ? "" : kPlanned);
  if (!row) return {};
  const int position = row->position();
  if (is_native)
    return {position, feed_whole(model, *store, *row, std::span(q.tokens).subspan(static_cast<std::size_t>(position)))};
  decode::RowRunner runner(model, *store);
  runner.start_from(std::move(*row));
  return {position, go_on_by_plan(runner, q, position)};
}

std::vector<Finding> ask_another_process(const models::ModelBundle& model, const fs::path& folder,
                                         const std::vector<Question>& questions) {
  const fs::path list = folder.string() + ".questions", answers = folder.string() + ".questions.answers";
  const bool is_f32 = model.options.activations == kernels::ActivationForm::f32;
  Json json = {{"model", model.options.path.string()},
               {"native", model.mode == NumericMode::native},
               {"f32", is_f32},
               {"folder", folder.string()}};
  json["questions"] = Json::array();
  for (const Question& question : questions) json["questions"].push_back(to_json(question));
  std::ofstream(list) << dump_json(json);

  const std::string program = fs::absolute(testing::internal::GetArgvs().front());
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program.c_str(), program.c_str(), "--child", list.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the second process failed";
  std::vector<Finding> findings;
  std::ifstream file(answers, std::ios::binary);
  for (std::size_t i = 0; status == 0 && i < questions.size(); ++i) findings.push_back(read_finding(file));
  EXPECT_TRUE(file.good());
  findings.resize(questions.size());
  return findings;
}

int answer_questions(const fs::path& list) {
  try {
    const Json json = read_json_file(list);
    const NumericMode mode = json["native"].get<bool>() ? NumericMode::native : NumericMode::reference;
    std::optional<kernels::ActivationForm> activations;
    if (json["f32"].get<bool>()) activations = kernels::ActivationForm::f32;
    const auto model = open_model(json["model"].get<std::string>(), mode, activations);
    std::ofstream file(list.string() + ".answers", std::ios::binary);
    for (const Json& question : json["questions"])
      write_finding(file, look_up(*model, json["folder"].get<std::string>(), question_from(question)));
    return file.flush().good() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace godwit::one_answer
