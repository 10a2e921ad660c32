// The verdict, its findings with their evidence, and the tour.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/explain/do_first.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rule.h"
#include "lanescope/explain/time_takers.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/nothing_to_do.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/screen_wall.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/tour.h"
#include "lanescope/server/answers.h"
#include "lanescope/view/crop_trace.h"

namespace lanescope::server {
namespace {

using explain::Explanation;
using explain::Facts;
using explain::Finding;
using report::JsonWriter;

constexpr std::size_t kMostEvidence = 200;

class ExplainAnswer {
 public:
  explicit ExplainAnswer(const TraceState& state)
      : state_(state), explanation_(state.explanation()), facts_(state.facts()), json_("view") {}

  std::string run() {
    json_.text("headline", report::rounded_sentence(explanation_.headline));
    headline_pieces();
    json_.text("subject", report::wall_subject(facts_))
        .text("basis", report::steady_steps_text(facts_));
    json_.integer("wall_ns", facts_.per_step(facts_.steady_wall_ns()));
    json_.begin_array("wall");
    for (const report::WallLine& line : report::wall_lines(facts_)) {
      json_.begin_object()
          .text("label", line.label)
          .integer("ns", line.per_step_ns)
          .real("share", line.ratio);
      if (*line.shows) json_.text("shows", line.shows);
      if (!line.causes.empty()) {
        json_.begin_array("causes");
        for (const analysis::IdleCause cause : line.causes)
          json_.text({}, report::idle_cause_key(cause));
        json_.end_array();
      }
      json_.end_object();
    }
    json_.end_array();
    first_ = explain::do_first(facts_, explanation_);
    const std::vector<explain::Suggestion>& first = first_;
    json_.begin_array("do_first");
    for (const explain::Suggestion& each : first) suggestion(each);
    json_.end_array();
    json_.text("together", report::together_text(explanation_, first))
        .text("base", report::base_text(facts_, explanation_));
    if (first.empty() && facts_.steady_wall_ns() > 0) nothing();
    json_.begin_array("findings");
    for (const Finding& each : explanation_.findings) finding(each);
    json_.end_array();
    json_.begin_array("damage");
    for (const std::string& line : report::damage_lines(explanation_)) json_.text({}, line);
    json_.end_array().text("rest", report::rest_text(explanation_, first));
    questions();
    json_.text("full_command", state_.command());
    return json_.take();
  }

 private:
  // What the page shows for each number of the headline.
  void headline_pieces() {
    json_.begin_array("headline_pieces");
    for (const report::SentencePiece& piece : report::rounded_pieces(explanation_.headline)) {
      json_.begin_object().text("text", piece.text);
      if (*piece.shows) json_.text("shows", piece.shows);
      if (piece.slice != kNone<SliceId>) write_place(json_, state_, piece.slice);
      json_.end_object();
    }
    json_.end_array();
  }

  void evidence(const Finding& finding) {
    json_.begin_array("evidence");
    std::size_t count = 0;
    for (const explain::Evidence& each : finding.evidence) {
      if (count++ == kMostEvidence) break;
      json_.begin_object().text("label", report::rounded_sentence(each.text));
      if (each.slice != kNone<SliceId>) write_place(json_, state_, each.slice);
      json_.end_object();
    }
    json_.end_array();
  }

  void suggestion(const explain::Suggestion& each) {
    const Finding& finding = explanation_.findings[each.finding];
    json_.begin_object().text("rule", finding.rule);
    json_.text("verdict", report::rounded_sentence(each.verdict));
    json_.text("action", report::rounded_sentence(each.action));
    json_.text("place", report::rounded_sentence(each.place));
    json_.integer("gain_ns", each.gain_ns).text("gain_text", report::gain_text(each));
    json_.real("gain_ratio", each.gain_ratio);
    evidence(finding);
    json_.end_object();
  }

  // What acting on a finding gains, as "do first" says it, so that the page has one number for it. Of
  // findings that "do first" leaves out it is worked out alike. Empty: no cost.
  std::string gain_text_of(const Finding& each) const {
    for (const explain::Suggestion& suggestion : first_)
      if (&explanation_.findings[suggestion.finding] == &each) return report::gain_text(suggestion);
    if (each.kind != explain::FindingKind::kCost && each.kind != explain::FindingKind::kBound)
      return {};
    explain::Suggestion gain;
    gain.gain_ns = std::min(each.at_stake_ns, facts_.per_step(facts_.steady_wall_ns()));
    gain.gain_ratio = std::clamp(each.at_stake_ratio, 0.0, 1.0);
    if (const auto& model = explanation_.gains) {
      gain.gain_ns = gain.at_most_ns = model->at_most_ns(each);
      gain.is_predicted = each.gain.state == explain::Gain::State::kPredicted;
      if (gain.is_predicted) gain.gain_ns = each.gain.gain_ns;
      const std::int64_t step_ns = model->base().step_ns;
      gain.gain_ratio =
          step_ns <= 0 ? 0 : static_cast<double>(gain.gain_ns) / static_cast<double>(step_ns);
      if (gain.is_predicted && gain.gain_ns <= 0)
        return fmt::format("none predicted, at most {}", report::rounded_time(gain.at_most_ns));
    }
    return report::gain_text(gain);
  }

