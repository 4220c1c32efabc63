// A bounded run of mutations over each reader, and the replay of all files that once were a fault.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "mutator.h"
#include "readers.h"
#include "seeds.h"

namespace godwit::fuzz {
namespace {

std::uint64_t setting(const char* name, std::uint64_t absent) {
  const char* const value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : absent;
}

void save_failure(const Reader& reader, const std::string& bytes, const char* what) {
  const auto path =
      std::filesystem::temp_directory_path() / ("godwit_fuzz_failure_" + std::string(reader.name));
  std::ofstream(path, std::ios::binary) << bytes;
  ADD_FAILURE() << reader.name << ": " << what << "; the input is in " << path;
}

// A crash leaves no exception behind: the input is on disk before it is read when this is set.
void keep_input(const Reader& reader, const std::string& bytes) {
  if (const char* const folder = std::getenv("GODWIT_FUZZ_KEEP"))
    std::ofstream(std::filesystem::path(folder) / std::string(reader.name), std::ios::binary) << bytes;
}

void fuzz(const Reader& reader) {
  const std::uint64_t seed = setting("GODWIT_FUZZ_SEED", 1),
                      iterations = setting("GODWIT_FUZZ_ITERATIONS", 3000);
  std::printf("%s: seed %llu, %llu iterations\n", std::string(reader.name).c_str(),
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(iterations));
  Mutator mutator(seed);
  std::vector<std::string> pool = seeds(reader.name);
  const std::size_t seed_count = pool.size();
  std::uint64_t accepted = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    std::string bytes = mutator.mutate(pool[mutator.below(pool.size())], pool);
    keep_input(reader, bytes);
    try {
      if (!accepts(reader, bytes)) continue;
    } catch (const std::exception& e) {
      return save_failure(reader, bytes, e.what());
    }
    // Inputs that still read are worth mutating further; the pool stays small.
    ++accepted;
    if (pool.size() < 64)
      pool.push_back(std::move(bytes));
    else
      pool[seed_count + mutator.below(pool.size() - seed_count)] = std::move(bytes);
  }
  std::printf("%s: %llu inputs were accepted\n", std::string(reader.name).c_str(),
              static_cast<unsigned long long>(accepted));
  EXPECT_GT(accepted, 0u);
}

const Reader& reader_of(std::string_view name) {
  for (const Reader& reader : readers())
    if (reader.name == name) return reader;
  throw std::logic_error("no such reader");
}

TEST(Fuzz, gguf_files_are_read_or_refused) { fuzz(reader_of("gguf")); }
TEST(Fuzz, safetensors_files_are_read_or_refused) { fuzz(reader_of("safetensors")); }
TEST(Fuzz, configs_are_read_or_refused) { fuzz(reader_of("config")); }
TEST(Fuzz, turns_of_models_are_taken_apart) { fuzz(reader_of("turn")); }
TEST(Fuzz, cache_records_are_read_or_refused) { fuzz(reader_of("cold_record")); }

TEST(Fuzz, every_seed_passes_its_header_checks) {
  // Seeds that were refused at once would fuzz nothing. The audit at the end refuses names without a
  // parameter, so some readers accept outright; the others get there.
  for (const std::string& bytes : seeds("config")) EXPECT_TRUE(accepts(reader_of("config"), bytes)) << bytes;
  for (const std::string& bytes : seeds("cold_record")) EXPECT_TRUE(accepts(reader_of("cold_record"), bytes));
  for (const std::string& bytes : seeds("safetensors")) EXPECT_TRUE(accepts(reader_of("safetensors"), bytes));
}

TEST(Fuzz, the_corpus_of_former_faults_stays_harmless) {
  std::set<std::string> replayed;
  for (const Reader& reader : readers())
    for (const auto& item :
         std::filesystem::directory_iterator(std::filesystem::path(GODWIT_FUZZ_CORPUS) / reader.name)) {
      SCOPED_TRACE(item.path().string());
      std::ifstream in(item.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      EXPECT_NO_THROW(accepts(reader, bytes));  // read or refused, no third way
      replayed.insert(std::string(reader.name));
    }
  EXPECT_EQ(replayed.size(), readers().size());
}

}  // namespace
}  // namespace godwit::fuzz
