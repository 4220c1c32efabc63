#include "checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/error.h"

namespace godwit::checkpoint {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SafetensorsWriter, writes_the_published_layout_byte_for_byte) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("godwit_writer_test.safetensors_" + std::to_string(::getpid()));
  const std::vector<float> a = {1.0f, -2.0f};
  const std::vector<std::uint8_t> b = {7, 8, 9};
  const std::vector<TensorToWrite> tensors = {
      {"a", TensorFormat::f32, {1, 2}, std::as_bytes(std::span(a))},
      {"b", TensorFormat::u8, {3}, std::as_bytes(std::span(b))},
  };
  write_safetensors(path, tensors);
  std::string header =
      R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string wanted(8, '\0');
  wanted[0] = static_cast<char>(header.size());
  wanted += header;
  wanted += std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0\x07\x08\x09", 11);
  EXPECT_EQ(content_of(path), wanted);
  std::filesystem::remove(path);
}

TEST(SafetensorsWriter, does_not_put_a_file_in_the_place_of_a_pipe) {
  const std::filesystem::path pipe =
      std::filesystem::temp_directory_path() / ("godwit_writer_pipe_" + std::to_string(::getpid()));
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(write_safetensors(pipe, {}), Error);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::filesystem::remove(pipe);
}

TEST(SafetensorsWriter, names_a_path_that_cannot_be_written) {
  try {
    write_safetensors("/nowhere/x.safetensors", {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what()).find("/nowhere/x.safetensors"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace godwit::checkpoint
