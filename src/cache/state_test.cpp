#include "cache/state.h"

#include <gtest/gtest.h>
#include <mlx/primitives.h>

#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

#include "base/error.h"
#include "base/mx_ops.h"

namespace godwit::cache {
namespace {

constexpr int kHeads = 4, kKvHeads = 2, kDim = 8, kWindow = 8;

LayerNeed full() { return {.kv_heads = kKvHeads, .key_dim = kDim, .value_dim = kDim}; }
LayerNeed sliding() {
  LayerNeed need = full();
  need.window = WindowKind::sliding;
  need.window_size = kWindow;
  return need;
}

mx::array packed(int heads, int begin, int tokens, int salt) {
  std::vector<float> values;
  for (int position = begin; position < begin + tokens; ++position) {
    std::mt19937 random(
        static_cast<unsigned>(position * 64 + salt));  // a token's vectors depend on its position only
    std::normal_distribution<float> normal;
    for (int i = 0; i < heads * kDim; ++i) values.push_back(normal(random));
  }
  return mx::array(values.data(), {tokens, heads, kDim});
}

const AttendSpec kSpec{.scale = 0.35f, .sinks = std::nullopt, .selected = std::nullopt};

// One forward of `tokens` tokens over all layers: the attention outputs one under the other, evaluated.
mx::array run(const StateStore& store, Row& row, int tokens, const AttendSpec& spec = kSpec,
              bool publish = true, int salt = 0, SpanKind kind = SpanKind::causal) {
  const RowSpan span{&row, tokens, kind};
  Step step = store.plan({&span, 1});
  const int begin = step.row_offsets()[0];
  std::vector<mx::array> outputs;
  for (int layer = 0; layer < static_cast<int>(store.needs().size()); ++layer)
    outputs.push_back(step.layer(layer).attend(packed(kHeads, begin, tokens, 1 + salt + 3 * layer),
                                               packed(kKvHeads, begin, tokens, 2 + salt + 3 * layer),
                                               packed(kKvHeads, begin, tokens, 3 + salt + 3 * layer), spec));
  mx::array all = mx::contiguous(mx::concatenate(outputs, 0));
  std::vector<mx::array> pending = step.pending();
  pending.push_back(all);
  mx::eval(pending);
  if (publish) step.publish();
  return all;
}

std::vector<float> floats(const mx::array& x) {
  const mx::array wide = mx::contiguous(mx::astype(x, mx::float32));
  mx::eval(wide);
  return {wide.data<float>(), wide.data<float>() + wide.size()};
}

// Layer 0 of run(), in double precision from the definition.
std::vector<double> expected(int begin, int tokens, int window, const AttendSpec& spec,
                             SpanKind kind = SpanKind::causal) {
  const int end = begin + tokens;
  const std::vector<float> q = floats(packed(kHeads, begin, tokens, 1));
  const std::vector<float> k = floats(packed(kKvHeads, 0, end, 2));
  const std::vector<float> v = floats(packed(kKvHeads, 0, end, 3));
  std::vector<double> out;
  for (int query = begin; query < end; ++query)
    for (int head = 0; head < kHeads; ++head) {
      const int kv = head / (kHeads / kKvHeads);
      const int last = kind == SpanKind::bidirectional ? end : query + 1;
      double total = 0;
      std::vector<double> sum(kDim, 0.0);
      for (int key = 0; key < last; ++key) {
        const bool in_span = kind == SpanKind::bidirectional && key >= begin;
        if (window > 0 && key <= query - window && !in_span) continue;
        double score = 0;
        for (int i = 0; i < kDim; ++i)
          score +=
              double(q[((query - begin) * kHeads + head) * kDim + i]) * k[(key * kKvHeads + kv) * kDim + i];
        score *= spec.scale;
        if (spec.soft_cap > 0) score = spec.soft_cap * std::tanh(score / spec.soft_cap);
        const double weight = std::exp(score);
        total += weight;
        for (int i = 0; i < kDim; ++i) sum[i] += weight * v[(key * kKvHeads + kv) * kDim + i];
      }
      for (const double value : sum) out.push_back(value / total);
    }
  return out;
}

// f32 sums of at most 64 products of normal values: 64 * 2^-24 * a magnitude below 32, twice (scores, then
// values).
constexpr double kTolerance = 64 * 32 * 2.0 / (1 << 24);

void expect_close(const mx::array& actual, const std::vector<double>& wanted) {
  const std::vector<float> got = floats(actual);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], kTolerance) << i;
}

