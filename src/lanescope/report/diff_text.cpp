#include "lanescope/report/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "lanescope/base/sort_rows.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/markdown_escape.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::KernelDiff;
using analysis::MatchKind;
using analysis::WorkGroup;
using explain::CompareScope;
using explain::Comparison;
using explain::StepSpread;

constexpr std::size_t kDiffLabelWidth = 44, kDiffNameWidth = 70, kTimeWidth = 11;

std::string change_text(std::int64_t delta_ns) {
  if (delta_ns == 0) return "0";
  return fmt::format("{}{}", delta_ns < 0 ? '-' : '+', format_time_ns(std::llabs(delta_ns)));
}

std::string time_text(std::int64_t ns) { return ns < 0 ? change_text(ns) : format_time_ns(ns); }

// Calls per step: "3", or "2.5" if steps differ.
std::string calls_text(std::uint64_t count, std::int64_t steps) {
  const auto n = static_cast<std::uint64_t>(std::max<std::int64_t>(1, steps));
  if (count % n == 0) return format_count(count / n);
  return fmt::format("{:.1f}", static_cast<double>(count) / static_cast<double>(n));
}

std::string kernel_text(const std::string& name) {
  return shorten(one_line(names::readable_kernel_name(name)), kDiffNameWidth);
}

std::string plain_name(const std::string& name) { return shorten(one_line(name), kDiffNameWidth); }

class DiffText {
 public:
  DiffText(const Comparison& comparison, const DiffOptions& options)
      : c_(comparison), options_(options) {}

  std::string run() {
    if (options_.markdown) out_ += "# What changed\n\n";
    out_ += wrapped("", sentence_text(c_.headline, options_.markdown));
    for (const auto& remark : c_.remarks) {
      if (options_.markdown) out_ += '\n';
      out_ += wrapped("  note: ", sentence_text(remark, options_.markdown));
    }
    out_ += '\n';
    write_side("A", options_.a_label, c_.a_steps, *c_.a);
    write_side("B", options_.b_label, c_.b_steps, *c_.b);
    const bool walls = c_.scope == CompareScope::kSteps || c_.scope == CompareScope::kRecordings;
    if (walls) write_wall();
    if (c_.scope != CompareScope::kCpu) write_kernels();
    if (walls) {
      write_gaps();
      write_moves();
    }
    write_cpu();
    return std::move(out_);
  }

 private:
  void write_side(const char* side, const std::string& label, const StepSpread& steps,
                  const explain::Facts& facts) {
    std::string about = facts.steps.marked ? fmt::format("{} steady {}", steps.count,
                                                         steps.count == 1 ? "step" : "steps")
                                           : "no steps marked, the recording is one";
    if (facts.selection.steady.empty()) about = "nothing to measure";
    if (facts.main_device)
      about += fmt::format(", device {}", facts.device().timeline.device);
    else
      about += ", no GPU work";
    if (steps.count > 1)
      about +=
          fmt::format("; shortest {}, median {}, longest {}", format_time_ns(steps.shortest_ns),
                      format_time_ns(steps.median_ns), format_time_ns(steps.longest_ns));
    out_ +=
        fmt::format("{}{}: {} ({})\n", options_.markdown ? "- " : "  ", side,
                    options_.markdown ? markdown_code(one_line(label)) : one_line(label), about);
  }

  void begin(std::string_view title) {
    out_ +=
        options_.markdown ? fmt::format("\n## {}\n\n```\n", title) : fmt::format("\n{}\n", title);
  }
  void end() {
    if (options_.markdown) out_ += "```\n";
  }

  const char* unit() const {
    return c_.scope == CompareScope::kRecordings || !c_.a->steps.marked || !c_.b->steps.marked
               ? "recording"
               : "step";
  }

  void row(std::string_view label, std::string_view a, std::string_view b, std::string_view delta) {
    out_ +=
        fmt::format("  {} {} {} {}\n", pad_right(label, kDiffLabelWidth), pad_left(a, kTimeWidth),
                    pad_left(b, kTimeWidth), pad_left(delta, kTimeWidth + 1));
  }
  // Only printed if one side has a value.
  void level(std::string_view label, std::int64_t a_ns, std::int64_t b_ns) {
    if (a_ns == 0 && b_ns == 0) return;
    row(label, time_text(a_ns), time_text(b_ns), change_text(b_ns - a_ns));
  }

