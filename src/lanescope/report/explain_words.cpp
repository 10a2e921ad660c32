#include "lanescope/report/explain_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/explain/left_out_steps.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/markdown_escape.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {

using analysis::HostPart;
using analysis::IdleCause;
using explain::Explanation;
using explain::Facts;
using explain::Finding;
using explain::FindingKind;
using explain::Value;

namespace {
constexpr std::size_t kNameWidth = 70;
}

std::string value_text(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNs:
      return format_time_ns(value.integer);
    case Value::Kind::kCount:
      return format_count(static_cast<std::uint64_t>(value.integer));
    case Value::Kind::kRatio:
      return fmt::format("{:.1f}%", value.real * 100);
    case Value::Kind::kFactor:
      return fmt::format("{:.1f}", value.real);
    case Value::Kind::kBytes:
      return format_size(value.integer);
    case Value::Kind::kText:
      return value.text;
    case Value::Kind::kName:
      return shorten(one_line(value.text), kNameWidth);
    case Value::Kind::kKernel:
      return shorten(one_line(names::readable_kernel_name(value.text)), kNameWidth);
  }
  return {};
}

void visit_sentence(const explain::Sentence& sentence,
                    const std::function<void(std::string_view)>& on_text,
                    const std::function<void(const Value&)>& on_value) {
  std::string_view rest = sentence.pattern;
  for (const Value& value : sentence.values) {
    const std::size_t hole = rest.find("{}");
    if (hole == std::string_view::npos) break;
    on_text(rest.substr(0, hole));
    on_value(value);
    rest.remove_prefix(hole + 2);
  }
  on_text(rest);
}

std::string fill_sentence(const explain::Sentence& sentence, bool markdown,
                          std::string (*text_of)(const Value& value)) {
  std::string out;
  visit_sentence(
      sentence, [&](std::string_view text) { out += text; },
      [&](const Value& value) {
        const bool is_word = value.kind == Value::Kind::kName ||
                             value.kind == Value::Kind::kKernel || value.kind == Value::Kind::kText;
        out += markdown && is_word ? markdown_escaped(text_of(value)) : text_of(value);
      });
  return out;
}

const char* idle_cause_text(IdleCause cause) {
  switch (cause) {
    case IdleCause::kHostLate:
      return "CPU had not launched yet";
    case IdleCause::kAfterSync:
      return "queue empty after a CPU wait";
    case IdleCause::kLaunchLatency:
      return "launch on its way";
    case IdleCause::kBetweenQueued:
      return "between queued work";
    case IdleCause::kWaiting:
      return "launched, waiting (unexplained)";
    case IdleCause::kProfiler:
      return "profiler's own work";
    case IdleCause::kBeforeFirstWork:
      return "before the first launch";
    case IdleCause::kAfterLastWork:
      return "nothing launched any more";
    case IdleCause::kUnknown:
      return "not in the trace (unknown)";
  }
  return "";
}

const char* host_part_text(HostPart part) {
  switch (part) {
    case HostPart::kCompile:
      return "torch.compile, compiling";
    case HostPart::kLoader:
      return "input data";
    case HostPart::kBackward:
      return "backward";
    case HostPart::kOptimizer:
      return "optimizer";
    case HostPart::kOperator:
      return "other operators";
    case HostPart::kOutside:
      return "outside of operators";
  }
  return "";
}

std::string wall_title_text(const Facts& facts) {
  const char* what = facts.steps.marked ? "a step" : "the recording";
  if (facts.main_device)
    return fmt::format("Wall of {} on device {}", what, facts.device().timeline.device);
  return facts.cpu ? fmt::format("Wall of {} on the CPU, {}", what,
                                 track_place(facts.trace->track(facts.cpu->thread)))
                   : fmt::format("Wall of {}", what);
}

std::string finding_group_title(const Finding& finding) {
  switch (finding.kind) {
    case FindingKind::kBound:
      return "What bounds it";
    case FindingKind::kEnds:
      return "What ends the program sooner or later";
    case FindingKind::kCost:
      return "What may save time (upper bounds; they overlap)";
    case FindingKind::kWhere:
      return "Where the time goes";
    case FindingKind::kMemory:
      return "Where the memory goes";
    case FindingKind::kOnce:
      return finding.leads ? "Happened once, and took longer than all other steps together"
                           : "Happened once";
    case FindingKind::kNormal:
      return "Looks alarming, but is normal";
    case FindingKind::kTrust:
      return "About the recording";
  }
  return {};
}

std::string sample_noun_text(const Finding& finding) {
  if (finding.sample_count == 1) return finding.sample_noun;
  if (finding.sample_noun == "copy") return "copies";
  if (finding.sample_noun == "entry") return "entries";
  if (finding.sample_noun == "query") return "queries";
  if (finding.sample_noun == "kind of row") return "kinds of rows";
  return finding.sample_noun + "s";
}

