// Problem: the join of one slice without tables of all. Idea: its nesting needs only the slices of
// its thread since the thread had nothing open. Its launch needs only the calls with its correlation
// id, which one pass over the trace collects; the rule that chooses among them is that of
// launch_links.cpp. Example: kernel with correlation 7; the pass finds cuLaunchKernelEx with 7, so
// that is its launch.
#include "lanescope/analysis/slice_joins.h"

#include <algorithm>

#include "lanescope/analysis/call_owners.h"
#include "lanescope/analysis/nested_kinds.h"
#include "lanescope/model/joins.h"

namespace lanescope::analysis {
namespace {

bool takes_part(const Trace& trace, SliceId slice) {
  return trace.track(slice).kind == TrackKind::kThread &&
         takes_part_in_nesting(trace.kind(slice), false);
}

// What joins a call and its work: the correlation id, or the External id where there is none.
struct JoinId {
  bool is_correlation = false;
  std::int64_t id = 0;
  auto operator<=>(const JoinId&) const = default;
};

std::optional<JoinId> join_id(const Trace& trace, SliceId slice) {
  const ArgsView args = trace.slice_args(slice);
  if (const auto id = args.integer(ArgKey::kCorrelation); id && *id != 0) return JoinId{true, *id};
  if (const auto id = args.integer(ArgKey::kExternalId); id && *id != 0) return JoinId{false, *id};
  return std::nullopt;
}

bool is_joined_work(CategoryKind kind) {
  return is_device_work(kind) || kind == CategoryKind::kCudaSync;
}

// All calls with one of some ids, and the work with them.
class Joined {
 public:
  // `ids` in order, each once. Of the work only if `with_work`.
  Joined(const Trace& trace, std::span<const JoinId> ids, bool with_work) : trace_(trace) {
    ProcessId process = kNone<ProcessId>;
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      const SliceId slice{i};
      const CategoryKind kind = trace.kind(slice);
      const bool is_call = is_api_call(kind);
      if (!is_call && !(with_work && is_joined_work(kind))) continue;
      const auto id = join_id(trace, slice);
      if (!id) continue;
      if (is_call && id->is_correlation) {
        const ProcessId own = trace.track(slice).process;
        if (process == kNone<ProcessId>) process = own;
        has_processes_ = has_processes_ || process != own;
      }
      if (*id < ids.front() || *id > ids.back() || !std::binary_search(ids.begin(), ids.end(), *id))
        continue;
      if (!is_call)
        works_.push_back(slice);
      else
        (id->is_correlation ? correlated_ : uncorrelated_)
            .push_back({id->id, trace.start_ns(slice), slice, kNone<SliceId>});
    }
    std::sort(correlated_.begin(), correlated_.end());
    std::sort(uncorrelated_.begin(), uncorrelated_.end());
  }

  // An id may then be that of calls of two processes.
  bool has_processes() const { return has_processes_; }
  std::span<const SliceId> works() const { return works_; }

  SliceId launch_of(SliceId work) const {
    const auto id = join_id(trace_, work);
    if (!id) return kNone<SliceId>;
    const std::int64_t start_ns = trace_.start_ns(work);
    if (id->is_correlation) {
      const auto* found =
          find_by_id_and_time(std::span<const CorrelatedCall>(correlated_), id->id, start_ns);
      return found ? found->slice : kNone<SliceId>;
    }
    // The only call with the id.
    const auto [first, last] = std::equal_range(
        uncorrelated_.begin(), uncorrelated_.end(), CorrelatedCall{id->id, 0, {}, {}},
        [](const auto& a, const auto& b) { return a.id < b.id; });
    return last - first == 1 && first->start_ns <= start_ns ? first->slice : kNone<SliceId>;
  }

 private:
  const Trace& trace_;
  std::vector<CorrelatedCall> correlated_, uncorrelated_;
  std::vector<SliceId> works_;
  bool has_processes_ = false;
};

}  // namespace

EnclosingSlices enclosing_slices(const Trace& trace, SliceId slice, SliceId from) {
  if (!takes_part(trace, slice)) return {};
  const Track& track = trace.track(slice);
  EnclosingSlices out;
  std::vector<SliceId> open;
  for (std::uint32_t i = raw(from); i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (i > raw(slice) && trace.start_ns(id) >= trace.end_ns(slice)) break;
    if (!takes_part_in_nesting(trace.kind(id), false)) continue;
    while (!open.empty() && (trace.start_ns(id) >= trace.end_ns(open.back()) ||
                             trace.end_ns(id) > trace.end_ns(open.back())))
      open.pop_back();
    if (i > raw(slice) && std::find(open.begin(), open.end(), slice) == open.end()) break;
    if (i > raw(slice) && open.back() == slice) out.self_ns -= trace.dur_ns(id);
    open.push_back(id);
    if (id == slice) {
      out.outward.assign(open.rbegin(), open.rend());
      out.self_ns = trace.dur_ns(slice);
    }
  }
  return out;
}

SliceId operator_around_call(const Trace& trace, SliceId call, SliceId from) {
  if (trace.track(call).kind != TrackKind::kThread) return kNone<SliceId>;
  const auto end_of = [&](SliceId id) { return trace.end_ns(id); };
  OpenRangeStack<SliceId, decltype(end_of)> open(end_of);
  for (std::uint32_t i = raw(from); i < raw(call); ++i)
    if (is_front_end(trace.kind(SliceId{i}))) open.push(SliceId{i}, trace.start_ns(SliceId{i}));
  const SliceId* const around = open.top(trace.start_ns(call));
  return around ? *around : kNone<SliceId>;
}

std::optional<SliceId> find_launch(const Trace& trace, SliceId work) {
  const auto found = find_launches(trace, {&work, 1});
  if (!found) return std::nullopt;
  return found->front();
}

std::optional<std::vector<SliceId>> find_launches(const Trace& trace,
                                                  std::span<const SliceId> works) {
  std::vector<JoinId> ids;
  for (const SliceId work : works)
    if (const auto id = join_id(trace, work)) ids.push_back(*id);
  if (ids.empty()) return std::vector<SliceId>(works.size(), kNone<SliceId>);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const Joined joined(trace, ids, false);
  if (joined.has_processes()) return std::nullopt;
  std::vector<SliceId> launches;
  launches.reserve(works.size());
  for (const SliceId work : works) launches.push_back(joined.launch_of(work));
  return launches;
}

std::optional<Launched> find_launched(const Trace& trace, std::span<const SliceId> slices) {
  std::vector<JoinId> ids;
  std::vector<SliceId> calls;
  for (const SliceId slice : slices) {
    if (!is_api_call(trace.kind(slice))) continue;
    const auto id = join_id(trace, slice);
    if (!id) continue;
    ids.push_back(*id);
    calls.push_back(slice);
  }
  if (ids.empty()) return Launched();
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::sort(calls.begin(), calls.end());
  const Joined joined(trace, ids, true);
  if (joined.has_processes()) return std::nullopt;
  Launched launched;
  for (const SliceId work : joined.works())
    if (const SliceId launch = joined.launch_of(work);
        launch != kNone<SliceId> && std::binary_search(calls.begin(), calls.end(), launch))
      launched.emplace_back(launch, work);
  std::sort(launched.begin(), launched.end());
  return launched;
}

}  // namespace lanescope::analysis
