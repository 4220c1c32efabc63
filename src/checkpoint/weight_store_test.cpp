#include "checkpoint/weight_store.h"

#include <limits>

#include "base/mx_ops.h"
#include "base/thread_pool.h"
#include "checkpoint/quantize_rows.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/test_files.h"
#include "kernels/quantize_blocks.h"

namespace godwit::checkpoint {
namespace {

// A safetensors file of zero tensors with the given dtypes and shapes, as a store.
struct Planned {
  std::string name, dtype;
  std::vector<int> shape;
};

std::shared_ptr<WeightStore> store_of(const std::vector<Planned>& plan, const Json& quantization = nullptr,
                                      const WeightRules& rules = {}) {
  std::string header = "{";
  std::size_t at = 0;
  for (const Planned& tensor : plan) {
    std::size_t bytes = tensor.dtype == "F32" || tensor.dtype == "U32"      ? 4
                        : tensor.dtype == "U8" || tensor.dtype == "F8_E4M3" ? 1
                                                                            : 2;
    for (const int size : tensor.shape) bytes *= static_cast<std::size_t>(size);
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                          at || header.size() > 1 ? "," : "", tensor.name, tensor.dtype,
                          Json(tensor.shape).dump(), at, at + bytes);
    at += bytes;
  }
  const auto path = write_file(fresh_folder("store") / "model.safetensors",
                               safetensors_bytes(header + "}", std::string(at, '\0')));
  const QuantizationMap map =
      quantization.is_null() ? QuantizationMap() : QuantizationMap(quantization, "config.json");
  return std::make_shared<WeightStore>(read_safetensors(std::make_shared<const FileMap>(path)), map,
                                       path.string(), rules);
}

TEST(WeightStore, scopes_name_tensors_by_path) {
  auto store = store_of(
      {{"model.layers.3.mlp.up_proj.weight", "BF16", {8, 4}}, {"model.layers.3.norm.weight", "F32", {4}}});
  const WeightScope layer = WeightScope(store, "") / "model.layers" / 3;
  EXPECT_EQ(layer.path(), "model.layers.3");
  EXPECT_TRUE((layer / "norm").has("weight"));
  EXPECT_FALSE((layer / "norm").has("bias"));
  EXPECT_EQ((layer / "norm").dense("weight", {4}).dtype(), mx::float32);
  EXPECT_FALSE((layer / "norm").dense_if_present("bias", {4}).has_value());
  const Weight up = (layer / "mlp" / "up_proj").matrix(8, 4);
  EXPECT_EQ(up.kind, WeightKind::dense);
  EXPECT_EQ(up.data.dtype(), mx::bfloat16);
  EXPECT_NO_THROW(store->audit());
}

TEST(WeightStore, the_audit_lists_all_missing_parameters_and_all_unused_tensors_at_once) {
  auto store = store_of({{"used.weight", "F32", {4}}, {"stray.a", "F32", {1}}, {"stray.b", "F32", {1}}});
  const WeightScope root(store, "");
  (root / "used").dense("weight", {4});
  EXPECT_EQ((root / "gone").matrix(3, 5).data.shape(), mx::Shape({3, 5}));
  (root / "away").dense("bias", {2});
  expect_error(ErrorCode::corrupt_file,
               {"model.safetensors", "2 parameters are missing", "gone.weight", "away.bias",
                "2 tensors belong to no parameter", "stray.a", "stray.b"},
               [&] { store->audit(); });
}

TEST(WeightStore, a_long_list_is_cut_and_counted) {
  std::vector<Planned> plan;
  for (int i = 0; i < 100; ++i) plan.push_back({fmt::format("t{:03}", i), "F32", {1}});
  expect_error(ErrorCode::corrupt_file, {"100 tensors", "t000", "and 76 more"},
               [&] { store_of(plan)->audit(); });
}

TEST(WeightStore, a_family_drops_and_renames_tensors) {
  const WeightRules rules = {.drop = {"rotary_emb.inv_freq"},
                             .rename = [](std::string_view name) { return "model." + std::string(name); }};
  auto store =
      store_of({{"l.0.rotary_emb.inv_freq", "F32", {2}},
                {"l.0.p.weight", "U32", {8, 96}},
                {"l.0.p.scales", "BF16", {8, 4}},
                {"l.0.p.biases", "BF16", {8, 4}}},
               Json::parse(R"({"group_size":128,"bits":4,"l.0.p":{"bits":6,"group_size":128}})"), rules);
  EXPECT_FALSE(store->has("model.l.0.rotary_emb.inv_freq"));
  // The override, keyed by the name on disk, finds the renamed tensor.
  const Weight p = store->matrix("model.l.0.p", 8, 512);
  EXPECT_EQ(p.bits, 6);
  EXPECT_EQ(p.group, 128);
  EXPECT_NO_THROW(store->audit());
}

TEST(WeightStore, a_wrong_shape_is_named_with_both_shapes) {
  auto store = store_of({{"a.weight", "F32", {8, 4}}});
  expect_error(ErrorCode::corrupt_file, {"a.weight", "[8, 4]", "[4, 8]"}, [&] { store->matrix("a", 4, 8); });
  expect_error(ErrorCode::corrupt_file, {"a.weight", "[8, 4]", "[32]"},
               [&] { store->dense("a.weight", {32}); });
  expect_error(ErrorCode::not_found, {"b.weight"}, [&] { store->raw("b.weight"); });
}

TEST(WeightStore, every_affine_width_and_group_is_inferred_from_shapes) {
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128}) {
      SCOPED_TRACE(fmt::format("{} bits, group {}", bits, group));
      auto store = store_of({{"p.weight", "U32", {3, 256 * bits / 32}},
                             {"p.scales", "F16", {3, 256 / group}},
                             {"p.biases", "F16", {3, 256 / group}}});
      const Weight weight = store->matrix("p", 3, 256);
      EXPECT_EQ(weight.kind, WeightKind::affine);
      EXPECT_EQ(weight.bits, bits);
      EXPECT_EQ(weight.group, group);
      EXPECT_EQ(weight.dequantize(mx::float32).shape(), mx::Shape({3, 256}));
      EXPECT_NO_THROW(store->audit());
    }
}

