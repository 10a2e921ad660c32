#include "lanescope/codec/counter_file.h"

#include <gtest/gtest.h>

#include <cstring>

namespace lanescope::counters {
namespace {

template <typename T>
void put(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string file_head() {
  FileHead head;
  std::memcpy(head.magic, kMagic, sizeof head.magic);
  head.pid = 42;
  std::string out;
  put(&out, head);
  return out;
}

std::string block(BlockKind kind, std::uint16_t device, std::uint32_t values,
                  const std::string& payload) {
  std::string out;
  put(&out, BlockHead{.kind = kind,
                      .device = device,
                      .bytes = static_cast<std::uint32_t>(payload.size()),
                      .values = values});
  return out + payload;
}

std::string sample(std::uint64_t start, std::uint32_t length, float a, float b) {
  std::string out;
  put(&out, SampleHead{start, length});
  put(&out, a);
  put(&out, b);
  return out;
}

TEST(CounterFileTest, WholeBlocksAreReadByDevice) {
  std::string anchor, losses;
  put(&anchor, Anchor{7, 1100});
  put(&losses, Losses{.overflows = 1, .refused = 2});
  const std::string bytes = file_head() + block(BlockKind::kDescription, 1, 0, "{}") +
                            block(BlockKind::kSamples, 1, 2, sample(1000, 100, 1, 2)) +
                            block(BlockKind::kSamples, 1, 2, sample(1100, 100, 3, 4)) +
                            block(BlockKind::kAnchors, 1, 0, anchor) +
                            block(BlockKind::kLosses, 1, 0, losses) +
                            block(BlockKind::kSamples, 0, 2, sample(5, 100, 0, 0));
  const auto file = parse_counter_file(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pid, 42u);
  EXPECT_EQ(file->bad_blocks, 0u);
  ASSERT_EQ(file->devices.size(), 2u);
  const Device& device = file->devices[1];
  EXPECT_EQ(device.number, 1);
  EXPECT_EQ(device.description, "{}");
  EXPECT_EQ(device.samples.start_ns, (std::vector<std::uint64_t>{1000, 1100}));
  EXPECT_EQ(device.samples.values, (std::vector<float>{1, 2, 3, 4}));
  ASSERT_EQ(device.anchors.size(), 1u);
  EXPECT_EQ(device.anchors[0].device_ns, 1100u);
  EXPECT_EQ(device.losses.overflows, 1u);
  EXPECT_EQ(device.losses.refused, 2u);
}

TEST(CounterFileTest, EveryCutKeepsTheBlocksBeforeIt) {
  const std::string first = file_head() + block(BlockKind::kSamples, 0, 2, sample(1000, 100, 1, 2));
  const std::string bytes = first + block(BlockKind::kSamples, 0, 2, sample(1100, 100, 3, 4));
  for (std::size_t size = first.size() + 1; size < bytes.size(); ++size) {
    const auto file = parse_counter_file(std::string_view(bytes).substr(0, size));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->devices[0].samples.size(), 1u) << size;
    EXPECT_EQ(file->bad_blocks, 1u) << size;
  }
  for (std::size_t size = 0; size < sizeof(FileHead); ++size)
    EXPECT_FALSE(parse_counter_file(std::string_view(bytes).substr(0, size)));
}

TEST(CounterFileTest, DamagedBlocksAreCountedAndSkipped) {
  const std::string good = block(BlockKind::kSamples, 0, 2, sample(1000, 100, 1, 2));
  const std::string bytes =
      file_head() + good + block(BlockKind::kSamples, 0, 3, sample(1200, 100, 1, 2)) +  // width
      block(BlockKind::kSamples, 0, 2, sample(900, 100, 1, 2)) +                        // earlier
      block(BlockKind::kSamples, 99, 2, sample(1200, 100, 1, 2)) +  // no such device
      block(BlockKind{9}, 0, 0, "x") + block(BlockKind::kLosses, 0, 0, "short") +
      block(BlockKind::kSamples, 0, 2, sample(1300, 100, 5, 6));
  const auto file = parse_counter_file(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bad_blocks, 5u);
  EXPECT_EQ(file->devices[0].samples.start_ns, (std::vector<std::uint64_t>{1000, 1300}));
}

TEST(CounterFileTest, AnyByteMayBeWrong) {
  const std::string bytes = file_head() + block(BlockKind::kDescription, 0, 0, "{}") +
                            block(BlockKind::kSamples, 0, 2, sample(1000, 100, 1, 2)) +
                            block(BlockKind::kSlowSamples, 0, 2, std::string(16, 'a'));
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const auto file = parse_counter_file(damaged);
      if (!file) continue;
      for (const Device& device : file->devices)
        EXPECT_EQ(device.samples.values.size(), device.samples.size() * device.samples.width);
    }
}

}  // namespace
}  // namespace lanescope::counters
