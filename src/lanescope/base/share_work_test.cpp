#include "lanescope/base/share_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lanescope {
namespace {

TEST(ShareWorkTest, EachPieceIsDoneOnce) {
  for (const unsigned threads : {0u, 1u, 2u, 9u}) {
    std::vector<std::atomic<int>> done(100);
    share_work(done.size(), threads, [&](std::size_t piece) { ++done[piece]; });
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
  share_work(0, 4, [](std::size_t) { FAIL(); });
}

// Two pieces that wait for each other end only if two threads have them.
TEST(ShareWorkTest, OtherThreadsTakePieces) {
  std::atomic<int> begun = 0;
  std::atomic<bool> met = true;
  share_work(2, 2, [&](std::size_t) {
    ++begun;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    if (begun < 2) met = false;
  });
  EXPECT_TRUE(met);
}

TEST(ShareWorkTest, OneThreadIsTheCallers) {
  const auto own = std::this_thread::get_id();
  share_work(5, 1, [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), own); });
}

TEST(ShareWorkTest, WhatAPieceThrowsArrives) {
  std::atomic<int> done = 0;
  try {
    share_work(1000, 4, [&](std::size_t piece) {
      if (piece == 3) throw std::runtime_error("third");
      ++done;
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), std::string("third"));
  }
  EXPECT_LT(done, 1000);
}

}  // namespace
}  // namespace lanescope
