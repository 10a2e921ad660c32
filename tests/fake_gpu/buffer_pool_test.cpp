// Which buffers are outside: what the end of a recording waits for.
#include "lanescope/record_cupti/buffer_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace lanescope::record_cupti {
namespace {

constexpr std::size_t kBytes = 8192;

TEST(BufferPoolTest, ABufferIsOutsideUntilItIsDecoded) {
  BufferPool pool(kBytes, 4);
  std::uint8_t* const buffer = pool.take();
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(pool.outstanding(), 1u);
  buffer[5] = 1;
  EXPECT_TRUE(pool.complete({buffer, 6, kBytes}));
  EXPECT_EQ(pool.completed(), 1u);
  const Buffer back = pool.next_completed();
  EXPECT_EQ(back.data, buffer);
  EXPECT_EQ(back.valid_bytes, 6u);
  EXPECT_EQ(pool.outstanding(), 1u);
  pool.recycle(back);
  EXPECT_EQ(pool.outstanding(), 0u);
  EXPECT_EQ(pool.next_completed().data, nullptr);
  EXPECT_EQ(pool.take(), buffer);
  EXPECT_EQ(buffer[5], 0);
  EXPECT_EQ(pool.made(), 1u);
}

TEST(BufferPoolTest, BuffersThatAreBeingMadeAreNotOutside) {
  BufferPool pool(std::size_t{1} << 20, 64);
  std::atomic<bool> done = false;
  std::thread maker([&] {
    pool.prepare(64);
    done = true;
  });
  while (!done) ASSERT_EQ(pool.outstanding(), 0u);
  maker.join();
  EXPECT_EQ(pool.ready(), 64u);
}

TEST(BufferPoolTest, ForeignAndReadyBuffersAreNotTaken) {
  BufferPool pool(kBytes, 4);
  std::vector<std::uint8_t> foreign(kBytes, 1);
  EXPECT_FALSE(pool.complete({foreign.data(), 8, kBytes}));
  std::uint8_t* const buffer = pool.take();
  EXPECT_TRUE(pool.complete({buffer, 8, kBytes}));
  EXPECT_FALSE(pool.complete({buffer, 8, kBytes}));  // twice
  pool.recycle(pool.next_completed());
  EXPECT_FALSE(pool.complete({buffer, 8, kBytes}));  // it is ready
  EXPECT_EQ(pool.outstanding(), 0u);
  EXPECT_EQ(pool.completed(), 1u);
}

TEST(BufferPoolTest, WrittenOffBuffersDoNotCountUntilTheyComeBack) {
  BufferPool pool(kBytes, 2);
  std::uint8_t* const first = pool.take();
  std::uint8_t* const second = pool.take();
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.refused(), 1u);
  EXPECT_TRUE(pool.complete({first, 8, kBytes}));
  EXPECT_EQ(pool.write_off(), 1u);  // the second; the first only waits to be decoded
  EXPECT_EQ(pool.outstanding(), 1u);
  EXPECT_EQ(pool.written_off(), 1u);
  pool.recycle(pool.next_completed());
  EXPECT_EQ(pool.outstanding(), 0u);
  // There is room for another one in its place.
  EXPECT_EQ(pool.take(), first);
  std::uint8_t* const third = pool.take();
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_TRUE(pool.complete({second, 8, kBytes}));
  EXPECT_EQ(pool.written_off(), 0u);
  EXPECT_EQ(pool.outstanding(), 3u);
  pool.recycle(pool.next_completed());
  EXPECT_EQ(pool.outstanding(), 2u);
  EXPECT_EQ(pool.take(), second);
}

TEST(BufferPoolTest, WrittenOffBuffersCanBeRestored) {
  BufferPool pool(kBytes, 2);
  std::uint8_t* const buffer = pool.take();
  EXPECT_EQ(pool.write_off(), 1u);
  pool.restore_written_off();
  EXPECT_EQ(pool.outstanding(), 1u);
  EXPECT_EQ(pool.written_off(), 0u);
  EXPECT_EQ(pool.made(), 1u);
  EXPECT_TRUE(pool.complete({buffer, 8, kBytes}));
  pool.recycle(pool.next_completed());
  EXPECT_EQ(pool.outstanding(), 0u);
}

TEST(BufferPoolTest, WritingOffAgainAndAgainEndsInRefusalsNotInMoreMemory) {
  BufferPool pool(kBytes, 3);
  std::size_t given = 0;
  for (int round = 0; round < 10; ++round) {
    while (pool.take()) {
    }
    given += pool.write_off();
  }
  EXPECT_EQ(given, 6u);  // twice the limit
  EXPECT_EQ(pool.take(), nullptr);
}

TEST(BufferPoolTest, ASpillIsOutstandingAndFreedAfterwards) {
  BufferPool pool(kBytes, 1);
  std::uint8_t* const spill = pool.take_spill();
  ASSERT_NE(spill, nullptr);
  EXPECT_EQ(pool.outstanding(), 1u);
  EXPECT_TRUE(pool.complete({spill, 8, BufferPool::kSpillBytes}));
  const Buffer back = pool.next_completed();
  EXPECT_TRUE(BufferPool::is_spill(back));
  pool.recycle(back);
  EXPECT_EQ(pool.outstanding(), 0u);
  EXPECT_FALSE(pool.complete({spill, 8, BufferPool::kSpillBytes}));
  EXPECT_EQ(pool.made(), 0u);
}

}  // namespace
}  // namespace lanescope::record_cupti