bool same(const mx::array& a, const mx::array& b) { return mx::array_equal(a, b).item<bool>(); }

ErrorCode code_of(const std::function<void()>& body, std::string* message = nullptr) {
  try {
    body();
  } catch (const Error& error) {
    if (message) *message = error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(State, AttentionEqualsItsDefinitionForEverySpanKindAndWindow) {
  for (const LayerNeed& need : {full(), sliding()})
    for (const SpanKind kind : {SpanKind::causal, SpanKind::committed, SpanKind::bidirectional})
      for (const float cap : {0.0f, 1.5f}) {
        const StateStore store({need}, {}, NumericMode::reference);
        Row row = store.create();
        AttendSpec spec = kSpec;
        spec.soft_cap = cap;
        for (const int tokens : {3, 1, 1, 6, 1, 1, 1, 12, 5, 1}) {
          SCOPED_TRACE(testing::Message()
                       << "window " << need.window_size << " at " << row.position() << "+" << tokens);
          const int begin = row.position();
          expect_close(run(store, row, tokens, spec, true, 0, kind),
                       expected(begin, tokens, need.window_size, spec, kind));
        }
      }
}

TEST(State, SinksTakeTheirShareOfTheSoftmax) {
  const StateStore store({full()}, {}, NumericMode::reference);
  Row with = store.create(), without = store.create();
  AttendSpec spec = kSpec;
  spec.sinks = mx::array({50.0f, 50.0f, 50.0f, 50.0f});
  for (const float value : floats(run(store, with, 4, spec))) EXPECT_NEAR(value, 0.0, 1e-6);
  EXPECT_FALSE(same(run(store, without, 4), mx::zeros({4, kHeads, kDim})));
  spec.soft_cap = 2.0f;
  EXPECT_EQ(code_of([&] { run(store, with, 1, spec); }), ErrorCode::unsupported);
}

TEST(State, AQueryThatSelectsPositionsSeesThoseOfThemThatItMaySee) {
  const StateStore store({full()}, {}, NumericMode::reference);
  Row row = store.create(), all = store.create();
  run(store, row, 5);
  run(store, all, 5);
  AttendSpec spec = kSpec;
  // Query 0, at position 5, names what it sees and more; query 1 sees its own position alone, whose value it gives.
  spec.selected = mx::array({0, 1, 2, 3, 4, 5, 6, 6, -1, -1, -1, -1, -1, -1}, {2, 7}, mx::int32);
  const mx::array chosen = run(store, row, 2, spec), plain = run(store, all, 2);
  const auto query = [](const mx::array& x, int i) { return mx::slice(x, {i, 0, 0}, {i + 1, kHeads, kDim}); };
  EXPECT_TRUE(mx::allclose(query(chosen, 0), query(plain, 0), 1e-5, 1e-5).item<bool>());
  const mx::array own = mx::repeat(packed(kKvHeads, 6, 1, 3), kHeads / kKvHeads, 1);
  EXPECT_TRUE(mx::allclose(query(chosen, 1), own, 1e-5, 1e-5).item<bool>());
  const StateStore window({sliding()}, {}, NumericMode::reference);
  Row slides = window.create();
  EXPECT_EQ(code_of([&] { run(window, slides, 2, spec); }), ErrorCode::unsupported);
}

TEST(State, BuffersGrowPastTheirStepWithoutLosingTokens) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  Row whole = store.create(), steps = store.create();
  const mx::array at_once = run(store, whole, 600);
  run(store, steps, 250);
  mx::array last = run(store, steps, 1);
  for (int i = 251; i < 600; ++i) last = run(store, steps, 1);
  ASSERT_EQ(steps.position(), 600);
  const auto tail = [](const mx::array& x, int layer, int tokens) {
    const int end = (layer + 1) * tokens;
    return mx::slice(x, {end - 1, 0, 0}, {end, kHeads, kDim});
  };
  for (const int layer : {0, 1})
    EXPECT_TRUE(mx::allclose(tail(at_once, layer, 600), tail(last, layer, 1), 1e-5, 1e-5).item<bool>())
        << layer;
}

TEST(State, EveryDenseTypeStoresWhatItsNameSays) {
  const std::pair<const char*, mx::Dtype> types[] = {{"dense", mx::float32},
                                                     {"dense:f32", mx::float32},
                                                     {"dense:f16", mx::float16},
                                                     {"dense:bf16", mx::bfloat16}};
  for (const auto& [name, dtype] : types) {
    const StateStore store({full()}, parse_kv_policy(name), NumericMode::reference);
    Row row = store.create();
    const RowSpan span{&row, 5};
    Step step = store.plan({&span, 1});
    const mx::array out = step.layer(0).attend(packed(kHeads, 0, 5, 1), packed(kKvHeads, 0, 5, 2),
                                               packed(kKvHeads, 0, 5, 3), kSpec);
    EXPECT_EQ(out.dtype(), mx::float32) << name;
    for (const mx::array& plane : step.pending()) EXPECT_EQ(plane.dtype(), dtype) << name;
  }
}

TEST(State, AForkGoesItsOwnWayAndLeavesItsOriginAlone) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  Row origin = store.create(), plain = store.create();
  run(store, origin, 6);
  run(store, plain, 6);
  Row fork = origin.fork(4);
  EXPECT_EQ(fork.position(), 4);
  run(store, fork, 3, kSpec, true, /*salt=*/1000);  // other content at positions 4..6
  EXPECT_TRUE(same(run(store, origin, 2), run(store, plain, 2)));
  Row cut = store.create();
  run(store, cut, 4);
  run(store, cut, 3, kSpec, true, 1000);
  EXPECT_TRUE(same(run(store, fork, 1), run(store, cut, 1)));
}

