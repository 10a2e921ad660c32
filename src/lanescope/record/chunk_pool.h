// Hands prepared chunks to threads and takes full ones. The only place where recording threads meet
// the background thread. No locks.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "lanescope/codec/spool_layout.h"

namespace lanescope::record {

class ChunkPool {
 public:
  static constexpr std::uint32_t kCapacity = 512;

  // Any thread. Null: none is ready. Checks at most kCapacity places, and none while all are empty:
  // then each record asks again, and dropping one must cost no more than writing it.
  spool::ChunkHeader* take() noexcept {
    if (ready_count() == 0) return nullptr;
    const std::uint32_t start = take_at_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t step = 0; step < kCapacity; ++step) {
      std::atomic<spool::ChunkHeader*>& place = ready_[(start + step) % kCapacity];
      if (!place.load(std::memory_order_relaxed)) continue;
      // acquire: pairs with the release in put(), so the chunk's header is seen.
      if (spool::ChunkHeader* chunk = place.exchange(nullptr, std::memory_order_acquire)) {
        count_.fetch_sub(1, std::memory_order_relaxed);
        return chunk;
      }
    }
    return nullptr;
  }

  // One thread (the background one). False: every place is taken.
  bool put(spool::ChunkHeader* chunk) noexcept {
    for (std::uint32_t step = 0; step < kCapacity; ++step) {
      std::atomic<spool::ChunkHeader*>& place = ready_[(put_at_ + step) % kCapacity];
      if (place.load(std::memory_order_relaxed)) continue;
      place.store(chunk, std::memory_order_release);  // pairs with take()
      count_.fetch_add(1, std::memory_order_relaxed);
      put_at_ = (put_at_ + step + 1) % kCapacity;
      return true;
    }
    return false;
  }

  // Any thread; approximate while other threads take or put.
  std::uint32_t ready_count() const noexcept {
    return static_cast<std::uint32_t>(std::max(count_.load(std::memory_order_relaxed), 0));
  }

  // Any thread. The owner does not touch the chunk again.
  void add_full(spool::ChunkHeader* chunk) noexcept {
    spool::ChunkHeader* head = full_.load(std::memory_order_relaxed);
    do {
      chunk->in_memory_next = reinterpret_cast<std::uintptr_t>(head);
    } while (!full_.compare_exchange_weak(head, chunk, std::memory_order_release,
                                          std::memory_order_relaxed));  // pairs with take_full()
  }

  // One thread. All chunks added so far, linked by in_memory_next.
  spool::ChunkHeader* take_full() noexcept {
    return full_.exchange(nullptr, std::memory_order_acquire);  // pairs with add_full()
  }

 private:
  std::array<std::atomic<spool::ChunkHeader*>, kCapacity> ready_{};
  // Below 0 for a moment when a chunk is taken between the two steps of put().
  std::atomic<std::int32_t> count_{0};
  std::atomic<std::uint32_t> take_at_{0};  // relaxed: only spreads the threads
  std::uint32_t put_at_ = 0;
  std::atomic<spool::ChunkHeader*> full_{nullptr};
};

}  // namespace lanescope::record
