// Each sampler against a plain double-precision version written for clarity: full sorts, normalised
// probabilities.
#include "decode/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "decode/logprobs.h"
#include "decode/noise.h"

namespace godwit::decode {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Plain {  // the oracle: a descending list of (logit, id)
  std::vector<std::pair<double, int>> sorted;

  explicit Plain(const std::vector<float>& logits) {
    for (int id = 0; id < static_cast<int>(logits.size()); ++id)
      if (logits[id] != kNever) sorted.emplace_back(logits[id], id);
    std::stable_sort(sorted.begin(), sorted.end(), [](auto a, auto b) { return a.first > b.first; });
  }
  std::vector<double> probabilities() const {
    std::vector<double> p;
    for (auto [logit, id] : sorted) p.push_back(std::exp(logit - sorted[0].first));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& value : p) value /= sum;
    return p;
  }
  void top_k(int k) {
    if (k > 0 && k < static_cast<int>(sorted.size())) sorted.resize(k);
  }
  void top_p(double wanted) {
    if (wanted >= 1) return;
    const auto p = probabilities();
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      sum += p[i];
      if (sum >= wanted) return sorted.resize(i + 1);
    }
  }
  void min_p(double m) {
    const auto p = probabilities();
    std::size_t kept = 0;
    while (kept < p.size() && p[kept] >= m * p[0]) ++kept;
    sorted.resize(kept);
  }
  void xtc(double threshold) {
    const auto p = probabilities();
    std::size_t top = 0;
    while (top < p.size() && p[top] >= threshold) ++top;
    if (top >= 2) sorted.erase(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(top) - 1);
  }
  std::set<int> ids() const {
    std::set<int> ids;
    for (auto [logit, id] : sorted) ids.insert(id);
    return ids;
  }
};

std::set<int> ids_of(const Candidates& candidates) {
  std::set<int> ids;
  for (const Candidate& item : candidates.items()) ids.insert(item.id);
  return ids;
}

// Random, tied (few distinct values), peaked, flat, holding -infinity; small and larger than one sorted head.
std::vector<std::vector<float>> logit_rows(std::mt19937& random) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<std::vector<float>> rows;
  for (const int size : {1, 2, 17, 1500, 20000}) {
    for (int kind = 0; kind < 5; ++kind) {
      std::vector<float> row(size);
      for (float& logit : row) {
        logit = normal(random);
        if (kind == 1) logit = std::round(logit);
        if (kind == 2) logit *= 20;
        if (kind == 3) logit = 1.5f;
        if (kind == 4 && random() % 3 == 0) logit = kNever;
      }
      if (kind == 4) row[size / 2] = 0.25f;
      rows.push_back(row);
    }
  }
  return rows;
}

TEST(Sampler, each_truncation_keeps_what_the_plain_version_keeps) {
  std::mt19937 random(20240817);
  for (const auto& row : logit_rows(random)) {
    const std::vector<double> logits(row.begin(), row.end());
    for (const int k : {-1, 0, 1, 2, 40, 5000}) {
      Plain plain(row);
      plain.top_k(k);
      Candidates ours(logits);
      ours.keep_top_k(k);
      ASSERT_EQ(ids_of(ours), plain.ids()) << "top_k " << k << " of " << row.size();
    }
    for (const double value : {0.0, 0.05, 0.37, 0.9, 0.9999, 1.0}) {
      Plain top_p(row), min_p(row), xtc(row);
      top_p.top_p(value), min_p.min_p(value), xtc.xtc(value);
      Candidates our_top_p(logits), our_min_p(logits), our_xtc(logits);
      our_top_p.keep_top_p(value), our_min_p.keep_min_p(value), our_xtc.exclude_top_choices(value);
      // A flat row puts every prefix sum on a multiple of 1 / n, where the two roundings may differ by one
      // token.
      const bool on_the_edge = row.size() > 2 && std::set<float>(row.begin(), row.end()).size() == 1;
      if (on_the_edge) {
        ASSERT_NEAR(our_top_p.items().size(), top_p.sorted.size(), 1)
            << "top_p " << value << " of " << row.size();
      } else {
        ASSERT_EQ(ids_of(our_top_p), top_p.ids()) << "top_p " << value << " of " << row.size();
      }
      ASSERT_EQ(ids_of(our_min_p), min_p.ids()) << "min_p " << value << " of " << row.size();
      ASSERT_EQ(ids_of(our_xtc), xtc.ids()) << "xtc " << value << " of " << row.size();
    }
  }
}

