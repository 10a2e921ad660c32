#include <fmt/format.h>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/owner_words.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/json_writer.h"

namespace lanescope::report {

using analysis::HostPart;
using analysis::IdleCause;
using explain::Explanation;
using explain::Facts;
using explain::Finding;
using explain::RuleRun;
using explain::Sentence;
using explain::Value;
using explain::WallTimes;

namespace {

const char* value_unit(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kNs:
      return "ns";
    case Value::Kind::kCount:
      return "count";
    case Value::Kind::kRatio:
      return "ratio";
    case Value::Kind::kFactor:
      return "factor";
    case Value::Kind::kBytes:
      return "bytes";
    case Value::Kind::kText:
      return "text";
    case Value::Kind::kName:
    case Value::Kind::kKernel:
      return "name";
  }
  return "";
}

class ExplanationJson {
 public:
  ExplanationJson(const Facts& facts, const Explanation& explanation)
      : facts_(facts), explanation_(explanation), json_("explain") {}

  std::string run() {
    sentence("headline", explanation_.headline);
    json_.boolean("steps_are_marked", facts_.steps.marked);
    json_.begin_array("steady_steps");
    for (const std::size_t index : facts_.selection.steady) step_number({}, index);
    json_.end_array();
    json_.begin_array("cut_steps");
    for (const std::size_t index : facts_.selection.cut()) step_number({}, index);
    json_.end_array();
    if (facts_.selection.long_step) step_number("long_step", *facts_.selection.long_step);
    devices();
    cpu();
    base();
    suggestions();
    json_.begin_array("findings");
    for (const Finding& each : explanation_.findings) finding(each);
    json_.end_array();
    owners();
    rules();
    return json_.take();
  }

 private:
  void step_number(std::string_view key, std::size_t index) {
    const auto& number = facts_.steps.steps[index].number;
    if (number)
      json_.integer(key, *number);
    else
      json_.null(key);
  }

  void sentence(std::string_view key, const Sentence& each) {
    json_.begin_object(key);
    json_.text("text", sentence_text(each));
    json_.begin_array("values");
    for (const Value& value : each.values) {
      json_.begin_object();
      json_.text("unit", value_unit(value.kind));
      if (value.kind == Value::Kind::kRatio || value.kind == Value::Kind::kFactor)
        json_.real("value", value.real);
      else if (value.kind == Value::Kind::kText || value.kind == Value::Kind::kName ||
               value.kind == Value::Kind::kKernel)
        json_.text("value", value.text);
      else
        json_.integer("value", value.integer);
      json_.end_object();
    }
    json_.end_array().end_object();
  }

  void wall(const WallTimes& times) {
    const auto& part = times.partition;
    json_.integer("wall_ns", part.wall_ns).integer("compute_ns", part.compute_ns);
    json_.integer("exposed_communication_ns", part.exposed_communication_ns);
    json_.integer("exposed_copy_ns", part.exposed_copy_ns).integer("idle_ns", part.idle_ns);
    json_.begin_object("idle_by_cause_ns");
    for (std::size_t i = 0; i < times.idle.size(); ++i)
      json_.integer(idle_cause_key(static_cast<IdleCause>(i)), times.idle[i]);
    json_.end_object();
  }

  void devices() {
    json_.begin_array("devices");
    for (std::size_t i = 0; i < facts_.devices.size(); ++i) {
      const auto& device = facts_.devices[i];
      json_.begin_object().integer("device", device.timeline.device);
      json_.boolean("rules_look_at_it", facts_.main_device == i);
      WallTimes sum;
      for (const std::size_t index : facts_.selection.steady) sum += device.walls[index];
      json_.begin_object("steady");
      wall(sum);
      json_.end_object();
      json_.begin_array("steps");
      for (std::size_t step = 0; step < device.walls.size(); ++step) {
        json_.begin_object();
        step_number("number", step);
        json_.integer("start_ns", device.windows[step].start_ns);
        wall(device.walls[step]);
        json_.end_object();
      }
      json_.end_array().end_object();
    }
    json_.end_array();
  }

  void host_wall(const analysis::HostWall& wall) {
    json_.integer("wall_ns", wall.wall_ns);
    for (std::size_t i = 0; i < analysis::kHostPartCount; ++i)
      json_.integer(host_part_key(static_cast<HostPart>(i)), wall.part_ns[i]);
  }

  void cpu() {
    if (!facts_.cpu) return;
    json_.begin_object("cpu");
    const Track& track = facts_.trace->track(facts_.cpu->thread);
    if (!track.tid.is_text) json_.integer("thread", track.tid.number);
    json_.begin_object("steady");
    host_wall(facts_.cpu_wall);
    json_.end_object();
    json_.begin_array("steps");
    for (std::size_t step = 0; step < facts_.cpu->walls.size(); ++step) {
      json_.begin_object();
      step_number("number", step);
      json_.integer("start_ns", facts_.step_window(step).start_ns);
      host_wall(facts_.cpu->walls[step]);
      json_.end_object();
    }
    json_.end_array().end_object();
  }

  void finding(const Finding& each) {
    json_.begin_object().text("rule", each.rule).text("kind", finding_kind_name(each.kind));
    sentence("verdict", each.verdict);
    json_.integer("at_stake_ns", each.at_stake_ns).real("at_stake_ratio", each.at_stake_ratio);
    if (each.gain.state == explain::Gain::State::kPredicted) {
      json_.integer("predicted_gain_ns", each.gain.gain_ns);
      json_.text("then_bound_by", each.gain.then_bound_by);
    }
    json_.text("confidence", confidence_name(each.confidence));
    json_.integer("sample_count", each.sample_count).text("sample_noun", each.sample_noun);
    json_.begin_array("arithmetic");
    for (const Sentence& line : each.arithmetic) sentence({}, line);
    json_.end_array().begin_array("evidence");
    for (const auto& evidence : each.evidence) {
      json_.begin_object();
      sentence("what", evidence.text);
      if (evidence.slice != kNone<SliceId>) slice(evidence.slice);
      json_.end_object();
    }
    json_.end_array().begin_array("try_next");
    for (const std::string& advice : each.try_next) json_.text({}, advice);
    json_.end_array().end_object();
  }

