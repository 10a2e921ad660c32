#include "lanescope/codec/unpack.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "lanescope/codec/byte_sink.h"

namespace lanescope::codec {
namespace {

namespace fs = std::filesystem;

std::string packed(std::string_view text, Packing packing) {
  std::string out;
  auto sink = pack_into(string_sink(out), packing);
  EXPECT_TRUE(sink);
  for (std::size_t at = 0; at < text.size(); at += 5000)
    EXPECT_TRUE((*sink)->write(text.substr(at, 5000)));
  EXPECT_TRUE((*sink)->finish());
  return out;
}

struct Unpacked {
  std::string text;
  UnpackReport report;
  std::optional<Error> error;
};
Unpacked unpacked(std::string_view bytes, std::size_t window = 3000,
                  const UnpackOptions& options = {}) {
  Unpacked result;
  auto source = open_unpacked(memory_source(bytes), options);
  if (!source) {
    result.error = source.error();
    return result;
  }
  std::string buffer(window, '\0');
  for (;;) {
    const auto count = (*source)->read(buffer);
    if (!count) {
      result.error = count.error();
      break;
    }
    if (*count == 0) break;
    result.text.append(buffer, 0, *count);
  }
  result.report = (*source)->report();
  return result;
}

std::string sample(std::size_t size) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < size) text += "{\"ts\": " + std::to_string(random() % 100000) + "},\n";
  return text;
}

class UnpackTest : public ::testing::TestWithParam<Packing> {};
INSTANTIATE_TEST_SUITE_P(, UnpackTest,
                         ::testing::Values(Packing::kPlain, Packing::kGzip, Packing::kZstd),
                         [](const auto& test) { return std::string(packing_name(test.param)); });

class PackedStreamTest : public ::testing::TestWithParam<Packing> {};
INSTANTIATE_TEST_SUITE_P(, PackedStreamTest, ::testing::Values(Packing::kGzip, Packing::kZstd),
                         [](const auto& test) { return std::string(packing_name(test.param)); });

TEST_P(UnpackTest, WhatWasPackedComesBack) {
  for (const std::size_t size : {0u, 1u, 5u, 70000u, 900000u}) {
    const std::string text = sample(size);
    const Unpacked result = unpacked(packed(text, GetParam()));
    EXPECT_EQ(result.text, text) << size;
    EXPECT_FALSE(result.error);
    EXPECT_FALSE(result.report.damage);
    EXPECT_FALSE(result.report.trailing);
  }
}

TEST_P(UnpackTest, SeveralMembersAreOneText) {
  const std::string text = sample(20000), bytes = packed(text, GetParam());
  EXPECT_EQ(unpacked(bytes + bytes + bytes).text, text + text + text);
}

TEST_P(PackedStreamTest, ACutStreamGivesWhatItHeld) {
  const std::string text = sample(100000), bytes = packed(text, GetParam());
  for (std::size_t size = 4; size < bytes.size(); size += 97) {
    const Unpacked result = unpacked(std::string_view(bytes).substr(0, size));
    EXPECT_TRUE(result.report.damage) << size;
    EXPECT_EQ(result.text, text.substr(0, result.text.size())) << size;
  }
  EXPECT_GT(unpacked(std::string_view(bytes).substr(0, bytes.size() - 2)).text.size(),
            text.size() / 2);
}

TEST_P(PackedStreamTest, FlippedBitsEndTheTextOrTheChecksumSaysSo) {
  const std::string text = sample(30000), bytes = packed(text, GetParam());
  for (std::size_t at = 12; at < bytes.size(); at += 61) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    const Unpacked result = unpacked(damaged);
    EXPECT_TRUE(result.error || result.report.damage || result.report.trailing ||
                result.report.wrong_checksum || result.text == text)
        << at;
  }
}

// The last four bytes are the size in gzip's trailer, and zstd's checksum. Four before them is gzip's CRC.
TEST_P(PackedStreamTest, AWrongChecksumDoesNotEndTheText) {
  const std::string text = sample(200000), bytes = packed(text, GetParam());
  for (const std::size_t from_end : {1u, 4u, 5u, 8u}) {
    if (GetParam() == Packing::kZstd && from_end > 4) continue;
    std::string damaged = bytes;
    char& flipped = damaged[damaged.size() - from_end];
    flipped = static_cast<char>(flipped ^ 1);
    for (const std::size_t window : {1u, 3000u, 1u << 20}) {
      const Unpacked alone = unpacked(damaged, window);
      EXPECT_TRUE(alone.text == text) << from_end << " " << window;
      EXPECT_FALSE(alone.report.damage);
      EXPECT_EQ(alone.report.wrong_checksum, text.size());
    }
    const Unpacked among_others = unpacked(bytes + damaged + bytes);
    EXPECT_TRUE(among_others.text == text + text + text) << from_end;
    EXPECT_FALSE(among_others.report.damage || among_others.report.trailing);
    EXPECT_EQ(among_others.report.wrong_checksum, 2 * text.size());
  }
  EXPECT_FALSE(unpacked(bytes).report.wrong_checksum);
}

