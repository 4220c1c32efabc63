// `native` mode: for every codec, and for models with and without sliding layers, the logits of a prompt and its answer
// have the same bits however they come about.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <numeric>

#include "cache/prefix_cache.h"
#include "one_answer/child.h"
#include "one_answer/forward.h"
#include "one_answer/tiny_affine.h"
#include "one_answer/tiny_gguf.h"
#include "one_answer/tiny_hybrid.h"

namespace godwit::one_answer {
namespace {

constexpr std::size_t kTokens = 150;  // past two blocks of 64 positions and past every window
constexpr int kStart = 77;            // in the middle of a block
constexpr unsigned kSeed = 20261130;

struct Policy {
  std::string kv;
  int start = 0;

  cache::KvPolicy parsed() const {
    cache::KvPolicy policy = cache::parse_kv_policy(kv);
    policy.start = start;
    return policy;
  }
  bool is_dense() const { return kv.starts_with("dense"); }
  bool slides() const { return !kv.starts_with("turbo"); }  // turbo is refused for sliding layers
};

// "dense", "affine-4", "turbo-8", "parity-8": every policy of that kind and that number of (key) bits.
std::vector<Policy> policies_of(const std::string& group) {
  std::vector<std::string> specs;
  if (group == "dense") return {{"dense:f32"}, {"dense:f16"}, {"dense:bf16"}};
  const std::string kind = group.substr(0, group.find('-')), bits = group.substr(group.find('-') + 1);
  if (kind == "affine") specs = {"affine:" + bits + ":32", "affine:" + bits + ":64"};
  for (const char* values : {"2", "3", "4", "5", "8"}) {
    if (kind == "turbo") specs.push_back("turbo:" + bits + ":" + values);
    if (kind == "parity") specs.push_back("turbo:" + bits + ":" + values + ":parity");
  }
  std::vector<Policy> policies;
  for (const std::string& spec : specs)
    for (const int start : {0, kStart}) policies.push_back({spec, start});
  return policies;
}

// Q8_0 matrices in a GGUF file, in full attention, with sliding layers or between gated delta layers, or affine ones in a
// checkpoint of safetensors; all but the sliding ones also with f32 activations.
enum class Files { full, sliding, affine, hybrid, full_f32, affine_f32, hybrid_f32 };

class OneAnswer : public testing::TestWithParam<std::tuple<std::string, Files>> {
 protected:
  OneAnswer() : random_(kSeed), tokens_(random_tokens(kTokens, 7)), others_(random_tokens(kTokens, 8)) {
    const auto& [group, files] = GetParam();
    policies_ = policies_of(group);
    slides_ = files == Files::sliding;
    if (slides_) std::erase_if(policies_, [](const Policy& policy) { return !policy.slides(); });
    const bool is_affine = files == Files::affine || files == Files::affine_f32;
    is_hybrid_ = files == Files::hybrid || files == Files::hybrid_f32;
    file_ = folder_ / (is_affine ? "model" : "model.gguf");
    if (is_affine)
      write_affine_model(file_);
    else if (is_hybrid_)
      write_hybrid_model(file_);
    else
      write_model(file_, slides_);
    const bool is_f32 = files == Files::full_f32 || files == Files::affine_f32 || files == Files::hybrid_f32;
    model_ = open_model(file_, NumericMode::native,
                        is_f32 ? kernels::ActivationForm::f32 : kernels::ActivationForm::int8);
    std::cout << "seed " << kSeed << "\n";
  }

  // Runs `check` for every policy with a store of it and the answer of one undisturbed row.
  template <typename Check>
  void for_each_policy(Check&& check) {
    ASSERT_FALSE(policies_.empty());
    for (const Policy& policy : policies_) {
      SCOPED_TRACE(policy.kv + " start " + std::to_string(policy.start));
      const auto store = model_->make_store(policy.parsed());
      check(policy, *store, whole(*store, tokens_));
      if (HasFatalFailure()) return;
    }
  }
  Logits whole(const cache::StateStore& store, std::span<const int> tokens) const {
    cache::Row row = store.create();
    return feed_whole(*model_, store, row, tokens);
  }
  Logits chunked(const cache::StateStore& store, cache::Row& row, std::span<const int> tokens, int most) {
    return feed(*model_, store, row, tokens, [&] { return between(random_, 1, most); });
  }
  // `row` holds a prefix of tokens_; the rest must have the bits of `wanted`.
  void expect_rest(const cache::StateStore& store, cache::Row& row, const Logits& wanted, int most = 40) {
    const auto at = static_cast<std::size_t>(row.position());
    EXPECT_TRUE(same_bits(chunked(store, row, std::span(tokens_).subspan(at), most),
                          rows_of(wanted, at, kTokens - at)))
        << "from " << at;
  }
  // Whether a row holds all that any beginning of it needs.
  bool is_cut_anywhere() const { return !slides_ && !is_hybrid_; }
  std::vector<int> other_behind(std::size_t prefix, std::size_t count) const {
    std::vector<int> joined(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(prefix));
    joined.insert(joined.end(), others_.begin(), others_.begin() + static_cast<std::ptrdiff_t>(count));
    return joined;
  }

