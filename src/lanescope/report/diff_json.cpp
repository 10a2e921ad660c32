#include <algorithm>

#include "lanescope/names/kernel_name.h"
#include "lanescope/report/diff_brief.h"
#include "lanescope/report/diff_text.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/json_writer.h"

namespace lanescope::report {
namespace {

using analysis::KernelDiff;
using analysis::WallLevels;
using explain::CompareScope;
using explain::Comparison;
using explain::StepSpread;

class DiffJson {
 public:
  DiffJson(const Comparison& comparison, const DiffOptions& options)
      : c_(comparison), options_(options), json_("diff") {}

  std::string run() {
    json_.text("headline", sentence_text(c_.headline));
    json_.text("scope", compare_scope_name(c_.scope));
    json_.text("verdict", compare_verdict_name(c_.verdict));
    brief();
    json_.begin_array("remarks");
    for (const auto& each : c_.remarks) json_.text({}, sentence_text(each));
    json_.end_array();
    side("a", options_.a_label, c_.a_steps, *c_.a, c_.a_costs, c_.diff.a, c_.a_cpu_ns);
    side("b", options_.b_label, c_.b_steps, *c_.b, c_.b_costs, c_.diff.b, c_.b_cpu_ns);
    if (has_walls()) effects();
    if (c_.scope != CompareScope::kCpu) kernels();
    gaps();
    moves();
    cpu();
    return json_.take();
  }

 private:
  bool has_walls() const {
    return c_.scope == CompareScope::kSteps || c_.scope == CompareScope::kRecordings;
  }

  void brief() {
    const DiffBrief brief = diff_brief(c_);
    json_.begin_object("brief").text("verdict", brief.verdict).text("caution", brief.caution);
    json_.begin_array("parts");
    for (const DiffBrief::Part& each : brief.parts)
      json_.begin_object().integer("delta_ns", each.delta_ns).text("text", each.text).end_object();
    json_.end_array().end_object();
  }

  void idle(const std::array<std::int64_t, analysis::kIdleCauseCount>& causes) {
    json_.begin_object("idle_by_cause_ns");
    for (std::size_t i = 0; i < causes.size(); ++i)
      json_.integer(idle_cause_key(static_cast<analysis::IdleCause>(i)), causes[i]);
    json_.end_object();
  }

  void side(const char* key, const std::string& label, const StepSpread& steps,
            const explain::Facts& facts, const analysis::StepCosts& costs, const WallLevels& levels,
            const std::array<std::int64_t, analysis::kCpuClassCount>& cpu_ns) {
    json_.begin_object(key).text("trace", label);
    json_.boolean("steps_are_marked", facts.steps.marked).integer("step_count", costs.step_count);
    if (facts.main_device) json_.integer("device", facts.device().timeline.device);
    json_.integer("shortest_ns", steps.shortest_ns).integer("median_ns", steps.median_ns);
    json_.integer("longest_ns", steps.longest_ns).integer("spread_ns", steps.spread_ns);
    json_.begin_array("slow_steps");
    for (const std::int64_t each : steps.slow) json_.integer({}, each);
    json_.end_array();
    if (has_walls()) {
      json_.integer("wall_ns", levels.wall_ns).integer("kernels_ns", levels.kernels_ns);
      json_.integer("overlap_ns", levels.overlap_ns);
      json_.integer("exposed_communication_ns", levels.exposed_communication_ns);
      json_.integer("exposed_copy_ns", levels.exposed_copy_ns);
      idle(levels.idle_ns);
    }
    json_.begin_object("cpu_ns");
    for (std::size_t i = 0; i < cpu_ns.size(); ++i)
      json_.integer(cpu_class_key(static_cast<analysis::CpuClass>(i)), cpu_ns[i]);
    json_.end_object().end_object();
  }

  void effects() {
    const auto& each = c_.diff.effects;
    json_.begin_object("effects_ns");
    json_.integer("calls", each.calls_ns).integer("per_call", each.per_call_ns);
    json_.integer("changed", each.changed_ns).integer("fused", each.fused_ns);
    json_.integer("new", each.new_ns).integer("gone", each.gone_ns);
    json_.integer("overlap", each.overlap_ns);
    json_.integer("exposed_communication", each.exposed_communication_ns);
    json_.integer("exposed_copy", each.exposed_copy_ns);
    idle(each.idle_ns);
    json_.integer("sum", each.sum_ns()).end_object();
  }

