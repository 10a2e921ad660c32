// The hot path: writes one 48-byte record straight into the mapped file. No lock, no allocation, no
// system call, no text.
//
// A range is written when it begins, with end_tsc 0, so that a killed process leaves its open
// ranges, too; its end fills in end_tsc. If the thread has moved to its next chunk since, the end
// is a separate record: a full chunk never changes again and gets a checksum. All functions may be
// called at any time, on any thread, recording or not. Cost of begin + end: two reads of the tick
// counter and some ten stores to cache lines of the thread (bench/range_cost.cpp).
#pragma once
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/record_abi.h"
#include "lanescope/record/recording_scope.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {

// What a range has besides its time. Text ids come from intern_*().
struct RangeInfo {
  std::uint32_t name = 0;
  std::uint8_t scope = spool::kUserScope;
  std::uint16_t flags = 0;           // spool::RecordFlag
  std::int64_t sequence_number = 0;  // with kHasSequence
  std::uint32_t forward_thread = 0;
  std::uint32_t detail = 0;
  std::uint64_t handle = 0;
};

inline LanescopeWriter* thread_writer() noexcept {
  if (LanescopeWriter* writer = lanescope_thread_writer) [[likely]]
    return writer;
  return lanescope_attach_thread();
}

namespace detail {
// Fields that are next to each other in one store: a short range has few instructions, and each
// store waits for its turn.
[[gnu::always_inline]] inline void set_kind(spool::RangeRecord& range, const RangeInfo& info) {
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::size_t kAt = offsetof(spool::RangeRecord, name);
    static_assert(offsetof(spool::RangeRecord, kind) == kAt + 4 &&
                  offsetof(spool::RangeRecord, scope) == kAt + 5 &&
                  offsetof(spool::RangeRecord, flags) == kAt + 6);
    const std::uint64_t word =
        info.name | std::uint64_t{static_cast<std::uint8_t>(spool::RecordKind::kRange)} << 32 |
        std::uint64_t{info.scope} << 40 | std::uint64_t{info.flags} << 48;
    std::memcpy(reinterpret_cast<unsigned char*>(&range) + kAt, &word, sizeof word);
  } else {
    range.name = info.name;
    range.kind = spool::RecordKind::kRange;
    range.scope = info.scope;
    range.flags = info.flags;
  }
}
[[gnu::always_inline]] inline void set_details(spool::RangeRecord& range, const RangeInfo& info) {
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::size_t kAt = offsetof(spool::RangeRecord, forward_thread);
    static_assert(offsetof(spool::RangeRecord, detail) == kAt + 4);
    const std::uint64_t word = info.forward_thread | std::uint64_t{info.detail} << 32;
    std::memcpy(reinterpret_cast<unsigned char*>(&range) + kAt, &word, sizeof word);
  } else {
    range.forward_thread = info.forward_thread;
    range.detail = info.detail;
  }
}

// To the reserved record. `began`: 0: now.
[[gnu::always_inline]] inline RangeToken write_begin(LanescopeWriter* writer, spool::Record* record,
                                                     const RangeInfo& info,
                                                     std::uint64_t began = 0) noexcept {
  // A fresh chunk is zero, so values of 0 (such as end_tsc) need no store. With a constant `info`
  // the compiler removes these tests.
  spool::RangeRecord& range = record->range;
  set_kind(range, info);
  set_details(range, info);
  if (info.sequence_number != 0) range.sequence_number = info.sequence_number;
  if (info.handle != 0) range.handle = info.handle;
  const RangeToken token = RecordingScope::next_token(writer);
  // Last, so that the range does not include our cost.
  range.begin_tsc = began != 0 ? began : ticks();
  RecordingScope::commit(writer, record, token);
  return token;
}

[[gnu::always_inline]] inline RangeToken begin(LanescopeWriter* writer, const RangeInfo& info,
                                               std::uint64_t began = 0) noexcept {
  spool::Record* record = RecordingScope::reserve(writer);
  if (!record) [[unlikely]]
    return {};
  return write_begin(writer, record, info, began);
}