  Folder folder_;
  std::filesystem::path file_;
  std::mt19937 random_;
  std::vector<int> tokens_, others_;
  std::vector<Policy> policies_;
  bool slides_ = false, is_hybrid_ = false;
  std::unique_ptr<models::ModelBundle> model_;
};

TEST_P(OneAnswer, DoesNotDependOnChunks) {
  for_each_policy([&](const Policy&, const cache::StateStore& store, const Logits& wanted) {
    ASSERT_TRUE(std::isfinite(std::accumulate(wanted.begin(), wanted.end(), 0.0)));
    for (const int most : {1, 9, 70}) {
      cache::Row row = store.create();
      EXPECT_TRUE(same_bits(chunked(store, row, tokens_, most), wanted)) << "chunks of up to " << most;
    }
  });
}

// Eight rows with three texts, in steps of unequal spans; rows that are done leave.
TEST_P(OneAnswer, DoesNotDependOnTheBatch) {
  const std::vector<int> texts[] = {tokens_, others_, random_tokens(90, 9)};
  for_each_policy([&](const Policy&, const cache::StateStore& store, const Logits& first) {
    const Logits wanted[] = {first, whole(store, texts[1]), whole(store, texts[2])};
    std::vector<cache::Row> rows;
    for (int r = 0; r < 8; ++r) rows.push_back(store.create());
    const auto left = [&](std::size_t r) { return static_cast<int>(texts[r % 3].size()) - rows[r].position(); };
    for (bool is_done = false; !is_done;) {
      std::vector<cache::RowSpan> spans;
      std::vector<int> input;
      std::vector<std::size_t> who, from;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        if (left(r) == 0) continue;
        const int count = std::min({left(r), between(random_, 1, 30), rows[r].longest_span()});
        const auto begin = texts[r % 3].begin() + rows[r].position();
        spans.push_back({&rows[r], count});
        input.insert(input.end(), begin, begin + count);
        who.push_back(r);
        from.push_back(static_cast<std::size_t>(rows[r].position()));
      }
      if ((is_done = spans.empty())) continue;
      const Logits got = native_step(*model_, store, spans, input);
      std::size_t at = 0;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const auto count = static_cast<std::size_t>(spans[i].tokens);
        ASSERT_TRUE(same_bits(rows_of(got, at, count), rows_of(wanted[who[i] % 3], from[i], count)))
            << "row " << who[i] << " from " << from[i];
        at += count;
      }
    }
  });
}

