// Matrices of experts in `native` mode: every form of a file gives each expert the packed bytes that its
// matrix has when it lies in a file alone.
#include <mlx/io.h>

#include <cstring>
#include <random>
#include <unordered_map>

#include "base/mx_ops.h"
#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/test_files.h"
#include "checkpoint/weight_store.h"
#include "support/random_array.h"

namespace godwit::checkpoint {
namespace {

using Tensors = std::unordered_map<std::string, mx::array>;
constexpr int kExperts = 3, kRows = 24, kColumns = 64;  // rows that end inside a band

const ExpertNames kGate = {.stacked = "switch.gate",
                           .each = "experts.{}.gate",
                           .fused = "experts.gate_up",
                           .part = ExpertNames::Part::first_half};
const ExpertNames kUp = {.stacked = "switch.up",
                         .each = "experts.{}.up",
                         .fused = "experts.gate_up",
                         .part = ExpertNames::Part::second_half};

using testing_support::random_array;

std::shared_ptr<WeightStore> store_of(const std::string& name, const Tensors& tensors, ThreadPool& pool) {
  const auto path = fresh_folder("native_experts_" + name) / "model.safetensors";
  mx::save_safetensors(path.string(), tensors);
  auto store = std::make_shared<WeightStore>(read_safetensors(std::make_shared<const FileMap>(path)),
                                             QuantizationMap(), path.string());
  store->pack_with(pool);
  return store;
}

Weight read(const std::shared_ptr<WeightStore>& store, const ExpertNames& names) {
  return WeightScope(store, "mlp").experts(names, kExperts, kRows, kColumns);
}

void expect_same(const ops::PackedMatrix& a, const ops::PackedMatrix& b) {
  ASSERT_EQ(a.shape().format, b.shape().format);
  ASSERT_EQ(a.shape().rows, b.shape().rows);
  ASSERT_EQ(a.shape().columns, b.shape().columns);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes().size()), 0);
}

// The planes of a matrix or a stack, by the ends of their names.
using Planes = std::vector<std::pair<std::string, mx::array>>;

Planes planes_of(const mx::array& values, int bits) {
  if (bits == 0) return {{"weight", values}};
  const std::vector<mx::array> q = mx::quantize(values, 32, bits);
  return {{"weight", q[0]}, {"scales", q[1]}, {"biases", q[2]}};
}

// Rows [begin, end) of each matrix of a stack.
mx::array rows_of(const mx::array& plane, int begin, int end) {
  return mx::contiguous(mx::slice(plane, {0, begin, 0}, {plane.shape(0), end, plane.shape(2)}));
}

// A file that holds the matrix `expert` of the planes alone.
Weight alone(const Planes& planes, int expert, ThreadPool& pool) {
  Tensors tensors;
  for (const auto& [name, plane] : planes)
    tensors.emplace("m." + name, mx::contiguous(mx::take(plane, expert, 0)));
  return store_of("alone", tensors, pool)->matrix("m", kRows, kColumns);
}

TEST(NativeExperts, EveryFormOfAFileHoldsTheMatricesThatItHoldsAlone) {
  ThreadPool pool(2);
  for (const auto& [dtype, bits] : {std::pair(mx::bfloat16, 0), std::pair(mx::float16, 0),
                                    std::pair(mx::bfloat16, 4), std::pair(mx::float32, 8)}) {
    SCOPED_TRACE(bits);
    const Planes both = planes_of(random_array({kExperts, 2 * kRows, kColumns}, 1, dtype), bits);
    Planes gate, up;
    Tensors stacked, each, fused;
    for (const auto& [name, plane] : both) {
      gate.emplace_back(name, rows_of(plane, 0, kRows));
      up.emplace_back(name, rows_of(plane, kRows, 2 * kRows));
      stacked.emplace("mlp.switch.gate." + name, gate.back().second);
      stacked.emplace("mlp.switch.up." + name, up.back().second);
      fused.emplace("mlp.experts.gate_up." + name, plane);
      for (int e = 0; e < kExperts; ++e) {
        each.emplace(fmt::format("mlp.experts.{}.gate.{}", e, name),
                     mx::contiguous(mx::take(gate.back().second, e, 0)));
        each.emplace(fmt::format("mlp.experts.{}.up.{}", e, name),
                     mx::contiguous(mx::take(up.back().second, e, 0)));
      }
    }
    for (const auto& store :
         {store_of("stacked", stacked, pool), store_of("each", each, pool), store_of("fused", fused, pool)}) {
      for (const bool is_gate : {true, false}) {
        const Weight weight = read(store, is_gate ? kGate : kUp);
        ASSERT_EQ(weight.kind, WeightKind::packed);
        EXPECT_EQ(weight.packed, nullptr);
        EXPECT_EQ(std::tuple(weight.experts, weight.rows, weight.columns),
                  std::tuple(kExperts, kRows, kColumns));
        ASSERT_EQ(weight.packed_experts.size(), std::size_t{kExperts});
        for (int e = 0; e < kExperts; ++e)
          expect_same(*weight.packed_experts[static_cast<std::size_t>(e)],
                      *alone(is_gate ? gate : up, e, pool).packed);
      }
      EXPECT_NO_THROW(store->audit());
    }
  }
}

