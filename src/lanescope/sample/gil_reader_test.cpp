#include "lanescope/sample/gil_reader.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "lanescope/sample/waiter_count.h"

namespace lanescope::sample {
namespace {

constexpr std::uint64_t kRuntimeAt = 0x1000, kInterpreterAt = 0x4000;

// One stretch of memory, zero where nothing is put.
class Stretch final : public ProcessMemory {
 public:
  using ProcessMemory::read;
  void read(std::span<MemoryPiece> pieces) override {
    for (MemoryPiece& piece : pieces) {
      piece.ok =
          piece.address >= kRuntimeAt && piece.address + piece.size <= kRuntimeAt + bytes_.size();
      if (piece.ok) std::memcpy(piece.to, &bytes_[piece.address - kRuntimeAt], piece.size);
    }
  }
  template <typename Word>
  void put(std::uint64_t at, Word word) {
    std::memcpy(&bytes_[at - kRuntimeAt], &word, sizeof word);
  }

 private:
  std::vector<unsigned char> bytes_ = std::vector<unsigned char>(0x5000);
};

TEST(GilReaderTest, SaysWhoHoldsTheLockAndHowManyWait) {
  for (const std::uint32_t version : {0x03090000u, 0x030a0000u, 0x030b0000u, 0x030c0000u}) {
    const PythonLayout layout = *layout_of_version(version);
    Stretch memory;
    GilReader reader(memory, layout, kRuntimeAt, kInterpreterAt, 36);
    const std::uint64_t gil =
        (version < 0x030c0000u ? kRuntimeAt : kInterpreterAt) + layout.gil_holder;
    memory.put(gil, std::uint64_t{0x7777});
    auto state = reader.read();
    ASSERT_TRUE(state);
    EXPECT_EQ(state->holder, 0u);  // not locked: the last holder has let it go
    memory.put(gil + 8, std::int32_t{1});
    memory.put(gil + 60, std::uint32_t{3 << 3 | 2});  // 3 threads wait, on the monotonic clock
    memory.put(kInterpreterAt + layout.gc_collecting, std::int32_t{1});
    state = reader.read();
    ASSERT_TRUE(state);
    EXPECT_EQ(state->holder, 0x7777u);
    EXPECT_EQ(state->waiting, 3u);
    EXPECT_TRUE(state->is_collecting);
    state = GilReader(memory, layout, kRuntimeAt, kInterpreterAt, std::nullopt).read();
    ASSERT_TRUE(state);
    EXPECT_FALSE(state->waiting);
  }
}

TEST(GilReaderTest, WhatCannotBeALockIsNone) {
  const PythonLayout layout = *layout_of_version(0x030c0000);
  Stretch memory;
  memory.put(kInterpreterAt + layout.gil_holder + 8, std::int32_t{77});
  EXPECT_FALSE(GilReader(memory, layout, kRuntimeAt, kInterpreterAt, 36).read());
  memory.put(kInterpreterAt + layout.gil_holder + 8, std::int32_t{1});
  memory.put(kInterpreterAt + layout.gil_holder + 60, std::uint32_t{0x7fffffff});
  EXPECT_FALSE(GilReader(memory, layout, kRuntimeAt, kInterpreterAt, 36).read());
  EXPECT_FALSE(GilReader(memory, layout, kRuntimeAt, 0x900000, 36).read());  // not readable
}

TEST(WaiterCountTest, IsFoundInThisProcessAndOnlyInOnesWithItsLibc) {
  const auto offset = find_waiter_count(getpid());
  ASSERT_TRUE(offset);
  EXPECT_LE(*offset + 4, sizeof(pthread_cond_t));
  EXPECT_FALSE(find_waiter_count(-1));
}

}  // namespace
}  // namespace lanescope::sample