TEST(Sampler, the_chain_truncates_in_the_documented_order) {
  std::mt19937 random(7);
  for (const auto& row : logit_rows(random)) {
    Plain plain(row);
    plain.top_k(30), plain.top_p(0.91), plain.min_p(0.02), plain.xtc(0.08);
    const SamplingParams params{.temperature = 3.0,
                                .top_k = 30,
                                .top_p = 0.91,
                                .min_p = 0.02,
                                .xtc_probability = 1.0,
                                .xtc_threshold = 0.08};
    ASSERT_EQ(ids_of(Sampler(params, 1, 0).candidates(row, 5)), plain.ids()) << row.size();
  }
}

TEST(Sampler, each_truncation_sees_what_the_one_before_it_kept) {
  std::vector<float> logits;
  for (const double p : {0.4, 0.25, 0.15, 0.1, 0.06, 0.04}) logits.push_back(static_cast<float>(std::log(p)));
  const auto kept = [&](const SamplingParams& params) {
    return ids_of(Sampler(params, 1, 0).candidates(logits, 0));
  };
  // Of five tokens the first four hold 0.9 / 0.96 = 0.9375; of all six only 0.9.
  EXPECT_EQ(kept({.top_p = 0.92}), (std::set<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(kept({.top_k = 5, .top_p = 0.92}), (std::set<int>{0, 1, 2, 3}));
  // 0.3 * 0.4 = 0.12 removes token 3. Of the three left, tokens 0 and 1 reach 0.3 (0.5 and 0.3125); of four,
  // one would.
  EXPECT_EQ(kept({.top_k = 5, .top_p = 0.92, .min_p = 0.3}), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(kept({.top_k = 5, .top_p = 0.92, .xtc_probability = 1, .xtc_threshold = 0.3}),
            (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(kept({.top_k = 5, .top_p = 0.92, .min_p = 0.3, .xtc_probability = 1, .xtc_threshold = 0.3}),
            (std::set<int>{1, 2}));
}

TEST(Sampler, ties_at_a_border_go_to_the_lowest_id) {
  const std::vector<double> flat(8, 2.0);
  Candidates top_k(flat), top_p(flat), xtc(flat);
  top_k.keep_top_k(3);
  EXPECT_EQ(ids_of(top_k), (std::set<int>{0, 1, 2}));
  top_p.keep_top_p(0.5);  // eighths are exact
  EXPECT_EQ(ids_of(top_p), (std::set<int>{0, 1, 2, 3}));
  xtc.exclude_top_choices(0.125);
  EXPECT_EQ(ids_of(xtc), (std::set<int>{7}));
  EXPECT_EQ(Sampler({.temperature = 0}, 1, 0).choose(std::vector<float>{1, 4, 4, 2}, 0), 1);
}

std::vector<double> after(const Penalties& penalties, const std::vector<double>& logits) {
  const std::vector<float> values(logits.begin(), logits.end());
  LogitRow row(values, {});
  penalties.apply(row);
  std::vector<double> out;
  for (int id = 0; id < static_cast<int>(values.size()); ++id) out.push_back(row.logit(id));
  return out;
}

TEST(Sampler, penalties_move_logits_by_the_published_amounts) {
  const auto penalised = [](const SamplingParams& params, const std::vector<int>& seen,
                            std::vector<double> logits) {
    Penalties penalties(params);
    for (const int token : seen) penalties.see_answer(token);
    return after(penalties, logits);
  };
  const std::vector<double> logits = {6.0, -6.0, 1.0, 0.0};
  // A token seen three times with frequency 0.5 and presence 0.25 loses 3 * 0.5 + 0.25 = 1.75.
  EXPECT_EQ(penalised({.presence_penalty = 0.25, .frequency_penalty = 0.5}, {0, 2, 0, 0}, logits),
            (std::vector<double>{6.0 - 1.75, -6.0, 1.0 - 0.75, 0.0}));
  // Repetition looks at the sign and acts once for each distinct token.
  EXPECT_EQ(penalised({.repetition_penalty = 1.25}, {0, 0, 1, 1, 1, 3}, logits),
            (std::vector<double>{4.8, -7.5, 1.0, 0.0}));
  // Only the window counts; -1 is everything, 0 nothing; ids beyond the vocabulary are ignored.
  EXPECT_EQ(penalised({.frequency_penalty = 1, .penalty_window = 2}, {0, 0, 2, 99}, logits),
            (std::vector<double>{6, -6, 0, 0}));
  EXPECT_EQ(penalised({.frequency_penalty = 1, .penalty_window = -1}, std::vector<int>(100, 0), logits),
            (std::vector<double>{-94, -6, 1, 0}));
  EXPECT_EQ(penalised({.frequency_penalty = 1}, std::vector<int>(100, 0), logits),
            (std::vector<double>{-58, -6, 1, 0}));
  EXPECT_EQ(penalised({.frequency_penalty = 1, .penalty_window = 0}, {0, 0}, logits), logits);
}

// OpenAI's: c[j] is how often token j was sampled before. Tokens of the prompt are not sampled ones.
TEST(Sampler, presence_and_frequency_count_the_answer_and_repetition_the_prompt_too) {
  const auto penalised = [](const SamplingParams& params) {
    Penalties penalties(params);
    for (const int token : {0, 1, 1, 0}) penalties.see_prompt(token);
    for (const int token : {1, 2}) penalties.see_answer(token);
    return after(penalties, {8, 8, 8, 8});
  };
  EXPECT_EQ(penalised({.presence_penalty = 0.5}), (std::vector<double>{8, 7.5, 7.5, 8}));
  EXPECT_EQ(penalised({.frequency_penalty = 2}), (std::vector<double>{8, 6, 6, 8}));
  EXPECT_EQ(penalised({.repetition_penalty = 2}), (std::vector<double>{4, 4, 4, 8}));
  // A window of three holds the prompt's last token, then 1 and 2 of the answer; one of one holds 2 alone.
  EXPECT_EQ(penalised({.repetition_penalty = 2, .frequency_penalty = 1, .penalty_window = 3}),
            (std::vector<double>{4, 3, 3, 8}));
  EXPECT_EQ(penalised({.frequency_penalty = 1, .penalty_window = 1}), (std::vector<double>{8, 8, 7, 8}));
}

TEST(Sampler, bias_comes_before_penalties_and_both_before_truncation) {
  // Bias lifts token 0 to 2, the penalty then divides it: 2 / 4 = 0.5. Penalty first would give (-1 * 4) + 3
  // = -1.
  SamplingParams params{.top_k = 2, .repetition_penalty = 4, .logit_bias = {{0, 3.0f}}};
  Sampler sampler(params, 1, 0);
  sampler.see_prompt(0);
  // Without the penalty it would be 2 and beat token 3 in the second row.
  EXPECT_EQ(ids_of(sampler.candidates(std::vector<float>{-1, 0, 1, 0.25}, 0)), (std::set<int>{0, 2}));
  EXPECT_EQ(ids_of(sampler.candidates(std::vector<float>{-1, 0, 1, 0.75}, 0)), (std::set<int>{2, 3}));
}

TEST(Sampler, greedy_is_the_argmax_whatever_the_other_fields_say) {
  std::mt19937 random(3);
  for (const auto& row : logit_rows(random)) {
    const int largest = static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
    const SamplingParams odd{
        .temperature = 0, .top_k = 3, .top_p = 0.2, .min_p = 0.5, .xtc_probability = 1, .xtc_threshold = 0};
    ASSERT_EQ(Sampler(odd, 9, 0).choose(row, 1), largest);
    ASSERT_EQ(Sampler({.temperature = 9e-6}, 9, 0).choose(row, 1), largest);
  }
  EXPECT_TRUE(Sampler({.temperature = 0, .top_k = 5}, 1, 0).is_plain_greedy());
  EXPECT_FALSE(Sampler({.temperature = 0, .logit_bias = {{1, 1.f}}}, 1, 0).is_plain_greedy());
  EXPECT_FALSE(Sampler({.temperature = 0, .presence_penalty = 1}, 1, 0).is_plain_greedy());
  EXPECT_FALSE(Sampler({.temperature = 1}, 1, 0).is_plain_greedy());
  EXPECT_EQ(
      Sampler({.temperature = 0, .logit_bias = {{1, 9.f}}}, 1, 0).choose(std::vector<float>{3, 0, 1}, 0), 1);
}

// Pearson's statistic of `draws` draws against softmax(logits / T) over `kept`.
double chi_square(const SamplingParams& params, const std::vector<float>& logits, const std::set<int>& kept,
                  int draws) {
  std::vector<double> expected(logits.size());
  double sum = 0;
  for (const int id : kept) sum += expected[id] = std::exp(logits[id] / params.temperature);
  std::vector<int> counts(logits.size());
  Sampler sampler(params, 1234, 0);
  for (int position = 0; position < draws; ++position) ++counts[sampler.choose(logits, position)];
  double statistic = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const double wanted = draws * expected[id] / sum;
    if (!kept.contains(static_cast<int>(id))) {
      EXPECT_EQ(counts[id], 0) << "token " << id << " was truncated";
    }
    if (wanted > 0) statistic += (counts[id] - wanted) * (counts[id] - wanted) / wanted;
  }
  return statistic;
}

TEST(Sampler, draws_follow_the_target_distribution) {
  const std::vector<float> logits = {0.5, -1, 2, 0, 1, 1.5, -2, 0.25, -0.5, 1.75};
  std::set<int> all;
  for (int id = 0; id < 10; ++id) all.insert(id);
  // 0.999 quantiles of chi-square: 27.88 at 9 degrees of freedom, 16.27 at 3.
  EXPECT_LT(chi_square({}, logits, all, 100000), 27.88);
  EXPECT_LT(chi_square({.temperature = 2.5}, logits, all, 100000), 27.88);
  EXPECT_LT(chi_square({.temperature = 0.7, .top_k = 4}, logits, {2, 9, 5, 4}, 100000), 16.27);
}

TEST(Sampler, the_bound_that_skips_candidates_never_changes_the_draw) {
  std::mt19937 random(99);
  for (const auto& row : logit_rows(random)) {
    for (int position = 0; position < 20; ++position) {
      const Noise noise(5, 2, static_cast<std::uint32_t>(position));
      double best = -INFINITY;
      int winner = -1;
      for (std::size_t id = 0; id < row.size(); ++id) {
        if (row[id] == kNever) continue;
        const double score = row[id] / 0.8 + Noise::gumbel(noise.token_bits(static_cast<std::uint32_t>(id)));
        if (score > best) best = score, winner = static_cast<int>(id);
      }
      ASSERT_EQ(Sampler({.temperature = 0.8}, 5, 2).choose(row, position), winner) << row.size();
    }
  }
}

TEST(Sampler, a_draw_depends_on_seed_choice_and_position_and_on_no_history) {
  const std::vector<float> flat(1000, 0.0f);
  const auto tokens = [&](std::uint64_t seed, int choice) {
    Sampler sampler({}, seed, choice);
    std::vector<int> ids;
    for (int position = 0; position < 8; ++position) ids.push_back(sampler.choose(flat, position));
    return ids;
  };
  const std::vector<int> base = tokens(42, 0);
  EXPECT_EQ(base, tokens(42, 0));
  EXPECT_NE(base, tokens(42, 1));
  EXPECT_NE(base, tokens(0, 0));
  EXPECT_NE(tokens(0, 0), tokens(std::uint64_t{1} << 63, 0));
  Sampler backwards({}, 42, 0);
  for (int position = 7; position >= 0; --position)
    EXPECT_EQ(backwards.choose(flat, position), base[position]);
}

TEST(Sampler, the_xtc_coin_falls_as_often_as_asked) {
  const std::vector<float> logits = {1, 1, 1, -9};
  Sampler sampler({.xtc_probability = 0.3, .xtc_threshold = 0.1}, 77, 0);
  int excluded = 0;
  for (int position = 0; position < 10000; ++position)
    excluded += sampler.candidates(logits, position).items().size() == 2;
  EXPECT_NEAR(excluded, 3000, 4 * std::sqrt(10000 * 0.3 * 0.7));  // four standard deviations
}

TEST(Sampler, unusable_logits_are_an_error_of_the_request) {
  const auto message = [](const std::vector<float>& logits, double temperature) {
    try {
      Sampler({.temperature = temperature}, 1, 0).choose(logits, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  for (const double temperature : {0.0, 1.0}) {
    EXPECT_EQ(message({kNever, kNever}, temperature),
              "[sampling] no token can be chosen: all 2 logits are -infinity or barred");
    EXPECT_EQ(message({0, NAN}, temperature), "[sampling] the model's logit of token 1 is nan");
    EXPECT_EQ(message({INFINITY, 0}, temperature), "[sampling] the model's logit of token 0 is inf");
  }
}

TEST(Logprobs, are_the_log_softmax_of_the_raw_logits) {
  std::mt19937 random(8);
  for (const auto& row : logit_rows(random)) {
    const Plain plain(row);
    double sum = 0;
    for (auto [logit, id] : plain.sorted) sum += std::exp(logit - plain.sorted[0].first);
    const double log_sum = plain.sorted[0].first + std::log(sum);
    const int chosen = plain.sorted.back().second;
    const RowLogprobs ours = row_logprobs(row, chosen, 5);
    // Two sums of n terms in different orders: each is within n / 2 units of the last place of the true one.
    const double slack = row.size() * 2.3e-16 + 1e-13;
    ASSERT_NEAR(ours.chosen.logprob, row[chosen] - log_sum, slack);
    ASSERT_EQ(ours.top.size(), std::min<std::size_t>(5, plain.sorted.size()));
    for (std::size_t i = 0; i < ours.top.size(); ++i) {
      ASSERT_EQ(ours.top[i].id, plain.sorted[i].second);
      ASSERT_NEAR(ours.top[i].logprob, plain.sorted[i].first - log_sum, slack);
      ASSERT_LE(ours.top[i].logprob, 0);
    }
  }
  EXPECT_EQ(row_logprobs(std::vector<float>{1, 2}, 0, 0).top.size(), 0u);
}

TEST(SamplingParams, validate_names_the_field_and_the_value) {
  const auto message = [](const SamplingParams& params) {
    try {
      params.validate(100);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.temperature = 0, .top_k = -1, .top_p = 0, .min_p = 1, .logit_bias = {{99, -100.f}}}),
            "");
  EXPECT_EQ(message({.temperature = -1}), "[sampling] temperature is -1: at least 0 is needed");
  EXPECT_EQ(message({.temperature = NAN}), "[sampling] temperature is nan, not a finite number");
  EXPECT_EQ(message({.top_p = 1.5}), "[sampling] top_p is 1.5: it must lie in [0, 1]");
  EXPECT_EQ(message({.logit_bias = {{100, 1.f}}}),
            "[sampling] logit_bias holds token 100: the vocabulary has 100 tokens");
  EXPECT_NE(message({.temperature = INFINITY}), "");
  EXPECT_NE(message({.top_k = -2}), "");
  EXPECT_NE(message({.min_p = NAN}), "");
  EXPECT_NE(message({.xtc_probability = 2}), "");
  EXPECT_NE(message({.xtc_threshold = -1}), "");
  EXPECT_NE(message({.repetition_penalty = 0}), "");
  EXPECT_NE(message({.presence_penalty = NAN}), "");
  EXPECT_NE(message({.frequency_penalty = INFINITY}), "");
  EXPECT_NE(message({.penalty_window = -2}), "");
  EXPECT_NE(message({.logit_bias = {{-1, 1.f}}}), "");
  EXPECT_NE(message({.logit_bias = {{1, INFINITY}}}), "");
}

}  // namespace
}  // namespace godwit::decode
