// Problem: correlation ids count from 1 in every process, so in a file of several processes an id
// does not say whose call it was, and rows of a device name no process. Idea: a process whose calls
// match a device's work one by one owns the device; ids that are equal by chance match far less. A
// call matches a piece of work with its id that begins after it and is of the kind that the call
// starts. A call starts one piece; a graph launch starts its share of the pieces with that id.
// Example: calls 1, 2, 3 of process A at 0, 10, 20 and of B at 5, 15, 25; kernels 1, 2, 3 of device
// 0 at 3, 17, 27 and of device 1 at 8, 18, 28. A matches all of both devices, B two kernels of
// device 0 and all of device 1: device 0 belongs to A. If processes match equally, the order in the
// file decides, because joined files follow each other.
#include "lanescope/analysis/call_owners.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace lanescope::analysis {
namespace {

// Ids of more calls are joined as in one process: they say little and would cost much.
constexpr std::size_t kMostCalls = 256;
// A second process shares a device if it matches at least a fifth as much work as the first.
constexpr std::uint64_t kSharedFraction = 5;

enum class StartedWork : std::uint8_t { kKernel, kCopy, kSet, kAnything, kNothing };
constexpr std::size_t kStartedWorkCount = 5;

StartedWork started_work(ApiCall call) {
  using namespace api_effect;
  if (!call.is_known()) return StartedWork::kAnything;
  switch (call.effects() & (kStartsKernels | kCopies | kSets)) {
    case 0:
      return StartedWork::kNothing;
    case kLaunchesKernel:
      return StartedWork::kKernel;
    case kCopies:
    case kSets:
      // CUDA alone copies and fills without kernels.
      if (call.runtime() != ApiRuntime::kCudaRuntime && call.runtime() != ApiRuntime::kCudaDriver)
        return StartedWork::kAnything;
      return call.does(kCopies) ? StartedWork::kCopy : StartedWork::kSet;
    default:
      return StartedWork::kAnything;
  }
}

struct Call {
  std::int64_t id;
  ProcessId process;
  std::int64_t start_ns;
  SliceId slice;
  std::uint32_t place;  // in the file
  StartedWork starts;
  bool is_graph;
};

struct Work {
  std::int64_t id;
  ProcessId device;
  StartedWork kind;  // kNothing: a wait that is drawn on the device
  std::int64_t start_ns;
  SliceId slice;
  std::uint32_t place;
};

// All with one id: work of one device and kind, by start; calls by (process, start).
struct Group {
  std::span<const Work> works;
  std::span<const Call> calls;
  std::size_t graph_share = 1;  // pieces of this id and kind for each call that launches a graph
  std::size_t room(const Call& call) const { return call.is_graph ? graph_share : 1; }
};

StartedWork kind_of_work(CategoryKind kind) {
  switch (kind) {
    case CategoryKind::kKernel:
      return StartedWork::kKernel;
    case CategoryKind::kGpuMemcpy:
      return StartedWork::kCopy;
    case CategoryKind::kGpuMemset:
      return StartedWork::kSet;
    default:
      return StartedWork::kNothing;
  }
}

bool fits(const Call& call, const Work& work) {
  return call.start_ns <= work.start_ns &&
         (work.kind == StartedWork::kNothing || call.starts == work.kind ||
          call.starts == StartedWork::kAnything);
}

// How much of one device's work the calls of one process match.
struct MatchScore {
  std::uint64_t works = 0;
  std::uint64_t equal_external_ids = 0;
  double lag_ns = 0;                        // from the nearest call before, summed
  double call_places = 0, work_places = 0;  // in the file, summed
};

class CallMatcher {
 public:
  CallMatcher(const Trace& trace, std::span<const CorrelatedCall> calls,
              std::span<const SliceId> device_slices, std::vector<SliceId>& launch_of)
      : trace_(trace), launch_of_(launch_of) {
    for (const CorrelatedCall& call : calls) {
      const ApiCall api = trace.api_call(call.slice);
      calls_.push_back({call.id, trace.track(call.slice).process, call.start_ns, call.slice,
                        place_of(call.slice), started_work(api),
                        api.does(api_effect::kLaunchesGraph)});
    }
    std::sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
      return std::tuple(a.id, raw(a.process), a.start_ns, raw(a.slice)) <
             std::tuple(b.id, raw(b.process), b.start_ns, raw(b.slice));
    });
    for (const SliceId slice : device_slices) {
      const auto id = trace.slice_args(slice).integer(ArgKey::kCorrelation);
      if (!id || *id == 0) continue;
      works_.push_back({*id, trace.track(slice).process, kind_of_work(trace.kind(slice)),
                        trace.start_ns(slice), slice, place_of(slice)});
    }
    std::sort(works_.begin(), works_.end(), [](const Work& a, const Work& b) {
      return std::tuple(a.id, raw(a.device), a.kind, a.start_ns, raw(a.slice)) <
             std::tuple(b.id, raw(b.device), b.kind, b.start_ns, raw(b.slice));
    });
  }

  void run() {
    each_group([this](const Group& group) {
      if (group.works.front().kind != StartedWork::kNothing) measure(group);
    });
    for (const auto& [device, by_process] : fits_) choose_best(device, by_process);
    break_ties();
    each_group([this](const Group& group) {
      if (group.works.front().kind != StartedWork::kNothing) measure_rest(group);
    });
    choose_owners();
    each_group([this](const Group& group) { join(group); });
  }

 private:
  using Processes = std::vector<ProcessId>;
  using Shares = std::array<std::size_t, kStartedWorkCount>;

  std::uint32_t place_of(SliceId slice) const { return trace_.slices().event_index[raw(slice)]; }

  template <typename Each>
  void each_group(Each each) const {
    std::size_t call = 0, end = 0;
    Shares shares{};
    for (std::size_t first = 0, last = 0; first < works_.size(); first = last) {
      const Work& work = works_[first];
      while (last < works_.size() && works_[last].id == work.id &&
             works_[last].device == work.device && works_[last].kind == work.kind)
        ++last;
      if (first == 0 || work.id != works_[first - 1].id) {
        for (call = end; call < calls_.size() && calls_[call].id < work.id;) ++call;
        for (end = call; end < calls_.size() && calls_[end].id == work.id;) ++end;
        shares = graph_shares(first, std::span(calls_).subspan(call, end - call));
      }
      if (end - call <= kMostCalls)
        each(Group{std::span(works_).subspan(first, last - first),
                   std::span(calls_).subspan(call, end - call),
                   shares[static_cast<std::size_t>(work.kind)]});
    }
  }

  // For each kind, equal shares of the work with one id, rounded up. `first`: index of that work.
  Shares graph_shares(std::size_t first, std::span<const Call> calls) const {
    const auto graphs = static_cast<std::size_t>(
        std::count_if(calls.begin(), calls.end(), [](const Call& call) { return call.is_graph; }));
    Shares shares{};
    for (std::size_t i = first; graphs > 0 && i < works_.size() && works_[i].id == works_[first].id;
         ++i)
      ++shares[static_cast<std::size_t>(works_[i].kind)];
    for (std::size_t& share : shares)
      share = graphs == 0 ? 1 : std::max<std::size_t>(1, (share + graphs - 1) / graphs);
    return shares;
  }

  // Calls each(the calls of one process).
  template <typename Each>
  static void each_process(std::span<const Call> calls, Each each) {
    for (std::size_t first = 0, last = 0; first < calls.size(); first = last) {
      while (last < calls.size() && calls[last].process == calls[first].process) ++last;
      each(calls.subspan(first, last - first));
    }
  }

  // Assigns work to calls of one process in order of time, and marks the work as taken.
  static std::uint64_t match(const Group& group, std::span<const Call> calls,
                             std::vector<bool>& taken) {
    std::uint64_t matched = 0;
    std::size_t next = 0, given = 0;
    for (std::size_t i = 0; i < group.works.size() && next < calls.size(); ++i) {
      const Work& work = group.works[i];
      if (taken[i]) continue;
      while (next < calls.size() && calls[next].start_ns <= work.start_ns &&
             (given == group.room(calls[next]) || !fits(calls[next], work))) {
        ++next;
        given = 0;
      }
      if (next == calls.size() || !fits(calls[next], work)) continue;
      taken[i] = true;
      ++matched;
      ++given;
    }
    return matched;
  }

  std::int64_t external_id(SliceId slice) const {
    return trace_.slice_args(slice).integer(ArgKey::kExternalId).value_or(0);
  }

  void measure(const Group& group) {
    each_process(group.calls, [&](std::span<const Call> own) {
      std::vector<bool> taken(group.works.size(), false);
      if (match(group, own, taken) == 0) return;
      MatchScore& fit = fits_[group.works.front().device][own.front().process];
      for (std::size_t i = 0; i < group.works.size(); ++i) {
        if (!taken[i]) continue;
        const Work& work = group.works[i];
        const Call& call = *nearest_before(own, work);
        ++fit.works;
        fit.lag_ns += static_cast<double>(work.start_ns - call.start_ns);
        fit.call_places += call.place;
        fit.work_places += work.place;
        const std::int64_t external = external_id(work.slice);
        fit.equal_external_ids += external != 0 && external == external_id(call.slice) ? 1 : 0;
      }
    });
  }

  // The last fitting call that began before the work; null: none.
  static const Call* nearest_before(std::span<const Call> calls, const Work& work) {
    const Call* found = nullptr;
    for (auto call = std::upper_bound(
             calls.begin(), calls.end(), work.start_ns,
             [](std::int64_t time, const Call& each) { return time < each.start_ns; });
         call != calls.begin() && !found;)
      if (fits(*--call, work)) found = &*call;
    return found;
  }

  // Most work, then most External ids that agree. break_ties() decides between equals later.
  void choose_best(ProcessId device, const std::map<ProcessId, MatchScore>& by_process) {
    const auto rank = [](const MatchScore& fit) {
      return std::pair(fit.works, fit.equal_external_ids);
    };
    auto most = rank({});
    for (const auto& [process, fit] : by_process) most = std::max(most, rank(fit));
    Processes best;
    for (const auto& [process, fit] : by_process)
      if (rank(fit) == most) best.push_back(process);
    tied_[best].push_back(device);
  }

  // With as many devices as processes that match them equally: by the order in the file, first with
  // first. Else the process with the smallest lag.
  void break_ties() {
    for (const auto& [processes, devices] : tied_) {
      if (processes.size() == devices.size()) {
        std::vector<std::pair<double, ProcessId>> callers, places;
        for (const ProcessId process : processes)
          callers.emplace_back(fits_[devices.front()][process].call_places, process);
        for (const ProcessId device : devices) {
          const MatchScore& fit = fits_[device][processes.front()];
          places.emplace_back(fit.work_places / static_cast<double>(fit.works), device);
        }
        std::sort(callers.begin(), callers.end());
        std::sort(places.begin(), places.end());
        for (std::size_t i = 0; i < places.size(); ++i) best_[places[i].second] = callers[i].second;
        continue;
      }
      for (const ProcessId device : devices)
        best_[device] =
            *std::min_element(processes.begin(), processes.end(), [&](ProcessId a, ProcessId b) {
              return fits_[device][a].lag_ns < fits_[device][b].lag_ns;
            });
    }
  }

  // Work that the best process leaves and another one matches.
  void measure_rest(const Group& group) {
    const auto best = best_.find(group.works.front().device);
    if (best == best_.end()) return;
    std::vector<bool> taken(group.works.size(), false);
    each_process(group.calls, [&](std::span<const Call> own) {
      if (own.front().process == best->second) match(group, own, taken);
    });
    each_process(group.calls, [&](std::span<const Call> own) {
      if (own.front().process == best->second) return;
      std::vector<bool> too = taken;
      if (const std::uint64_t rest = match(group, own, too); rest > 0)
        rest_[best->first][own.front().process] += rest;
    });
  }

  void choose_owners() {
    for (const auto& [device, best] : best_) {
      Processes& owners = owners_[device];
      owners.push_back(best);
      for (const auto& [process, rest] : rest_[device])
        if (rest * kSharedFraction >= fits_[device][best].works) owners.push_back(process);
      std::sort(owners.begin(), owners.end());
    }
  }

  void join(const Group& group) {
    const auto owners = owners_.find(group.works.front().device);
    if (owners == owners_.end()) return;
    std::vector<Call> own;
    for (const Call& call : group.calls)
      if (std::binary_search(owners->second.begin(), owners->second.end(), call.process))
        own.push_back(call);
    std::stable_sort(own.begin(), own.end(),
                     [](const Call& a, const Call& b) { return a.start_ns < b.start_ns; });
    std::vector<SliceId> launches(group.works.size(), kNone<SliceId>);
    if (owners->second.size() > 1) assign_by_process(group, own, launches);
    for (std::size_t i = 0; i < group.works.size(); ++i)
      launch_of_[raw(group.works[i].slice)] = launches[i] != kNone<SliceId>
                                                  ? launches[i]
                                                  : nearest_or_first(own, group.works[i].start_ns);
  }

  // For processes that share a device. First by the External id, if only one call has it. Then, if
  // there is enough work to fill each call's room: in order of the file if each call and its work
  // come before the next call and its work, else in order of time. Else each work goes to the last
  // call before it that still has room, from the last work to the first.
  void assign_by_process(const Group& group, const std::vector<Call>& calls,
                         std::vector<SliceId>& launches) const {
    const std::span<const Work> works = group.works;
    std::vector<std::size_t> room;
    for (const Call& call : calls) room.push_back(group.room(call));
    const auto take = [&](std::size_t work, std::size_t call) {
      launches[work] = calls[call].slice;
      --room[call];
    };
    for (std::size_t w = 0; w < works.size(); ++w) {
      const std::int64_t external = external_id(works[w].slice);
      if (external == 0 || external == works[w].id) continue;
      std::size_t with_id = 0, found = 0;
      for (std::size_t c = 0; c < calls.size(); ++c) {
        if (external_id(calls[c].slice) != external) continue;
        ++with_id;
        found = c;
      }
      if (with_id == 1 && room[found] > 0 && fits(calls[found], works[w])) take(w, found);
    }
    std::vector<std::size_t> left_works, left_calls;  // a call once for each piece of its room
    for (std::size_t w = 0; w < works.size(); ++w)
      if (launches[w] == kNone<SliceId>) left_works.push_back(w);
    for (std::size_t c = 0; c < calls.size(); ++c)
      if (fits(calls[c], works.back()))
        left_calls.insert(left_calls.end(), std::min(room[c], works.size()), c);
    if (left_works.size() == left_calls.size() && !left_works.empty()) {
      auto by_file = std::pair(left_works, left_calls);
      std::stable_sort(by_file.first.begin(), by_file.first.end(),
                       [&](auto a, auto b) { return works[a].place < works[b].place; });
      std::stable_sort(by_file.second.begin(), by_file.second.end(),
                       [&](auto a, auto b) { return calls[a].place < calls[b].place; });
      if (!file_order_separates(works, calls, by_file.first, by_file.second))
        by_file = {left_works, left_calls};
      bool all_fit = true;
      for (std::size_t i = 0; i < left_works.size(); ++i)
        all_fit = all_fit && fits(calls[by_file.second[i]], works[by_file.first[i]]);
      for (std::size_t i = 0; all_fit && i < left_works.size(); ++i)
        take(by_file.first[i], by_file.second[i]);
    }
    for (std::size_t i = left_works.size(); i-- > 0;)
      for (std::size_t c = left_calls.size(); c-- > 0 && launches[left_works[i]] == kNone<SliceId>;)
        if (room[left_calls[c]] > 0 && fits(calls[left_calls[c]], works[left_works[i]]))
          take(left_works[i], left_calls[c]);
  }

  // Both in order of the file, the i-th work with the i-th call: do each call and its work come
  // before the next call and its work?
  static bool file_order_separates(std::span<const Work> works, const std::vector<Call>& calls,
                                   const std::vector<std::size_t>& work_order,
                                   const std::vector<std::size_t>& call_order) {
    std::uint32_t last = 0;  // place of the pair before, and of all pairs of other calls before it
    for (std::size_t i = 0; i < work_order.size(); ++i) {
      const std::uint32_t work = works[work_order[i]].place, call = calls[call_order[i]].place;
      const bool is_next_call = i > 0 && call_order[i] != call_order[i - 1];
      if (is_next_call && std::min(work, call) < last) return false;
      last = std::max({last, work, call});
    }
    return true;
  }

  // As for one process: the last call that began before, else the first.
  static SliceId nearest_or_first(const std::vector<Call>& calls, std::int64_t time_ns) {
    if (calls.empty()) return kNone<SliceId>;
    const auto after =
        std::upper_bound(calls.begin(), calls.end(), time_ns,
                         [](std::int64_t time, const Call& each) { return time < each.start_ns; });
    return after == calls.begin() ? calls.front().slice : std::prev(after)->slice;
  }

  const Trace& trace_;
  std::vector<SliceId>& launch_of_;
  std::vector<Call> calls_;
  std::vector<Work> works_;
  std::map<ProcessId, std::map<ProcessId, MatchScore>> fits_;  // by device, then process
  std::map<Processes, Processes> tied_;  // processes that match equally -> devices
  std::map<ProcessId, ProcessId> best_;
  std::map<ProcessId, std::map<ProcessId, std::uint64_t>> rest_;
  std::map<ProcessId, Processes> owners_;
};

}  // namespace

bool ids_repeat_across_processes(const Trace& trace, std::span<const CorrelatedCall> calls) {
  for (std::size_t i = 1; i < calls.size(); ++i)
    if (calls[i].id == calls[i - 1].id &&
        trace.track(calls[i].slice).process != trace.track(calls[i - 1].slice).process)
      return true;
  return false;
}

void join_by_process(const Trace& trace, std::span<const CorrelatedCall> calls,
                     std::span<const SliceId> device_slices, std::vector<SliceId>& launch_of) {
  CallMatcher(trace, calls, device_slices, launch_of).run();
}

}  // namespace lanescope::analysis