TEST(WeightStore, byte_scales_pick_the_floating_point_modes) {
  const std::vector<std::tuple<int, int, WeightKind>> modes = {
      {4, 32, WeightKind::mxfp4}, {8, 32, WeightKind::mxfp8}, {4, 16, WeightKind::nvfp4}};
  for (const auto& [bits, group, kind] : modes) {
    auto store = store_of({{"p.weight", "U32", {2, 64 * bits / 32}}, {"p.scales", "U8", {2, 64 / group}}});
    const Weight weight = store->matrix("p", 2, 64);
    EXPECT_EQ(weight.kind, kind);
    EXPECT_FALSE(weight.biases.has_value());
    mx::array values = weight.dequantize(mx::float32);
    EXPECT_NO_THROW(values.eval());
    EXPECT_NO_THROW(store->audit());
  }
}

TEST(WeightStore, a_map_and_shapes_that_disagree_are_an_error_with_both) {
  const std::vector<Planned> plan = {
      {"p.weight", "U32", {8, 96}}, {"p.scales", "BF16", {8, 4}}, {"p.biases", "BF16", {8, 4}}};
  expect_error(
      ErrorCode::corrupt_file, {"p.weight", "affine 4-bit group 128", "affine 6-bit group 128"},
      [&] { store_of(plan, Json::parse(R"({"p":{"bits":4,"group_size":128}})"))->matrix("p", 8, 512); });
  expect_error(ErrorCode::corrupt_file, {"p.weight", "dense"},
               [&] { store_of(plan, Json::parse(R"({"p":false})"))->matrix("p", 8, 512); });
  expect_error(ErrorCode::corrupt_file, {"p.weight", "affine 4-bit", "p.scales"}, [] {
    store_of({{"p.weight", "BF16", {8, 64}}}, Json::parse(R"({"p":{"bits":4,"group_size":64}})"))
        ->matrix("p", 8, 64);
  });
  expect_error(ErrorCode::corrupt_file, {"p.weight", "fit no format"},
               [&] { store_of(plan)->matrix("p", 8, 500); });
}