// Whether end() has no record to write. `token` is of this window, or nothing was recorded.
[[gnu::always_inline]] inline bool ends_in_place(const LanescopeWriter* writer,
                                                 RangeToken token) noexcept {
  return token.sequence == writer->sequence || token.sequence == 0;
}
// end(), where it ends in place.
[[gnu::always_inline]] inline void end_in_place(LanescopeWriter* writer, RangeToken token,
                                                std::uint64_t now) noexcept {
  if (token.sequence != 0) [[likely]]
    writer->first[token.index].range.end_tsc = now;
}

constexpr std::size_t kOpenTokenAt = offsetof(LanescopeOpenRange, sequence);
static_assert(offsetof(LanescopeOpenRange, index) == kOpenTokenAt + sizeof(std::uint32_t));
inline RangeToken token_of(const LanescopeOpenRange& open) noexcept {
  return load_token(&open, kOpenTokenAt);
}
// Puts a range on the thread's stack, which has room.
[[gnu::always_inline]] inline void push_open(LanescopeWriter* writer, std::uint64_t handle,
                                             RangeToken token) noexcept {
  const std::uint32_t depth = writer->depth;
  LanescopeOpenRange& open = writer->stack[depth];
  open.handle = handle;
  store_token(&open, kOpenTokenAt, token);
  writer->depth = depth + 1;
}

// Forgets ranges of an earlier window whose ends never came.
inline void enter_window(LanescopeWriter* writer, const RecordingScope& inside) noexcept {
  if (writer->stack_window == inside.window()) return;
  writer->stack_window = inside.window();
  writer->depth = writer->lost_depth = 0;
}

// The range is in a chunk that this thread no longer writes.
[[gnu::noinline, gnu::cold]] inline void end_elsewhere(LanescopeWriter* writer, RangeToken token,
                                                       std::uint64_t now) noexcept {
  spool::Record* record = RecordingScope::reserve(writer);
  if (!record) return;
  *record = spool::RangeEndRecord{.end_tsc = now, .place = {token.index, token.sequence}};
  RecordingScope::commit(writer);
}

// In an open scope.
inline void end(LanescopeWriter* writer, RangeToken token, std::uint64_t now) noexcept {
  if (token.sequence == writer->sequence) [[likely]]
    writer->first[token.index].range.end_tsc = now;  // taking a chunk away changes the sequence
  else
    end_elsewhere(writer, token, now);
}
}  // namespace detail

// For callers that have opened the scope, which is ok().
inline RangeToken begin_range(LanescopeWriter* writer, const RangeInfo& info) noexcept {
  return detail::begin(writer, info);
}
// Where the writer's chunk is not full.
[[gnu::always_inline]] inline RangeToken begin_range_in_chunk(LanescopeWriter* writer,
                                                              const RangeInfo& info) noexcept {
  return detail::write_begin(writer, writer->first + writer->count, info);
}
// Also puts it on the thread's stack, which has room and is of this window.
[[gnu::always_inline]] inline void begin_pushed(LanescopeWriter* writer,
                                                const RangeInfo& info) noexcept {
  const RangeToken token = detail::begin(writer, info);
  detail::push_open(writer, info.handle, token);
}
// The same where the writer's chunk is not full.
[[gnu::always_inline]] inline void begin_pushed_in_chunk(LanescopeWriter* writer,
                                                         const RangeInfo& info) noexcept {
  const RangeToken token = begin_range_in_chunk(writer, info);
  detail::push_open(writer, info.handle, token);
}
inline void end_range(LanescopeWriter* writer, RangeToken token, std::uint64_t now) noexcept {
  if (token.sequence != 0) [[likely]]
    detail::end(writer, token, now);
}