namespace {

std::string which_steps_text(const Facts& facts) {
  const auto& steps = facts.steps.steps;
  if (facts.steps.device_behind)
    return "the recording from its first GPU work to its last; the GPU works later than the marked "
           "steps, and the trace has no launch calls that say which step its work belongs to";
  if (!facts.steps.marked && !facts.main_device)
    return "the recording from its first event on the CPU to its last; no steps are marked "
           "(prof.step())";
  if (!facts.steps.marked)
    return "the recording from its first launch to its last GPU work; no steps are marked "
           "(prof.step())";
  const std::size_t used = facts.selection.steady.size();
  std::string range = fmt::format("step {}", *steps[facts.selection.steady.front()].number);
  if (used > 1)
    range = fmt::format("the mean of {} steps, {} to {}", used,
                        *steps[facts.selection.steady.front()].number,
                        *steps[facts.selection.steady.back()].number);
  if (facts.selection.long_step && *facts.selection.long_step > facts.selection.steady.front() &&
      *facts.selection.long_step < facts.selection.steady.back())
    range += fmt::format(" without {}", *steps[*facts.selection.long_step].number);
  if (facts.selection.one_chosen || used == steps.size()) return range;
  if (facts.steps.start_up_count > 0)
    range += fmt::format("; step {} is left out as start-up", *steps.front().number);
  if (facts.selection.long_step)
    range += fmt::format(", step {} because it took longer than these together",
                         *steps[*facts.selection.long_step].number);
  if (facts.selection.turn > 0)
    range += fmt::format(", whole groups of {} long and short steps", facts.selection.turn);
  if (facts.selection.cut().empty()) return range;
  const bool one = facts.selection.cut().size() == 1;
  range += one ? fmt::format(", step {}", *steps[facts.selection.cut().front()].number)
               : fmt::format(", steps {} {} {}", *steps[facts.selection.cut().front()].number,
                             facts.selection.cut().size() == 2 ? "and" : "to",
                             *steps[facts.selection.cut().back()].number);
  if (facts.main_device && facts.kernel_launches.gpu_stops_early())
    range += one ? " because GPU work of it is missing" : " because GPU work of them is missing";
  else
    range += one ? " because it holds far less work" : " because they hold far less work";
  return range;
}

}  // namespace

std::string steady_steps_text(const Facts& facts) {
  std::string text = which_steps_text(facts);
  if (facts.steps.others_mark) {
    const Process& process = facts.trace->process(
        facts.trace->track(facts.steps.steps[facts.selection.steady.front()].slice).process);
    text += process.pid.is_text ? "; of one process of several that mark steps"
                                : fmt::format("; of process {}, other processes mark steps too",
                                              process.pid.number);
  }
  if (const auto note = explain::found_iterations_note(facts); !note.pattern.empty())
    text += ". " + sentence_text(note).substr(0, sentence_text(note).size() - 1);
  if (facts.selection.lacks_gpu_work) text += "; GPU work of it is missing in the trace";
  return text;
}

std::string step_count_text(const Facts& facts) {
  if (!facts.steps.marked) return "the recording";
  const std::size_t steps = facts.selection.steady.size();
  return steps == 1 ? "1 step" : fmt::format("{} steady steps", format_count(steps));
}

std::string long_step_line(const Facts& facts) {
  const explain::Sentence note = explain::long_step_note(facts);
  return note.pattern.empty() ? std::string() : sentence_text(note) + "\n";
}

bool is_headline(const Explanation& explanation, const Finding& finding) {
  return finding.kind == FindingKind::kBound &&
         sentence_text(explanation.headline).starts_with(sentence_text(finding.verdict));
}

bool declares(const explain::Finding& finding, bool explain::Rule::*property) {
  const explain::Rule* rule = explain::find_rule(finding.rule);
  return rule && rule->*property;
}

std::vector<explain::RuleRun> runs_found_first(const Explanation& explanation) {
  std::vector<explain::RuleRun> runs = explanation.runs;
  std::stable_partition(runs.begin(), runs.end(), [](const explain::RuleRun& run) {
    return run.state == explain::RuleRun::State::kFound;
  });
  return runs;
}

std::optional<std::size_t> finding_number(const Explanation& explanation,
                                          const explain::RuleRun& run) {
  const auto& findings = explanation.findings;
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& each) { return each.rule == run.id; });
  if (found == findings.end()) return std::nullopt;
  return static_cast<std::size_t>(found - findings.begin()) + 1;
}

std::string rule_answer_text(const Explanation& explanation, const explain::RuleRun& run) {
  if (run.state == explain::RuleRun::State::kNotChecked) return "not checked: needs " + run.missing;
  const auto number = finding_number(explanation, run);
  return number ? fmt::format("see {} below", *number) : "no issue, or below the threshold";
}

std::string slow_steps_text(const Facts& facts, const std::vector<std::size_t>& slow) {
  std::string text;
  for (std::size_t i = 0; i < slow.size() && i < 5; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ",
                        facts.steps.steps[facts.selection.steady[slow[i]]].number.value_or(0));
  return slow.size() > 5 ? fmt::format("{} and {} more", text, slow.size() - 5) : text;
}

std::string track_place(const Track& track) {
  if (track.stream) return fmt::format("stream {}", *track.stream);
  return track.tid.is_text ? "a named thread" : fmt::format("thread {}", track.tid.number);
}

}  // namespace lanescope::report
