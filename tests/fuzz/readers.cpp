#include "readers.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/mx_ops.h"
#include "cache/cold_file.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/repack.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/test_dialects.h"
#include "checkpoint/weight_store.h"
#include "turn_reader.h"

namespace godwit::fuzz {
namespace {

using namespace checkpoint;

// Loading is tried on tensors up to this size: mutations make shapes large, and time is for the headers.
constexpr std::size_t kMaxLoaded = 1 << 16;

std::shared_ptr<const FileMap> as_file(const std::string& bytes) {
  const auto path = std::filesystem::temp_directory_path() / ("godwit_fuzz_" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  auto file = std::make_shared<const FileMap>(path);
  std::filesystem::remove(path);  // the map keeps the content
  return file;
}

// Every byte a tensor claims must be readable.
unsigned touch(const TensorEntry& entry) {
  unsigned sum = 0;
  for (const std::byte byte : entry.bytes()) sum += static_cast<unsigned>(byte);
  return sum;
}

void load(const std::vector<TensorEntry>& entries) {
  volatile unsigned sink = 0;
  for (const TensorEntry& entry : entries) {
    sink = sink + touch(entry);
    if (entry.size > kMaxLoaded) continue;
    mx::array values =
        is_block_format(entry.format) ? load_blocks(entry).dequantize(mx::float32) : to_array(entry);
    values.eval();
  }
}

// As a graph would ask: matrices by their logical shape, the rest as it is.
void walk(WeightStore& store) {
  for (const std::string& name : store.names()) {
    const TensorEntry& entry = store.entry(name);
    if (entry.size > kMaxLoaded) continue;
    constexpr std::string_view kWeight = ".weight";
    if (name.ends_with(kWeight) && entry.shape.size() == 2) {
      const std::string path = name.substr(0, name.size() - kWeight.size());
      const bool packed = store.has(path + ".scales");
      store.matrix(path, entry.shape[0], packed ? 64 : entry.shape[1]);
    } else {
      store.raw(name);
    }
  }
  store.audit();
}

void read_gguf_bytes(const std::string& bytes) {
  GgufFile file = read_gguf(as_file(bytes));
  load(file.tensors);
  const Dialects dialects = test_dialects();
  const Config config = gguf_config(file, dialects);
  take_gguf_tokenizer(file.metadata);
  WeightStore store(gguf_tensors(file, *gguf_dialect(file.metadata, dialects).gguf, config), {}, "fuzz");
  walk(store);
}

void read_safetensors_bytes(const std::string& bytes) {
  const auto entries = read_safetensors(as_file(bytes));
  load(entries);
  WeightStore store(entries, {}, "fuzz");
  walk(store);
}

void read_config_bytes(const std::string& bytes) {
  const Config config = parse_config(parse_json(bytes, "fuzz"), Json{{"eos_token_id", 1}}, "fuzz", test_dialects());
  config.quantization.of("model.layers.0.mlp");
}

void read_record(const std::string& bytes) {
  const auto path =
      std::filesystem::temp_directory_path() / ("godwit_fuzz_record_" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  auto file = cache::ColdFile::open(path).value();
  std::filesystem::remove(path);  // the descriptor keeps the content
  file.load();
  for (std::size_t i = 0; i < file.header().parts.size(); ++i) {
    std::vector<std::byte> part(file.header().parts[i].bytes);  // no more than the file has
    file.read_part(i, part);
  }
}

// As it is, and when that fails, under a hash that is right: else nothing behind the hash would ever be
// reached.
void read_cold_bytes(const std::string& bytes) {
  try {
    return read_record(bytes);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::internal) throw;
  }
  std::string sealed = bytes;
  const auto all = std::as_writable_bytes(std::span(sealed));
  const auto prefix = all.first(std::min(all.size(), cache::kColdPrefix));
  cache::seal_front(all.first(cache::front_bytes(prefix, all.size())));
  read_record(sealed);
}

constexpr std::array<Reader, 5> kReaders = {{{"gguf", read_gguf_bytes},
                                             {"safetensors", read_safetensors_bytes},
                                             {"config", read_config_bytes},
                                             {"cold_record", read_cold_bytes},
                                             {"turn", read_turn}}};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

bool accepts(const Reader& reader, const std::string& bytes) {
  try {
    reader.read(bytes);
    return true;
  } catch (const Error& e) {
    // `internal` means that one of our own invariants broke, which no file may be able to do.
    if (e.code() == ErrorCode::internal) throw std::logic_error(e.what());
    return false;
  }
}

}  // namespace godwit::fuzz
