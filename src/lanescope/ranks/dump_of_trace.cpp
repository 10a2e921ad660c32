// A recording that was killed has every call of the CPU up to its end, but not the kernels of the last
// calls: CUPTI hands them out in buffers. So what tells ranks apart is what they called, not what ended.
#include <algorithm>
#include <map>
#include <utility>

#include "lanescope/ranks/call_table.h"
#include "lanescope/ranks/flight_dump.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/rank_calls.h"

namespace lanescope::ranks {

Result<FlightDump> dump_of_trace(const Trace& trace, std::string file) {
  const CalledCollectives called = find_called_collectives(trace);
  const bool numbered =
      !called.calls.empty() &&
      std::all_of(called.calls.begin(), called.calls.end(),
                  [](const FoundCall& call) { return call.sequence.has_value(); });
  if (called.calls.empty() || (!numbered && !called.from_start))
    return Error{Errc::kUnsupported,
                 called.calls.empty()
                     ? "expected collectives that torch recorded (record_param_comms), found none"
                     : "expected numbers of collectives, or a recording from the start of the "
                       "process, found neither: which calls belong together is unknown"};
  FlightDump dump;
  dump.rank = rank_in_name(file);
  dump.file = std::move(file);
  dump.is_whole = called.from_start;
  dump.is_recording = true;
  dump.end_ns = trace.base_time_ns() + trace.window_end_ns();
  std::map<std::string, std::size_t> groups;
  std::vector<std::int64_t> counts;  // one per group
  for (const FoundCall& from : called.calls) {
    const auto [group, is_new] = groups.try_emplace(from.group.name, dump.groups.size());
    if (is_new) {
      dump.groups.push_back({from.group.name, from.group.description, from.group.ranks});
      counts.push_back(0);
    }
    FlightCall call;
    call.group = group->second;
    const CallShape shape = shape_of(from.kind);
    call.point_to_point = shape == CallShape::kSend || shape == CallShape::kReceive;
    call.sequence = call.point_to_point ? -1 : numbered ? *from.sequence : ++counts[call.group];
    call.name = from.kind.name;
    call.dtype = from.kind.dtype;
    call.in_elements = from.kind.in_elements;
    call.out_elements = from.kind.out_elements;
    call.state = CallState::kCompleted;
    call.created_ns = trace.base_time_ns() + from.start_ns;
    dump.calls.push_back(std::move(call));
  }
  dump.calls.back().state = CallState::kStarted;
  return dump;
}

}  // namespace lanescope::ranks
