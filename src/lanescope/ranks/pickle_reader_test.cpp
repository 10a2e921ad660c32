#include "lanescope/ranks/pickle_reader.h"

#include <gtest/gtest.h>

namespace lanescope::ranks {
namespace {

using Kind = PickleNode::Kind;
using namespace std::string_view_literals;

// pickle.dumps({"a": [1, -2, 300, None, True], "b": (1.5, "x")}, protocol=2)
constexpr std::string_view kPlain =
    "\x80\x02}q\x00(X\x01\x00\x00\x00"
    "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01N\x88"
    "eX\x01\x00\x00\x00"
    "bq\x03G?\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00xq\x04\x86q\x05u."sv;

TEST(PickleReaderTest, PlainDataIsRead) {
  const auto data = read_pickle(kPlain);
  ASSERT_TRUE(data) << data.error().message;
  const auto list = data->find(data->root, "a");
  ASSERT_TRUE(list);
  const PickleNode& items = (*data)[*list];
  ASSERT_EQ(items.items.size(), 5u);
  EXPECT_EQ((*data)[items.items[0]].integer, 1);
  EXPECT_EQ((*data)[items.items[1]].integer, -2);
  EXPECT_EQ((*data)[items.items[2]].integer, 300);
  EXPECT_EQ((*data)[items.items[3]].kind, Kind::kNone);
  EXPECT_EQ((*data)[items.items[4]].kind, Kind::kBool);
  const PickleNode& pair = (*data)[*data->find(data->root, "b")];
  EXPECT_EQ((*data)[pair.items[0]].real, 1.5);
  EXPECT_EQ((*data)[pair.items[1]].text, "x");
  EXPECT_FALSE(data->find(data->root, "c"));
}

TEST(PickleReaderTest, NumbersOfOneToEightBytesKeepTheirSign) {
  const auto value = [](std::string_view bytes) {
    const auto data = read_pickle(bytes);
    EXPECT_TRUE(data);
    return data ? (*data)[data->root].integer : 0;
  };
  EXPECT_EQ(value("\x80\x02\x8a\x01\xff."sv), -1);
  EXPECT_EQ(value("\x80\x02\x8a\x00."sv), 0);
  EXPECT_EQ(value("\x80\x02\x8a\x08\x15\x11\x22\x33\x44\x55\x66\x18."sv), 0x1866554433221115);
}

// os.system("true") as a pickle: GLOBAL and REDUCE.
TEST(PickleReaderTest, CodeIsRefused) {
  const auto data = read_pickle(
      "\x80\x02"
      "cposix\nsystem\nX\x04\x00\x00\x00true\x85R."sv);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, Errc::kUnsupported);
  EXPECT_NE(data.error().message.find("opcode 0x63 at byte 2"), std::string::npos);
}

TEST(PickleReaderTest, EveryCutIsRefused) {
  for (std::size_t length = 0; length < kPlain.size(); ++length)
    EXPECT_FALSE(read_pickle(kPlain.substr(0, length))) << length;
}

TEST(PickleReaderTest, AListThatHoldsItselfIsOneNode) {
  const auto data = read_pickle(
      "\x80\x02]q\x00h\x00"
      "a."sv);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->nodes.size(), 1u);
}

// Each list holds the one before it many times: shared values stay shared, and places are counted.
TEST(PickleReaderTest, DoublingEndsAtALimit) {
  std::string bytes("\x80\x02]q\x00", 5);
  for (int round = 0; round < 40; ++round) {
    bytes += '(';
    for (int i = 0; i < 200'000; ++i) bytes += std::string("h\x00", 2);
    bytes += 'e';
  }
  const auto data = read_pickle(bytes + ".");
  ASSERT_TRUE(data);  // 8,000,000 places
  bytes += std::string("(h\x00h\x00", 5);
  bytes += 'e';
  const auto more = read_pickle(bytes + ".");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::kLimit);
}

}  // namespace
}  // namespace lanescope::ranks
