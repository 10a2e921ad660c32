#include "lanescope/report/whatif_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/base/sort_rows.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"
#include "lanescope/simulate/unexplained.h"

namespace lanescope::report {
namespace {

using simulate::CriticalPath;
using simulate::Identity;
using simulate::Outcome;
using simulate::PathKind;
using simulate::Simulation;

std::string steps_text(const explain::Facts& facts) {
  const std::size_t count = facts.selection.steady.size();
  if (!facts.steps.marked) return "the whole recording, which marks no steps";
  return count == 1 ? "one steady step" : fmt::format("the median of {} steady steps", count);
}

std::string signed_percent(double ratio) { return fmt::format("{:+.1f}%", ratio * 100); }

std::int64_t per_step(const CriticalPath& path, std::int64_t time) {
  return path.steps == 0 ? 0 : time / static_cast<std::int64_t>(path.steps);
}

// Below this, nobody asks what is missing. The word for it is "well".
constexpr double kWellExplained = 0.02;

// How far a prediction can be trusted, from what the graph does not explain.
std::string sure_text(const Identity& identity) {
  const double slack = std::abs(identity.slack_ratio());
  const char* word = slack < kWellExplained ? "well" : slack < 0.1 ? "mostly" : "poorly";
  return fmt::format(
      "Replay of the recording itself: {} ({}). Without the delays that the trace does not "
      "explain: {} ({}). So the trace explains this step {}. A prediction carries at least that "
      "error; what a change assumes comes on top",
      format_time_ns(identity.replayed_ns), signed_percent(identity.error_ratio()),
      format_time_ns(identity.without_slack_ns), signed_percent(identity.slack_ratio()), word);
}

std::string readable(const std::string& name) {
  return shorten(one_line(names::readable_kernel_name(name)), 60);
}

std::string what_text(simulate::NotExplained kind) {
  constexpr const char* kTexts[] = {
      "collectives began later than their launches and their stream explain. What they waited "
      "for, such as another stream, is not in the trace",
      "work of CUDA graphs, or the work after it, began later than the launch explains. Perhaps "
      "other nodes ran that were not recorded",
      "GPU work whose launch is not in the trace, such as work from before the recording",
      "GPU work began later than its launch and its stream explain. Perhaps it waited for another "
      "stream, or for work that was not recorded",
      "calls returned later than the GPU work that they waited for ended",
      "a thread did something that no event shows, or waited"};
  return kTexts[static_cast<std::size_t>(kind)];
}

// Why the graph does not explain the step, where it does not do so well: the largest two kinds of time without explanation.
std::string why_text(const Simulation& simulation) {
  if (std::abs(simulation.identity.slack_ratio()) < kWellExplained) return "";
  const simulate::StepGraph& graph = *simulation.graph;
  const CriticalPath& path = simulation.recorded.path;
  std::string out;
  const auto add = [&](std::int64_t time_ns, const std::string& text) {
    if (time_ns * 100 >= path.total_ns)
      out += wrapped("  - ",
                     fmt::format("{} a step: {}.", format_time_ns(per_step(path, time_ns)), text));
  };
  std::size_t count = 0;
  for (const simulate::UnexplainedTime& each :
       simulate::unexplained_times(graph, simulate::replay(graph, graph.edges))) {
    if (count++ == 2) break;
    std::string text = what_text(each.kind);
    if (each.longest != kNone<SliceId>)
      text +=
          fmt::format(" (the longest: {})", readable(std::string(graph.trace->name(each.longest))));
    add(each.time_ns, text);
  }
  const std::int64_t communication_ns = path.of(PathKind::kCommunication);
  if (communication_ns * 10 >= path.total_ns)
    add(communication_ns,
        "collectives run on the path. They may wait there for ranks that come later, which one "
        "rank's trace cannot tell from transfer: `lanescope ranks` compares all of them");
  return out.empty() ? out : "  What is not explained:\n" + out;
}

std::string shares_text(const CriticalPath& path) {
  std::vector<std::pair<std::int64_t, PathKind>> parts;
  for (std::size_t i = 0; i < simulate::kPathKindCount; ++i)
    if (path.time_ns[i] > 0) parts.emplace_back(path.time_ns[i], static_cast<PathKind>(i));
  sort_rows(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (std::size_t i = 0; i < parts.size() && i < 3; ++i)
    out += fmt::format(
        "{}{} {}", i == 0 ? "" : ", ", path_kind_text(parts[i].second),
        format_percent(static_cast<double>(parts[i].first), static_cast<double>(path.total_ns)));
  return out;
}

std::string outcome_line(const char* label, const Outcome& outcome) {
  return fmt::format("  {:<10}{:>11}   GPU busy {:>10}   bound by {} ({})\n", label,
                     format_time_ns(outcome.step_ns), format_time_ns(outcome.busy_ns),
                     limit_name(outcome.limit), shares_text(outcome.path));
}

std::string unprofiled_note(const Simulation& simulation) {
  return wrapped("  - ",
                 fmt::format("Without the profiler: {} +- {}, estimated from the number of events. "
                             "Half of the programs that were also timed came within 15 %.",
                             format_time_ns(simulation.unprofiled.outcome.step_ns),
                             format_time_ns(simulation.unprofiled.error_ns())));
}

// The gain, or why there is none to tell.
std::string gain_line(const Simulation& simulation, const simulate::Prediction& prediction) {
  if (prediction.is_unsure())
    return wrapped("  ", fmt::format("The gain is unsure: between {} and {}, depending on what "
                                     "recording cost. Time a step without a profiler, then give "
                                     "--change 'no-profiler US' the cost an event that fits it.",
                                     format_time_ns(prediction.low_gain_ns),
                                     format_time_ns(prediction.high_gain_ns))) +
           "\n";
  if (!simulation.explains_step())
    return wrapped("  ", "The trace explains too little of its own step to predict a gain.") + "\n";
  const std::int64_t gain = prediction.gain_ns();
  return fmt::format(
      "  gain      {:>11}   {} of the step\n\n", format_time_ns(gain),
      format_percent(static_cast<double>(gain), static_cast<double>(prediction.before.step_ns)));
}

void outcome_json(JsonWriter& json, std::string_view key, const Outcome& outcome) {
  json.begin_object(key);
  json.integer("step_ns", outcome.step_ns);
  json.integer("busy_ns", outcome.busy_ns);
  json.text("limit", limit_name(outcome.limit));
  json.begin_object("critical_path");
  json.integer("total_ns", outcome.path.total_ns);
  json.integer("steps_count", outcome.path.steps);
  for (std::size_t i = 0; i < simulate::kPathKindCount; ++i)
    json.integer(fmt::format("{}_ns", path_kind_name(static_cast<PathKind>(i))),
                 outcome.path.time_ns[i]);
  json.begin_array("owners");
  for (std::size_t i = 0; i < outcome.path.owners.size() && i < 10; ++i) {
    const simulate::PathOwner& owner = outcome.path.owners[i];
    json.begin_object();
    json.text("name", owner.name);
    json.text("kind", path_kind_name(owner.kind));
    json.integer("time_ns", owner.time_ns);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_object();
}

void identity_json(JsonWriter& json, const Simulation& simulation) {
  const Identity& identity = simulation.identity;
  json.begin_object("identity");
  json.integer("recorded_ns", identity.recorded_ns);
  json.integer("replayed_ns", identity.replayed_ns);
  json.real("error_ratio", identity.error_ratio());
  json.integer("recorded_busy_ns", identity.recorded_busy_ns);
  json.integer("replayed_busy_ns", identity.replayed_busy_ns);
  json.integer("without_slack_ns", identity.without_slack_ns);
  json.real("slack_ratio", identity.slack_ratio());
  json.integer("work_without_launch_count", simulation.graph->work_without_launch_count);
  json.integer("inferred_wait_count",
               std::count_if(simulation.graph->waits.begin(), simulation.graph->waits.end(),
                             [](const simulate::HostWait& wait) { return wait.inferred; }));
  const simulate::StepGraph& graph = *simulation.graph;
  json.begin_array("not_explained");
  for (const simulate::UnexplainedTime& each :
       simulate::unexplained_times(graph, simulate::replay(graph, graph.edges))) {
    json.begin_object();
    json.text("kind", not_explained_name(each.kind));
    json.integer("time_ns", each.time_ns);
    if (each.longest != kNone<SliceId>) json.text("longest", graph.trace->name(each.longest));
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

std::string whatif_text(const explain::Facts& facts, const Simulation& simulation,
                        const simulate::Prediction& prediction,
                        std::span<const simulate::Change> changes) {
  std::string out = fmt::format("A step ({}):\n\n", steps_text(facts));
  const bool is_unprofiled = prediction.before.step_ns != simulation.recorded.step_ns;
  out += outcome_line("recorded", simulation.recorded);
  if (is_unprofiled) out += outcome_line("unprofiled", simulation.unprofiled.outcome);
  const bool only_profiler =
      std::all_of(changes.begin(), changes.end(), [](const simulate::Change& change) {
        return change.kind == simulate::ChangeKind::kNoProfiler;
      });
  if (only_profiler && is_unprofiled) return out + "\n" + unprofiled_note(simulation);
  out += outcome_line("predicted", prediction.after);
  out += fmt::format("\n{}", gain_line(simulation, prediction));
  for (const std::string& note : prediction.notes) out += wrapped("  - ", note + ".");
  if (is_unprofiled) out += unprofiled_note(simulation);
  return out + "\n" + wrapped("  ", sure_text(simulation.identity) + ".") + why_text(simulation);
}

std::string whatif_table_text(const explain::Facts& facts, const Simulation& simulation,
                              std::span<const simulate::Candidate> candidates) {
  std::string out = fmt::format("A step ({}):\n\n", steps_text(facts));
  out += outcome_line("recorded", simulation.recorded);
  out += outcome_line("unprofiled", simulation.unprofiled.outcome);
  if (candidates.empty())
    return out + "\n  None of the usual changes alone would surely gain 1% of it.\n\n" +
           unprofiled_note(simulation) + wrapped("  ", sure_text(simulation.identity) + ".") +
           why_text(simulation);
  out += fmt::format("\n  {:>11}{:>11}{:>9}  {:<14}  change, each alone\n", "predicted", "gain",
                     "of step", "then bound by");
  for (const simulate::Candidate& each : candidates) {
    const std::string text =
        each.change.kind == simulate::ChangeKind::kSpeed
            ? fmt::format("speed {} {}x", readable(each.change.name), each.change.factor)
        : each.prediction.assumed.empty()
            ? each.change.text
            : fmt::format("{} (assumed: {})", each.change.text, each.prediction.assumed);
    out += fmt::format("  {:>11}{:>11}{:>9}  {:<14}  {}\n",
                       format_time_ns(each.prediction.after.step_ns),
                       format_time_ns(each.prediction.gain_ns()),
                       format_percent(static_cast<double>(each.prediction.gain_ns()),
                                      static_cast<double>(each.prediction.before.step_ns)),
                       limit_name(each.prediction.after.limit), text);
  }
  return out + "\n" +
         wrapped("  ", "Gains do not add up: give several --change to see them together.") +
         unprofiled_note(simulation) + wrapped("  ", sure_text(simulation.identity) + ".") +
         why_text(simulation);
}

std::string critical_path_text(const explain::Facts& facts, const Simulation& simulation,
                               const CriticalPathReport& report) {
  const CriticalPath& path = simulation.recorded.path;
  std::string out = fmt::format("The critical path of {}: {} a step, mean\n\n",
                                facts.steps.marked ? "the steady steps" : "the recording",
                                format_time_ns(per_step(path, path.total_ns)));
  for (std::size_t i = 0; i < simulate::kPathKindCount; ++i)
    if (path.time_ns[i] > 0)
      out += fmt::format(
          "  {:>11}{:>9}  {}\n", format_time_ns(per_step(path, path.time_ns[i])),
          format_percent(static_cast<double>(path.time_ns[i]), static_cast<double>(path.total_ns)),
          path_kind_text(static_cast<PathKind>(i)));
  out += "\n  Largest owners:\n";
  for (std::size_t i = 0; i < path.owners.size() && i < 3; ++i)
    out += fmt::format("  {:>11}{:>9}  {}: {}\n",
                       format_time_ns(per_step(path, path.owners[i].time_ns)),
                       format_percent(static_cast<double>(path.owners[i].time_ns),
                                      static_cast<double>(path.total_ns)),
                       readable(path.owners[i].name), path_kind_text(path.owners[i].kind));
  return out + "\n" + chain_text(facts, report.chain) + slack_text(facts, report.slack) +
         wrapped("  ", sure_text(simulation.identity) + ".") + why_text(simulation);
}

std::string whatif_json(const explain::Facts& facts, const Simulation& simulation,
                        const simulate::Prediction* prediction,
                        std::span<const simulate::Change> changes,
                        std::span<const simulate::Candidate> candidates,
                        const CriticalPathReport* path) {
  JsonWriter json("whatif");
  json.boolean("steps_are_marked", facts.steps.marked);
  json.integer("steady_step_count", facts.selection.steady.size());
  identity_json(json, simulation);
  outcome_json(json, "recorded", simulation.recorded);
  outcome_json(json, "unprofiled", simulation.unprofiled.outcome);
  json.integer("unprofiled_error_ns", simulation.unprofiled.error_ns());
  json.begin_array("changes");
  for (const simulate::Change& change : changes) json.text({}, change.text);
  json.end_array();
  if (prediction) {
    outcome_json(json, "predicted", prediction->after);
    json.integer("gain_ns", prediction->gain_ns());
    json.integer("low_gain_ns", prediction->low_gain_ns);
    json.integer("high_gain_ns", prediction->high_gain_ns);
    json.boolean("is_sure", !prediction->is_unsure() && simulation.explains_step());
    json.begin_array("notes");
    for (const std::string& note : prediction->notes) json.text({}, note);
    json.end_array();
  } else if (path) {
    critical_path_json(json, facts, *path);
  } else {
    json.begin_array("candidates");
    for (const simulate::Candidate& each : candidates) {
      json.begin_object();
      json.text("change", each.change.text);
      json.integer("step_ns", each.prediction.after.step_ns);
      json.integer("gain_ns", each.prediction.gain_ns());
      json.text("limit", limit_name(each.prediction.after.limit));
      if (!each.prediction.assumed.empty()) json.text("assumed", each.prediction.assumed);
      json.end_object();
    }
    json.end_array();
  }
  return json.take();
}

}  // namespace lanescope::report