TEST(State, TruncatingThenContinuingEqualsNeverHavingSeenTheRest) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  Row cut = store.create(), plain = store.create();
  run(store, cut, 7);
  cut.truncate(3);
  run(store, plain, 3);
  for (const int tokens : {1, 4, 1, 1}) EXPECT_TRUE(same(run(store, cut, tokens), run(store, plain, tokens)));
  Row emptied = store.create(), fresh = store.create();
  run(store, emptied, 7);
  emptied.truncate(0);
  EXPECT_TRUE(same(run(store, emptied, 5), run(store, fresh, 5)));
}

TEST(State, AWrappedWindowRefusesAPrefixItHasDroppedAndNoLayerChanges) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  Row row = store.create(), plain = store.create();
  for (int i = 0; i < 20; ++i) run(store, row, 1), run(store, plain, 1);
  // 12..19 are held; the query at 19 needs 12..18 before it.
  EXPECT_EQ(row.minimum_reusable_length(), 19);
  std::string message;
  EXPECT_EQ(code_of([&] { row.truncate(12); }, &message), ErrorCode::invalid_argument);
  EXPECT_NE(message.find("12"), std::string::npos) << message;
  EXPECT_NE(message.find("19"), std::string::npos) << message;
  EXPECT_EQ(code_of([&] { row.fork(12); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { row.truncate(21); }), ErrorCode::invalid_argument);
  EXPECT_EQ(row.position(), 20);
  EXPECT_TRUE(same(run(store, row, 3), run(store, plain, 3)));
  // A model without windows goes back anywhere.
  const StateStore plain_store({full()}, {}, NumericMode::reference);
  Row unbounded = plain_store.create();
  run(plain_store, unbounded, 20);
  EXPECT_EQ(unbounded.minimum_reusable_length(), 0);
  unbounded.truncate(12);
  EXPECT_EQ(unbounded.position(), 12);
}

TEST(State, ADraftWindowBehindAWrapCanBeTakenBack) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  for (const int warm : {9, 15, 16, 30}) {
    Row row = store.create(), plain = store.create();
    for (int i = 0; i < warm; ++i) run(store, row, 1), run(store, plain, 1);
    run(store, row, 5, kSpec, true, 1000);
    EXPECT_LE(row.minimum_reusable_length(), warm);
    row.truncate(warm);
    expect_close(mx::slice(run(store, row, 4), {0, 0, 0}, {4, kHeads, kDim}), expected(warm, 4, 0, kSpec));
    run(store, plain, 4);
    // Columns may stand in another order now, so the sliding layer is compared by value.
    EXPECT_TRUE(mx::allclose(run(store, row, 1), run(store, plain, 1), 1e-5, 1e-5).item<bool>()) << warm;
  }
}

