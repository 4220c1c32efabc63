// What a prefix leaves on disk.
#include "cache/prefix_record.h"

#include <gtest/gtest.h>

#include <future>
#include <map>

#include "cache/prefix_test_support.h"

namespace godwit::cache {
namespace {

using Files = std::map<std::string, std::string>;  // bytes by name

Files records_in(const fs::path& folder) {
  Files files;
  for (const fs::path& file : files_below(folder)) files[file.filename().string()] = bytes_of(file);
  return files;
}

struct Form {
  NumericMode mode;
  const char* kv;
  Content content = Content::keys_values;
};

constexpr Form kForms[] = {{NumericMode::native, "dense"},
                           {NumericMode::native, "dense:f16"},
                           {NumericMode::native, "dense", Content::keys_as_values},
                           {NumericMode::native, "dense", Content::latent},
                           {NumericMode::native, "dense:bf16", Content::latent},
                           {NumericMode::native, "affine:3:32"},
                           {NumericMode::native, "turbo:5:3"},
                           {NumericMode::reference, "dense"},
                           {NumericMode::reference, "dense", Content::latent},
                           {NumericMode::reference, "affine:4:32"}};

// No turbo codec serves a sliding layer.
StateNeeds needs_of(const Form& form) {
  StateNeeds needs = {test_need(0, form.content)};
  if (!std::string(form.kv).starts_with("turbo")) needs.push_back(test_need(8, form.content));
  return needs;
}

// Memory that is handed out next holds the tokens of somebody else.
void poison(const StateStore& store, int seed) {
  const std::vector<int> secret = test_tokens(200, static_cast<unsigned>(seed));
  const Row row = row_of(store, secret);
}

// The records of a prompt of `length` tokens in a store where others have been before. It is the beginning of a longer
// row with other tokens behind it if `is_cut`.
Files records_of(const Form& form, int length, int others, bool is_cut) {
  const TestFolder folder("record");
  ops::NativeRuntime runtime(kernels::runnable_levels().back(), 1);
  const StateStore store(needs_of(form), parse_kv_policy(form.kv), form.mode,
                         form.mode == NumericMode::native ? &runtime : nullptr);
  if (others > 0) poison(store, others);
  std::vector<int> tokens = test_tokens(length, 1);
  Row row = row_of(store, tokens);
  if (is_cut) {
    const std::vector<int> more = test_tokens(length + 3, 40 + static_cast<unsigned>(others));
    feed(store, row, more, length + 3);
    row.truncate(length);
  }
  ColdTier cold(test_options(folder.cache()), {});
  PrefixCache prefixes(store, {.identity = "x"}, &cold);
  prefixes.insert(row, tokens);
  cold.flush();
  return records_in(folder.cache());
}

TEST(PrefixRecord, DependsOnItsTokensAndNotOnWhatItsMemoryHeldBefore) {
  for (const Form& form : kForms)
    for (const int length : {1, 3, 63, 64, 70}) {
      SCOPED_TRACE(testing::Message() << (form.mode == NumericMode::native ? "native " : "reference ") << form.kv << " "
                                      << static_cast<int>(form.content) << " of " << length);
      const Files one = records_of(form, length, 2, false);
      EXPECT_EQ(one.size(), blocks_for(length));
      EXPECT_TRUE(one == records_of(form, length, 3, false)) << "another row was there before";
      EXPECT_TRUE(one == records_of(form, length, 0, false)) << "nobody was there before";
      // A window that has moved cannot be cut back, and in `reference` the oracle's ring tells of the cut.
      if (length > 8 || form.mode == NumericMode::reference) continue;
      EXPECT_TRUE(one == records_of(form, length, 2, true)) << "the row went on behind these tokens";
    }
}

// Zeros in the right places only: what was restored attends as what was computed.
TEST(PrefixRecord, HoldsAllThatItsTokensLeft) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.kv);
    const TestFolder folder("record_back");
    ops::NativeRuntime runtime(kernels::runnable_levels().back(), 1);
    const StateStore store(needs_of(form), parse_kv_policy(form.kv), form.mode,
                           form.mode == NumericMode::native ? &runtime : nullptr);
    poison(store, 2);
    const std::vector<int> tokens = test_tokens(71, 1);
    Row row = store.create();
    feed(store, row, tokens, 70);
    {
      ColdTier cold(test_options(folder.cache()), {});
      PrefixCache prefixes(store, {.identity = "x"}, &cold);
      prefixes.insert(row, std::span(tokens).first(70));
    }
    const auto read_of = [&](const Row& of) {
      Row fork = of.fork(70);
      const RowSpan span{&fork, 1};
      Step step = store.read({&span, 1});
      AttendSpec spec;
      spec.scale = 0.125f;
      std::vector<float> all;
      for (int layer = 0; layer < static_cast<int>(store.needs().size()); ++layer) {
        const int dim = store.needs()[static_cast<std::size_t>(layer)].query_dim();
        const mx::array out = mx::contiguous(
            step.layer(layer).attend(test_vectors(std::span(tokens).subspan(70), 70, kTestHeads, 5, dim), spec));
        mx::eval(out);
        all.insert(all.end(), out.data<float>(), out.data<float>() + out.size());
      }
      return all;
    };
    ColdTier cold(test_options(folder.cache()), {});
    PrefixCache prefixes(store, {.identity = "x"}, &cold);
    const std::optional<Row> found = prefixes.find(tokens);
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->position(), 70);
    EXPECT_EQ(read_of(*found), read_of(row));
  }
}

