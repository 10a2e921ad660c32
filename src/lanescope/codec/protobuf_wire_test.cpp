#include "lanescope/codec/protobuf_wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace lanescope::codec {
namespace {

// The examples of protobuf's own description of the format.
TEST(ProtobufWireTest, ReadsAndWritesTheExamplesOfTheFormat) {
  std::string text;
  WireWriter(text).integer(1, 150);
  EXPECT_EQ(text, "\x08\x96\x01");
  WireWriter(text).bytes(2, "testing");
  EXPECT_EQ(text.substr(3), "\x12\x07testing");
  WireReader field(text);
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.number(), 1u);
  EXPECT_EQ(field.integer(), 150u);
  EXPECT_EQ(field.bytes(), "");
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.bytes(), "testing");
  EXPECT_EQ(field.integer(), 0u);
  EXPECT_FALSE(field.next());
  EXPECT_FALSE(field.is_damaged());
}

TEST(ProtobufWireTest, NumbersComeBack) {
  std::string text;
  WireWriter writer(text);
  writer.signed_integer(3, -1);
  writer.fixed64(47, 0x8000000000000001);
  writer.real(5, -0.1);
  WireReader field(text);
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.signed_integer(), -1);
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.integer(), 0x8000000000000001);
  ASSERT_TRUE(field.next());
  EXPECT_EQ(field.real(), -0.1);
}

TEST(ProtobufWireTest, RepeatedNumbersMayBePacked) {
  std::vector<std::uint64_t> found;
  const auto take = [&](std::uint64_t value) { found.push_back(value); };
  std::string text;
  WireWriter(text).bytes(4, "\x03\x8e\x02\x9e\xa7\x05");  // 3, 270, 86942
  WireWriter(text).integer(4, 7);
  WireReader field(text);
  ASSERT_TRUE(field.next());
  EXPECT_TRUE(field.each_number(0, take));
  ASSERT_TRUE(field.next());
  EXPECT_TRUE(field.each_number(0, take));
  EXPECT_EQ(found, (std::vector<std::uint64_t>{3, 270, 86942, 7}));
  EXPECT_FALSE(WireReader(text).next() && !field.each_number(0, take));
}

// Cut at every byte, and what is no field at all.
TEST(ProtobufWireTest, DamageEndsTheMessage) {
  std::string text;
  WireWriter writer(text);
  writer.integer(1, 300);
  const std::size_t first = text.size();
  writer.bytes(2, "abc");
  const std::size_t second = text.size();
  writer.fixed64(3, 1);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    WireReader field(std::string_view(text).substr(0, cut));
    std::size_t count = 0;
    while (field.next()) ++count;
    EXPECT_EQ(count, cut < first ? 0u : cut < second ? 1u : 2u);
    EXPECT_EQ(field.is_damaged(), cut != 0 && cut != first && cut != second) << cut;
  }
  using std::string_view_literals::operator""sv;
  for (const std::string_view bad :
       {"\x00\x01"sv, "\x0b"sv, "\x0f"sv, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv,
        "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"sv}) {
    WireReader field(bad);
    EXPECT_FALSE(field.next());
    EXPECT_TRUE(field.is_damaged());
  }
}

}  // namespace
}  // namespace lanescope::codec
