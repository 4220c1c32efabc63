// Typical, top-n-sigma, dynamic temperature, DRY, mirostat, words and ids that may not come, orders, and the
// one-pass top-k: each against a plain version, full sorts and normalised probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "decode/sampler.h"

namespace godwit::decode {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

using Items = std::vector<std::pair<double, int>>;  // logit, id; descending

Items plain_items(const std::vector<float>& logits) {
  Items items;
  for (int id = 0; id < static_cast<int>(logits.size()); ++id)
    if (logits[static_cast<std::size_t>(id)] != kNever)
      items.emplace_back(logits[static_cast<std::size_t>(id)], id);
  std::stable_sort(items.begin(), items.end(), [](auto a, auto b) { return a.first > b.first; });
  return items;
}

std::vector<double> softmax(const Items& items, double temperature = 1) {
  std::vector<double> p;
  for (auto [logit, id] : items) p.push_back(std::exp((logit - items[0].first) / temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= sum;
  return p;
}

double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double value : p) sum -= value > 0 ? value * std::log(value) : 0;
  return sum;
}

std::set<int> plain_typical(const Items& items, double wanted) {
  const auto p = softmax(items);
  const double h = entropy(p);
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::abs(-std::log(p[a]) - h) < std::abs(-std::log(p[b]) - h);
  });
  std::set<int> kept;
  double sum = 0;
  for (const std::size_t i : order) {
    kept.insert(items[i].second);
    if ((sum += p[i]) > wanted) break;
  }
  return kept;
}

std::set<int> plain_sigma(const Items& items, double n) {
  double mean = 0, variance = 0;
  for (auto [logit, id] : items) mean += logit / double(items.size());
  for (auto [logit, id] : items) variance += (logit - mean) * (logit - mean) / double(items.size());
  std::set<int> kept;
  for (auto [logit, id] : items)
    if (logit >= items[0].first - n * std::sqrt(variance)) kept.insert(id);
  return kept;
}

std::set<int> ids_of(const Candidates& candidates) {
  std::set<int> ids;
  for (const Candidate& item : candidates.items()) ids.insert(item.id);
  return ids;
}

// Random, peaked, flat-ish and holding -infinity.
std::vector<std::vector<float>> rows(std::mt19937& random, std::initializer_list<int> sizes) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<std::vector<float>> out;
  for (const int size : sizes) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<float> row(static_cast<std::size_t>(size));
      for (float& logit : row) {
        logit = normal(random) * (kind == 1 ? 15 : kind == 2 ? 0.01f : 1);
        if (kind == 3 && random() % 3 == 0) logit = kNever;
      }
      row[row.size() / 2] = 0.5f;
      out.push_back(row);
    }
  }
  return out;
}

TEST(RareSamplers, typical_and_sigma_keep_what_the_plain_versions_keep) {
  std::mt19937 random(11);
  for (const auto& row : rows(random, {1, 2, 50, 3000})) {
    for (const double value : {0.1, 0.5, 0.9, 0.99}) {
      const auto kept = ids_of(Sampler({.typical_p = value}, 1, 0).candidates(row, 0));
      ASSERT_EQ(kept, plain_typical(plain_items(row), value)) << value << " of " << row.size();
    }
    for (const double n : {0.5, 1.0, 2.5}) {
      const auto kept = ids_of(Sampler({.top_n_sigma = n}, 1, 0).candidates(row, 0));
      ASSERT_EQ(kept, plain_sigma(plain_items(row), n)) << n << " of " << row.size();
    }
  }
}