// Q4_0 and Q6_K with three axes, one fused from two halves.
TEST(NativeExperts, GgufBlocksArePackedExpertByExpert) {
  ThreadPool pool(2);
  std::mt19937 random(8);
  struct Kind {
    unsigned type;
    std::size_t block;  // bytes
    int elements;
  };
  for (const Kind& kind : {Kind{2, 18, 32}, Kind{14, 210, 256}}) {
    constexpr int columns = 256;
    const std::size_t matrix = 16 * columns / static_cast<std::size_t>(kind.elements) * kind.block;
    std::string bytes(2 * 2 * matrix, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 96);
    const auto store_from = [&](const std::string& name, const std::string& content,
                                std::vector<std::uint64_t> shape) {
      const auto path = write_file(fresh_folder("native_experts_gguf") / (name + ".gguf"),
                                   GgufBytes()
                                       .string("general.architecture", "llama")
                                       .tensor("m.weight", shape, kind.type, content)
                                       .bytes());
      GgufFile file = read_gguf(std::make_shared<const FileMap>(path));
      auto store = std::make_shared<WeightStore>(file.tensors, QuantizationMap(), path.string());
      store->pack_with(pool);
      return store;
    };
    const auto all = store_from("all", bytes, {columns, 32, 2});
    const ExpertNames halves[] = {{.stacked = "none", .fused = "m", .part = ExpertNames::Part::first_half},
                                  {.stacked = "none", .fused = "m", .part = ExpertNames::Part::second_half}};
    const Weight whole = all->experts("", {.stacked = "m"}, 2, 32, columns);
    ASSERT_EQ(whole.packed_experts.size(), 2U);
    for (std::size_t e = 0; e < 2; ++e) {
      const auto one = store_from("one", bytes.substr(e * 2 * matrix, 2 * matrix), {columns, 32});
      expect_same(*whole.packed_experts[e], *one->matrix("m", 32, columns).packed);
      for (std::size_t half = 0; half < 2; ++half) {
        const auto part = store_from("part", bytes.substr((2 * e + half) * matrix, matrix), {columns, 16});
        expect_same(*all->experts("", halves[half], 2, 16, columns).packed_experts[e],
                    *part->matrix("m", 16, columns).packed);
      }
    }
  }
}

TEST(NativeExperts, WhatHasNoKernelIsNamed) {
  ThreadPool pool(1);
  const mx::array wide = random_array({kExperts, kRows, kColumns}, 2, mx::float32);
  const auto f32 = store_of("f32", {{"mlp.switch.gate.weight", wide}}, pool);
  expect_error(ErrorCode::unsupported, {"switch.gate.weight", "F32"}, [&] { read(f32, kGate); });
  ExpertNames swapped = kGate;
  swapped.is_transposed = true;
  const auto turned = store_of(
      "turned", {{"mlp.experts.gate_up", random_array({kExperts, kColumns, 2 * kRows}, 3, mx::bfloat16)}},
      pool);
  expect_error(ErrorCode::unsupported, {"experts.gate_up", "axes swapped"}, [&] { read(turned, swapped); });
  Tensors mixed;
  for (int e = 0; e < kExperts; ++e)
    mixed.emplace(fmt::format("mlp.experts.{}.gate.weight", e),
                  random_array({kRows, kColumns}, 4, e == 2 ? mx::float16 : mx::bfloat16));
  const auto store = store_of("mixed", mixed, pool);
  expect_error(ErrorCode::corrupt_file, {"experts 0 and 2", "experts.{}.gate"}, [&] { read(store, kGate); });
  const auto more = store_of(
      "more", {{"mlp.switch.gate.weight", random_array({4, kRows, kColumns}, 5, mx::bfloat16)}}, pool);
  expect_error(ErrorCode::corrupt_file, {"[4, 24, 64]", "[3, 24, 64]"}, [&] { read(more, kGate); });
}

