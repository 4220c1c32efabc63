// Records and decoded values of every KV codec against plain NumPy (make_kv_codecs.py), bit for bit and at
// every level that this machine runs.
#include <gtest/gtest.h>
#include <mlx/io.h>
#include <mlx/transforms.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/json.h"
#include "base/mx.h"
#include "kernels/kv_codec.h"
#include "kernels/select.h"
#include "kernels/turbo_tables.h"

namespace godwit::kernels {
namespace {

using Tensors = std::unordered_map<std::string, mx::array>;

const Tensors& expected() {
  static const Tensors tensors = [] {
    Tensors all = mx::load_safetensors(std::string(GODWIT_KV_CODECS_FOLDER) + "/expected.safetensors").first;
    for (auto& [name, tensor] : all) tensor.eval();
    return all;
  }();
  return tensors;
}

Json cases() { return read_json_file(std::filesystem::path(GODWIT_KV_CODECS_FOLDER) / "cases.json"); }

struct Case {
  std::string name;
  KvPlane plane;
  std::int64_t tokens;
  const mx::array &x, &records, &decoded;
};

Case read_case(const Json& entry) {
  const std::string name = entry.at("name").get<std::string>(), form = entry.at("form").get<std::string>();
  const mx::array& x = expected().at(name + ".x");
  return {name,
          {.form = form == "affine"       ? KvForm::affine
                   : form == "turbo_keys" ? KvForm::turbo_keys
                                          : KvForm::turbo_values,
           .bits = entry.at("bits").get<int>(),
           .group = entry.at("group").get<int>(),
           .parity = entry.at("parity").get<bool>(),
           .heads = x.shape(1),
           .dim = x.shape(2)},
          x.shape(0),
          x,
          expected().at(name + ".records"),
          expected().at(name + ".decoded")};
}

// The plane in both roles, in blocks of its own: one token at a time, or all at once.
class Stored {
 public:
  Stored(const Case& c, std::int64_t chunk) : keys(c.plane), values(c.plane) {
    values.offset = plane_bytes(keys);
    for (std::int64_t at = 0; at < c.tokens; at += kBlockPositions) {
      memory_.emplace_back(static_cast<std::size_t>(2 * values.offset), std::byte{0xee});
      blocks.push_back(memory_.back().data());
    }
    const std::int64_t stride = keys.heads * keys.dim;
    for (std::int64_t at = 0; at < c.tokens; at += chunk) {
      const float* x = c.x.data<float>() + at * stride;
      store_kv({x, x, blocks.data(), keys, values, at, std::min(chunk, c.tokens - at), stride, stride});
    }
  }
  const std::uint8_t* record(const KvPlane& plane, std::int64_t head, std::int64_t token) const {
    const auto* block =
        static_cast<const std::uint8_t*>(blocks[static_cast<std::size_t>(token / kBlockPositions)]);
    return block + plane.offset + (head * kBlockPositions + token % kBlockPositions) * record_bytes(plane);
  }

  KvPlane keys, values;
  std::vector<void*> blocks;

 private:
  std::vector<std::vector<std::byte>> memory_;
};

// Equal patterns; any NaN equals any NaN.
bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, 4) == 0; }

TEST(KvCodecs, WriteTheRecordsOfTheFormulas) {
  int seen = 0;
  for (const Json& entry : cases()) {
    const Case c = read_case(entry);
    ASSERT_EQ(record_bytes(c.plane), c.records.shape(2)) << c.name;
    check_plane(c.plane);
    for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{7}, c.tokens}) {
      const Stored stored(c, chunk);
      const std::uint8_t* want = c.records.data<std::uint8_t>();
      const auto bytes = static_cast<std::size_t>(record_bytes(c.plane));
      for (std::int64_t head = 0; head < c.plane.heads; head++)
        for (std::int64_t token = 0; token < c.tokens; token++, want += bytes)
          for (const KvPlane* plane : {&stored.keys, &stored.values})
            ASSERT_EQ(std::memcmp(stored.record(*plane, head, token), want, bytes), 0)
                << c.name << " head " << head << " token " << token << " in chunks of " << chunk;
    }
    seen++;
  }
  EXPECT_GE(seen, 100);
}