// `began`, in ticks, for a range that was already open; 0: now.
inline RangeToken begin_range(const RangeInfo& info, std::uint64_t began = 0) noexcept {
  if (!is_recording()) return {};
  LanescopeWriter* writer = thread_writer();
  if (!writer) [[unlikely]]
    return {};
  RecordingScope inside(writer);
  if (!inside.ok()) [[unlikely]]
    return {};
  return detail::begin(writer, info, began);
}

// On the thread that began it. A range still open when its window closes ends with the window.
inline void end_range(RangeToken token, std::uint64_t now = ticks()) noexcept {
  LanescopeWriter* writer = lanescope_thread_writer;
  if (token.sequence == 0 || !writer) [[unlikely]]
    return;
  RecordingScope inside(writer);
  if (inside.ok()) [[likely]]
    detail::end(writer, token, now);
}

namespace detail {
// Puts the token that `open` returns on the thread's stack. `is_record`: if there is no room, it
// counts as lost.
template <typename Open>
[[gnu::always_inline]] inline void nest(bool is_record, const Open& open) noexcept {
  if (!is_recording()) return;
  LanescopeWriter* writer = thread_writer();
  if (!writer) return;
  RecordingScope inside(writer);
  if (!inside.ok()) return;
  enter_window(writer, inside);
  if (writer->depth == kLanescopeStackDepth) {
    ++writer->lost_depth;
    if (is_record) inside.count(&spool::ThreadSlot::depth_overflow);
    return;
  }
  const LanescopeOpenRange range = open(writer);
  writer->stack[writer->depth++] = range;
}
}  // namespace detail

// For callers with no place for a token: begins a range and remembers it on the thread's stack.
// Give a handle (not 0) when the end may come out of order or from another thread.
[[gnu::always_inline]] inline void begin_nested(const RangeInfo& info) noexcept {
  detail::nest(true, [&info](LanescopeWriter* writer) -> LanescopeOpenRange {
    const RangeToken token = detail::begin(writer, info);
    return {info.handle, token.sequence, token.index};
  });
}

// Instead of begin_nested(), for a range that is not recorded: its end leaves no record either.
// `count`: the counter of LanescopeCost for what was left out.
inline void leave_out_nested(std::uint64_t handle,
                             std::atomic<std::uint64_t> LanescopeCost::*count) noexcept {
  detail::nest(false, [=](LanescopeWriter* writer) -> LanescopeOpenRange {
    std::atomic<std::uint64_t>& sum = writer->cost.*count;
    sum.store(sum.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer
    return {handle, 0, 0};
  });
}

// Name and ticks so far of this thread's innermost range, if it has that handle and was recorded
// not long ago; else nothing (ticks 0).
struct OpenRange {
  std::uint32_t name = 0;
  std::uint64_t ticks = 0;
};
inline OpenRange innermost_range(std::uint64_t handle) noexcept {
  LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer) return {};
  RecordingScope inside(writer);
  if (!inside.ok() || writer->stack_window != inside.window() || writer->depth == 0) return {};
  const LanescopeOpenRange& open = writer->stack[writer->depth - 1];
  if (open.handle != handle || open.sequence == 0 || open.sequence != writer->sequence) return {};
  const spool::RangeRecord& range = writer->first[open.index].range;
  return {range.name, ticks() - range.begin_tsc};
}

namespace detail {
[[gnu::noinline]] inline void end_any_nested(std::uint64_t handle, std::uint64_t now) noexcept {
  LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer) {
    if (handle == 0 || !is_recording()) return;
    writer = lanescope_attach_thread();
    if (!writer) return;
  }
  RecordingScope inside(writer);
  if (!inside.ok() || writer->stack_window != inside.window()) {
    if (!inside.ok() || handle == 0) return;
    detail::enter_window(writer, inside);
  }
  if (writer->lost_depth != 0 && handle == 0) {
    --writer->lost_depth;
    return;
  }
  for (std::uint32_t at = writer->depth; at-- > 0;) {
    const LanescopeOpenRange open = writer->stack[at];
    if (handle != 0 && open.handle != handle) continue;
    for (std::uint32_t next = at + 1; next < writer->depth; ++next)
      writer->stack[next - 1] = writer->stack[next];
    --writer->depth;
    if (open.sequence != 0) detail::end(writer, {open.sequence, open.index}, now);
    return;
  }
  if (handle == 0) return;
  if (writer->lost_depth != 0) {
    --writer->lost_depth;
    return;
  }
  spool::Record* record = inside.reserve();  // began on another thread, or before this window
  if (!record) return;
  *record = spool::EndByHandleRecord{.end_tsc = now, .handle = handle};
  inside.commit();
}