// All of the text is there, but nobody can check it.
TEST_P(PackedStreamTest, WithoutItsTrailerAStreamEndsEarlyButGivesAllText) {
  const std::string text = sample(200000), bytes = packed(text, GetParam());
  const std::size_t trailer = GetParam() == Packing::kGzip ? 8 : 4;
  for (std::size_t cut = 1; cut <= trailer; ++cut) {
    const Unpacked result = unpacked(std::string_view(bytes).substr(0, bytes.size() - cut));
    EXPECT_TRUE(result.text == text) << cut;
    EXPECT_TRUE(result.report.damage);
  }
}

TEST_P(PackedStreamTest, BytesBehindTheStreamAreReportedAndLeftOut) {
  const std::string text = sample(5000), bytes = packed(text, GetParam());
  const Unpacked result = unpacked(bytes + std::string(512, '\0'));
  EXPECT_EQ(result.text, text);
  EXPECT_FALSE(result.report.damage);
  EXPECT_EQ(result.report.trailing, bytes.size());
}

TEST(ZstdTest, AWindowTooLargeIsToldFromDamage) {
  // A frame header that asks for 2^31 bytes of window, then one raw block "[]".
  const Unpacked result = unpacked(std::string_view("\x28\xb5\x2f\xfd\x00\xa8\x11\x00\x00[]", 11));
  EXPECT_EQ(result.text, "");
  ASSERT_TRUE(result.report.damage);
  EXPECT_NE(std::string_view(result.report.damage_reason).find("--long"), std::string_view::npos)
      << result.report.damage_reason;
}

TEST_P(PackedStreamTest, ABombIsRefused) {
  const std::string bytes = packed(std::string(8 << 20, ' '), GetParam());
  UnpackOptions options;
  options.free_bytes = 1 << 20;
  options.max_ratio = 50;
  const Unpacked result = unpacked(bytes, 1 << 16, options);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, Errc::kLimit);
}

class ByteSinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("lanescope_sink_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string content(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path folder_;
};

TEST_F(ByteSinkTest, TheFileAppearsWhenItIsComplete) {
  const fs::path path = folder_ / "a.json";
  {
    auto sink = create_file(path);
    ASSERT_TRUE(sink);
    ASSERT_TRUE((*sink)->write("half"));
    EXPECT_FALSE(fs::exists(path));
    ASSERT_TRUE((*sink)->write(" and half"));
    ASSERT_TRUE((*sink)->finish());
  }
  EXPECT_EQ(content(path), "half and half");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(ByteSinkTest, AnUnfinishedFileLeavesTheOldOneAndNothingElse) {
  const fs::path path = folder_ / "a.json";
  std::ofstream(path) << "old";
  {
    auto sink = create_file(path);
    ASSERT_TRUE(sink);
    ASSERT_TRUE((*sink)->write("new"));
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(ByteSinkTest, AMissingFolderSaysWhichFile) {
  const auto sink = create_file(folder_ / "none" / "a.json");
  ASSERT_FALSE(sink);
  EXPECT_EQ(sink.error().code, Errc::kIo);
  EXPECT_NE(sink.error().message.find("none/a.json: No such file"), std::string::npos)
      << sink.error().message;
}

TEST_F(ByteSinkTest, AFullDiskIsAnErrorAndLeavesNoFile) {
  // A file size limit makes write() fail as a full disk does.
  const fs::path path = folder_ / "big.json";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  bool failed = false;
  {
    auto sink = create_file(path);
    ASSERT_TRUE(sink);
    for (int i = 0; i < 4 && !failed; ++i)
      failed = !(*sink)->write(std::string(4096, 'x')).has_value();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(failed);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ByteSinkTest, TheNameDecidesThePacking) {
  EXPECT_EQ(packing_of_name("a.json"), Packing::kPlain);
  EXPECT_EQ(packing_of_name("a.json.GZ"), Packing::kGzip);
  EXPECT_EQ(packing_of_name("a.zst"), Packing::kZstd);
}

TEST(ByteSourceTest, MissingFilesAndFoldersAreNamed) {
  const auto missing = open_file("/nowhere/at/all.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kIo);
  EXPECT_NE(missing.error().message.find("/nowhere/at/all.json"), std::string::npos);
  const auto folder = open_file("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace lanescope::codec