TEST(RareSamplers, dynamic_temperature_follows_the_entropy) {
  std::mt19937 random(12);
  for (const auto& row : rows(random, {2, 50, 3000})) {
    for (const double exponent : {0.5, 1.0, 2.0}) {
      const Items items = plain_items(row);
      if (items.size() < 2) continue;
      const double share = entropy(softmax(items)) / std::log(double(items.size()));
      const double temperature = 0.3 + (1.7 - 0.3) * std::pow(share, exponent);
      const SamplingParams params{.temperature = 1.0, .dynatemp_range = 0.7, .dynatemp_exponent = exponent};
      const Candidates kept = Sampler(params, 1, 0).candidates(row, 0);
      for (const Candidate& item : kept.items())
        ASSERT_NEAR(item.logit, row[static_cast<std::size_t>(item.id)] / temperature,
                    1e-9 * (1 + std::abs(item.logit)));
    }
  }
}

// By the definition: for every token, the longest end of the text that was followed by it before.
std::map<int, double> plain_dry(const std::vector<int>& text, const SamplingParams& params) {
  std::map<int, double> out;
  const auto is_breaker = [&](int token) {
    return std::ranges::find(params.dry_breakers, token) != params.dry_breakers.end();
  };
  const int size = static_cast<int>(text.size());
  for (int token = 0; token < 6; ++token) {
    int best = 0;
    for (int at = 0; at < size; ++at) {
      if (text[static_cast<std::size_t>(at)] != token || is_breaker(token)) continue;
      int length = 0;
      while (length < at &&
             text[static_cast<std::size_t>(at - 1 - length)] ==
                 text[static_cast<std::size_t>(size - 1 - length)] &&
             !is_breaker(text[static_cast<std::size_t>(size - 1 - length)]))
        ++length;
      best = std::max(best, length);
    }
    if (best > 0 && best >= params.dry_allowed_length)
      out[token] = params.dry_multiplier * std::pow(params.dry_base, best - params.dry_allowed_length);
  }
  return out;
}

TEST(RareSamplers, dry_punishes_what_goes_on_with_a_run) {
  std::mt19937 random(13);
  for (int round = 0; round < 500; ++round) {
    const SamplingParams params{.dry_multiplier = 0.8,
                                .dry_base = 1.5,
                                .dry_allowed_length = static_cast<int>(random() % 4),
                                .dry_breakers = round % 2 ? std::vector<int>{5} : std::vector<int>{}};
    Dry dry(params);
    std::vector<int> text;
    for (unsigned size = random() % 40; size > 0; --size)
      text.push_back(static_cast<int>(random() % (round % 3 ? 3 : 6)));
    for (const int token : text) dry.see(token);
    const auto ours = dry.penalties(), plain = plain_dry(text, params);
    ASSERT_EQ(ours.size(), plain.size()) << round;
    for (const auto& [token, penalty] : plain) ASSERT_NEAR(ours.at(token), penalty, 1e-9) << round;
  }
  Dry windowed({.dry_multiplier = 1, .dry_window = 3});
  for (const int token : {1, 2, 3, 1, 2}) windowed.see(token);
  EXPECT_TRUE(windowed.penalties().empty()) << "3 followed 1 2 outside of the window";
  Dry endless({.dry_multiplier = 1, .dry_base = 4});
  for (int i = 0; i < 3000; ++i) endless.see(0);
  EXPECT_TRUE(std::isfinite(endless.penalties().at(0)));
}

TEST(RareSamplers, mirostat_holds_the_surprise_near_its_target) {
  std::mt19937 random(14);
  std::normal_distribution<float> normal(0, 3);
  for (const int version : {1, 2}) {
    Sampler sampler({.mirostat = version, .mirostat_tau = 3, .mirostat_eta = 0.1}, 5, 0);
    double sum = 0, level = 6;
    constexpr int kSteps = 1500, kWarm = 200;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<float> row(2000);
      for (float& logit : row) logit = normal(random);
      ASSERT_NEAR(sampler.mirostat_level(), level, 1e-6);
      const Candidates kept = sampler.candidates(row, step);
      const int id = sampler.choose(row, step);
      Items items;
      for (const Candidate& item : kept.items()) items.emplace_back(item.logit, item.id);
      std::sort(items.rbegin(), items.rend());
      const auto p = softmax(items);
      const auto at = std::ranges::find(items, id, &std::pair<double, int>::second) - items.begin();
      const double surprise = -std::log2(p[static_cast<std::size_t>(at)]);
      if (version == 2) {  // kept: what surprises by at most the level in the whole row
        const Items all = plain_items(row);
        const auto whole = softmax(all);
        std::set<int> wanted = {all[0].second};
        for (std::size_t i = 0; i < all.size(); ++i)
          if (-std::log2(whole[i]) <= level) wanted.insert(all[i].second);
        ASSERT_EQ(ids_of(kept), wanted) << step;
      }
      sampler.see_answer(id);
      level -= 0.1 * (surprise - 3);
      if (step >= kWarm) sum += surprise;
    }
    EXPECT_NEAR(sum / (kSteps - kWarm), 3, 0.2) << version;
  }
}