  void write_wall() {
    begin(fmt::format("Wall of a {}, in parts that add up", unit()));
    row("", "A", "B", "B - A");
    std::array<std::array<std::int64_t, 2>, 5> by_kind{};
    for (const KernelDiff& each : c_.diff.kernels) {
      auto& sums = by_kind[static_cast<std::size_t>(each.kind)];
      sums[0] += each.a_ns;
      sums[1] += each.b_ns;
    }
    const auto of = [&](MatchKind kind) { return by_kind[static_cast<std::size_t>(kind)]; };
    const auto& effects = c_.diff.effects;
    level("kernels of both, durations added up", of(MatchKind::kSame)[0], of(MatchKind::kSame)[1]);
    if (effects.calls_ns != 0) row("- more or fewer calls", "", "", change_text(effects.calls_ns));
    if (effects.per_call_ns != 0)
      row("- longer or shorter calls", "", "", change_text(effects.per_call_ns));
    level("kernels changed under the same operator", of(MatchKind::kChanged)[0],
          of(MatchKind::kChanged)[1]);
    level("kernels fused, or no longer fused", of(MatchKind::kFused)[0], of(MatchKind::kFused)[1]);
    level("kernels only in B", 0, of(MatchKind::kNew)[1]);
    level("kernels only in A", of(MatchKind::kGone)[0], 0);
    level("minus overlap of kernels", c_.diff.a.overlap_ns, c_.diff.b.overlap_ns);
    level("communication alone", c_.diff.a.exposed_communication_ns,
          c_.diff.b.exposed_communication_ns);
    level("copies and memsets alone", c_.diff.a.exposed_copy_ns, c_.diff.b.exposed_copy_ns);
    for (std::size_t i = 0; i < analysis::kIdleCauseCount; ++i)
      level(
          fmt::format("idle: {}", explain::idle_cause_phrase(static_cast<analysis::IdleCause>(i))),
          c_.diff.a.idle_ns[i], c_.diff.b.idle_ns[i]);
    row("wall: the sum", format_time_ns(c_.diff.a.wall_ns), format_time_ns(c_.diff.b.wall_ns),
        change_text(c_.diff.effects.sum_ns()));
    end();
  }

  static std::int64_t mean_ns(std::int64_t total_ns, std::uint64_t count) {
    return count == 0 ? 0 : total_ns / static_cast<std::int64_t>(count);
  }

  // "aten::mm [[64, 64], [64, 64]]"
  static std::string place(const WorkGroup& group) {
    if (group.op.empty()) return {};
    return plain_name(group.dims.empty() || group.dims.size() > kDiffNameWidth
                          ? group.op
                          : group.op + " " + group.dims);
  }

  template <typename Text>
  std::string list(const std::vector<std::size_t>& groups, const analysis::StepCosts& side,
                   Text text_of) const {
    std::vector<std::string> texts;
    std::size_t more = 0;
    for (const std::size_t each : groups) {
      std::string text = text_of(side.work[each]);
      if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
      if (texts.size() < 3)
        texts.push_back(std::move(text));
      else
        ++more;
    }
    std::string out = fmt::format("{}", fmt::join(texts, ", "));
    return more == 0 ? out : fmt::format("{} and {} more", out, more);
  }

  std::string kernels_of(const std::vector<std::size_t>& groups,
                         const analysis::StepCosts& side) const {
    return list(groups, side, [](const WorkGroup& each) { return kernel_text(each.name); });
  }

  std::string about(const KernelDiff& each) const {
    const auto& a = c_.a_costs;
    const auto& b = c_.b_costs;
    const auto operators = [&](const std::vector<std::size_t>& groups,
                               const analysis::StepCosts& side) {
      return list(groups, side, [](const WorkGroup& group) {
        return group.op.empty() ? kernel_text(group.name) : plain_name(group.op);
      });
    };
    switch (each.kind) {
      case MatchKind::kSame:
        return kernels_of(each.b, b) +
               (each.same_shapes ? in_place(b.work[each.b.front()]) : " (matched by name)");
      case MatchKind::kChanged:
        return fmt::format("{}: {} -> {}{}", plain_name(a.work[each.a.front()].op),
                           kernels_of(each.a, a), kernels_of(each.b, b),
                           each.same_shapes ? "" : " (other shapes)");
      case MatchKind::kFused:
        return each.a_is_fused
                   ? fmt::format("no longer fused: {} -> {}", kernels_of(each.a, a),
                                 operators(each.b, b))
                   : fmt::format("fused: {} -> {}", operators(each.a, a), kernels_of(each.b, b));
      case MatchKind::kNew:
        return fmt::format("only in B: {}{}", kernels_of(each.b, b),
                           in_place(b.work[each.b.front()]));
      case MatchKind::kGone:
        return fmt::format("only in A: {}{}", kernels_of(each.a, a),
                           in_place(a.work[each.a.front()]));
    }
    return {};
  }
  static std::string in_place(const WorkGroup& group) {
    const std::string text = place(group);
    return text.empty() ? text : fmt::format(" in {}", text);
  }

