#include "lanescope/explain/compare.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "lanescope/analysis/trace_info.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/compare_headline.h"
#include "lanescope/explain/enclosing_facts.h"
#include "lanescope/explain/left_out_steps.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain {

using analysis::CpuGroup;
using analysis::IdleGroup;
using analysis::per_step_ns;
using analysis::StepCosts;
using analysis::WorkClass;
using analysis::WorkGroup;

namespace {

// Python frames are nested only if both traces have them, so that the self time of a range means
// the same on both sides.
StepCosts costs_of(const Facts& facts, bool python_frames) {
  const auto cpu_windows = facts.steady_cpu_windows();
  return analysis::compute_step_costs(
      {*facts.trace, facts.links, python_frames ? nesting_with_frames(facts) : facts.nesting,
       facts.main_device ? &facts.device().timeline : nullptr,
       facts.main_device ? &facts.device().gaps : nullptr, facts.steady_windows, cpu_windows,
       static_cast<std::int64_t>(facts.selection.steady.size())});
}

StepSpread spread_of(const Facts& facts, bool on_device) {
  std::vector<std::int64_t> lengths;
  for (const std::size_t index : facts.selection.steady)
    lengths.push_back(on_device ? facts.device().windows[index].length_ns()
                                : facts.steps.steps[index].cpu_end_ns -
                                      facts.steps.steps[index].cpu_start_ns);
  const auto statistics = analysis::step_statistics(lengths);
  StepSpread spread;
  spread.count = lengths.size();
  spread.shortest_ns = statistics.shortest_ns;
  spread.median_ns = statistics.median_ns;
  spread.longest_ns = statistics.longest_ns;
  spread.spread_ns = static_cast<std::int64_t>(1.4826 * static_cast<double>(statistics.mad_ns));
  for (const std::size_t index : statistics.slow)
    spread.slow.push_back(facts.steps.steps[facts.selection.steady[index]].number.value_or(0));
  return spread;
}

template <typename Diff>
void order(std::vector<Diff>& rows) {
  sort_rows(rows.begin(), rows.end(), [](const Diff& x, const Diff& y) {
    const auto dx = std::llabs(x.b_ns - x.a_ns), dy = std::llabs(y.b_ns - y.a_ns);
    return dx != dy ? dx > dy : x.a_ns + x.b_ns > y.a_ns + y.b_ns;
  });
}

std::vector<GapDiff> gap_rows(const StepCosts& a, const StepCosts& b) {
  std::map<std::pair<analysis::IdleCause, std::string>, GapDiff> rows;
  const auto fill = [&](const StepCosts& side, bool is_a) {
    for (const IdleGroup& each : side.gaps) {
      GapDiff& row = rows[{each.cause, each.before}];
      row.cause = each.cause;
      row.before = each.before;
      (is_a ? row.a_ns : row.b_ns) = per_step_ns(each.time_ns, side.step_count);
      (is_a ? row.a_next : row.b_next) = each.next_work;
    }
  };
  fill(a, true);
  fill(b, false);
  std::vector<GapDiff> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  order(result);
  return result;
}

std::vector<CpuDiff> cpu_rows(const StepCosts& a, const StepCosts& b) {
  std::map<std::pair<analysis::CpuClass, std::string>, CpuDiff> rows;
  const auto fill = [&](const StepCosts& side, bool is_a) {
    for (const CpuGroup& each : side.cpu) {
      CpuDiff& row = rows[{each.cpu, each.name}];
      row.cpu = each.cpu;
      row.name = each.name;
      (is_a ? row.a_count : row.b_count) = each.count;
      (is_a ? row.a_ns : row.b_ns) = per_step_ns(each.self_ns, side.step_count);
    }
  };
  fill(a, true);
  fill(b, false);
  std::vector<CpuDiff> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  order(result);
  return result;
}

std::vector<MoveDiff> move_rows(const StepCosts& a, const StepCosts& b) {
  std::map<std::pair<WorkClass, std::string>, std::pair<MoveDiff, std::array<std::int64_t, 2>>>
      rows;
  const auto fill = [&](const StepCosts& side, bool is_a) {
    for (const WorkGroup& each : side.work) {
      if (each.work == WorkClass::kCompute) continue;
      auto& [row, total_ns] = rows[{each.work, each.name}];
      row.work = each.work;
      row.name = each.name;
      (is_a ? row.a_count : row.b_count) += each.count;
      total_ns[is_a ? 0 : 1] += each.time_ns;
    }
  };
  fill(a, true);
  fill(b, false);
  std::vector<MoveDiff> result;
  for (auto& [key, pair] : rows) {
    pair.first.a_ns = per_step_ns(pair.second[0], a.step_count);
    pair.first.b_ns = per_step_ns(pair.second[1], b.step_count);
    result.push_back(std::move(pair.first));
  }
  order(result);
  return result;
}

std::array<std::int64_t, analysis::kCpuClassCount> cpu_sums(const StepCosts& side) {
  std::array<std::int64_t, analysis::kCpuClassCount> sums{};
  for (const CpuGroup& each : side.cpu) sums[static_cast<std::size_t>(each.cpu)] += each.self_ns;
  for (std::int64_t& each : sums) each = per_step_ns(each, side.step_count);
  return sums;
}

bool all_equal(const Comparison& c) {
  const auto same = [](const auto& row) { return row.a_ns == row.b_ns; };
  const auto same_count = [](const auto& row) {
    return row.a_ns == row.b_ns && row.a_count == row.b_count;
  };
  return c.a_costs.step_count == c.b_costs.step_count &&
         std::all_of(c.gaps.begin(), c.gaps.end(), same) &&
         std::all_of(c.cpu.begin(), c.cpu.end(), same_count) &&
         std::all_of(c.moves.begin(), c.moves.end(), same_count) &&
         std::all_of(c.diff.kernels.begin(), c.diff.kernels.end(), [](const auto& row) {
           return row.kind == analysis::MatchKind::kSame && row.a_ns == row.b_ns &&
                  row.a_count == row.b_count;
         });
}

CompareVerdict verdict_of(const Comparison& c) {
  const bool empty = c.a_costs.cpu.empty() && c.b_costs.cpu.empty() && !c.a->main_device;
  if (all_equal(c) && !empty) return CompareVerdict::kEqual;
  if (empty && !c.b->main_device) return CompareVerdict::kNotCompared;
  const bool walls = c.scope == CompareScope::kSteps || c.scope == CompareScope::kRecordings ||
                     (c.scope == CompareScope::kCpu && c.a->steps.marked && c.b->steps.marked);
  if (!walls || !c.can_compare_steps) return CompareVerdict::kNotCompared;
  const std::int64_t noise = compare_noise_ns(c);
  const bool medians_differ = std::llabs(c.b_steps.median_ns - c.a_steps.median_ns) > noise;
  if (c.a_steps.count < 3 || c.b_steps.count < 3) {
    const bool ranges_meet = c.a_steps.shortest_ns <= c.b_steps.longest_ns &&
                             c.b_steps.shortest_ns <= c.a_steps.longest_ns;
    return medians_differ && !ranges_meet ? CompareVerdict::kFewSteps : CompareVerdict::kWithin;
  }
  if (medians_differ) return CompareVerdict::kDiffers;
  return std::llabs(compare_wall_ns(c, false) - compare_wall_ns(c, true)) > noise
             ? CompareVerdict::kSlowSteps
             : CompareVerdict::kWithin;
}

std::uint64_t optimizer_steps(const StepCosts& side) {
  std::uint64_t steps = 0;
  for (const CpuGroup& each : side.cpu)
    if (names::is_optimizer_step(each.name)) steps += each.count;
  return steps;
}

// GPU work, or operators if a side has none.
std::uint64_t pieces_of(const StepCosts& side, bool on_device) {
  std::uint64_t pieces = 0;
  if (on_device)
    for (const WorkGroup& each : side.work) pieces += each.count;
  else
    for (const CpuGroup& each : side.cpu)
      pieces += each.cpu == analysis::CpuClass::kOperator ? each.count : 0;
  return pieces;
}

bool has_devices(const Comparison& c) { return c.a->main_device && c.b->main_device; }

// Per step, the larger number is at most so many times the smaller one.
bool are_near(const Comparison& c, std::uint64_t of_a, std::uint64_t of_b, double most) {
  const double a = static_cast<double>(of_a) * static_cast<double>(c.b_costs.step_count);
  const double b = static_cast<double>(of_b) * static_cast<double>(c.a_costs.step_count);
  return std::min(a, b) > 0 && std::max(a, b) <= most * std::min(a, b);
}

// What a step holds on each side, summed over the steady steps.
struct StepSizes {
  std::uint64_t a = 0, b = 0;
  std::string_view what;
  double most = 1;  // so many times as much is no other unit
};

// If one step is two or more rounds of the other, it holds twice as much or more. Optimizer steps are
// exact; pieces of work also change with the program.
StepSizes step_sizes(const Comparison& c) {
  const StepSizes steps{optimizer_steps(c.a_costs), optimizer_steps(c.b_costs),
                        "optimizer [step|steps]", 1.9};
  if (steps.a > 0 || steps.b > 0) return steps;
  const bool on_device = has_devices(c);
  return {pieces_of(c.a_costs, on_device), pieces_of(c.b_costs, on_device),
          on_device ? "[piece|pieces] of GPU work" : "[operator|operators]", 1.5};
}

StepUnits units_of(const Comparison& c) {
  const auto &a = c.a->steps.found, &b = c.b->steps.found;
  if (!c.a->steps.marked || !c.b->steps.marked || (!a && !b)) return StepUnits::kSame;
  if (a && b &&
      std::tie(a->kind, a->mark, a->owner, a->waits) ==
          std::tie(b->kind, b->mark, b->owner, b->waits))
    return StepUnits::kSame;
  const StepSizes sizes = step_sizes(c);
  return are_near(c, sizes.a, sizes.b, sizes.most) ? StepUnits::kAlike : StepUnits::kOther;
}

void add_units_remark(const Comparison& c, std::vector<Sentence>& out) {
  if (c.units != StepUnits::kAlike || c.verdict == CompareVerdict::kNotCompared) return;
  Sentence note = say("What counts as a step is not the same in both: in A ");
  append(note, step_unit(*c.a));
  append(note, say(", in B "));
  append(note, step_unit(*c.b));
  const StepSizes sizes = step_sizes(c);
  const auto per_step = [](std::uint64_t all, const StepCosts& side) {
    const auto steps = static_cast<std::uint64_t>(side.step_count);
    return count((all + steps / 2) / steps);
  };
  append(note,
         say(*c.a,
             std::string(". They are compared because neither holds twice as much: A's has {} ")
                     .append(sizes.what) +
                 ", B's {}.",
             {per_step(sizes.a, c.a_costs), per_step(sizes.b, c.b_costs)}));
  out.push_back(std::move(note));
}

std::string device_name(const Facts& facts) {
  if (!facts.main_device) return {};
  const auto json = facts.trace->metadata_json("deviceProperties");
  if (!json) return {};
  const auto devices = parse_gpu_devices(*json);
  for (const GpuDevice& each : devices)
    if (each.id == facts.device().timeline.device) return each.name;
  return devices.empty() ? std::string() : devices.front().name;
}

bool has_shapes(const StepCosts& costs) {
  return std::any_of(costs.work.begin(), costs.work.end(),
                     [](const WorkGroup& each) { return !each.dims.empty(); });
}

// Two ranks of one job: the time that one waits for the other is communication alone.
void add_rank_remark(const Comparison& c, std::vector<Sentence>& out) {
  const analysis::TraceInfo a = analysis::compute_trace_info(*c.a->trace);
  const analysis::TraceInfo b = analysis::compute_trace_info(*c.b->trace);
  if (c.scope != CompareScope::kSteps || !a.rank || !b.rank || *a.rank == *b.rank ||
      a.world_size != b.world_size)
    return;
  const std::int64_t delta_ns = c.diff.effects.exposed_communication_ns;
  const auto number = [](std::int64_t rank) { return text(std::to_string(rank)); };
  if (std::llabs(delta_ns) <= std::max(compare_noise_ns(c), compare_wall_ns(c, true) / 20)) return;
  out.push_back(
      say("A is rank {} and B rank {}. If they are of one job: {} spends {} more in communication "
          "alone, so most likely it waits there for {}, which reaches the collectives later.",
          {number(*a.rank), number(*b.rank), text(delta_ns > 0 ? "B" : "A"),
           ns(std::llabs(delta_ns)), text(delta_ns > 0 ? "A" : "B")}));
}

// Differences of the recordings, and what they mean for the numbers.
std::vector<Sentence> remarks_of(const Comparison& c) {
  std::vector<Sentence> out;
  const std::string a_name = device_name(*c.a), b_name = device_name(*c.b);
  if (!a_name.empty() && !b_name.empty() && a_name != b_name)
    out.push_back(
        say("The GPUs differ, {} against {}: every kernel may take another time for that alone; "
            "numbers of calls, matches of kernels and CPU time by operator can be compared.",
            {name(a_name), name(b_name)}));
  if (c.scope == CompareScope::kCpu && c.verdict != CompareVerdict::kNotCompared &&
      c.a->main_device.has_value() != c.b->main_device.has_value())
    out.push_back(
        say("{} holds no GPU work (record with ProfilerActivity.CUDA): neither the wall "
            "on the GPU nor kernels can be compared; what can be: the CPU's steps and "
            "operators.",
            {text(c.a->main_device ? "B" : "A")}));
  if (c.scope == CompareScope::kSteps || c.scope == CompareScope::kRecordings) {
    std::int64_t matched = 0, all = 0;
    for (const auto& row : c.diff.kernels) {
      all += row.a_ns + row.b_ns;
      if (row.kind != analysis::MatchKind::kNew && row.kind != analysis::MatchKind::kGone)
        matched += row.a_ns + row.b_ns;
    }
    if (all > 0 && matched * 2 < all)
      out.push_back(
          say("Only {} of the kernel time runs in kernels or operators that both have: "
              "these look like different programs.",
              {ratio(matched, all)}));
  }
  add_units_remark(c, out);
  add_rank_remark(c, out);
  if (c.scope == CompareScope::kSteps || c.scope == CompareScope::kRecordings)
    for (const auto& [facts, side] : {std::pair(c.a, "A"), std::pair(c.b, "B")})
      if (const analysis::Gap* gap = rules::find_edge_gap(*facts))
        out.push_back(
            say("{} of {}'s idle time is one gap next to its first GPU work. Work in it was "
                "not recorded, so it says nothing about the program.",
                {ns(gap->end_ns - gap->start_ns), text(side)}));
  const bool a_python = has_python_frames(*c.a->trace), b_python = has_python_frames(*c.b->trace);
  if (a_python != b_python)
    out.push_back(
        say("Only {} was recorded with Python stacks, which cost CPU time of their own: "
            "CPU times and idle time do not compare fairly.",
            {text(a_python ? "A" : "B")}));
  const bool a_shapes = has_shapes(c.a_costs), b_shapes = has_shapes(c.b_costs);
  if (a_shapes != b_shapes && c.scope != CompareScope::kCpu)
    out.push_back(say("Only {} was recorded with shapes: kernels are matched by name and operator.",
                      {text(a_shapes ? "A" : "B")}));
  for (const auto& [facts, side] : {std::pair(c.a, "A"), std::pair(c.b, "B")}) {
    const Sentence note = cut_steps_note(*facts);
    if (note.pattern.empty()) continue;
    out.push_back(say("In {}: ", {text(side)}));
    append(out.back(), note);
  }
  if (c.scope == CompareScope::kSteps)
    for (const auto& [spread, side] : {std::pair(&c.a_steps, "A"), std::pair(&c.b_steps, "B")})
      if (!spread->slow.empty() && c.verdict != CompareVerdict::kSlowSteps)
        out.push_back(say(*c.a, "{} holds {} slow [step|steps] among {}, which count in its mean.",
                          {text(side), count(spread->slow.size()), count(spread->count)}));
  return out;
}

}  // namespace