// The usual case: the range is this thread's innermost one. False: another case, and nothing changed.
[[gnu::always_inline]] inline bool end_innermost(std::uint64_t handle, std::uint64_t now) noexcept {
  LanescopeWriter* const writer = lanescope_thread_writer;
  if (!writer || RecordingScope::is_inside(writer)) [[unlikely]]
    return false;
  const RecordingScope inside(writer, RecordingScope::FromOutside{});
  const std::uint32_t last = writer->depth - 1;
  if (!inside.ok() || writer->stack_window != inside.window() || last >= kLanescopeStackDepth)
      [[unlikely]]
    return false;
  const LanescopeOpenRange& open = writer->stack[last];
  const RangeToken token = token_of(open);
  // No call is left in here, so that it saves no registers.
  if (open.handle != handle || handle == 0 || !ends_in_place(writer, token)) [[unlikely]]
    return false;
  writer->depth = last;
  end_in_place(writer, token, now);
  return true;
}
}  // namespace detail

// Ends the range with that handle, wherever it began; handle 0: this thread's innermost range.
[[gnu::always_inline]] inline void end_nested(std::uint64_t handle = 0) noexcept {
  const std::uint64_t now = ticks();
  if (!detail::end_innermost(handle, now)) [[unlikely]]
    detail::end_any_nested(handle, now);
}

// Equal at two moments, and not 0: no Python function was called or left on the writer's thread
// between them.
inline std::uint64_t frame_mark(const LanescopeWriter* writer) noexcept {
  const std::uint64_t counted = lanescope_frames_counted.load(std::memory_order_relaxed);
  return counted != 0 && writer->frame_changes ? (counted << 40) + *writer->frame_changes : 0;
}

namespace detail {
// Writes the record of this thread that `make` gives; does nothing while nobody records.
template <typename Make>
void write_record(const Make& make) noexcept {
  if (!is_recording()) return;
  LanescopeWriter* writer = thread_writer();
  if (!writer) [[unlikely]]
    return;
  RecordingScope inside(writer);
  spool::Record* record = inside.ok() ? inside.reserve() : nullptr;
  if (!record) [[unlikely]]
    return;
  *record = make();
  inside.commit();
}
}  // namespace detail

// A point in time on this thread.
inline void record_instant(std::uint32_t name, std::uint32_t detail_id = 0) noexcept {
  detail::write_record([&] {
    return spool::InstantRecord{.begin_tsc = ticks(), .name = name, .detail = detail_id};
  });
}

// An allocation, a free (bytes < 0), or a request that failed (out_of_memory).
// Sets the record's time and kind.
inline void record_memory(spool::MemoryRecord memory, bool out_of_memory = false) noexcept {
  detail::write_record([&] {
    memory.kind = out_of_memory ? spool::RecordKind::kOutOfMemory : spool::RecordKind::kMemory;
    memory.begin_tsc = ticks();
    return memory;
  });
}

// An API call, a wait or an event (activity_layout.h) of this thread that has just ended; one
// record of 48 bytes.
template <typename Activity>
void record_activity(const Activity& activity) noexcept {
  detail::write_record([&] { return spool::as_record(activity); });
}

