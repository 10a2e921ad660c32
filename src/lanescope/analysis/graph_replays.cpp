// A replayed kernel has no operator: its launch is the graph's. The steps before a capture, or a
// step outside of the graph, launch the same kernels one by one. So the operator is that of the
// launches with the same name and launch shape, if they all agree.
#include "lanescope/analysis/graph_replays.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

using ReplayKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // name, grid, block

ReplayKey key_of(const Trace& trace, SliceId kernel) {
  const ArgsView args = trace.slice_args(kernel);
  return {raw(trace.slices().name[raw(kernel)]),
          raw(args.text(ArgKey::kGrid).value_or(kNone<StringId>)),
          raw(args.text(ArgKey::kBlock).value_or(kNone<StringId>))};
}

// The name of the innermost operator around the launch; "": none.
std::string_view operator_of(const Trace& trace, const LaunchLinks& links, SliceId kernel) {
  const SliceId op = links.op_of[raw(kernel)];
  return op != kNone<SliceId> && trace.kind(op) == CategoryKind::kCpuOp ? trace.name(op)
                                                                        : std::string_view();
}

}  // namespace

bool is_graph_launch(const Trace& trace, SliceId api_call) {
  return trace.api_call(api_call).does(api_effect::kLaunchesGraph);
}

std::vector<GraphReplay> find_graph_replays(const Trace& trace, const LaunchLinks& links) {
  std::vector<GraphReplay> replays;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_graph_launch(trace, id)) continue;
    const auto works = links.launched_by(id);
    if (works.empty()) continue;
    GraphReplay replay{id, trace.start_ns(works[0]), trace.end_ns(works[0]), 0};
    for (const SliceId work : works) {
      replay.start_ns = std::min(replay.start_ns, trace.start_ns(work));
      replay.end_ns = std::max(replay.end_ns, trace.end_ns(work));
      replay.kernel_count += trace.kind(work) == CategoryKind::kKernel ? 1 : 0;
    }
    replays.push_back(replay);
  }
  sort_rows(replays.begin(), replays.end(),
            [](const GraphReplay& a, const GraphReplay& b) { return a.start_ns < b.start_ns; });
  return replays;
}

std::vector<BorrowedName> borrow_operator_names(const Trace& trace, const LaunchLinks& links,
                                                const std::vector<GraphReplay>& replays) {
  std::map<ReplayKey, BorrowedName> by_key;
  for (const GraphReplay& replay : replays)
    for (const SliceId work : links.launched_by(replay.launch)) {
      if (trace.kind(work) != CategoryKind::kKernel) continue;
      BorrowedName& entry = by_key[key_of(trace, work)];
      if (entry.run_count++ == 0) {
        entry.kernel = trace.slices().name[raw(work)];
        entry.example = work;
      }
      entry.gpu_ns += trace.dur_ns(work);
    }
  std::map<ReplayKey, bool> disagree;
  if (!by_key.empty())
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      const SliceId id{i}, launch = links.launch_of[i];
      if (trace.kind(id) != CategoryKind::kKernel || launch == kNone<SliceId> ||
          is_graph_launch(trace, launch))
        continue;
      const ReplayKey key = key_of(trace, id);
      const auto entry = by_key.find(key);
      const std::string_view op = operator_of(trace, links, id);
      if (entry == by_key.end() || op.empty()) continue;
      if (entry->second.op.empty())
        entry->second.op = op;
      else if (entry->second.op != op)
        disagree[key] = true;
    }
  std::vector<BorrowedName> names;
  for (auto& [key, entry] : by_key) {
    if (disagree.contains(key)) entry.op = {};
    names.push_back(entry);
  }
  sort_rows(names.begin(), names.end(), [&](const BorrowedName& a, const BorrowedName& b) {
    return a.gpu_ns != b.gpu_ns ? a.gpu_ns > b.gpu_ns : trace.text(a.kernel) < trace.text(b.kernel);
  });
  return names;
}

}  // namespace lanescope::analysis
