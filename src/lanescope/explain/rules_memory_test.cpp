// Rules about GPU memory: each on drawn records for which it must speak and on a near miss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using testing::Sketch;

constexpr std::int64_t kMB = 1 << 20, kGB = 1 << 30;

// Keeps the allocator's books: times in us, sizes in bytes.
class Allocator {
 public:
  explicit Allocator(std::int64_t allocated, std::int64_t reserved)
      : allocated_(allocated), reserved_(reserved) {}
  Allocator& step(int number, std::int64_t at_us, std::int64_t us) {
    sketch_.annotation("ProfilerStep#" + std::to_string(number), at_us * 1000, us * 1000);
    return *this;
  }
  Allocator& op(const char* name, std::int64_t at_us, std::int64_t us) {
    sketch_.op(name, at_us * 1000, us * 1000);
    return *this;
  }
  // Positive: allocates at `address`; negative: frees it.
  Allocator& change(std::int64_t at_us, std::int64_t bytes, std::int64_t address) {
    allocated_ += bytes;
    reserved_ = std::max(reserved_, allocated_);
    sketch_.memory_at(at_us * 1000, bytes,
                      {.address = address, .allocated = allocated_, .reserved = reserved_});
    return *this;
  }
  Allocator& reserve(std::int64_t bytes) {
    reserved_ += bytes;
    return *this;
  }
  Allocator& device_has(std::int64_t bytes) {
    sketch_.metadata("deviceProperties", R"([{"id": 0, "name": "GPU", "totalGlobalMem": )" +
                                             std::to_string(bytes) + "}]");
    return *this;
  }
  Sketch& sketch() { return sketch_; }
  Trace trace() { return sketch_.trace(); }

 private:
  Sketch sketch_;
  std::int64_t allocated_, reserved_;
};

// Steps of 1 ms: each allocates and frees 8 MB, and keeps `kept` bytes of aten::stack.
Allocator with_kept(int steps, std::int64_t kept, bool freed_by_next = false) {
  Allocator program(kGB, 2 * kGB);
  program.device_has(4 * kGB);
  for (int i = 0; i < steps; ++i) {
    const std::int64_t at = i * 1000;
    program.step(i, at, 1000).op("aten::mm", at + 100, 100).op("aten::stack", at + 300, 100);
    program.change(at + 150, 8 * kMB, 1);
    if (freed_by_next && i > 0) program.change(at + 200, -kept, 1000 + i - 1);
    if (kept > 0) program.change(at + 350, kept, 1000 + i);
    program.change(at + 800, -8 * kMB, 1);
  }
  return program;
}

// Eight steps keep 2 MB each; 2 GB less 16 MB that nobody allocated were reserved of 4 GB: the
// device has 2 GB more, enough for 1024 steps.
TEST(MemoryGrowthTest, SpeaksOfWhatEachStepKeeps) {
  const auto finding = find_by_rule(with_kept(8, 2 * kMB).trace(), "memory-growth");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kEnds);
  EXPECT_EQ(finding->verdict.values[0].text, "GPU memory");
  EXPECT_EQ(finding->verdict.values[1].integer, 2 * kMB);
  EXPECT_EQ(finding->verdict.values[2].integer, 7);
  EXPECT_EQ(finding->arithmetic.at(1).values.at(1).integer, 1024);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).text, "aten::stack");
}

TEST(MemoryGrowthTest, IsQuietAboutTemporariesLossValuesAndHandedOnTensors) {
  EXPECT_FALSE(find_by_rule(with_kept(8, 0).trace(), "memory-growth"));
  EXPECT_FALSE(find_by_rule(with_kept(8, 512).trace(), "memory-growth"));
  EXPECT_FALSE(find_by_rule(with_kept(8, 2 * kMB, true).trace(), "memory-growth"));
}

// A cache that every step replaces by one that is 1 MB larger: levels grow, but nothing is lost.
TEST(MemoryGrowthTest, IsQuietAboutABufferThatGrows) {
  Allocator program(kGB, 2 * kGB);
  for (int i = 0; i < 8; ++i) {
    const std::int64_t at = i * 1000;
    program.step(i, at, 1000).op("aten::cat", at + 100, 100);
    program.change(at + 150, (i + 2) * kMB, i + 1);
    if (i > 0) program.change(at + 180, -(i + 1) * kMB, i);
  }
  EXPECT_FALSE(find_by_rule(program.trace(), "memory-growth"));
}