// Stores of one sliding and one full layer over one folder; each function is a process of its own.
class Growing : public ::testing::TestWithParam<NumericMode> {
 protected:
  // Keeps a row of tokens_ behind each of `ends`.
  void keep(const std::vector<int>& ends) {
    with_cache([&](const StateStore& store, PrefixCache& prefixes) {
      Row row = store.create();
      for (const int end : ends) {
        feed(store, row, tokens_, end);
        prefixes.insert(row, std::span(tokens_).first(static_cast<std::size_t>(end)));
      }
    });
  }
  // How much of the first `length` tokens is found.
  int found(int length) {
    int position = 0;
    with_cache([&](const StateStore&, PrefixCache& prefixes) {
      const auto row = prefixes.find(std::span(tokens_).first(static_cast<std::size_t>(length)));
      position = row ? row->position() : 0;
    });
    return position;
  }
  template <typename Work>
  void with_cache(Work&& work) {
    ops::NativeRuntime runtime(kernels::runnable_levels().back(), 1);
    const StateStore store({test_need(8), test_need()}, {}, GetParam(),
                           GetParam() == NumericMode::native ? &runtime : nullptr);
    ColdTier cold(test_options(folder_.cache()), {});
    PrefixCache prefixes(store, {.identity = "x"}, &cold);
    work(store, prefixes);
    cold.flush();
    present_ = cold.stats().present;
  }

  TestFolder folder_{"growing"};
  const std::vector<int> tokens_ = test_tokens(400, 1);
  std::uint64_t present_ = 0;  // records of the last process that were there already
};

TEST_P(Growing, ARecordThatLacksSomethingIsWrittenAgainWithIt) {
  keep({256, 399});
  EXPECT_LT(found(129), 128) << "the window has moved on";
  keep({128});
  EXPECT_EQ(present_, 1u) << "of two records the first was whole";
  EXPECT_EQ(found(129), 128);
  keep({256, 399});
  EXPECT_EQ(found(129), 128) << "what is less does not take its place";
  EXPECT_EQ(found(400), 399);
}

// Two processes that know nothing of each other: the record holds what both did.
TEST_P(Growing, WhatOnlyTheFileHoldsStays) {
  keep({128});
  keep({100, 200});
  EXPECT_EQ(found(129), 128);
  EXPECT_EQ(found(101), 100);
  EXPECT_EQ(found(201), 200);
}