  void write_kernels() {
    std::vector<const KernelDiff*> rows;
    for (const KernelDiff& each : c_.diff.kernels)
      if (each.a_ns != each.b_ns || each.a_count != each.b_count || each.count_ns != 0)
        rows.push_back(&each);
    if (c_.scope == CompareScope::kCalls) {
      std::erase_if(rows,
                    [](const KernelDiff* each) { return each->a.empty() || each->b.empty(); });
      sort_rows(rows.begin(), rows.end(), [](const KernelDiff* x, const KernelDiff* y) {
        const auto change = [](const KernelDiff& row) {
          return std::llabs(mean_ns(row.b_total_ns, row.b_count) -
                            mean_ns(row.a_total_ns, row.a_count));
        };
        return change(*x) > change(*y);
      });
    }
    begin(c_.scope == CompareScope::kCalls
              ? "GPU kernels: time of a call"
              : fmt::format("GPU kernels: calls of a {} x time of a call", unit()));
    if (rows.empty()) {
      out_ += "  none differ\n";
      return end();
    }
    const bool calls = c_.scope != CompareScope::kCalls;
    out_ += fmt::format("  {}  {}{}{}\n", pad_left("A", 22), pad_left("B", 22),
                        calls ? pad_left("B - A", 14) : pad_left("B / A", 10), "  kernel");
    for (std::size_t i = 0; i < rows.size() && i < options_.top; ++i) write_kernel(*rows[i]);
    if (rows.size() > options_.top) {
      std::int64_t rest = 0;
      for (std::size_t i = options_.top; i < rows.size(); ++i) rest += rows[i]->delta_ns();
      out_ += calls ? fmt::format("  {}  {}{}  {} more rows (--top)\n", pad_left("", 22),
                                  pad_left("", 22), pad_left(change_text(rest), 14),
                                  rows.size() - options_.top)
                    : fmt::format("  {} more rows (--top)\n", rows.size() - options_.top);
    }
    end();
  }

  void write_kernel(const KernelDiff& each) {
    const bool calls = c_.scope != CompareScope::kCalls;
    const auto cell = [&](std::uint64_t count, std::int64_t total_ns, std::int64_t steps) {
      if (count == 0) return std::string("-");
      const std::string time = format_time_ns(mean_ns(total_ns, count));
      return calls ? fmt::format("{} x {}", calls_text(count, steps), time) : time;
    };
    const std::int64_t a_ns = mean_ns(each.a_total_ns, each.a_count);
    const std::int64_t b_ns = mean_ns(each.b_total_ns, each.b_count);
    const std::string delta =
        calls ? pad_left(change_text(each.delta_ns()), 14)
        : a_ns == 0
            ? pad_left("-", 10)
            : pad_left(fmt::format("{:.2f}", static_cast<double>(b_ns) / static_cast<double>(a_ns)),
                       10);
    std::string split;
    if (calls && each.count_ns != 0 && each.per_call_ns != 0)
      split = fmt::format(" [calls {}, time of a call {}]", change_text(each.count_ns),
                          change_text(each.per_call_ns));
    out_ += fmt::format("  {}  {}{}  {}{}\n",
                        pad_left(cell(each.a_count, each.a_total_ns, c_.a_costs.step_count), 22),
                        pad_left(cell(each.b_count, each.b_total_ns, c_.b_costs.step_count), 22),
                        delta, about(each), split);
  }

  // Rows of one table: those that differ, the largest first, the rest as one.
  template <typename Row, typename Label>
  void write_rows(const std::vector<Row>& rows, Label label_of) {
    std::size_t shown = 0, differ = 0;
    std::int64_t rest = 0;
    for (const Row& each : rows) {
      if (each.a_ns == each.b_ns) continue;
      if (++differ > options_.top) {
        rest += each.b_ns - each.a_ns;
        continue;
      }
      ++shown;
      out_ +=
          fmt::format("  {} {} {}  {}\n", pad_left(format_time_ns(each.a_ns), kTimeWidth),
                      pad_left(format_time_ns(each.b_ns), kTimeWidth),
                      pad_left(change_text(each.b_ns - each.a_ns), kTimeWidth + 1), label_of(each));
    }
    if (differ == 0) out_ += "  none differ\n";
    if (differ > shown)
      out_ += fmt::format("  {} {} {}  {} more rows (--top)\n", pad_left("", kTimeWidth),
                          pad_left("", kTimeWidth), pad_left(change_text(rest), kTimeWidth + 1),
                          differ - shown);
  }
  void heads(std::string_view what) {
    out_ += fmt::format("  {} {} {}  {}\n", pad_left("A", kTimeWidth), pad_left("B", kTimeWidth),
                        pad_left("B - A", kTimeWidth + 1), what);
  }