TEST(KvCodecs, DecodeAsTheFormulasAtEveryLevel) {
  for (const Json& entry : cases()) {
    const Case c = read_case(entry);
    const Stored stored(c, c.tokens);
    std::vector<float> key_tile(static_cast<std::size_t>(c.plane.dim * kBlockPositions)),
        value_tile(key_tile);
    const float* want = c.decoded.data<float>();
    for (const Level level : runnable_levels())
      for (std::int64_t head = 0; head < c.plane.heads; head++)
        for (std::int64_t first = 0; first < c.tokens; first += kBlockPositions) {
          const std::int64_t count = std::min(kBlockPositions, c.tokens - first);
          kernels_for(level).decode_kv({stored.blocks[static_cast<std::size_t>(first / kBlockPositions)],
                                        stored.keys, stored.values, head, 0, count, key_tile.data(),
                                        value_tile.data()});
          for (std::int64_t slot = 0; slot < count; slot++)
            for (std::int64_t d = 0; d < c.plane.dim; d++) {
              const float wanted = want[(head * c.tokens + first + slot) * c.plane.dim + d];
              const float key = key_tile[static_cast<std::size_t>(d * kBlockPositions + slot)];
              const float value = value_tile[static_cast<std::size_t>(slot * c.plane.dim + d)];
              ASSERT_TRUE(same(key, wanted) && same(value, wanted))
                  << c.name << ' ' << level_name(level) << " head " << head << " token " << first + slot
                  << " element " << d << ": " << key << " and " << value << ", wanted " << wanted;
              ASSERT_TRUE(c.plane.parity || std::isfinite(key)) << c.name;
            }
        }
  }
}

TEST(KvCodecs, TurnValuesBackAtEveryLevel) {
  for (const Json& entry : cases()) {
    const Case c = read_case(entry);
    if (c.plane.form != KvForm::turbo_values) continue;
    const mx::array& want = expected().at(c.name + ".back");
    for (const Level level : runnable_levels()) {
      std::vector<float> x(c.decoded.data<float>(), c.decoded.data<float>() + c.decoded.size());
      const std::int64_t rows = c.plane.heads * c.tokens;
      kernels_for(level).restore_values({x.data(), rows, c.plane.dim, c.plane.dim});
      for (std::size_t i = 0; i < x.size(); i++)
        ASSERT_TRUE(x[i] == want.data<float>()[i]) << c.name << ' ' << level_name(level) << " element " << i;
    }
  }
}

TEST(TurboTables, AreTheLloydMaxQuantizersOfTheNormalDistribution) {
  for (const int bits : {2, 3, 4, 5, 8}) {
    const mx::array &levels = expected().at("levels." + std::to_string(bits)),
                    &boundaries = expected().at("boundaries." + std::to_string(bits));
    ASSERT_EQ(levels.size(), 1u << bits);
    for (std::size_t i = 0; i < levels.size(); i++)
      ASSERT_EQ(turbo_levels(bits)[i], levels.data<float>()[i]) << bits << " bits, level " << i;
    for (std::size_t i = 0; i < boundaries.size(); i++)
      ASSERT_EQ(turbo_boundaries(bits)[i], boundaries.data<float>()[i]) << bits << " bits, boundary " << i;
  }
}

TEST(TurboTables, SignsAreTheDocumentedDraw) {
  for (const int dim : {64, 128, 256, 512}) {
    const mx::array& signs = expected().at("signs." + std::to_string(dim));
    int negative = 0;
    for (int i = 0; i < dim; i++) {
      const bool flips = turbo_signs(dim)[i / 64] >> (i % 64) & 1;
      ASSERT_EQ(flips ? -1.0f : 1.0f, signs.data<float>()[i]) << dim << ", " << i;
      negative += flips;
    }
    EXPECT_NEAR(negative, dim / 2, 3 * std::sqrt(dim) / 2);  // three standard deviations of a fair coin
  }
}

}  // namespace
}  // namespace godwit::kernels