// Numbers that change in each call, for the next range with that name on this thread.
struct CallNumbers {
  std::uint16_t flags = 0;  // spool::CallNumberFlag: which of them are set
  std::int64_t seq = 0;
  std::uint64_t comms_id = 0;
  std::uint64_t record_function_id = 0;
};
inline void record_call_numbers(std::uint32_t name, const CallNumbers& numbers) noexcept {
  detail::write_record([&] {
    return spool::CallNumbersRecord{.begin_tsc = ticks(),
                                    .record_function_id = numbers.record_function_id,
                                    .name = name,
                                    .flags = numbers.flags,
                                    .seq = numbers.seq,
                                    .comms_id = numbers.comms_id};
  });
}

// Samples of some thread's Python stack.
inline void record_sample(const spool::SampleRecord& sample) noexcept {
  detail::write_record([&] { return sample; });
}

// A tensor of this thread's next range. Sets the record's time.
inline void record_tensor(spool::TensorRecord tensor) noexcept {
  detail::write_record([&] {
    tensor.begin_tsc = ticks();
    return tensor;
  });
}

// The id of a text that keeps its address and bytes until the process ends (operator names,
// literals); looked up by address.
inline std::uint32_t intern_stable(const char* text, std::size_t size) noexcept {
  LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer) return lanescope_intern(text, size, nullptr);
  const auto address = reinterpret_cast<std::uintptr_t>(text);
  const auto mixed = static_cast<std::uint64_t>(address) * 0x9e3779b97f4a7c15u;
  LanescopePointerName& entry = writer->pointer_names[(mixed >> 40) & (kLanescopePointerCache - 1)];
  if (entry.pointer == text) [[likely]]
    return entry.id;
  const std::uint32_t id = lanescope_intern(text, size, nullptr);
  entry = {text, id};
  return id;
}

namespace detail {
template <typename Word>
std::uint64_t load(const char* at) noexcept {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}
// Only for the search: the caller compares the bytes.
inline std::uint64_t hash_text(const char* text, std::size_t size) noexcept {
  std::uint64_t hash = size;
  if (size >= 16) {
    for (std::size_t at = 0; at + 16 < size; at += 16)
      hash = mix(hash ^ load<std::uint64_t>(text + at), load<std::uint64_t>(text + at + 8));
    const char* const last = text + size - 16;
    return mix(hash ^ load<std::uint64_t>(last), load<std::uint64_t>(last + 8));
  }
  if (size >= 8) return mix(hash ^ load<std::uint64_t>(text), load<std::uint64_t>(text + size - 8));
  if (size >= 4) return mix(hash ^ load<std::uint32_t>(text), load<std::uint32_t>(text + size - 4));
  for (std::size_t at = 0; at < size; ++at) hash = hash << 8 | static_cast<unsigned char>(text[at]);
  return mix(hash, size);
}
}  // namespace detail

// A text that is kept as long as the process: null when there was no room to keep it.
struct InternedText {
  std::uint32_t id = 0;
  const char* text = nullptr;
};

// The id of any text, looked up by its bytes. One hash over them and one comparison.
inline InternedText intern_kept_text(const char* text, std::size_t size) noexcept {
  LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer || size > spool::kMaxTextBytes) return {lanescope_intern(text, size, nullptr)};
  const std::uint64_t hash = detail::hash_text(text, size);
  const std::size_t place = hash & (kLanescopeTextCache - 1);
  // Two places: of two names that were in one, each would be looked up under the lock again and again.
  LanescopeTextName &entry = writer->text_names[place], &other = writer->text_names[place ^ 1];
  const auto is_it = [&](const LanescopeTextName& known) {
    return known.hash == hash && known.size == size && known.text &&
           std::memcmp(known.text, text, size) == 0;
  };
  if (is_it(entry)) [[likely]]
    return {entry.id, entry.text};
  if (is_it(other)) return {other.id, other.text};
  const char* stored = nullptr;
  const std::uint32_t id = lanescope_intern(text, size, &stored);
  if (stored) other = std::exchange(entry, {hash, stored, static_cast<std::uint32_t>(size), id});
  return {id, stored};
}
inline std::uint32_t intern_text(const char* text, std::size_t size) noexcept {
  return intern_kept_text(text, size).id;
}

}  // namespace lanescope::record