// mlx-lm writes the routers of mxfp4 models so.
TEST(WeightStore, an_override_without_a_mode_is_affine_whatever_the_default) {
  auto store = store_of(
      {{"gate.weight", "U32", {8, 32}}, {"gate.scales", "BF16", {8, 2}}, {"gate.biases", "BF16", {8, 2}}},
      Json::parse(R"({"group_size":32,"bits":4,"mode":"mxfp4","gate":{"group_size":64,"bits":8}})"));
  const Weight gate = store->matrix("gate", 8, 128);
  EXPECT_EQ(gate.kind, WeightKind::affine);
  EXPECT_EQ(gate.bits, 8);
  expect_error(ErrorCode::unsupported, {"gate", "mxfp4 8-bit group 64"}, [] {
    store_of({}, Json::parse(R"({"group_size":32,"bits":4,"mode":"mxfp4",
                                 "gate":{"group_size":64,"bits":8,"mode":"mxfp4"}})"));
  });
}

TEST(WeightStore, false_in_the_map_stays_dense) {
  auto store = store_of({{"lm_head.weight", "BF16", {8, 64}}},
                        Json::parse(R"({"group_size":64,"bits":4,"lm_head":false})"));
  EXPECT_EQ(store->matrix("lm_head", 8, 64).kind, WeightKind::dense);
}

TEST(WeightStore, planes_of_wrong_dtype_are_refused) {
  expect_error(ErrorCode::unsupported, {"p.weight", "F8_E4M3"}, [] {
    store_of({{"p.weight", "F8_E4M3", {8, 64}}})->matrix("p", 8, 64);
  });
  expect_error(ErrorCode::unsupported, {"p.weight", "F32"}, [] {
    store_of({{"p.weight", "F32", {8, 8}}, {"p.scales", "F16", {8, 1}}})->matrix("p", 8, 64);
  });
  auto store = store_of({{"p.weight", "U32", {8, 8}}, {"p.scales", "F16", {8, 1}}});
  store->matrix("p", 8, 64);
  expect_error(ErrorCode::corrupt_file, {"p.biases"}, [&] { store->audit(); });
}

TEST(WeightStore, native_mode_packs_what_it_has_kernels_for_and_names_what_it_cannot) {
  ThreadPool pool(1);
  const auto packed = [&](const std::vector<Planned>& plan) {
    auto store = store_of(plan);
    store->pack_with(pool);
    const Weight weight = (WeightScope(store, "") / "p").matrix(8, 256);
    EXPECT_NO_THROW(store->audit());
    return weight;
  };
  const Weight weight =
      packed({{"p.weight", "U32", {8, 32}}, {"p.scales", "BF16", {8, 4}}, {"p.biases", "BF16", {8, 4}}});
  EXPECT_EQ(weight.kind, WeightKind::packed);
  EXPECT_EQ(weight.packed->shape().format, kernels::packed_affine(4, 64, kernels::ScaleType::bf16));
  EXPECT_EQ(weight.packed->bytes().size(),
            16u * (256 / 2 + 2 * 4 * 2));  // eight rows and as many of padding, not widened
  EXPECT_EQ(packed({{"p.weight", "BF16", {8, 256}}}).packed->shape().format,
            kernels::packed_dense(kernels::ScaleType::bf16));
  EXPECT_EQ(packed({{"p.weight", "F16", {8, 256}}}).packed->bytes().size(), 16u * 256 * 2);
  const auto refused = [&](std::vector<Planned> plan, std::vector<std::string> parts) {
    expect_error(ErrorCode::unsupported, std::move(parts), [&] { packed(plan); });
  };
  EXPECT_EQ(packed({{"p.weight", "U32", {8, 32}}, {"p.scales", "U8", {8, 8}}}).packed->bytes().size(),
            16u * (256 / 2 + 256 / 32));  // MXFP4
  refused({{"p.weight", "U32", {8, 64}}, {"p.scales", "U8", {8, 8}}}, {"p.weight", "mxfp8", "native"});
  refused({{"p.weight", "F32", {8, 256}}}, {"p.weight", "F32", "native"});
  refused({{"p.weight", "U32", {8, 32}}, {"p.scales", "BF16", {8, 4}}, {"p.biases", "F16", {8, 4}}},
          {"p.biases", "F16", "BF16"});
  expect_error(ErrorCode::unsupported, {"q.weight", "F16 of 48 columns", "native"}, [&] {
    auto narrow = store_of({{"q.weight", "F16", {8, 48}}});
    narrow->pack_with(pool);
    narrow->matrix("q", 8, 48);
  });
  auto store = store_of({{"p.weight", "U32", {8, 32}}, {"p.scales", "BF16", {8, 4}}});
  store->pack_with(pool);
  (WeightScope(store, "") / "p").matrix(8, 256);
  expect_error(ErrorCode::corrupt_file, {"p.biases"}, [&] { store->audit(); });
}