bool has_missing_work(const Facts& facts) {
  return facts.selection.lacks_gpu_work || facts.trace->import_stats().is_truncated();
}

Comparison compare(const Facts& a, const Facts& b) {
  Comparison c;
  c.a = &a;
  c.b = &b;
  const bool python = has_python_frames(*a.trace) && has_python_frames(*b.trace);
  c.a_costs = costs_of(a, python);
  c.b_costs = costs_of(b, python);
  const bool devices = has_devices(c);
  c.units = units_of(c);
  c.can_compare_steps = a.steps.marked == b.steps.marked && c.units != StepUnits::kOther &&
                        !has_missing_work(a) && !has_missing_work(b);
  c.scope = !devices               ? CompareScope::kCpu
            : !c.can_compare_steps ? CompareScope::kCalls
            : a.steps.marked       ? CompareScope::kSteps
                                   : CompareScope::kRecordings;
  c.a_steps = spread_of(a, devices);
  c.b_steps = spread_of(b, devices);
  c.cpu = cpu_rows(c.a_costs, c.b_costs);
  c.a_cpu_ns = cpu_sums(c.a_costs);
  c.b_cpu_ns = cpu_sums(c.b_costs);
  if (devices) {
    c.diff = analysis::compute_wall_diff(c.a_costs, c.b_costs);
    c.moves = move_rows(c.a_costs, c.b_costs);
    if (c.scope != CompareScope::kCalls) c.gaps = gap_rows(c.a_costs, c.b_costs);
  }
  c.verdict = verdict_of(c);
  c.headline = compare_headline(c);
  c.remarks = remarks_of(c);
  return c;
}

}  // namespace lanescope::explain