  void suggestions() {
    json_.begin_array("do_first");
    for (const explain::Suggestion& each : explain::do_first(facts_, explanation_)) {
      json_.begin_object().text("rule", explanation_.findings[each.finding].rule);
      sentence("verdict", each.verdict);
      sentence("action", each.action);
      if (!each.place.pattern.empty()) sentence("place", each.place);
      json_.integer("gain_ns", each.gain_ns).real("gain_ratio", each.gain_ratio);
      json_.boolean("gain_is_predicted", each.is_predicted);
      json_.integer("gain_error_ns", each.error_ns);
      json_.end_object();
    }
    json_.end_array();
  }

  void owners() {
    const explain::Owners* found = explain::step_owners(facts_);
    if (!found) return;
    json_.begin_array("owners");
    for (const explain::Owner& owner : found->owners) {
      json_.begin_object().text("kind", owner_kind_name(owner.kind)).text("name", owner.name);
      if (!owner.next_name.empty()) json_.text("next_name", owner.next_name);
      json_.begin_array("around");
      for (const std::string& outer : owner.around) json_.text({}, outer);
      json_.end_array();
      json_.integer("time_ns", facts_.per_step(owner.total_ns));
      json_.real("ratio", found->total_ns <= 0 ? 0
                                               : static_cast<double>(owner.total_ns) /
                                                     static_cast<double>(found->total_ns));
      json_.text("mechanism", mechanism_name(explain::mechanism_of(owner)));
      json_.begin_object("time_by_kind");
      for (std::size_t i = 0; i < simulate::kPathKindCount; ++i)
        if (owner.time_ns[i] != 0)
          json_.integer(fmt::format("{}_ns", path_kind_name(static_cast<simulate::PathKind>(i))),
                        facts_.per_step(owner.time_ns[i]));
      json_.end_object();
      json_.boolean("is_rest", owner.is_rest);
      if (owner.rounds > 0) json_.integer("rounds", owner.rounds).integer("loops", owner.loops);
      sentence("text", owner_sentence(facts_, owner));
      if (owner.example != kNone<SliceId>) slice(owner.example);
      json_.end_object();
    }
    json_.end_array();
  }

  // The step that gains are of.
  void base() {
    if (!explanation_.gains) return;
    const explain::StepBase& base = explanation_.gains->base();
    json_.begin_object("without_profiler").integer("step_ns", base.step_ns);
    json_.integer("error_ns", base.error_ns).integer("recorded_step_ns", base.recorded_ns);
    json_.end_object();
  }

  void slice(SliceId id) {
    const Trace& trace = *facts_.trace;
    json_.begin_object("slice").text("name", trace.name(id));
    json_.integer("start_ns", trace.start_ns(id)).integer("dur_ns", trace.dur_ns(id));
    json_.integer("event_index", trace.slices().event_index[raw(id)]).end_object();
  }

  void rules() {
    json_.begin_array("rules");
    for (const RuleRun& each : explanation_.runs) {
      json_.begin_object().text("id", each.id).text("question", each.question);
      json_.text("state", each.state == RuleRun::State::kFound     ? "found"
                          : each.state == RuleRun::State::kQuiet   ? "quiet"
                          : each.state == RuleRun::State::kCovered ? "covered"
                                                                   : "not_checked");
      if (each.state == RuleRun::State::kCovered) json_.text("covered_by", each.covered_by);
      if (each.state == RuleRun::State::kNotChecked) json_.text("missing", each.missing);
      json_.end_object();
    }
    json_.end_array();
  }

  const Facts& facts_;
  const Explanation& explanation_;
  JsonWriter json_;
};

}  // namespace

const char* host_part_key(HostPart part) {
  switch (part) {
    case HostPart::kCompile:
      return "compiling_ns";
    case HostPart::kLoader:
      return "input_data_ns";
    case HostPart::kBackward:
      return "backward_ns";
    case HostPart::kOptimizer:
      return "optimizer_ns";
    case HostPart::kOperator:
      return "other_operators_ns";
    case HostPart::kOutside:
      return "outside_of_operators_ns";
  }
  return "";
}

const char* idle_cause_key(IdleCause cause) {
  switch (cause) {
    case IdleCause::kHostLate:
      return "host_late";
    case IdleCause::kAfterSync:
      return "after_sync";
    case IdleCause::kLaunchLatency:
      return "launch_latency";
    case IdleCause::kBetweenQueued:
      return "between_queued";
    case IdleCause::kWaiting:
      return "waiting";
    case IdleCause::kProfiler:
      return "profiler";
    case IdleCause::kBeforeFirstWork:
      return "before_first_work";
    case IdleCause::kAfterLastWork:
      return "after_last_work";
    case IdleCause::kUnknown:
      return "unknown";
  }
  return "";
}

std::string explanation_json(const Facts& facts, const Explanation& explanation) {
  return ExplanationJson(facts, explanation).run();
}

std::string rule_list_json() {
  JsonWriter json("explain");
  json.begin_array("rules");
  for (const explain::Rule* rule : explain::all_rules())
    json.begin_object()
        .text("id", rule->id)
        .text("question", rule->question)
        .boolean("only_on_request", rule->only_on_request)
        .end_object();
  return json.end_array().take();
}

}  // namespace lanescope::report
