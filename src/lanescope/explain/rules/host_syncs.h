// What host-sync measures: the calls in which the CPU waits for the GPU, by the operator that asked.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rule.h"

namespace lanescope::explain::rules {

// What asked for a wait, and whether it copied to the GPU: such a wait ends with pinned memory, a read of a value does not.
struct Asker {
  std::string_view name;
  bool is_upload = false;
  auto operator<=>(const Asker&) const = default;
};

struct SyncGroup {
  std::uint64_t calls = 0, asks_for_size = 0;
  std::uint64_t at_end = 0;  // of `calls`: after the last launch of its step
  std::int64_t waited_ns = 0, idle_ns = 0, longest_ns = -1;
  std::int64_t after_uploads_ns = 0;  // of idle_ns: after copies to the GPU
  std::int64_t lead_ns = 0;           // as HostSyncs
  std::int64_t ops_ns = 0;            // of the operators that wait
  bool is_of_operator = false;        // an operator waits, not a call of the program's own
  SliceId longest = kNone<SliceId>;
  // After a short wait the GPU is idle for what the CPU does next: without it the CPU is earlier by no more than the operator.
  bool is_short() const {
    constexpr std::int64_t kShortWaitNs = 20'000;  // the GPU had next to nothing left
    return is_of_operator && calls > 0 && asks_for_size == 0 &&
           waited_ns < kShortWaitNs * static_cast<std::int64_t>(calls);
  }
  std::int64_t cost_ns() const {
    return is_short() ? std::min(idle_ns + lead_ns, ops_ns) : idle_ns + lead_ns;
  }
  bool is_of_uploads() const { return after_uploads_ns * 4 > idle_ns * 3; }
};

// A wait of the thread that launches, and what asked for it.
struct LaunchingWait {
  analysis::Window window;
  Asker asker;
};

struct HostSyncs {
  std::vector<LaunchingWait> launching_waits;
  std::map<Asker, SyncGroup> groups;                           // by what asked for the wait
  std::vector<std::pair<std::string_view, SyncGroup>> ranked;  // the same, the worst first
  std::vector<SliceId> waiting_ops;     // in which the CPU waits; sorted, each once
  std::vector<SliceId> upload_calls;    // that wait in an operator that copies to the GPU
  std::int64_t own_cost_ns = 0;         // the GPU is idle or only copies while those operators run
  bool is_for_streams_in_turn = false;  // the worst group: each wait is for another stream's work
  std::uint64_t waits = 0;
  std::int64_t waited_ns = 0, waiting_ops_ns = 0;  // of the CPU
  // The GPU's idle time after a wait; the part of it after copies to the GPU; idle time that other
  // rules explain (not in idle_ns).
  std::int64_t idle_ns = 0, after_uploads_ns = 0, elsewhere_ns = 0;
  // The part of the GPU's later waits for the CPU that would be covered by the CPU's lead, had it not waited: until the CPU's
  // next wait, at most as long as this one.
  std::int64_t lead_ns = 0;
  std::int64_t busy_ns = 0, copies_ns = 0, at_stake_ns = 0;
  // Operators that ask for a size, and the GPU's waits for the CPU while they run, without what
  // idle_ns has.
  std::vector<SliceId> sizers;
  std::int64_t sizing_ns = 0;
  bool is_about_sizes = false;  // most of the waits
};

// The outermost aten operator around a call: aten::item rather than aten::_local_scalar_dense. If
// there is none, the call itself. In old traces the range of the step has the category of
// operators; it does not count.
SliceId outermost_operator(const Facts& facts, SliceId call);

// True: only the GPU knows the size of the operator's output, so the CPU must ask for it. Boolean
// masks find their elements with aten::nonzero.
bool asks_for_size(const Facts& facts, SliceId call);

// Quiet: no wait costs 1 % of the steps.
Measurement<HostSyncs> measure_host_sync(const Facts& facts);

}  // namespace lanescope::explain::rules
