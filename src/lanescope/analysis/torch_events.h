// The event list for torch's key_averages(): which rows count, their children, kernels and bytes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// kTorch repeats torch.autograd.profiler_util step by step, with its known bugs, so that numbers
// equal torch's. kLanescope is the same tree without the bugs; docs/definitions/key_averages.md
// lists each difference.
enum class TableStyle : std::uint8_t { kTorch, kLanescope };

struct TorchEvent {
  static constexpr std::uint32_t kNoEvent = ~std::uint32_t{0};
  SliceId slice = kNone<SliceId>;  // kNone: a memory record that no operator covers
  std::uint32_t name = 0;          // index into TorchEvents::names
  std::uint32_t overload = 0;      // index into TorchEvents::names; 0 is the empty name
  std::int64_t start_ns = 0, end_ns = 0;
  double start_us = 0,
         end_us = 0;  // since the window's start, in doubles as in torch
  std::uint32_t thread = 0;
  bool on_device = false;
  bool is_annotation = false;
  bool is_async = false;  // begins and ends on different threads: no children, no self time
  // merged into its parent of the same name (rule 5), or left out by kLanescope
  bool is_removed = false;
  bool is_overhead = false;
  std::uint32_t parent = kNoEvent, first_child = kNoEvent, last_child = kNoEvent,
                next_sibling = kNoEvent;
  std::uint32_t child_count = 0;
  std::uint32_t kernels_first = 0, kernels_count = 0;  // range of TorchEvents::kernels
  std::int64_t cpu_memory_bytes = 0,
               device_memory_bytes = 0;  // with children; negative: more was freed
};

// What kLanescope left out or corrected, for the notes under the table.
struct TorchEventsNotes {
  std::uint64_t unlaunched_count = 0;  // device work without a launch in the trace
  std::int64_t unlaunched_ns = 0;
  std::uint64_t before_first_step_count = 0;  // device work launched before the first ProfilerStep
  std::int64_t before_first_step_ns = 0;
  // kernels that torch counts again under a profiler-overhead row
  std::uint64_t overhead_claim_count = 0;
  std::int64_t overhead_claim_ns = 0;
  std::uint64_t python_frame_count = 0;  // python_function slices left out of the table
  // memory records that torch also gives to operators of other threads
  std::uint64_t other_thread_memory_count = 0;
};

struct TorchEvents {
  TableStyle style = TableStyle::kTorch;
  std::vector<TorchEvent>
      events;  // by (start, longer first); ties: as torch's collector leaves them
  std::vector<std::uint32_t> kernels;  // indexes of device events, as ranges of TorchEvent
  std::vector<std::string> names;      // demangled; ProfilerStep#N is ProfilerStep*
  std::string device;                  // "cuda", "xpu", ...; empty: no device activity in the trace
  // The thread that stopped the profiler, where torch puts rows that it cannot link;
  // kNone: no threads.
  TrackId main_track = kNone<TrackId>;
  bool is_own = false;             // recorded by lanescope, so torch never showed a table of it
  bool has_python_frames = false;  // Python frames are rows
  TorchEventsNotes notes;
};

// Rules 1 to 5. O(n log n); about 130 bytes per slice. Handles overlaps, missing fields and any
// order. Any thread. `own_frames`: Python frames that lanescope recorded are rows too (kTorch), as
// in torch.profiler's lists.
TorchEvents build_torch_events(const Trace& trace, TableStyle style, bool own_frames = false);

}  // namespace lanescope::analysis