// Rounds that guess right, partly right and wrong, in one step or several; forks that go another way.
TEST_P(OneAnswer, DoesNotDependOnRoundsAndForks) {
  for_each_policy([&](const Policy&, const cache::StateStore& store, const Logits& wanted) {
    cache::Row row = store.create();
    while (row.position() < static_cast<int>(kTokens)) {
      const int at = row.position(), left = static_cast<int>(kTokens) - at;
      if (between(random_, 0, 2) == 0) {
        cache::Row fork = row.fork(between(random_, row.minimum_reusable_length(), at));
        chunked(store, fork, std::span(others_).first(12), 12);
        if (between(random_, 0, 1) == 0) row = row.fork(at);
      }
      if (row.longest_span() == 0 || between(random_, 0, 2) == 0) {
        const int count = std::min({left, between(random_, 1, 12), row.longest_span()});
        const auto span = std::span(tokens_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
        ASSERT_TRUE(same_bits(feed_whole(*model_, store, row, span),
                              rows_of(wanted, static_cast<std::size_t>(at), span.size())));
        continue;
      }
      const int right = std::min(left, between(random_, 0, 6)), wrong = between(random_, 0, 4);
      std::vector<int> draft(tokens_.begin() + at, tokens_.begin() + at + right);
      draft.insert(draft.end(), others_.begin(), others_.begin() + wrong);
      cache::Round round = row.begin();
      Logits got;
      for (std::span<const int> rest(draft); !rest.empty() && row.longest_span() > 0;) {
        const int count = std::min({static_cast<int>(rest.size()), between(random_, 1, 5), row.longest_span()});
        const cache::RowSpan span{&row, count};
        const Logits some = native_step(*model_, store, {&span, 1}, rest.first(static_cast<std::size_t>(count)));
        got.insert(got.end(), some.begin(), some.end());
        rest = rest.subspan(static_cast<std::size_t>(count));
      }
      const int fed = row.position() - at, kept = std::min(fed, right);
      if (kept == fed)
        round.commit();
      else
        round.rollback(kept);
      ASSERT_TRUE(same_bits(rows_of(got, 0, static_cast<std::size_t>(kept)),
                            rows_of(wanted, static_cast<std::size_t>(at), static_cast<std::size_t>(kept))))
          << "a round from " << at;
      ASSERT_EQ(row.position(), at + kept);
    }
  });
}

// Hits do not consume, whatever those before them did with the blocks. As in the engine the row is kept where it turns.
TEST_P(OneAnswer, DoesNotDependOnThePromptCacheInMemory) {
  for_each_policy([&](const Policy& policy, const cache::StateStore& store, const Logits& wanted) {
    cache::PrefixCache prefixes(store, {.identity = "x"});
    cache::Row row = store.create();
    while (row.position() < static_cast<int>(kTokens)) {
      const auto at = static_cast<std::size_t>(row.position());
      const auto count = static_cast<std::size_t>(
          std::min({static_cast<int>(kTokens - at), between(random_, 1, 30), row.longest_span()}));
      EXPECT_TRUE(same_bits(chunked(store, row, std::span(tokens_).subspan(at, count), 30),
                            rows_of(wanted, at, count)));
      prefixes.insert(row, std::span(tokens_).first(at + count));
    }
    int found = 0;
    for (int round = 0; round < 6; ++round) {
      const auto prefix = static_cast<std::size_t>(between(random_, 1, static_cast<int>(kTokens) - 1));
      const std::vector<int> other = other_behind(prefix, 20);
      std::optional<cache::Row> hit = prefixes.find(std::span(tokens_).first(prefix + 1));
      std::optional<cache::Row> away = prefixes.find(other);
      // A memory is found on the way of the text that agrees for longest, which may have come after the place was kept.
      if (!is_hybrid_) {
        ASSERT_EQ(hit.has_value(), away.has_value());
      }
      if (!hit || !away) continue;
      ++found;
      ASSERT_LE(hit->position(), static_cast<int>(prefix));
      if (is_cut_anywhere()) {
        EXPECT_EQ(hit->position(), static_cast<int>(prefix)) << policy.kv;
      }
      const auto at = static_cast<std::size_t>(away->position());
      const Logits straight = whole(store, other);
      EXPECT_TRUE(same_bits(chunked(store, *away, std::span(other).subspan(at), 9),
                            rows_of(straight, at, other.size() - at)));
      prefixes.insert(*away, other);
      expect_rest(store, *hit, wanted);
    }
    EXPECT_GT(found, is_cut_anywhere() ? 5 : 0);
  });
}

TEST_P(OneAnswer, DoesNotDependOnTheDiskOfAnotherProcess) {
  std::vector<Question> questions;
  std::vector<Logits> wanted_of;
  int found = 0;
  for_each_policy([&](const Policy& policy, const cache::StateStore& store, const Logits& wanted) {
    cache::ColdTier cold({.folder = folder_ / "cold", .hooks = {}}, Log());
    cache::PrefixCache prefixes(store, {.identity = kIdentity}, &cold);
    cache::Row row = store.create();
    for (const int end : {30, kStart, 100, 128, 129, static_cast<int>(kTokens)}) {
      const auto at = static_cast<std::size_t>(row.position()), next = static_cast<std::size_t>(end);
      chunked(store, row, std::span(tokens_).subspan(at, next - at), 30);
      prefixes.insert(row, std::span(tokens_).first(next));
    }
    ASSERT_EQ(row.position(), static_cast<int>(kTokens));
    for (const int length : {static_cast<int>(kTokens), 102, between(random_, 2, 149)}) {
      questions.push_back({policy.kv, policy.start, tokens_, length, {}});
      wanted_of.push_back(wanted);
    }
  });
  const auto findings =
      ask_another_process(*model_, folder_ / "cold", questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    SCOPED_TRACE(questions[i].kv + " start " + std::to_string(questions[i].start) + " of " +
                 std::to_string(questions[i].length));
    const Finding& finding = findings[i];
    ASSERT_LT(finding.position, questions[i].length);
    if (is_cut_anywhere()) {
      // A record is found by all of its tokens: one for each place kept, and one for each whole block.
      int place = 0;
      for (const int kept : {30, 64, kStart, 100, 128, 129})
        if (kept < questions[i].length) place = kept;
      EXPECT_EQ(finding.position, place);
    }
    if (finding.position == 0) continue;
    ++found;
    const auto at = static_cast<std::size_t>(finding.position);
    EXPECT_TRUE(same_bits(finding.logits, rows_of(wanted_of[i], at, kTokens - at)));
  }
  EXPECT_GE(found, static_cast<int>(questions.size() / 3) * 2);
}

std::string name_of(const testing::TestParamInfo<OneAnswer::ParamType>& info) {
  std::string name = std::get<0>(info.param) + std::array{"_full", "_sliding", "_affine", "_hybrid", "_full_f32", "_affine_f32", "_hybrid_f32"}[static_cast<std::size_t>(std::get<1>(info.param))];
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Full, OneAnswer,
                         testing::Combine(testing::Values("dense", "affine-2", "affine-3", "affine-4", "affine-5",
                                                          "affine-6", "affine-8", "turbo-2", "turbo-4", "turbo-5",
                                                          "turbo-8", "parity-2", "parity-4", "parity-5", "parity-8"),
                                          testing::Values(Files::full)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Sliding, OneAnswer,
                         testing::Combine(testing::Values("dense", "affine-2", "affine-3", "affine-4", "affine-5",
                                                          "affine-6", "affine-8"),
                                          testing::Values(Files::sliding)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Affine, OneAnswer,
                         testing::Combine(testing::Values("dense", "affine-4", "turbo-4"), testing::Values(Files::affine)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Hybrid, OneAnswer,
                         testing::Combine(testing::Values("dense", "affine-4", "turbo-4"),
                                          testing::Values(Files::hybrid, Files::hybrid_f32)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(F32Activations, OneAnswer,
                         testing::Combine(testing::Values("dense", "affine-4", "turbo-4"),
                                          testing::Values(Files::full_f32, Files::affine_f32)),
                         name_of);

// The comparison would see activations that are not what was asked for.
TEST(OneAnswerSettings, EveryFormOfActivationsHasBitsOfItsOwn) {
  const Folder folder;
  write_model(folder / "model.gguf", /*slides=*/false);
  const std::vector<int> tokens = random_tokens(kTokens, 7);
  const auto logits = [&](std::optional<kernels::ActivationForm> activations) {
    const auto model = open_model(folder / "model.gguf", NumericMode::native, activations);
    cache::Row row = model->store->create();
    return feed_whole(*model, *model->store, row, tokens);
  };
  const Logits unsaid = logits(std::nullopt);
  EXPECT_TRUE(same_bits(logits(kernels::ActivationForm::int8), unsaid));
  EXPECT_FALSE(same_bits(logits(kernels::ActivationForm::f32), unsaid));
}

// The comparison would see a codec that is not there, or is another.
TEST(OneAnswerSettings, EveryPolicyHasBitsOfItsOwn) {
  const Folder folder;
  write_model(folder / "model.gguf", /*slides=*/false);
  const auto model = open_model(folder / "model.gguf", NumericMode::native);
  const std::vector<int> tokens = random_tokens(kTokens, 7);
  std::vector<std::pair<std::string, Logits>> seen;
  for (const char* group : {"dense", "affine-4", "affine-8", "turbo-8"})
    for (const Policy& policy : policies_of(group)) {
      const auto store = model->make_store(policy.parsed());
      cache::Row row = store->create();
      const std::string name = policy.kv + " start " + std::to_string(policy.start);
      Logits logits = feed_whole(*model, *store, row, tokens);
      for (const auto& [other, values] : seen) EXPECT_FALSE(same_bits(logits, values)) << name << " and " << other;
      seen.emplace_back(name, std::move(logits));
    }
}

}  // namespace
}  // namespace godwit::one_answer
