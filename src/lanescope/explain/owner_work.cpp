#include "lanescope/explain/owner_work.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/kind_of_work.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/start_up_calls.h"

namespace lanescope::explain {
namespace {

using analysis::DeviceWork;

Spread spread_of(const std::vector<std::int64_t>& times) {
  constexpr std::size_t kFewest = 8;
  if (times.size() < kFewest) return {};
  Spread spread;
  spread.median_ns = analysis::lower_median(times);
  for (const std::int64_t time : times) {
    spread.longest_ns = std::max(spread.longest_ns, time);
    spread.excess_ns += std::max<std::int64_t>(0, time - 2 * spread.median_ns);
  }
  return spread;
}

void add_calls(const Facts& facts, const FindOwner& owner_of) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::unordered_set<std::uint32_t> start_up;
  if (facts.main_device)
    for (const SliceId id : rules::first_use_calls(facts)) {
      if (!inside(windows, trace.start_ns(id))) continue;
      start_up.insert(raw(id));
      if (Owner* owner = owner_of(id)) {
        ++owner->work.start_up_calls;
        owner->work.start_up_ns += trace.dur_ns(id);
      }
    }
  const std::unordered_set<std::uint32_t> uploads = rules::uploading_operators(facts);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const ApiCall call = trace.api_call(id);
    if (start_up.contains(i)) continue;
    if (!call.does(api_effect::kAllocates | api_effect::kFrees | api_effect::kBlocks)) continue;
    const SliceId around = facts.nesting.parent[i];
    if (around != kNone<SliceId> && is_api_call(trace.kind(around))) continue;
    if (!inside(windows, trace.start_ns(id))) continue;
    Owner* owner = owner_of(id);
    if (!owner) continue;
    if (call.does(api_effect::kAllocates | api_effect::kFrees)) {
      ++owner->work.allocator_calls;
      owner->work.allocator_ns += trace.dur_ns(id);
    } else {
      ++owner->work.waits;
      owner->work.upload_waits +=
          uploads.contains(raw(rules::outermost_operator_of(facts, id))) ? 1 : 0;
      owner->work.size_waits += rules::asks_for_size(facts, id) ? 1 : 0;
    }
  }
}

// Equal calls take equal time where the core is theirs.
void add_uneven_calls(const Facts& facts, const CallTree& tree, const FindOwner& owner_of) {
  const Trace& trace = *facts.trace;
  std::map<std::tuple<Owner*, std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> equal;
  for (const SliceId unit : tree.units()) {
    const auto dims = trace.slice_args(unit).text(ArgKey::kInputDims);
    if (Owner* owner = owner_of(unit); owner && dims)
      equal[{owner, raw(trace.slices().name[raw(unit)]), raw(*dims)}].push_back(trace.dur_ns(unit));
  }
  for (const auto& [key, times] : equal)
    std::get<0>(key)->work.uneven_ns += spread_of(times).excess_ns;
}

bool launches_graph(const Owner& owner) {
  return owner.kind == OwnerKind::kCall && owner.name.find("GraphLaunch") != std::string::npos;
}

void add_kind(const std::string& words, std::int64_t time_ns, OwnerWork& work) {
  if (words.empty()) return;
  const auto same = std::find_if(work.kinds.begin(), work.kinds.end(),
                                 [&](const KindOfTime& each) { return each.words == words; });
  if (same == work.kinds.end())
    work.kinds.push_back({words, time_ns});
  else
    same->time_ns += time_ns;
}

void add_gpu_work(const Facts& facts, const FindOwner& owner_of) {
  struct Kernels {
    std::uint64_t count = 0;
    std::int64_t time_ns = 0, longest_ns = -1;
    SliceId longest = kNone<SliceId>;
    std::vector<std::int64_t> times;
  };
  const Trace& trace = *facts.trace;
  std::map<std::pair<Owner*, std::uint32_t>, Kernels> by_name;  // owner, name
  std::unordered_set<std::uint32_t> calls;
  std::map<Owner*, std::vector<std::int64_t>> launch_times;
  for (const DeviceWork* work : rules::steady_work(facts)) {
    Owner* owner = owner_of(work->slice);
    if (!owner) continue;
    OwnerWork& sum = owner->work;
    const std::int64_t time = work->end_ns - work->start_ns;
    ++sum.launches;
    sum.gpu_ns += time;
    const SliceId launch = facts.links.launch_of[raw(work->slice)];
    if (launch != kNone<SliceId> && calls.insert(raw(launch)).second) {
      sum.launch_calls_ns += trace.dur_ns(launch);
      launch_times[owner].push_back(trace.dur_ns(launch));
    }
    if (trace.kind(work->slice) == CategoryKind::kGpuMemcpy) {
      ++sum.copies;
      sum.copies_ns += time;
      sum.copied_bytes += rules::bytes_of(facts, work->slice);
      if (sum.longest_copy == kNone<SliceId> || trace.dur_ns(sum.longest_copy) < time)
        sum.longest_copy = work->slice;
      continue;
    }
    Kernels& kernels = by_name[{owner, raw(trace.slices().name[raw(work->slice)])}];
    ++kernels.count;
    kernels.time_ns += time;
    kernels.times.push_back(time);
    if (time > kernels.longest_ns) {
      kernels.longest_ns = time;
      kernels.longest = work->slice;
    }
  }
  for (const auto& [key, kernels] : by_name) {
    OwnerWork& sum = key.first->work;
    if (launches_graph(*key.first))
      add_kind(kind_of_work(facts, kernels.longest), kernels.time_ns, sum);
    if (kernels.time_ns <= sum.top_kernel_ns) continue;
    sum.top_kernel_ns = kernels.time_ns;
    sum.top_kernel_count = kernels.count;
    sum.top_kernel = kernels.longest;
    sum.kernel_spread = spread_of(kernels.times);
  }
  for (const auto& [owner, times] : launch_times) {
    owner->work.launch_spread = spread_of(times);
    auto& kinds = owner->work.kinds;
    sort_rows(kinds.begin(), kinds.end(), [](const KindOfTime& a, const KindOfTime& b) {
      return std::pair(-a.time_ns, a.words) < std::pair(-b.time_ns, b.words);
    });
  }
}

void add_rates(const Facts& facts, const FindOwner& owner_of) {
  const analysis::Roofline& roofline = kernel_facts(facts).roofline;
  for (const analysis::RooflineCall& call : roofline.calls) {
    if (call.kind != analysis::RooflineClass::kCompute &&
        call.kind != analysis::RooflineClass::kMemory)
      continue;
    Owner* owner = owner_of(call.op);
    if (!owner) continue;
    // Faster than the data sheet allows: the bytes came from the cache, and no share of the peak is known.
    if (call.floor_ns() > static_cast<double>(call.time_ns)) continue;
    owner->work.rated_ns += call.time_ns;
    owner->work.rated_floor_ns += call.floor_ns();
    if (call.kind == analysis::RooflineClass::kMemory)
      owner->work.rated_by_memory_ns += call.time_ns;
  }
}

}  // namespace

void count_owner_work(const Facts& facts, const CallTree& tree, const FindOwner& owner_of) {
  for (const SliceId unit : tree.units())
    if (Owner* owner = owner_of(unit)) ++owner->work.calls;
  add_calls(facts, owner_of);
  if (facts.main_device) {
    add_gpu_work(facts, owner_of);
    add_rates(facts, owner_of);
  } else {
    add_uneven_calls(facts, tree, owner_of);
  }
}

}  // namespace lanescope::explain
