#include "lanescope/analysis/roofline_rows.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

bool multiplies(const OperatorWork& work) {
  return work.kind == OperatorKind::kGemm || work.kind == OperatorKind::kConvolution ||
         work.kind == OperatorKind::kAttention;
}

RooflineRow row_of(const Roofline& roofline, std::vector<const RooflineCall*>& calls) {
  std::sort(calls.begin(), calls.end(), [](const RooflineCall* a, const RooflineCall* b) {
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->start_ns < b->start_ns;
  });
  const RooflineCall& longest = *calls.back();
  const OperatorWork& work = roofline.works[longest.work];
  RooflineRow row;
  row.work = longest.work;
  row.op = longest.op;
  row.kernel = longest.kernel;
  row.kind = longest.kind;
  row.calls = calls.size();
  row.median_ns = calls[(calls.size() - 1) / 2]->time_ns;
  double floor_ns = 0;
  for (const RooflineCall* call : calls) {
    row.time_ns += call->time_ns;
    floor_ns += call->floor_ns();
  }
  if (row.time_ns == 0) return row;
  const double seconds = static_cast<double>(row.time_ns) / 1e9;
  row.flops_per_s = work.flops * static_cast<double>(row.calls) / seconds;
  row.bytes_per_s = work.bytes * static_cast<double>(row.calls) / seconds;
  if (row.kind != RooflineClass::kCompute && row.kind != RooflineClass::kMemory) return row;
  row.is_above_peak = floor_ns > static_cast<double>(row.time_ns);
  if (!row.is_above_peak) row.achieved_ratio = floor_ns / static_cast<double>(row.time_ns);
  return row;
}

}  // namespace

std::vector<RooflineRow> compute_roofline_rows(const Trace& trace, const Roofline& roofline) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const RooflineCall*>> groups;
  for (const RooflineCall& call : roofline.calls)
    groups[{call.work, raw(trace.slices().name[raw(call.kernel)])}].push_back(&call);
  std::vector<RooflineRow> rows;
  for (auto& [key, calls] : groups) rows.push_back(row_of(roofline, calls));
  sort_rows(rows.begin(), rows.end(), [&](const RooflineRow& a, const RooflineRow& b) {
    if (a.time_ns != b.time_ns) return a.time_ns > b.time_ns;
    if (trace.name(a.op) != trace.name(b.op)) return trace.name(a.op) < trace.name(b.op);
    // Not by ids of texts: those of a part of the trace have another order.
    return a.work != b.work ? a.work < b.work : trace.name(a.kernel) < trace.name(b.kernel);
  });

  std::map<std::string_view, double> best;  // by type; "" of those that do not multiply
  const auto place = [&](const RooflineRow& row) {
    const OperatorWork& work = roofline.works[row.work];
    return multiplies(work) ? work.type : std::string_view();
  };
  const auto rate = [&](const RooflineRow& row) {
    return multiplies(roofline.works[row.work]) ? row.flops_per_s : row.bytes_per_s;
  };
  for (const RooflineRow& row : rows)
    if (row.kind != RooflineClass::kShort) best[place(row)] = std::max(best[place(row)], rate(row));
  for (RooflineRow& row : rows)
    if (const double most = best[place(row)]; row.kind != RooflineClass::kShort && most > 0)
      row.of_best_ratio = rate(row) / most;
  return rows;
}

}  // namespace lanescope::analysis
