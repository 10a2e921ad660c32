#include "lanescope/analysis/step_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

// Adds durations, which can be very long in a hostile file: one object adds at most 73 years, so no
// sum of sums overflows 64 bits.
class Adder {
 public:
  void operator()(std::int64_t& sum, std::int64_t value_ns) {
    value_ns = std::min(left_ns_, value_ns);
    left_ns_ -= value_ns;
    sum += value_ns;
  }

 private:
  std::int64_t left_ns_ = std::int64_t{1} << 61;
};

// The part of [start, end) inside the windows.
std::int64_t length_within(std::span<const Window> windows, std::int64_t start_ns,
                           std::int64_t end_ns) {
  auto each = std::upper_bound(
      windows.begin(), windows.end(), start_ns,
      [](std::int64_t time, const Window& window) { return time < window.end_ns; });
  std::int64_t length = 0;
  for (; each != windows.end() && each->start_ns < end_ns; ++each)
    length += std::min(end_ns, each->end_ns) - std::max(start_ns, each->start_ns);
  return length;
}

class Costs {
 public:
  explicit Costs(const StepCostsInput& input) : in_(input), trace_(input.trace) {}

  StepCosts run() {
    result_.step_count = in_.step_count;
    for (const Window& each : in_.cpu_windows) add_cpu_wall_(result_.cpu_wall_ns, each.length_ns());
    if (in_.timeline) {
      for (const Window& each : in_.windows)
        result_.wall += compute_wall_partition(*in_.timeline, each);
      collect_work();
      if (in_.gaps) collect_gaps();
      std::int64_t explained = 0;
      for (const std::int64_t each : result_.idle) explained += each;
      result_.idle[static_cast<std::size_t>(IdleCause::kUnknown)] +=
          result_.wall.idle_ns - explained;
    }
    collect_cpu();
    return std::move(result_);
  }

 private:
  // The innermost operator; annotations and compiled regions around it have the program's names.
  SliceId operator_of(SliceId work) const {
    SliceId op = in_.links.op_of[raw(work)];
    while (op != kNone<SliceId> && trace_.kind(op) != CategoryKind::kCpuOp)
      op = in_.nesting.parent[raw(op)];
    return op;
  }

  void collect_work() {
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, WorkClass>;
    std::map<Key, WorkGroup> groups;
    for (const DeviceWork& work : in_.timeline->work) {
      const std::int64_t length = length_within(in_.windows, work.start_ns, work.end_ns);
      if (length == 0 && !(work.end_ns == work.start_ns && is_inside(in_.windows, work.start_ns)))
        continue;
      const SliceId op = operator_of(work.slice);
      const StringId op_name =
          op == kNone<SliceId> ? kNone<StringId> : trace_.slices().name[raw(op)];
      StringId dims = kNone<StringId>;
      if (op != kNone<SliceId>)
        dims = trace_.slice_args(op).text(ArgKey::kInputDims).value_or(kNone<StringId>);
      WorkGroup& group =
          groups[{raw(trace_.slices().name[raw(work.slice)]), raw(op_name), raw(dims), work.work}];
      if (group.count++ == 0) {
        group.name = trace_.name(work.slice);
        group.op = trace_.text(op_name);
        group.dims = trace_.text(dims);
        group.work = work.work;
      }
      add_work_(group.time_ns, length);
      if (group.longest == kNone<SliceId> ||
          trace_.dur_ns(work.slice) > trace_.dur_ns(group.longest))
        group.longest = work.slice;
    }
    for (auto& [key, group] : groups) result_.work.push_back(std::move(group));
    sort_rows(result_.work.begin(), result_.work.end(), [](const WorkGroup& a, const WorkGroup& b) {
      return std::tie(a.name, a.op, a.dims, a.work) < std::tie(b.name, b.op, b.dims, b.work);
    });
  }

  void collect_gaps() {
    std::map<std::pair<IdleCause, std::string_view>, IdleGroup> groups;
    std::map<std::pair<IdleCause, std::string_view>, std::int64_t> longest;
    for (const Gap& gap : in_.gaps->gaps) {
      if (length_within(in_.windows, gap.start_ns, gap.end_ns) == 0) continue;
      std::string_view before;
      if (gap.next_work != kNone<SliceId>) {
        const SliceId op = operator_of(gap.next_work);
        before = trace_.name(op == kNone<SliceId> ? gap.next_work : op);
      }
      for (const IdlePart& part : in_.gaps->parts_of(gap)) {
        const std::int64_t length = length_within(in_.windows, part.start_ns, part.end_ns);
        if (length == 0) continue;
        const std::pair key(part.cause, before);
        IdleGroup& group = groups[key];
        ++group.count;
        add_idle_(group.time_ns, length);
        add_cause_(result_.idle[static_cast<std::size_t>(part.cause)], length);
        if (length <= longest[key]) continue;
        longest[key] = length;
        group.next_work = gap.next_work;
      }
    }
    for (auto& [key, group] : groups) {
      group.cause = key.first;
      group.before = key.second;
      result_.gaps.push_back(std::move(group));
    }
  }

  static std::optional<CpuClass> class_of(CategoryKind kind) {
    switch (kind) {
      case CategoryKind::kCpuOp:
        return CpuClass::kOperator;
      case CategoryKind::kRuntime:
      case CategoryKind::kDriver:
        return CpuClass::kCall;
      case CategoryKind::kUserAnnotation:
        return CpuClass::kRange;
      case CategoryKind::kPythonFunction:
        return CpuClass::kPython;
      default:
        return {};
    }
  }

  void collect_cpu() {
    std::unordered_map<std::uint64_t, CpuGroup> by_id;  // class and StringId
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      const SliceId id{i};
      auto cpu = class_of(trace_.kind(id));
      if (!cpu || in_.nesting.depth[i] == SliceNesting::kNotNested) continue;
      if (!is_inside(in_.cpu_windows, trace_.start_ns(id))) continue;
      if (*cpu == CpuClass::kCall && is_blocking_call(trace_, in_.links, id)) cpu = CpuClass::kWait;
      CpuGroup& group = by_id[std::uint64_t{static_cast<std::uint8_t>(*cpu)} << 32 |
                              raw(trace_.slices().name[i])];
      if (group.count++ == 0) {
        group.cpu = *cpu;
        group.name = trace_.name(id);
      }
      add_cpu_(group.self_ns, std::max<std::int64_t>(0, in_.nesting.self_ns[i]));
    }
    std::map<std::pair<CpuClass, std::string>, CpuGroup> by_name;
    for (auto& [id, group] : by_id) {
      if (group.name.starts_with("ProfilerStep#")) group.name = "ProfilerStep*";
      CpuGroup& sum = by_name[{group.cpu, group.name}];
      sum.cpu = group.cpu;
      sum.name = group.name;
      sum.count += group.count;
      sum.self_ns += group.self_ns;
    }
    for (auto& [key, group] : by_name) result_.cpu.push_back(std::move(group));
  }

  const StepCostsInput& in_;
  const Trace& trace_;
  StepCosts result_;
  Adder add_cpu_wall_, add_work_, add_idle_, add_cause_, add_cpu_;
};

}  // namespace

StepCosts compute_step_costs(const StepCostsInput& input) { return Costs(input).run(); }

}  // namespace lanescope::analysis
