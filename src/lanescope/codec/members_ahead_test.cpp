// However many threads unpack a stream of several members, text, damage and errors are those of one
// thread: whole streams, damaged ones, and those with bytes that look like the start of a member.
#include "lanescope/codec/members_ahead.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/member_cuts.h"
#include "lanescope/codec/unpack.h"

namespace lanescope::codec {
namespace {

std::string one_member(std::string_view text, Packing packing) {
  std::string out;
  auto sink = pack_into(string_sink(out), packing);
  EXPECT_TRUE(sink);
  EXPECT_TRUE((*sink)->write(text));
  EXPECT_TRUE((*sink)->finish());
  return out;
}

// `size` bytes of text, in members of up to 3000 bytes of text each, some of them empty.
std::string many_members(std::size_t size, Packing packing, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes;
  for (std::size_t at = 0; at < size;) {
    const std::size_t count = random() % 8 == 0 ? 0 : random() % 3000;
    std::string text;
    while (text.size() < count) text += "{\"ts\": " + std::to_string(random() % 100000) + "},\n";
    bytes += one_member(text, packing);
    at += text.size();
  }
  return bytes;
}

// A gzip member that holds `data` as it is, in one stored block.
std::string stored_member(std::string_view data) {
  std::uint32_t crc = ~0u;
  for (const char byte : data) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);
  const auto number = [&out](std::size_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  };
  number(data.size(), 2);
  number(~data.size(), 2);
  out += data;
  number(~crc & 0xffffffffu, 4);
  number(data.size(), 4);
  return out;
}

struct Outcome {
  std::string text, ending;  // `ending`: everything else that a source says at its end
  std::uint64_t parts_ahead = 0;
};

Outcome outcome_of(std::string_view bytes, unsigned threads, std::size_t window,
                   UnpackOptions options = {}) {
  options.threads = threads;
  options.part_bytes = 1000;
  Outcome result;
  auto source = open_unpacked(memory_source(bytes), options);
  if (!source) return {{}, source.error().message};
  std::string buffer(window, '\0');
  for (;;) {
    const auto count = (*source)->read(buffer);
    if (!count)
      result.ending = "an error, code " + std::to_string(static_cast<int>(count.error().code));
    if (!count || *count == 0) break;
    result.text.append(buffer, 0, *count);
  }
  const UnpackReport& report = (*source)->report();
  if (report.damage) result.ending += std::to_string(*report.damage) + " " + report.damage_reason;
  if (report.wrong_checksum)
    result.ending += " wrong checksum at " + std::to_string(*report.wrong_checksum);
  if (report.trailing) result.ending += " trailing from " + std::to_string(*report.trailing);
  // After an error the text of a read is lost, and how much that is depends on the reads.
  if (!result.ending.starts_with("an error"))
    result.ending += " unpacked " + std::to_string((*source)->unpacked_bytes()) + " of " +
                     std::to_string((*source)->done_bytes());
  else
    result.text.clear();
  result.parts_ahead = report.parts_ahead;
  return result;
}

void expect_same(std::string_view bytes, std::string_view what, const UnpackOptions& options = {}) {
  for (const std::size_t window : {700u, 50000u}) {
    const Outcome alone = outcome_of(bytes, 1, window, options);
    EXPECT_EQ(alone.parts_ahead, 0u);
    for (const unsigned threads : {2u, 8u}) {
      const Outcome together = outcome_of(bytes, threads, window, options);
      EXPECT_TRUE(together.text == alone.text)
          << what << ", " << threads << " threads: " << together.text.size() << " and "
          << alone.text.size() << " bytes";
      EXPECT_EQ(together.ending, alone.ending) << what << ", " << threads << " threads";
    }
  }
}

class MembersAheadTest : public ::testing::TestWithParam<Packing> {};
INSTANTIATE_TEST_SUITE_P(, MembersAheadTest, ::testing::Values(Packing::kGzip, Packing::kZstd),
                         [](const auto& test) { return std::string(packing_name(test.param)); });

// The last byte of a member is that of its size (gzip) or of its checksum (zstd).
TEST_P(MembersAheadTest, AWrongChecksumOfAnyMemberIsFoundAndEndsNothing) {
  std::vector<std::string> members;
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += std::to_string(i) + std::string(3000, static_cast<char>('a' + i));
    members.push_back(
        one_member(std::to_string(i) + std::string(3000, static_cast<char>('a' + i)), GetParam()));
  }
  for (const std::size_t wrong : {0u, 5u, 11u}) {
    std::string bytes;
    for (std::size_t i = 0; i < members.size(); ++i) {
      bytes += members[i];
      if (i == wrong) bytes.back() = static_cast<char>(bytes.back() ^ 1);
    }
    expect_same(bytes, "wrong checksum");
    const Outcome result = outcome_of(bytes, 8, 5000);
    EXPECT_TRUE(result.text == text) << wrong;
    EXPECT_NE(result.ending.find("wrong checksum at"), std::string::npos) << wrong;
  }
}

