// What the program itself called in the steady steps, and what time the device lost around it.
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// True: the operator only makes a tensor, such as aten::zeros, aten::arange, aten::randn.
bool is_factory(std::string_view op);
// True: the operator gives another view of a tensor's memory, such as aten::t, aten::view,
// aten::slice. A reshape copies where no view is possible.
bool is_view(std::string_view op);

// The outermost operator around a call or around the launch of GPU work; kNone: no operator.
// Ranges of the program and of steps are no operators.
SliceId outermost_operator_of(const Facts& facts, SliceId slice);

// The program's own operators whose calls in the steady steps copy from the CPU to the GPU, by the numbers of their slices.
// O(slices x depth).
std::unordered_set<std::uint32_t> uploading_operators(const Facts& facts);

// A piece of GPU work and the call that launched it.
struct LaunchedWork {
  const analysis::DeviceWork* work = nullptr;
  SliceId call{};
};
// What one thread launched in one steady step, in order of the calls.
using LaunchSequence = std::vector<LaunchedWork>;
// Made once for these Facts.
const std::vector<LaunchSequence>& launch_sequences(const Facts& facts);

// Operators that one thread called in one steady step, in order. Operators inside others are left
// out; operators inside Python frames and ranges of the program are not.
using CallSequence = std::vector<SliceId>;
// Made once for these Facts.
const std::vector<CallSequence>& call_sequences(const Facts& facts);

// The index of the steady step whose CPU range holds this time; size_t(-1): none does.
std::size_t steady_step_at(const Facts& facts, std::int64_t time_ns);

std::int64_t bytes_of(const Facts& facts, SliceId copy);  // 0: unknown

// When the next work of the main device begins, at this time or later. If there is none: this time.
std::int64_t next_work_ns(const Facts& facts, std::int64_t time_ns);

// Disjoint, in order.
std::vector<analysis::Window> joined(std::vector<analysis::Window> windows);

// Parts of these windows (disjoint, in order) that lie in steady steps of the main device.
std::vector<analysis::Window> steady_parts(const Facts& facts,
                                           const std::vector<analysis::Window>& windows);

// What the main device lost in windows (disjoint, in order, inside steady steps).
struct LostTime {
  std::int64_t idle_ns = 0;
  std::int64_t copies_ns = 0;           // only copies ran
  std::int64_t after_waits_ns = 0;      // part of idle_ns: the queue was empty after a wait
  std::int64_t in_copy_calls_ns = 0;    // part of idle_ns: as pageable-copy counts, of any copy
  std::int64_t waiting_for_cpu_ns = 0;  // part of idle_ns: host_late_stretches()
  std::int64_t quiet_ns = 0;            // part of it: the thread is in no operator and no call
  std::int64_t total_ns() const { return idle_ns + copies_ns; }
};
LostTime lost_in(const Facts& facts, const std::vector<analysis::Window>& windows);

}  // namespace lanescope::explain::rules