TEST(State, AStepThatIsDroppedBeforePublishLeavesItsRowAsItWas) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  for (const int prefix : {0, 5, 20, 256})
    for (const int lost : {1, 3, 256})
      for (const bool evaluated : {false, true}) {
        SCOPED_TRACE(testing::Message() << prefix << " then " << lost << (evaluated ? " evaluated" : ""));
        Row row = store.create(), plain = store.create();
        if (prefix > 0) run(store, row, prefix), run(store, plain, prefix);
        if (evaluated) {
          run(store, row, lost, kSpec, /*publish=*/false, 1000);
        } else {
          const RowSpan span{&row, lost};
          Step step = store.plan({&span, 1});  // only the first layer is reached before something throws
          step.layer(0).attend(packed(kHeads, prefix, lost, 1), packed(kKvHeads, prefix, lost, 1000),
                               packed(kKvHeads, prefix, lost, 1001), kSpec);
        }
        EXPECT_EQ(row.position(), prefix);
        EXPECT_TRUE(same(run(store, row, 2), run(store, plain, 2)));
        EXPECT_TRUE(same(run(store, row, 1), run(store, plain, 1)));
      }
}

// An operation that fails when it runs, as one that is out of memory would.
class Failing final : public mx::Primitive {
 public:
  explicit Failing(mx::Stream stream) : mx::Primitive(stream) {}
  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("failed");
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("failed");
  }
  const char* name() const override { return "Failing"; }
};

TEST(State, AnEvaluationThatFailsLeavesTheRowAsItWas) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  for (const int prefix : {0, 5, 20, 256}) {
    SCOPED_TRACE(prefix);
    Row row = store.create(), plain = store.create();
    if (prefix > 0) run(store, row, prefix), run(store, plain, prefix);
    {
      const RowSpan span{&row, 1};
      Step step = store.plan({&span, 1});
      const mx::array broken(mx::Shape{1, kKvHeads, kDim}, mx::float32,
                             std::make_shared<Failing>(mx::default_stream(mx::default_device())), {});
      for (const int layer : {0, 1})
        step.layer(layer).attend(packed(kHeads, prefix, 1, 1), broken, broken, kSpec);
      EXPECT_THROW(mx::eval(step.pending()), std::runtime_error);
    }
    EXPECT_EQ(row.position(), prefix);
    EXPECT_TRUE(same(run(store, row, 2), run(store, plain, 2)));
    EXPECT_TRUE(same(run(store, row, 1), run(store, plain, 1)));
  }
}

TEST(State, ABlockIsAttendedWithTheStoredContextAndNothingIsStored) {
  AttendSpec spec = kSpec;
  for (const LayerNeed& need : {full(), sliding()})
    for (const int prefix : {0, 5, 20})
      for (const int block : {1, 4}) {
        const StateStore store({need}, {}, NumericMode::reference);
        Row row = store.create(), plain = store.create();
        if (prefix > 0) run(store, row, prefix), run(store, plain, prefix);
        {
          const RowSpan span{&row, block};
          Step step = store.plan({&span, 1});
          const mx::array out =
              step.layer(0).attend_block(packed(kHeads, prefix, block, 1), packed(kKvHeads, prefix, block, 2),
                                         packed(kKvHeads, prefix, block, 3), spec);
          expect_close(out, expected(prefix, block, need.window_size, spec, SpanKind::bidirectional));
        }
        EXPECT_EQ(row.position(), prefix);
        EXPECT_TRUE(same(run(store, row, 2), run(store, plain, 2)));
      }
}

TEST(State, ALayerIsReadAgainWithoutStoring) {
  const StateStore store({sliding()}, {}, NumericMode::reference);
  Row row = store.create();
  run(store, row, 11);
  const RowSpan span{&row, 1};
  Step step = store.plan({&span, 1});
  EXPECT_EQ(code_of([&] { step.layer(0).attend(packed(kHeads, 11, 1, 1), kSpec); }), ErrorCode::internal);
  const mx::array stored = step.layer(0).attend(packed(kHeads, 11, 1, 1), packed(kKvHeads, 11, 1, 2),
                                                packed(kKvHeads, 11, 1, 3), kSpec);
  EXPECT_TRUE(same(step.layer(0).attend(packed(kHeads, 11, 1, 1), kSpec), stored));
}

// Appending writes into the row's blocks: new ones come only where a row reaches a new block.
TEST(State, DecodingTakesNoBlockButTheNext) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  Row row = store.create();
  run(store, row, 3);
  const std::size_t before = store.resident_bytes();
  for (int i = 3; i < 64; ++i) run(store, row, 1);
  EXPECT_EQ(store.resident_bytes(), before);
  Row fork = row.fork(64);  // the block is full: nobody copies it
  run(store, row, 1);
  run(store, fork, 1);
  EXPECT_EQ(store.resident_bytes(), 3 * before);
}

