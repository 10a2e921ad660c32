// Problem: streams overlap, and sums over streams count the same moment twice. Idea: sweep over
// starts and ends of a device's work with one counter per class; each moment belongs to the first
// class with open work. Example: compute [0, 10), communication [5, 30), copy [25, 40)
//   -> compute [0, 10), communication [10, 30), copy [30, 40).
#include "lanescope/analysis/device_work.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "lanescope/names/kernel_name.h"

namespace lanescope::analysis {
namespace {

// Collectives that are not from NCCL and have no metadata.
constexpr std::string_view kCommunicationNames[] = {
    "nccl",
    "rccl",
    "nvshmem",
    "deep_ep",
    "::ep::internode",
    "::ep::intranode",
    "cross_device_reduce",
    "multimem_",
    "symm_mem",
};

bool is_communication_name(std::string_view name) {
  for (const std::string_view part : kCommunicationNames)
    if (name.find(part) != std::string_view::npos) return true;
  return names::is_collective_kernel(name);
}

class Classifier {
 public:
  Classifier(const Trace& trace, const LaunchLinks& links) : trace_(trace), links_(links) {}

  WorkClass operator()(SliceId id) {
    if (trace_.kind(id) != CategoryKind::kKernel) return WorkClass::kCopy;
    if (trace_.slice_args(id).has(ArgKey::kCollectiveName)) return WorkClass::kCommunication;
    const StringId name = trace_.slices().name[raw(id)];
    const auto [entry, is_new] = by_name_.try_emplace(raw(name), false);
    if (is_new) entry->second = is_communication_name(trace_.text(name));
    if (entry->second) return WorkClass::kCommunication;
    const SliceId op = links_.op_of[raw(id)];
    const bool under_collective = op != kNone<SliceId> && (trace_.name(op).starts_with("nccl:") ||
                                                           trace_.name(op) == "record_param_comms");
    return under_collective ? WorkClass::kCommunication : WorkClass::kCompute;
  }

 private:
  const Trace& trace_;
  const LaunchLinks& links_;
  std::unordered_map<std::uint32_t, bool> by_name_;
};

struct Edge {
  std::int64_t time_ns;
  std::int8_t change;
  std::uint8_t work;
};

void sweep(DeviceTimeline& timeline) {
  std::vector<Edge> edges;
  edges.reserve(timeline.work.size() * 2);
  for (const DeviceWork& each : timeline.work) {
    if (each.end_ns <= each.start_ns) continue;
    edges.push_back({each.start_ns, 1, static_cast<std::uint8_t>(each.work)});
    edges.push_back({each.end_ns, -1, static_cast<std::uint8_t>(each.work)});
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; });
  std::array<std::int64_t, kWorkClassCount> open{};
  for (std::size_t i = 0; i < edges.size();) {
    const std::int64_t now = edges[i].time_ns;
    for (; i < edges.size() && edges[i].time_ns == now; ++i) open[edges[i].work] += edges[i].change;
    if (i == edges.size()) break;
    const std::int64_t next = edges[i].time_ns;
    const auto owner = std::find_if(open.begin(), open.end(), [](auto n) { return n > 0; });
    if (open[static_cast<std::size_t>(WorkClass::kCommunication)] > 0)
      timeline.communication_ns += next - now;
    if (owner == open.end()) continue;
    const auto work = static_cast<WorkClass>(owner - open.begin());
    if (!timeline.busy.empty() && timeline.busy.back().end_ns == now &&
        timeline.busy.back().work == work)
      timeline.busy.back().end_ns = next;
    else
      timeline.busy.push_back({now, next, work});
  }
  timeline.before.assign(1, {});
  for (const BusySegment& segment : timeline.busy) {
    auto sums = timeline.before.back();
    sums[static_cast<std::size_t>(segment.work)] += segment.end_ns - segment.start_ns;
    timeline.before.push_back(sums);
  }
}

std::int64_t device_of(const Trace& trace, const Track& track) {
  if (track.device) return *track.device;
  const Scalar& pid = trace.process(track.process).pid;
  return pid.is_text ? -1 : pid.number;
}

}  // namespace

std::array<std::int64_t, kWorkClassCount> DeviceTimeline::time_within(std::int64_t start_ns,
                                                                      std::int64_t end_ns) const {
  const auto up_to = [this](std::int64_t time_ns) {
    const auto after = std::upper_bound(
        busy.begin(), busy.end(), time_ns,
        [](std::int64_t time, const BusySegment& segment) { return time < segment.start_ns; });
    if (after == busy.begin()) return std::array<std::int64_t, kWorkClassCount>{};
    const auto index = static_cast<std::size_t>(after - busy.begin()) - 1;
    auto sums = before[index];
    sums[static_cast<std::size_t>(busy[index].work)] +=
        std::min(time_ns, busy[index].end_ns) - busy[index].start_ns;
    return sums;
  };
  if (end_ns <= start_ns || busy.empty()) return {};
  auto result = up_to(end_ns);
  const auto earlier = up_to(start_ns);
  for (std::size_t i = 0; i < kWorkClassCount; ++i) result[i] -= earlier[i];
  return result;
}

std::vector<DeviceTimeline> compute_device_timelines(const Trace& trace, const LaunchLinks& links) {
  std::map<std::int64_t, DeviceTimeline> by_device;
  Classifier classify(trace, links);
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::kStream) continue;
    bool launched_before = false;
    DeviceTimeline* timeline = nullptr;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (!is_device_work(trace.kind(id))) continue;
      const bool launched = links.launch_of[i] != kNone<SliceId>;
      launched_before = launched_before || launched;
      if (!timeline) timeline = &by_device[device_of(trace, track)];
      timeline->launched_count += launched ? 1 : 0;
      timeline->work.push_back(
          {id, trace.start_ns(id), trace.end_ns(id), classify(id), !launched_before});
    }
  }
  std::vector<DeviceTimeline> timelines;
  for (auto& [device, timeline] : by_device) {
    timeline.device = device;
    if (!timeline.has_launches())
      for (DeviceWork& work : timeline.work) work.before_recording = false;
    std::sort(timeline.work.begin(), timeline.work.end(),
              [&](const DeviceWork& a, const DeviceWork& b) {
                if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
                if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
                return trace.name(a.slice) < trace.name(b.slice);
              });
    sweep(timeline);
    timelines.push_back(std::move(timeline));
  }
  return timelines;
}

}  // namespace lanescope::analysis