TEST(RareSamplers, the_first_mirostat_keeps_as_many_as_its_formula_says) {
  std::vector<float> row;
  for (int rank = 1; rank <= 500; ++rank)
    row.push_back(static_cast<float>(-1.3 * std::log(rank)));  // Zipf's 1.3
  const double level = 2 * 3.5;
  const double k = std::pow(0.3 * std::pow(2, level) / (1 - std::pow(500, -0.3)), 1 / 1.3);
  EXPECT_EQ(Sampler({.mirostat = 1, .mirostat_tau = 3.5}, 1, 0).candidates(row, 0).items().size(),
            std::size_t(k));
}

TEST(RareSamplers, words_and_ids_that_may_not_come) {
  const std::vector<float> row = {0, 1, 2, 3};
  const auto kept = [&](const Sampler& sampler) { return ids_of(sampler.candidates(row, 0)); };
  Sampler words({.bad_words = {{3}, {1, 2}}}, 1, 0);
  EXPECT_EQ(kept(words), (std::set<int>{0, 1, 2}));
  words.see_prompt(1);
  EXPECT_EQ(kept(words), (std::set<int>{0, 1, 2})) << "the prompt is not the answer";
  words.see_answer(1);
  EXPECT_EQ(kept(words), (std::set<int>{0, 1}));
  EXPECT_EQ(kept(Sampler({.allowed_ids = std::vector<int>{0, 2}}, 1, 0)), (std::set<int>{0, 2}));
  const std::vector<std::uint32_t> mask = {0b0110};
  EXPECT_EQ(Sampler({.temperature = 0, .logit_bias = {{3, 100.f}}}, 1, 0).choose(row, 0, mask), 2)
      << "a bias brings nothing back that is barred";
  EXPECT_THROW(Sampler({.allowed_ids = std::vector<int>{0}}, 1, 0).choose(row, 0, mask), Error);
  EXPECT_EQ(kept(Sampler({.temperature = 1e6, .logit_bias = {{3, -100.f}, {0, -99.f}}}, 1, 0)), (std::set<int>{0, 1, 2}));
}