TEST(State, BrokenPromisesAreErrorsThatChangeNothing) {
  const StateStore store({full(), full()}, {}, NumericMode::reference);
  Row row = store.create();
  run(store, row, 2);
  const RowSpan span{&row, 1};
  {
    Step step = store.plan({&span, 1});
    EXPECT_EQ(code_of([&] { store.plan({&span, 1}); }), ErrorCode::internal);
    EXPECT_EQ(code_of([&] { row.truncate(1); }), ErrorCode::internal);
    EXPECT_EQ(code_of([&] { step.publish(); }), ErrorCode::internal);  // no layer stored
    for (const int layer : {0, 1})
      step.layer(layer).attend(packed(kHeads, 2, 1, 1), packed(kKvHeads, 2, 1, 2), packed(kKvHeads, 2, 1, 3),
                               kSpec);
    EXPECT_EQ(code_of([&] { step.publish(); }), ErrorCode::internal);  // nothing was evaluated
    EXPECT_EQ(code_of([&] { step.layer(2); }), ErrorCode::internal);
    EXPECT_EQ(code_of([&] {
                step.layer(0).attend(packed(kHeads, 2, 1, 1), packed(kKvHeads, 2, 1, 2),
                                     packed(kKvHeads, 2, 1, 3), kSpec);
              }),
              ErrorCode::internal);
  }
  EXPECT_EQ(row.position(), 2);
  EXPECT_EQ(run(store, row, 1).shape(0), 2);
}

TEST(State, RefusesWhatReferenceModeCannotServe) {
  const StateStore store({full()}, {}, NumericMode::reference);
  Row one = store.create(), two = store.create();
  const RowSpan both[] = {{&one, 1}, {&two, 1}};
  EXPECT_EQ(code_of([&] { store.plan(both); }), ErrorCode::unsupported);
  const RowSpan nothing{&one, 0};
  EXPECT_EQ(code_of([&] { store.plan({&nothing, 1}); }), ErrorCode::invalid_argument);
  LayerNeed windowless = sliding();
  windowless.window_size = 0;
  EXPECT_EQ(code_of([&] { StateStore({windowless}, {}, NumericMode::reference); }),
            ErrorCode::invalid_argument);
}

TEST(State, BytesAreCountedAndNeverAboveTheProjection) {
  const StateStore store({full(), sliding()}, {}, NumericMode::reference);
  EXPECT_EQ(store.bytes_per_token(), 2u * kKvHeads * 2 * kDim * 4);
  const StateStore half({full(), sliding()}, parse_kv_policy("dense:bf16"), NumericMode::reference);
  EXPECT_EQ(half.bytes_per_token(), store.bytes_per_token() / 2);
  Row row = store.create();
  EXPECT_EQ(row.bytes(), 0u);
  for (const int tokens : {1, 300, 1, 700, 1, 1}) {
    run(store, row, tokens);
    EXPECT_LE(row.bytes(), store.projected_bytes(row.position())) << row.position();
    EXPECT_GE(row.bytes(), store.bytes_per_token() / 2 * static_cast<std::size_t>(row.position()));
  }
}

TEST(State, SignaturesTellApartWhatCannotBeInterchanged) {
  const auto signature = [](StateNeeds needs, const char* policy, int start = 0) {
    KvPolicy kv = parse_kv_policy(policy);
    kv.start = start;
    return StateStore(std::move(needs), kv, NumericMode::reference).signature();
  };
  EXPECT_EQ(signature({full(), sliding(), sliding()}, "dense").to_string(),
            "reference dense start=0 tables=1 1*full(2x8,8):4 2*sliding{8}(2x8,8):4");
  LayerNeed wide = full();
  wide.key_dim = wide.value_dim = 64;
  const std::vector<KvSignature> all = {
      signature({full()}, "dense"),           signature({full()}, "dense:f16"),
      signature({sliding()}, "dense"),        signature({full(), full()}, "dense"),
      signature({wide}, "dense"),             signature({wide}, "affine:4:32"),
      signature({wide}, "affine:4:64"),       signature({wide}, "affine:8:64"),
      signature({wide}, "affine:8:64", 5),    signature({wide}, "turbo:8:3"),
      signature({wide}, "turbo:8:4"),         signature({wide}, "turbo:4:4"),
      signature({wide}, "turbo:8:3:parity"),
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(all[i] == all[j]) << all[i].to_string();
      EXPECT_NE(all[i].to_string(), all[j].to_string());
    }
}

}  // namespace
}  // namespace godwit::cache