TEST(MemoryGrowthTest, IsNotCheckedWithoutRecordsOrSteps) {
  Sketch sketch;
  sketch.op("aten::mm", 0, 100);
  EXPECT_EQ(state_of_rule(sketch.trace(), "memory-growth"), RuleRun::State::kNotChecked);
  EXPECT_EQ(state_of_rule(with_kept(3, 2 * kMB).trace(), "memory-growth"),
            RuleRun::State::kNotChecked);
}

TEST(MemoryLimitTest, SpeaksAboveNineTenths) {
  Allocator program(3 * kGB, 3800 * kMB);
  program.device_has(4 * kGB).op("aten::mm", 0, 100).change(50, 100 * kMB, 1);
  const auto finding = find_by_rule(program.trace(), "memory-limit");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[0].integer, 3800 * kMB);
  EXPECT_NEAR(finding->verdict.values[2].real, 3800.0 / 4096, 1e-9);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 3 * kGB);
}

TEST(MemoryLimitTest, IsQuietBelowAndNotCheckedWithoutTheSize) {
  Allocator program(3 * kGB, 3600 * kMB);
  program.device_has(4 * kGB).change(50, 100 * kMB, 1);
  EXPECT_FALSE(find_by_rule(program.trace(), "memory-limit"));
  Allocator unknown(3 * kGB, 3800 * kMB);
  unknown.change(50, 100 * kMB, 1);
  EXPECT_EQ(state_of_rule(unknown.trace(), "memory-limit"), RuleRun::State::kNotChecked);
}

TEST(MemoryLimitTest, SpeaksWhenMemoryRanOut) {
  Sketch sketch;
  TraceBuilder& builder = sketch.op("aten::mm", 0, 100).builder();
  builder.args().begin();
  builder.args().add_int(builder.intern("Bytes"), ArgKey::kMemoryBytes, 5 * kGB);
  const ArgsId args = builder.args().end();
  builder.add_instant(
      builder.thread_track({false, 100, kNone<StringId>}, {false, 100, kNone<StringId>}),
      builder.category("cpu_instant_event"), builder.intern("[OutOfMemory]"), 50, 't', args);
  const auto finding = find_by_rule(sketch.trace(), "memory-limit");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 5 * kGB);
}

// 1 GB is free in the pool, and a block of 512 MB still needs new memory.
Allocator with_pool(std::int64_t block, bool grows) {
  Allocator program(2 * kGB, 3 * kGB);
  program.change(10, kMB, 1);
  if (grows) program.reserve(block);
  program.change(20, block, 2);
  return program;
}

TEST(MemoryFragmentationTest, SpeaksWhenThePoolGrowsThoughItHasRoom) {
  const auto finding = find_by_rule(with_pool(512 * kMB, true).trace(), "memory-fragmentation");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 1);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 512 * kMB);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, kGB - kMB);
}

TEST(MemoryFragmentationTest, IsQuietWhenThePoolHadNoRoomOrDidNotGrow) {
  EXPECT_FALSE(find_by_rule(with_pool(512 * kMB, false).trace(), "memory-fragmentation"));
  EXPECT_FALSE(find_by_rule(with_pool(1100 * kMB, true).trace(), "memory-fragmentation"));
}

// A step of 1 ms with 400 MB; 300 MB more live for `us` around the peak.
Allocator with_temporary(std::int64_t us) {
  Allocator program(0, 0);
  program.step(1, 0, 1000).op("aten::linear", 0, 100).op("aten::softmax", 400, 300);
  program.change(50, 400 * kMB, 1).change(450, 300 * kMB, 2).change(450 + us, -300 * kMB, 2);
  program.change(900, -400 * kMB, 1);
  return program;
}

TEST(MemoryPeakTest, SpeaksWhenTheTopLivesShortly) {
  const auto finding = find_by_rule(with_temporary(40).trace(), "memory-peak");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values[1].integer, 700 * kMB);
  EXPECT_EQ(finding->verdict.values[2].integer, 300 * kMB);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 40'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).text, "aten::softmax");
}

TEST(MemoryPeakTest, IsQuietWhenItLivesLong) {
  EXPECT_FALSE(find_by_rule(with_temporary(60).trace(), "memory-peak"));
}

}  // namespace
}  // namespace lanescope::explain