TEST(RareSamplers, whose_fault_it_is_that_no_token_is_left) {
  const auto code = [](const SamplingParams& params, const std::vector<float>& row) {
    try {
      Sampler(params, 1, 0).candidates(row, 0);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::cancelled;
  };
  for (const double temperature : {0.0, 1.0}) {
    const SamplingParams params{.temperature = temperature, .top_k = 2, .logit_bias = {{0, -100.f}, {1, -100.f}}};
    EXPECT_EQ(code(params, {0, 1}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(params, {-INFINITY, -INFINITY}), ErrorCode::internal) << "the model gives none itself";
    EXPECT_EQ(code(params, {0, -INFINITY}), ErrorCode::invalid_argument);
  }
}

TEST(RareSamplers, one_pass_top_k_is_the_full_sort) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (auto row : rows(random, {1, 31, 32, 33, 1000, 5003})) {
    for (int round = 0; round < 6; ++round) {
      if (round > 2)
        for (float& logit : row) logit = std::round(logit);  // ties
      std::vector<std::uint32_t> mask;
      if (round % 2)
        for (std::size_t i = 0; i * 32 < row.size(); ++i)
          mask.push_back(static_cast<std::uint32_t>(random() | (i == 0)));
      if (!mask.empty()) row[0] = 0.5f;
      LogitRow logits(row, mask);
      for (unsigned changes = random() % 5; changes > 0; --changes)
        logits.set(static_cast<int>(random() % row.size()), double(random() % 9) - 4.5);
      for (const int k : {1, 2, 40, 1024}) {
        Candidates all = logits.all();
        all.keep_top_k(k);
        all.sort();
        const Candidates fast = logits.largest(k);
        ASSERT_EQ(fast.items().size(), all.items().size());
        for (std::size_t i = 0; i < all.items().size(); ++i) {
          ASSERT_EQ(fast.items()[i].id, all.items()[i].id) << k << " of " << row.size();
          ASSERT_EQ(fast.items()[i].logit, all.items()[i].logit);
        }
      }
    }
  }
}

TEST(RareSamplers, orders_and_presets) {
  std::vector<float> logits;
  for (const double p : {0.4, 0.25, 0.15, 0.1, 0.06, 0.04}) logits.push_back(static_cast<float>(std::log(p)));
  const auto kept = [&](SamplingParams params) {
    return ids_of(Sampler(params, 1, 0).candidates(logits, 0));
  };
  const SamplingParams params{.temperature = 2, .top_k = 5, .top_p = 0.78};
  SamplingParams vllm = params, four{.temperature = 2, .top_k = 4, .top_p = 0.85};
  vllm.order = sampler_preset("vllm");
  EXPECT_EQ(kept(params), (std::set<int>{0, 1, 2}));  // of five tokens: 0.8 / 0.96 > 0.78 > 0.65 / 0.96
  // The square roots of five probabilities add up to 2.08: the first three to 0.73 of that, the first four to
  // 0.88.
  EXPECT_EQ(kept(vllm), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(kept(four), (std::set<int>{0, 1, 2}));  // 0.8 / 0.9 > 0.85
  four.order = sampler_preset("mlx-lm");
  EXPECT_EQ(kept(four), (std::set<int>{0, 1, 2, 3})) << "0.8 of all is less than 0.85";
  SamplingParams without = params;
  without.order = sampler_order(std::vector<std::string>{"top-p", "temperature"});
  EXPECT_EQ(kept(without), (std::set<int>{0, 1, 2})) << "no top-k in the order";
  EXPECT_EQ(sampler_order_of_letters("edskypmxt"), default_sampler_order());
  for (const auto* letters : {"kk", "ke", "q"})
    EXPECT_THROW(sampler_order_of_letters(letters), Error) << letters;
  EXPECT_THROW(sampler_preset("ollama"), Error);
  EXPECT_THROW(sampler_order(std::vector<std::string>{"top_q"}), Error);
}

// mlx-lm: the ascending cumulative sum above 1 - p, then min-p of the largest, then the k largest, on
// unscaled probabilities.
TEST(RareSamplers, the_preset_of_mlx_lm_keeps_its_sets) {
  std::mt19937 random(15);
  std::normal_distribution<float> normal(0, 3);
  for (int round = 0; round < 1000; ++round) {
    std::vector<float> row(60);
    for (float& logit : row) logit = normal(random);
    const Items items = plain_items(row);
    const auto p = softmax(items);
    std::set<int> wanted;
    double above = 1;  // cumulative sum in ascending order, up to and with this token
    for (std::size_t i = 0; i < items.size() && wanted.size() < 12; above -= p[i++])
      if (above > 1 - 0.9 && p[i] >= 0.03 * p[0]) wanted.insert(items[i].second);
    SamplingParams params{.temperature = 0.7, .top_k = 12, .top_p = 0.9, .min_p = 0.03};
    params.order = sampler_preset("mlx-lm");
    ASSERT_EQ(ids_of(Sampler(params, 1, 0).candidates(row, 0)), wanted) << round;
  }
}

}  // namespace
}  // namespace godwit::decode
