// Turns chunks of records into numbered ranges, instants and memory events.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/format/spool/row_plan.h"
#include "lanescope/format/spool/spool_activities.h"
#include "lanescope/format/spool/spool_scan.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::format {

struct RangeTimes {
  std::int64_t start_ns, end_ns;
  std::int64_t early_ns;  // began this much before its start
};

// The numbers of a Python frame. parent_id 0: none.
struct FrameNumbers {
  std::int64_t python_id, parent_id, ev_idx;
};

inline bool is_frame(const spool::RangeRecord& range) { return range.scope == spool::kFrameScope; }

inline bool is_engine_wrapper(const SpoolIndex& index, std::uint32_t name) {
  return name < index.texts.size() &&
         index.texts[name].starts_with("autograd::engine::evaluate_function");
}

// Goes through the chunks of records in the order of threads and numbers the records of the trace.
// `Out` receives them: range(), frame(), instant(), memory(), sample(), and activity() for device activities
// from threads, at any time.
template <typename Out>
class RecordWalk {
 public:
  RecordWalk(const SpoolScan& scan, Out* out) : scan_(scan), out_(*out) {}
  RowNumbers& numbers() { return numbers_; }

  void add_chunk(std::span<const spool::Record> records, const SpoolChunk& chunk) {
    std::uint32_t slot = 0;
    for (const spool::Record& record : records) {
      switch (record.head.kind) {
        case spool::RecordKind::kRange:
          if (is_frame(record.range))
            add_frame(record, {chunk.thread, chunk.sequence, slot});
          else
            visit_range(record.range, {chunk.thread, chunk.sequence, slot});
          break;
        case spool::RecordKind::kInstant:
          if (const auto time = time_in_window(record.instant.begin_tsc))
            out_.instant(record.instant, chunk.thread, *time, numbers_.ev_idx++);
          break;
        case spool::RecordKind::kMemory:
        case spool::RecordKind::kOutOfMemory:
          if (const auto time = time_in_window(record.memory.begin_tsc))
            out_.memory(record.memory, chunk.thread, *time, numbers_.memory++);
          break;
        case spool::RecordKind::kCallNumbers:
          numbers_.call_numbers.emplace(record.call_numbers, chunk.thread);
          break;
        case spool::RecordKind::kTensor:
          keep_tensor(record.tensor, chunk.thread);
          break;
        case spool::RecordKind::kSample:
          if (scan_.windows.at(record.sample.begin_tsc)) out_.sample(record.sample);
          break;
        default:  // ends were read before, damage was counted
          if (is_thread_activity(record)) out_.activity(record);
          break;
      }
      ++slot;
    }
  }
  void add_waiting_wrapper() {
    if (const auto& waiting = numbers_.wrapper)
      add_range(waiting->range, waiting->place, waiting->call_numbers);
    numbers_.wrapper.reset();
  }
  // Before all chunks, in the order of threads.
  void add_kept(const spool::RangeRecord& range, const SlotKey& place) {
    if (!is_frame(range)) return add_range(range, place);
    add_frame(range, place);
    kept_frames_[place.thread] = numbers_.frames;
  }
  void add_range(const spool::RangeRecord& range, const SlotKey& place,
                 const std::optional<spool::CallNumbersRecord>& call_numbers = {},
                 std::span<const spool::TensorRecord> tensors = {}) {
    const SpoolWindows::Window* window = scan_.windows.at(range.begin_tsc);
    if (!window && !scan_.windows.has_ring()) return;
    std::uint64_t begin = range.begin_tsc;
    std::uint64_t end =
        scan_.end_of(range, place).value_or(std::numeric_limits<std::uint64_t>::max());
    if (!window) {
      window = scan_.windows.reached(begin, end);
      if (!window) return;
      out_.issue(range.begin_tsc, ImportIssue::kEarlyRange);
      begin = window->start;
    }
    if (end > window->stop) {
      out_.issue(range.begin_tsc, ImportIssue::kOpenRange);
      end = window->stop;
    }
    const auto start_ns = scan_.time_ns(begin), end_ns = scan_.time_ns(end);
    const auto early_ns = begin == range.begin_tsc ? start_ns : scan_.time_ns(range.begin_tsc);
    if (!start_ns || !end_ns || !early_ns)
      return out_.issue(range.begin_tsc, ImportIssue::kBadTime);
    const RangeTimes times{*start_ns, *end_ns,
                           begin == range.begin_tsc ? 0 : *start_ns - *early_ns};
    out_.range(range, place, call_numbers, tensors, times, ++numbers_.external_id,
               numbers_.ev_idx++);
  }

 private:
  static constexpr std::uint32_t kMostDepth = 1 << 16;  // more is damage
  static constexpr std::size_t kMostTensors = 1 << 20;  // of one range; more is damage