  void nothing() {
    const report::NothingToDo nothing = report::nothing_to_do(facts_, explanation_);
    json_.begin_object("nothing").text("remark", nothing.remark).text("next", nothing.next);
    json_.begin_array("takers");
    for (const explain::TimeTaker& taker : nothing.takers) {
      json_.begin_object().text("text", report::rounded_sentence(taker.what));
      json_.integer("ns", taker.per_step_ns).real("ratio", taker.ratio);
      if (taker.example != kNone<SliceId>) json_.integer("slice", raw(taker.example));
      json_.end_object();
    }
    json_.end_array().end_object();
  }

  void finding(const Finding& each) {
    json_.begin_object().text("rule", each.rule).text("kind", finding_kind_name(each.kind));
    const explain::Rule* rule = explain::find_rule(each.rule);
    json_.text("question", rule ? rule->question : "");
    json_.text("title", report::finding_group_title(each));
    json_.text("text", report::sentence_text(each.verdict));
    json_.text("brief",
               report::rounded_sentence(each.brief.pattern.empty() ? each.verdict : each.brief));
    json_.text("action", each.action.pattern.empty()
                             ? (each.try_next.empty() ? std::string() : each.try_next.front())
                             : report::rounded_sentence(each.action));
    json_.text("gain_text", gain_text_of(each));
    json_.integer("at_stake_ns", each.at_stake_ns).real("at_stake_ratio", each.at_stake_ratio);
    json_.text("confidence", confidence_name(each.confidence));
    json_.begin_array("arithmetic");
    for (const explain::Sentence& line : each.arithmetic)
      json_.text({}, report::sentence_text(line));
    json_.end_array().begin_array("try_next");
    for (const std::string& advice : each.try_next) json_.text({}, advice);
    json_.end_array();
    evidence(each);
    json_.end_object();
  }

  void questions() {
    json_.begin_array("questions");
    for (const explain::RuleRun& run : explanation_.runs) {
      json_.begin_object().text("id", run.id).text("question", run.question);
      using State = explain::RuleRun::State;
      json_.text("state", run.state == State::kFound     ? "found"
                          : run.state == State::kQuiet   ? "quiet"
                          : run.state == State::kCovered ? "covered"
                                                         : "not_checked");
      if (run.state == State::kNotChecked) json_.text("missing", run.missing);
      if (run.state == State::kCovered) json_.text("covered_by", run.covered_by);
      json_.end_object();
    }
    json_.end_array();
  }

  const TraceState& state_;
  const Explanation& explanation_;  // before the facts, which it then gathers giving way
  const Facts& facts_;
  std::vector<explain::Suggestion> first_;
  JsonWriter json_;
};

}  // namespace

std::string explain_answer(const TraceState& state) { return ExplainAnswer(state).run(); }

std::string tour_answer(const TraceState& state) {
  const std::int64_t origin = state.lanes().origin_ns();
  JsonWriter json("view");
  json.begin_array("stops");
  for (const report::TourStop& stop : report::make_tour(state.lanes(), state.explanation())) {
    json.begin_object().text("title", stop.title).text("text", stop.text).text("word", stop.word);
    if (stop.slice != kNone<SliceId>) json.integer("slice", raw(stop.slice));
    json.integer("t0", stop.start_ns - origin)
        .integer("t1", stop.end_ns - origin)
        .begin_array("lanes");
    for (const std::uint32_t lane : stop.lanes) json.integer({}, lane);
    json.end_array();
    if (stop.arrow)
      json.begin_object("arrow")
          .integer("from", raw(stop.arrow->first))
          .integer("to", raw(stop.arrow->second))
          .end_object();
    if (!stop.rule.empty()) json.text("rule", stop.rule);
    json.end_object();
  }
  return json.end_array().take();
}

Answer perfetto_answer(const TraceState& state, const Request& request) {
  const auto span = span_of(state, request);
  if (!span) return span.error();
  if (span->is_whole) return format::kineto_json_text(state.trace());
  const auto part =
      view::crop_trace(state.trace(), span->start_ns, span->end_ns, view::Edges::kWhole);
  if (!part) return part.error();
  return format::kineto_json_text(part->trace);
}

}  // namespace lanescope::server
