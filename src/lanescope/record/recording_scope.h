// Says whether somebody records, and marks the scope in which a thread writes: from its check whether
// somebody records to its last store.
//
// Part of the hot path (thread_writer.h), for the thread of the writer.
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// False: nothing is written. A relaxed check, for callers that prepare something expensive first.
inline bool is_recording() noexcept {
  return lanescope_recording.load(std::memory_order_relaxed) != 0;
}
inline std::uint32_t record_options() noexcept {  // LANESCOPE_RECORD_*
  return lanescope_record_options.load(std::memory_order_relaxed);
}

// Identifies an open range, for callers that can keep it. sequence 0: nothing was recorded.
struct RangeToken {
  std::uint32_t sequence = 0;
  std::uint32_t index = 0;
};

// Two neighbouring 32-bit members of a struct as a token, in one load or store. Why in one: a processor reads
// a part of what was just stored as a whole without waiting. It waits for the stores if it reads a whole that
// was stored in parts.
inline RangeToken load_token(const void* object, std::size_t at) noexcept {
  RangeToken token;
  std::memcpy(&token, static_cast<const unsigned char*>(object) + at, sizeof token);
  return token;
}
inline void store_token(void* object, std::size_t at, RangeToken token) noexcept {
  std::memcpy(static_cast<unsigned char*>(object) + at, &token, sizeof token);
}

// The one after it in the chunk. In one addition: the compiler would take the word apart and put it
// together again.
inline RangeToken next_of(RangeToken token) noexcept {
  if constexpr (std::endian::native == std::endian::little)
    return std::bit_cast<RangeToken>(std::bit_cast<std::uint64_t>(token) +
                                     (std::uint64_t{1} << 32));
  else
    return {token.sequence, token.index + 1};
}

// Marks this thread as inside the recorder; `ok` when it may write. See LanescopeWriter::busy.
class RecordingScope {
 public:
  [[gnu::always_inline]] explicit RecordingScope(LanescopeWriter* writer) noexcept
      : writer_(writer) {
    if (is_inside(writer)) [[unlikely]] {  // a signal handler interrupted its own thread in here
      count_reentered(writer_);
      writer_ = nullptr;
      return;
    }
    enter();
  }
  // For a thread that is not inside, as is_inside() has said.
  struct FromOutside {};
  [[gnu::always_inline]] RecordingScope(LanescopeWriter* writer, FromOutside) noexcept
      : writer_(writer) {
    enter();
  }
  [[gnu::always_inline]] static bool is_inside(const LanescopeWriter* writer) noexcept {
    return writer->busy.load(std::memory_order_relaxed) != 0;
  }
  [[gnu::always_inline]] ~RecordingScope() {
    if (writer_) writer_->busy.store(0, std::memory_order_release);
  }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
  bool ok() const noexcept { return window_ != 0; }
  std::uint32_t window() const noexcept { return window_; }
  // The next free record, or null: dropped and counted.
  spool::Record* reserve() noexcept { return reserve(writer_); }
  // Adds the reserved record to the file.
  void commit() noexcept { commit(writer_); }
  // The same for code that has the writer and not the scope, while a scope is open.
  [[gnu::always_inline]] static spool::Record* reserve(LanescopeWriter* writer) noexcept {
    if (is_full(writer)) [[unlikely]]
      if (!refill(writer)) return nullptr;
    return writer->first + writer->count;
  }
  static bool is_full(const LanescopeWriter* writer) noexcept {
    return writer->count == writer->capacity;
  }
  // The token of the next record. Only while there is room.
  static RangeToken next_token(const LanescopeWriter* writer) noexcept {
    static_assert(offsetof(LanescopeWriter, count) == kTokenAt + sizeof writer->sequence);
    return load_token(writer, kTokenAt);
  }
  static void commit(LanescopeWriter* writer) noexcept {
    commit(writer, writer->first + writer->count, next_token(writer));
  }
  // For callers that have the record and the token. Without them the compiler would load both again, because after other
  // stores it cannot know that they are the same.
  [[gnu::always_inline]] static void commit(LanescopeWriter* writer, const spool::Record* record,
                                            RangeToken token) noexcept {
    store_token(writer, kTokenAt, next_of(token));
    prefetch_for_store(record + 1 + kRecordsAhead);
    writer->used->store(token.index + 1,
                        std::memory_order_release);  // pairs with the reader's acquire
  }
  void count(std::atomic<std::uint64_t> spool::ThreadSlot::*counter) noexcept {
    count(writer_, counter);
  }

 private:
  static constexpr std::size_t kTokenAt = offsetof(LanescopeWriter, sequence);
  [[gnu::always_inline]] void enter() noexcept {
    writer_->busy.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // the membarrier of whoever closes the window makes it
                                     // a real fence
    window_ = lanescope_recording.load(std::memory_order_acquire);
  }
  // Fetched early: another core has zeroed them, and a record that waits for its cache line holds up
  // all later stores of the thread. Beyond the chunk's end it does nothing.
  static constexpr std::uint32_t kRecordsAhead = 5;
  static void prefetch_for_store(const spool::Record* record) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*reinterpret_cast<const char*>(record)));
#else
    __builtin_prefetch(record, 1);
#endif
  }
  static void count(LanescopeWriter* writer,
                    std::atomic<std::uint64_t> spool::ThreadSlot::*counter) noexcept {
    if (!writer->slot) return lanescope_count_drop();
    std::atomic<std::uint64_t>& value = writer->slot->*counter;
    value.store(value.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);  // one writer
  }
  // Static, so that the scope itself stays in registers.
  [[gnu::noinline, gnu::cold]] static void count_reentered(LanescopeWriter* writer) noexcept {
    count(writer, &spool::ThreadSlot::reentered);
  }
  [[gnu::noinline, gnu::cold]] static bool refill(LanescopeWriter* writer) noexcept {
    if (lanescope_next_chunk(writer)) return true;
    count(writer, &spool::ThreadSlot::dropped);
    return false;
  }

  LanescopeWriter* writer_;
  std::uint32_t window_ = 0;
};

}  // namespace lanescope::record