  void write_gaps() {
    if (c_.gaps.empty()) return;
    begin(fmt::format("Where the GPU was idle, of a {}", unit()));
    heads("cause, and what ran next");
    write_rows(c_.gaps, [&](const explain::GapDiff& each) {
      std::string text = explain::idle_cause_phrase(each.cause);
      if (!each.before.empty()) text += ", before " + kernel_text(each.before);
      const bool in_b = each.b_ns > each.a_ns;
      const SliceId next = in_b ? each.b_next : each.a_next;
      if (next == kNone<SliceId>) return text;
      const Trace& trace = *(in_b ? c_.b : c_.a)->trace;
      return fmt::format("{} (longest in {} ends at {})", text, in_b ? "B" : "A",
                         format_time_ns(trace.start_ns(next) - trace.window_start_ns()));
    });
    end();
  }

  void write_moves() {
    if (c_.moves.empty()) return;
    begin(fmt::format("Communication and copies of a {}, hidden or not", unit()));
    heads("calls A -> B, name");
    write_rows(c_.moves, [&](const explain::MoveDiff& each) {
      return fmt::format("{} -> {}  {}", calls_text(each.a_count, c_.a_costs.step_count),
                         calls_text(each.b_count, c_.b_costs.step_count), kernel_text(each.name));
    });
    end();
  }

  static const char* class_text(analysis::CpuClass cpu) {
    switch (cpu) {
      case analysis::CpuClass::kOperator:
        return "operators themselves";
      case analysis::CpuClass::kCall:
        return "CUDA calls";
      case analysis::CpuClass::kWait:
        return "CUDA calls that may wait for the GPU";
      case analysis::CpuClass::kRange:
        return "ranges: code between events, Python";
      case analysis::CpuClass::kPython:
        return "Python frames";
    }
    return "";
  }

  void write_cpu_calls() {
    struct Row {
      std::int64_t a_ns, b_ns;
      std::string name;
    };
    std::vector<Row> rows;
    for (const explain::CpuDiff& each : c_.cpu) {
      if (each.a_count == 0 || each.b_count == 0) continue;
      const Row row{
          mean_ns(each.a_ns * c_.a_costs.step_count, each.a_count),
          mean_ns(each.b_ns * c_.b_costs.step_count, each.b_count),
          plain_name(each.name) + (each.cpu == analysis::CpuClass::kWait ? " (wait)" : "")};
      if (row.a_ns != row.b_ns) rows.push_back(row);
    }
    sort_rows(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
      return std::llabs(x.b_ns - x.a_ns) > std::llabs(y.b_ns - y.a_ns);
    });
    begin("CPU time of a call, without its children");
    heads("name");
    if (rows.empty()) out_ += "  none differ\n";
    for (std::size_t i = 0; i < rows.size() && i < options_.top; ++i)
      out_ += fmt::format("  {} {} {}  {}\n", pad_left(format_time_ns(rows[i].a_ns), kTimeWidth),
                          pad_left(format_time_ns(rows[i].b_ns), kTimeWidth),
                          pad_left(change_text(rows[i].b_ns - rows[i].a_ns), kTimeWidth + 1),
                          rows[i].name);
    if (rows.size() > options_.top)
      out_ += fmt::format("  {} more rows (--top)\n", rows.size() - options_.top);
    end();
  }

  void write_cpu() {
    if (c_.cpu.empty()) return;
    if (!c_.can_compare_steps) return write_cpu_calls();
    begin(fmt::format("CPU time of a {}, all threads, each event without its children", unit()));
    row("", "A", "B", "B - A");
    for (std::size_t i = 0; i < analysis::kCpuClassCount; ++i)
      level(class_text(static_cast<analysis::CpuClass>(i)), c_.a_cpu_ns[i], c_.b_cpu_ns[i]);
    out_ += '\n';
    heads("calls A -> B, name");
    write_rows(c_.cpu, [&](const explain::CpuDiff& each) {
      return fmt::format("{} -> {}  {}{}", calls_text(each.a_count, c_.a_costs.step_count),
                         calls_text(each.b_count, c_.b_costs.step_count), plain_name(each.name),
                         each.cpu == analysis::CpuClass::kWait ? " (wait)" : "");
    });
    end();
  }

  const Comparison& c_;
  const DiffOptions& options_;
  std::string out_;
};

}  // namespace

std::string diff_text(const Comparison& comparison, const DiffOptions& options) {
  return DiffText(comparison, options).run();
}

}  // namespace lanescope::report