  void groups(const char* key, const std::vector<std::size_t>& list,
              const analysis::StepCosts& costs) {
    json_.begin_array(key);
    for (const std::size_t index : list) {
      const auto& each = costs.work[index];
      const names::KernelName kernel = names::parse_kernel_name(each.name);
      json_.begin_object().text("name", each.name);
      if (kernel.known()) json_.text("readable_name", kernel.text);
      json_.text("op", each.op).text("dims", each.dims);
      json_.integer("count", each.count).integer("total_ns", each.time_ns).end_object();
    }
    json_.end_array();
  }

  template <typename Row, typename Write>
  void rows(const char* key, const std::vector<Row>& list, Write write) {
    json_.begin_array(key);
    for (std::size_t i = 0; i < std::min(list.size(), options_.top); ++i) {
      json_.begin_object();
      write(list[i]);
      json_.end_object();
    }
    json_.end_array();
  }

  void kernels() {
    rows("kernels", c_.diff.kernels, [&](const KernelDiff& each) {
      json_.text("match", match_kind_name(each.kind)).boolean("same_shapes", each.same_shapes);
      groups("a", each.a, c_.a_costs);
      groups("b", each.b, c_.b_costs);
      json_.integer("a_count", each.a_count).integer("b_count", each.b_count);
      json_.integer("a_total_ns", each.a_total_ns).integer("b_total_ns", each.b_total_ns);
      if (!has_walls()) return;
      json_.integer("a_ns", each.a_ns).integer("b_ns", each.b_ns);
      json_.integer("calls_ns", each.count_ns).integer("per_call_ns", each.per_call_ns);
      json_.integer("delta_ns", each.delta_ns());
    });
  }

  void gaps() {
    rows("gaps", c_.gaps, [&](const explain::GapDiff& each) {
      json_.text("cause", idle_cause_key(each.cause)).text("before", each.before);
      json_.integer("a_ns", each.a_ns).integer("b_ns", each.b_ns);
      event("a_longest_ends_at", each.a_next, *c_.a->trace);
      event("b_longest_ends_at", each.b_next, *c_.b->trace);
    });
  }

  void event(const char* key, SliceId id, const Trace& trace) {
    if (id == kNone<SliceId>) return;
    json_.begin_object(key).text("name", trace.name(id)).integer("start_ns", trace.start_ns(id));
    json_.integer("event_index", trace.slices().event_index[raw(id)]).end_object();
  }

  void moves() {
    rows("moves", c_.moves, [&](const explain::MoveDiff& each) {
      json_.text("kind",
                 each.work == analysis::WorkClass::kCommunication ? "communication" : "copy");
      json_.text("name", each.name);
      json_.integer("a_count", each.a_count).integer("b_count", each.b_count);
      json_.integer("a_ns", each.a_ns).integer("b_ns", each.b_ns);
    });
  }

  void cpu() {
    rows("cpu", c_.cpu, [&](const explain::CpuDiff& each) {
      json_.text("kind", cpu_class_key(each.cpu)).text("name", each.name);
      json_.integer("a_count", each.a_count).integer("b_count", each.b_count);
      json_.integer("a_ns", each.a_ns).integer("b_ns", each.b_ns);
    });
  }

  const Comparison& c_;
  const DiffOptions& options_;
  JsonWriter json_;
};

}  // namespace

const char* cpu_class_key(analysis::CpuClass cpu) {
  switch (cpu) {
    case analysis::CpuClass::kOperator:
      return "operators";
    case analysis::CpuClass::kCall:
      return "calls";
    case analysis::CpuClass::kWait:
      return "waits";
    case analysis::CpuClass::kRange:
      return "ranges";
    case analysis::CpuClass::kPython:
      return "python";
  }
  return "";
}

std::string diff_json(const Comparison& comparison, const DiffOptions& options) {
  return DiffJson(comparison, options).run();
}

}  // namespace lanescope::report