TEST(NativeExperts, MissingPartsAreListed) {
  ThreadPool pool(1);
  const Planes planes = planes_of(random_array({kRows, kColumns}, 6, mx::bfloat16), 4);
  Tensors some;
  for (const int e : {0, 2})
    for (const auto& [name, plane] : planes)
      if (e == 0 || name != "biases") some.emplace(fmt::format("mlp.experts.{}.gate.{}", e, name), plane);
  const auto store = store_of("some", some, pool);
  EXPECT_TRUE(read(store, kGate).packed_experts.empty());
  expect_error(ErrorCode::corrupt_file, {"mlp.experts.1.gate.weight", "mlp.experts.2.gate.biases"},
               [&] { store->audit(); });
}

TEST(NativeExperts, QuantizingOnLoadTakesEachExpertAndLeavesValuesAlone) {
  ThreadPool pool(2);
  const mx::array stack = random_array({kExperts, kRows, kColumns}, 7, mx::bfloat16);
  const mx::array router = random_array({kExperts, kColumns}, 8, mx::bfloat16);
  const auto store =
      store_of("on_load", {{"mlp.switch.gate.weight", stack}, {"mlp.router.weight", router}}, pool);
  store->quantize_with(kernels::BlockFormat::q8_0);
  const Weight weight = read(store, kGate);
  ASSERT_EQ(weight.packed_experts.size(), std::size_t{kExperts});
  for (int e = 0; e < kExperts; ++e) {
    const auto one = store_of("one", {{"m.weight", mx::contiguous(mx::take(stack, e, 0))}}, pool);
    one->quantize_with(kernels::BlockFormat::q8_0);
    expect_same(*weight.packed_experts[static_cast<std::size_t>(e)],
                *one->matrix("m", kRows, kColumns).packed);
  }
  const std::vector<float> values = (WeightScope(store, "mlp") / "router").values(kExperts, kColumns);
  mx::array wide = mx::astype(router, mx::float32);
  wide.eval();
  EXPECT_EQ(values, std::vector<float>(wide.data<float>(), wide.data<float>() + wide.size()));
  EXPECT_GT(store->quantized(), 0);
  EXPECT_NO_THROW(store->audit());
}

TEST(NativeValues, AreThoseOfTheFileInEveryFormat) {
  ThreadPool pool(1);
  const mx::array wide = random_array({kExperts, kColumns}, 9, mx::float32),
                  narrow = mx::astype(wide, mx::float16);
  const std::vector<mx::array> q = mx::quantize(wide, 32, 8);
  const auto store = store_of(
      "values",
      {{"w.weight", wide}, {"h.weight", narrow}, {"q.weight", q[0]}, {"q.scales", q[1]}, {"q.biases", q[2]}},
      pool);
  const auto expect_values = [&](const std::string& name, const mx::array& wanted) {
    mx::array exact = mx::contiguous(mx::astype(wanted, mx::float32));
    exact.eval();
    EXPECT_EQ(store->values(name, kExperts, kColumns),
              std::vector<float>(exact.data<float>(), exact.data<float>() + exact.size()))
        << name;
  };
  expect_values("w", wide);
  expect_values("h", narrow);
  const mx::array codes = mx::dequantize(q[0], mx::ones_like(q[1]), mx::zeros_like(q[2]), 32, 8);
  const auto spread = [&](const mx::array& plane) { return mx::repeat(plane, 32, 1); };
  expect_values("q", codes * spread(q[1]) + spread(q[2]));
  EXPECT_NO_THROW(store->audit());
  EXPECT_EQ(store->values("none", 2, 3), std::vector<float>(6));
  expect_error(ErrorCode::corrupt_file, {"none.weight"}, [&] { store->audit(); });
  expect_error(ErrorCode::corrupt_file, {"w.weight", "[3, 64]"}, [&] { store->values("w", 2, kColumns); });
}

}  // namespace
}  // namespace godwit::checkpoint