  // A frame that was open before its window begins at the window's start; one open at the window's
  // end ends there. Both are normal.
  std::optional<RangeTimes> frame_times(const spool::RangeRecord& range, const SlotKey& place) {
    const SpoolWindows::Window* const recorded = scan_.all_windows.at(range.begin_tsc);
    if (!recorded) return std::nullopt;
    std::uint64_t begin = range.begin_tsc;
    std::uint64_t end =
        std::min(scan_.end_of(range, place).value_or(recorded->stop), recorded->stop);
    const SpoolWindows::Window* window = scan_.windows.at(begin);
    if (!window) window = scan_.windows.first_start(begin, end);
    if (!window) return std::nullopt;
    begin = std::max(begin, window->start);
    end = std::min(end, window->stop);
    const auto start_ns = scan_.time_ns(begin), end_ns = scan_.time_ns(end);
    if (start_ns && end_ns) return RangeTimes{*start_ns, *end_ns, 0};
    out_.issue(range.begin_tsc, ImportIssue::kBadTime);
    return std::nullopt;
  }

  // A thread's frames nest, and each has its depth: its caller is the last frame before it with
  // a smaller depth.
  void add_frame(const spool::Record& record, const SlotKey& place) {
    const std::vector<spool::TensorRecord> tensors = take_tensors(record.range, place);
    const auto times = frame_times(record.range, place);
    if (!times) return;
    std::vector<std::int64_t>& open = numbers_.frames;
    if (numbers_.frames_thread != place.thread) {
      numbers_.frames_thread = place.thread;
      const auto kept = kept_frames_.find(place.thread);
      open = kept == kept_frames_.end() ? std::vector<std::int64_t>() : kept->second;
    }
    open.resize(std::clamp(record.frame.depth, 1u, kMostDepth) - 1, 0);
    const auto caller =
        std::find_if(open.rbegin(), open.rend(), [](std::int64_t id) { return id != 0; });
    const FrameNumbers numbers{++numbers_.python_id, caller == open.rend() ? 0 : *caller,
                               numbers_.ev_idx++};
    open.push_back(numbers.python_id);
    out_.frame(record.frame, place, tensors, *times, numbers);
  }

  std::optional<std::int64_t> time_in_window(std::uint64_t tick) {
    if (!scan_.windows.at(tick)) return std::nullopt;
    const auto time = scan_.time_ns(tick);
    if (!time) out_.issue(tick, ImportIssue::kBadTime);
    return time;
  }

  // The engine's wrapper of a backward node begins without the node's numbers. As in
  // torch.profiler, it gets them from the node if that is the thread's next range.
  void visit_range(const spool::RangeRecord& range, const SlotKey& place) {
    const auto call_numbers = take_call_numbers(range, place);
    if (numbers_.wrapper && numbers_.wrapper->place.thread == place.thread &&
        range.scope == spool::kBackwardScope) {
      spool::RangeRecord& wrapper = numbers_.wrapper->range;
      wrapper.sequence_number = range.sequence_number;
      wrapper.forward_thread = range.forward_thread;
      wrapper.flags |= range.flags & (spool::kHasSequence | spool::kHasForwardThread);
    }
    add_waiting_wrapper();
    if (range.scope == spool::kFunctionScope && is_engine_wrapper(scan_.index, range.name))
      numbers_.wrapper.emplace(RowNumbers::Wrapper{range, place, call_numbers});
    else
      add_range(range, place, call_numbers, take_tensors(range, place));
  }

  // Takes the numbers for this range from the thread's last record, if it has them.
  std::optional<spool::CallNumbersRecord> take_call_numbers(const spool::RangeRecord& range,
                                                            const SlotKey& place) {
    auto taken = std::exchange(numbers_.call_numbers, std::nullopt);
    if (!taken || taken->second != place.thread || taken->first.name != range.name)
      return std::nullopt;  // its range was lost
    return taken->first;
  }

  void keep_tensor(const spool::TensorRecord& tensor, std::uint32_t thread) {
    if (numbers_.tensors_thread != thread) numbers_.tensors.clear();
    numbers_.tensors_thread = thread;
    if (numbers_.tensors.size() < kMostTensors)
      numbers_.tensors.push_back(tensor);
    else
      out_.issue(tensor.begin_tsc, ImportIssue::kEventLost);
  }
  // The thread's tensors that wait for this range or frame. An operator's inputs are dropped if its
  // range was lost.
  std::vector<spool::TensorRecord> take_tensors(const spool::RangeRecord& range,
                                                const SlotKey& place) {
    if (numbers_.tensors.empty()) [[likely]]
      return {};
    auto taken = std::exchange(numbers_.tensors, {});
    if (numbers_.tensors_thread != place.thread) return {};
    std::erase_if(taken, [&range](const spool::TensorRecord& tensor) {
      return tensor.operator_name != 0 && tensor.operator_name != range.name;
    });
    return taken;
  }

  const SpoolScan& scan_;
  Out& out_;
  RowNumbers numbers_;
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> kept_frames_;  // by thread
};

}  // namespace lanescope::format