INSTANTIATE_TEST_SUITE_P(Modes, Growing, ::testing::Values(NumericMode::native, NumericMode::reference),
                         [](const auto& mode) { return mode.param == NumericMode::native ? "native" : "reference"; });

// The writer stands still while a prompt of six blocks comes, and the queue takes two.
TEST(PrefixQueue, WhatItDoesNotTakeIsTheEndOfAPromptAndComesAgain) {
  const TestFolder folder("prefix_queue");
  ops::NativeRuntime runtime(kernels::runnable_levels().back(), 1);
  const StateStore store({test_need()}, {}, NumericMode::native, &runtime);
  const std::vector<int> tokens = test_tokens(6 * kPositions + 1, 1);
  const auto whole = std::span(tokens).first(6 * kPositions);
  const Row row = row_of(store, whole);
  std::promise<void> open;
  ColdOptions options = test_options(folder.cache());
  options.hooks.after = [opened = open.get_future().share()](ColdStep) { opened.wait(); };
  options.queue_bytes = 2 * 70'000;  // a block of 64 positions, 2 heads of 64, keys and values in f32
  ColdTier cold(options, {});
  PrefixCache prefixes(store, {.identity = "x"}, &cold);
  prefixes.insert(row, whole);
  EXPECT_GE(cold.stats().dropped, 1u);
  open.set_value();
  cold.flush();
  const auto found = [&] {
    PrefixCache other(store, {.identity = "x"}, &cold);
    const auto hit = other.find(tokens);
    return hit ? hit->position() : 0;
  };
  const int first = found();
  EXPECT_GE(first, 2 * kPositions);
  EXPECT_LE(first, 3 * kPositions);
  for (int i = 0; i < 4; ++i) {
    prefixes.insert(row, whole);
    cold.flush();
  }
  EXPECT_EQ(found(), 6 * kPositions);
}

// Somebody empties the folder, or damages a record, while a conversation goes on.
class LostRecords : public ::testing::Test {
 protected:
  void insert(int end) {
    if (row_.position() < end) feed(store_, row_, tokens_, end);
    prefixes_.insert(row_, std::span(tokens_).first(static_cast<std::size_t>(end)));
    cold_.flush();
  }
  int found() {
    PrefixCache other(store_, {.identity = "x"}, &cold_);
    const auto hit = other.find(tokens_);
    cold_.flush();
    return hit ? hit->position() : 0;
  }

  TestFolder folder_{"lost_records"};
  ops::NativeRuntime runtime_{kernels::runnable_levels().back(), 1};
  const StateStore store_{{test_need()}, {}, NumericMode::native, &runtime_};
  const std::vector<int> tokens_ = test_tokens(5 * kPositions + 1, 1);
  Row row_ = store_.create();
  ColdTier cold_{test_options(folder_.cache()), {}};
  PrefixCache prefixes_{store_, {.identity = "x"}, &cold_};
};

TEST_F(LostRecords, AnEmptiedFolderIsFilledAgain) {
  insert(3 * kPositions);
  ASSERT_EQ(found(), 3 * kPositions);
  for (const auto& entry : fs::directory_iterator(folder_.cache())) fs::remove_all(entry);
  insert(4 * kPositions);  // here the loss is noticed
  insert(5 * kPositions);
  EXPECT_EQ(found(), 5 * kPositions);
}

TEST_F(LostRecords, ADamagedRecordInTheMiddleIsWrittenAgain) {
  insert(3 * kPositions);
  for (const fs::path& file : files_below(folder_.cache())) {
    if (file.extension() == ".sqlite" || fs::file_size(file) < 20'000) continue;
    fs::resize_file(file, fs::file_size(file) / 2);
    break;
  }
  ASSERT_LT(found(), 3 * kPositions);
  insert(4 * kPositions);
  EXPECT_EQ(found(), 4 * kPositions);
}

}  // namespace
}  // namespace godwit::cache
