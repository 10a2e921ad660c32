#include "lanescope/record/chunk_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace lanescope::record {
namespace {

TEST(ChunkPoolTest, GivesEachChunkOnceAndHasRoomForItsCapacity) {
  std::vector<spool::ChunkHeader> chunks(ChunkPool::kCapacity + 1);
  ChunkPool pool;
  EXPECT_EQ(pool.take(), nullptr);
  for (std::uint32_t i = 0; i < ChunkPool::kCapacity; ++i) {
    EXPECT_EQ(pool.ready_count(), i);
    ASSERT_TRUE(pool.put(&chunks[i]));
  }
  EXPECT_FALSE(pool.put(&chunks.back()));
  EXPECT_EQ(pool.ready_count(), ChunkPool::kCapacity);
  std::set<spool::ChunkHeader*> taken;
  while (spool::ChunkHeader* chunk = pool.take()) EXPECT_TRUE(taken.insert(chunk).second);
  EXPECT_EQ(taken.size(), ChunkPool::kCapacity);
  EXPECT_EQ(pool.ready_count(), 0u);
  ASSERT_TRUE(pool.put(&chunks.back()));  // a place that was taken from is free again
  EXPECT_EQ(pool.take(), &chunks.back());
}

TEST(ChunkPoolTest, NoChunkIsLostOrGivenTwiceWhileThreadsTake) {
  constexpr std::uint32_t kThreads = 4, kRounds = 20'000;
  std::vector<spool::ChunkHeader> chunks(8);  // few, so that the pool is often empty
  ChunkPool pool;
  std::atomic<bool> stop{false};
  std::atomic<std::uint32_t> taken{0}, twice{0};
  std::vector<std::atomic<int>> owners(chunks.size());
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        spool::ChunkHeader* chunk = pool.take();
        if (!chunk) continue;
        twice += owners[static_cast<std::size_t>(chunk - chunks.data())].fetch_add(1) != 0;
        ++taken;
        owners[static_cast<std::size_t>(chunk - chunks.data())].fetch_sub(1);
        pool.add_full(chunk);
      }
    });
  for (spool::ChunkHeader& chunk : chunks) ASSERT_TRUE(pool.put(&chunk));
  while (taken < kRounds)
    for (spool::ChunkHeader* chunk = pool.take_full(); chunk;) {
      auto* next = reinterpret_cast<spool::ChunkHeader*>(chunk->in_memory_next);
      ASSERT_TRUE(pool.put(chunk));
      chunk = next;
    }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(twice, 0u);
  std::uint32_t left = 0;
  while (pool.take()) ++left;
  for (spool::ChunkHeader* chunk = pool.take_full(); chunk; ++left)
    chunk = reinterpret_cast<spool::ChunkHeader*>(chunk->in_memory_next);
  EXPECT_EQ(left, chunks.size());
  EXPECT_EQ(pool.ready_count(), 0u);
}

}  // namespace
}  // namespace lanescope::record