TEST(WeightStore, native_mode_packs_affine_matrices_of_every_width_and_group) {
  ThreadPool pool(2);
  for (const int bits : {2, 3, 4, 5, 6, 8})
    for (const int group : {32, 64, 128}) {
      SCOPED_TRACE(fmt::format("{} bits, group {}", bits, group));
      auto store = store_of({{"p.weight", "U32", {16, 256 * bits / 32}},
                             {"p.scales", "F32", {16, 256 / group}},
                             {"p.biases", "F32", {16, 256 / group}}});
      store->pack_with(pool);
      const Weight weight = store->matrix("p", 16, 256);
      EXPECT_EQ(weight.packed->shape().format, kernels::packed_affine(bits, group, kernels::ScaleType::f32));
      EXPECT_EQ(weight.packed->bytes().size(), 16u * static_cast<unsigned>(256 * bits / 8 + 256 / group * 8));
      EXPECT_NO_THROW(store->audit());
    }
}

TEST(WeightStore, numbers_are_quantized_where_that_is_asked_for_and_nothing_else_is) {
  ThreadPool pool(2);
  auto store = store_of({{"a.weight", "F32", {8, 256}},
                         {"b.weight", "BF16", {8, 64}},
                         {"c.weight", "U32", {8, 32}},
                         {"c.scales", "BF16", {8, 4}},
                         {"c.biases", "BF16", {8, 4}},
                         {"d.weight", "F16", {8, 48}}});
  store->pack_with(pool);
  store->quantize_with(kernels::BlockFormat::q4_0);
  const auto format = [&](const char* path, int columns) { return store->matrix(path, 8, columns).packed->shape().format; };
  EXPECT_EQ(format("a", 256), kernels::packed_format(kernels::BlockFormat::q4_0));
  EXPECT_EQ(format("b", 64), kernels::packed_format(kernels::BlockFormat::q4_0));
  EXPECT_EQ(format("c", 256), kernels::packed_affine(4, 64, kernels::ScaleType::bf16));
  EXPECT_EQ(store->quantized(), 2);
  expect_error(ErrorCode::unsupported, {"d.weight", "48 columns"}, [&] { store->matrix("d", 8, 48); });
  expect_error(ErrorCode::unsupported, {"nothing is quantized"}, [&] { store->quantize_with(kernels::BlockFormat::q4_k); });
}

TEST(QuantizedRows, hold_the_blocks_of_each_row_and_refuse_what_is_no_number) {
  constexpr int kRows = 70, kColumns = 64;
  std::vector<float> values(kRows * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 37 % 201) - 100) / 64.0f;
  const TensorEntry entry = store_of({{"some.weight", "F32", {1}}})->entry("some.weight");
  ThreadPool pool(2);
  const auto quantized = [&] {
    return quantized_rows(entry, std::as_bytes(std::span(values)), kRows, kColumns, kernels::BlockFormat::q8_0, pool);
  };
  std::vector<std::byte> want(kRows * 2 * 34);
  ASSERT_EQ(kernels::quantize_blocks(kernels::BlockFormat::q8_0, values.data(), kRows * 2, want.data()), kRows * 2u);
  EXPECT_EQ(quantized(), want);
  values[69 * kColumns] = std::numeric_limits<float>::quiet_NaN();
  values[41 * kColumns + 63] = std::numeric_limits<float>::infinity();
  expect_error(ErrorCode::corrupt_file, {"some.weight", "row 41"}, [&] { quantized(); });
  values[41 * kColumns + 63] = 0;
  expect_error(ErrorCode::corrupt_file, {"row 69"}, [&] { quantized(); });
  values[69 * kColumns] = 127.0f * 70000.0f;  // past the largest f16 scale
  expect_error(ErrorCode::corrupt_file, {"row 69"}, [&] { quantized(); });
}

TEST(WeightStore, names_that_become_equal_are_refused) {
  const WeightRules rules = {.drop = {}, .rename = [](std::string_view) { return std::string("same"); }};
  expect_error(ErrorCode::corrupt_file, {"a", "b", "same"}, [&] {
    store_of({{"a", "F32", {1}}, {"b", "F32", {1}}}, nullptr, rules);
  });
}

}  // namespace
}  // namespace godwit::checkpoint