TEST_P(MembersAheadTest, WholeStreamsAreUnpackedInParts) {
  const std::string bytes = many_members(300000, GetParam(), 1);
  expect_same(bytes, "whole");
  // Parts have at least 1000 packed bytes, and few have more than one member more than that.
  EXPECT_GT(outcome_of(bytes, 3, 10000).parts_ahead, bytes.size() / 3000);
}

TEST_P(MembersAheadTest, OneLongMemberIsAStream) {
  std::string text;
  std::mt19937 random(5);
  while (text.size() < 400000) text += std::to_string(random());
  const std::string bytes = one_member(text, GetParam());
  EXPECT_EQ(outcome_of(bytes, 4, 10000).parts_ahead, 0u);
  expect_same(bytes, "one member");
  const std::string small = many_members(100000, GetParam(), 2);
  expect_same(small + bytes + small + bytes, "long ones between short ones");
  EXPECT_GT(outcome_of(small + bytes + small, 4, 10000).parts_ahead, small.size() / 3000);
}

TEST_P(MembersAheadTest, CutStreamsEndAsOneThreadSaysIt) {
  const std::string bytes = many_members(60000, GetParam(), 3);
  for (std::size_t size = 0; size < bytes.size(); size += 331)
    expect_same(std::string_view(bytes).substr(0, size), "cut at " + std::to_string(size));
}

TEST_P(MembersAheadTest, ChangedBytesAreToldAsOneThreadTellsThem) {
  const std::string bytes = many_members(60000, GetParam(), 4);
  std::mt19937 random(11);
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(random());
    if (at % 2 == 0) damaged[random() % damaged.size()] = static_cast<char>(random());
    expect_same(damaged, "changed at " + std::to_string(at));
  }
}

TEST_P(MembersAheadTest, BytesBetweenAndAfterMembersAreToldAsOneThreadTellsThem) {
  const std::string a = many_members(20000, GetParam(), 6), b = many_members(20000, GetParam(), 7);
  const Packing other = GetParam() == Packing::kGzip ? Packing::kZstd : Packing::kGzip;
  for (const std::string& between :
       {std::string(1, '\0'), std::string(3, '\x1f'), std::string("\x1f\x8b"),
        std::string(512, '\0'), std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10),
        one_member("other", other), std::string("\x50\x2a\x4d\x18\x04\0\0\0abcd", 12)}) {
    expect_same(a + between + b, "between");
    expect_same(a + between, "after");
  }
}

TEST_P(MembersAheadTest, ABombIsRefusedByAnyNumberOfThreads) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) bytes += one_member(std::string(200000, ' '), GetParam());
  UnpackOptions options;
  options.free_bytes = 1 << 20;
  options.max_ratio = 20;
  expect_same(bytes, "bomb", options);
  EXPECT_TRUE(outcome_of(bytes, 4, 10000, options).ending.starts_with("an error"));
  options.max_ratio = 100000;
  expect_same(bytes, "no bomb", options);
}

TEST(MembersAheadGzipTest, HeadersInsideOfMembersAreNotTakenForMembers) {
  const std::string inner = many_members(30000, Packing::kGzip, 8);
  std::string bytes;
  for (int i = 0; i < 5; ++i) bytes += stored_member(std::string(50, ' ') + inner);
  const Outcome result = outcome_of(bytes, 4, 5000);
  EXPECT_EQ(result.text.size(), 5 * (inner.size() + 50));
  expect_same(bytes, "members in members");
  expect_same(bytes.substr(0, bytes.size() - inner.size() / 2), "cut inside of the inner ones");
  // A wrong checksum of a member whose data holds whole members.
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);
  expect_same(bytes, "wrong checksum");
}

TEST(MembersAheadGzipTest, CutsLieBeforeHeaders) {
  const std::string member = stored_member("text");
  EXPECT_EQ(find_member_cut(Packing::kGzip, member + member, 1), member.size());
  EXPECT_EQ(find_member_cut(Packing::kGzip, member + member + member, member.size() + 1),
            2 * member.size());
  EXPECT_EQ(find_member_cut(Packing::kGzip, member, 1), 0u);
  std::string reserved_flag = member;
  reserved_flag[3] = '\x20';
  EXPECT_EQ(find_member_cut(Packing::kGzip, member + reserved_flag, 1), 0u);
}

TEST(MembersAheadZstdTest, CutsLieAfterWholeFrames) {
  const std::string frame = one_member("text", Packing::kZstd);
  EXPECT_EQ(find_member_cut(Packing::kZstd, frame + frame, 1), frame.size());
  EXPECT_EQ(find_member_cut(Packing::kZstd, frame + frame, 1000), 2 * frame.size());
  EXPECT_EQ(find_member_cut(Packing::kZstd, std::string_view(frame).substr(0, frame.size() - 1), 1),
            0u);
}

TEST(MembersAheadPartTest, LongTextsAreLeftToTheStream) {
  MemberPart part;
  const std::string bytes = one_member(std::string(kMostTextBytes + 1, ' '), Packing::kGzip);
  part.packed.assign(bytes.begin(), bytes.end());
  unpack_part(Packing::kGzip, *gzip_inflater(), part);
  EXPECT_FALSE(part.is_whole);
  expect_same(bytes + bytes, "two long texts");
}

}  // namespace
}  // namespace lanescope::codec
