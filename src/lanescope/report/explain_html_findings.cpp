// The findings on the page, with pictures of their evidence.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "lanescope/report/explain_html.h"
#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/nothing_to_do.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/screen_wall.h"
#include "lanescope/report/svg_evidence.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using explain::Confidence;
using explain::Evidence;
using explain::Explanation;
using explain::Facts;
using explain::Finding;
using explain::FindingKind;
using explain::RuleRun;
using explain::Value;

constexpr std::size_t kMostLines = 12;  // of arithmetic, of evidence, of advice

class FindingsHtml {
 public:
  FindingsHtml(const Facts& facts, const Explanation& explanation)
      : facts_(facts), explanation_(explanation) {}

  std::string run() {
    out_ = "<section id=\"findings\">\n";
    const auto& findings = explanation_.findings;
    bool any_cost = false;
    for (std::size_t i = 0; i < findings.size(); ++i) {
      const Finding& finding = findings[i];
      any_cost = any_cost || finding.kind == FindingKind::kCost ||
                 (finding.kind == FindingKind::kBound && finding.at_stake_ns > 0);
      const std::string title = finding_group_title(finding);
      if (i == 0 || title != finding_group_title(findings[i - 1]))
        out_ += fmt::format("<h2>{}</h2>\n", title);
      write(i + 1, finding);
    }
    if (explanation_.is_answer) return finish();
    if (findings.empty()) out_ += "<h2>Findings</h2>\n<p>No rule found anything to say.</p>\n";
    if (!any_cost && facts_.main_device) out_ += "<p>No rule found time to save.</p>\n";
    return finish();
  }

 private:
  std::string finish() {
    if (left_out_ > 0)
      out_ += fmt::format(
          "<p class=\"remark\">{} of evidence {} no picture, to keep the page small.</p>\n",
          left_out_ == 1 ? "1 more piece" : fmt::format("{} more pieces", left_out_),
          left_out_ == 1 ? "has" : "have");
    return std::move(out_) + "</section>\n";
  }

  void write(std::size_t number, const Finding& finding) {
    const std::string verdict = sentence_html(finding.verdict);
    const bool is_headline = report::is_headline(explanation_, finding);
    out_ += fmt::format(
        "<article id=\"finding-{0}\" class=\"finding\">\n<h3><span class=\"number\">{0}.</span> "
        "{1}</h3>\n",
        number, is_headline ? "The headline in detail: " + verdict : verdict);
    write_facts(finding);
    if (!finding.try_next.empty()) {
      out_ += "<h4>What to try</h4>\n<ul>\n";
      for (std::size_t i = 0; i < std::min(finding.try_next.size(), kMostLines); ++i)
        out_ += fmt::format("<li>{}</li>\n", html_escaped(finding.try_next[i]));
      out_ += more(finding.try_next.size()) + "</ul>\n";
    }
    if (!finding.arithmetic.empty() || !finding.evidence.empty()) write_proof(number, finding);
    out_ += "</article>\n";
  }

  void write_proof(std::size_t number, const Finding& finding) {
    out_ += "<details class=\"proof\"><summary>The arithmetic and the evidence</summary>\n";
    pictures_here_ = 0;
    if (!finding.arithmetic.empty()) {
      out_ += "<h4>The arithmetic</h4>\n<ul class=\"sums\">\n";
      for (std::size_t i = 0; i < std::min(finding.arithmetic.size(), kMostLines); ++i)
        out_ += fmt::format("<li>{}</li>\n", sentence_html(finding.arithmetic[i]));
      out_ += more(finding.arithmetic.size()) + "</ul>\n";
    }
    if (!finding.evidence.empty()) {
      out_ += "<h4>The evidence</h4>\n<ul class=\"evidence-list\">\n";
      for (std::size_t i = 0; i < std::min(finding.evidence.size(), kMostLines); ++i)
        write(number, i + 1, finding.evidence[i]);
      out_ += more(finding.evidence.size()) + "</ul>\n";
    }
    out_ += "</details>\n";
  }

  static std::string more(std::size_t count) {
    return count <= kMostLines ? ""
                               : fmt::format("<li>{} more are left out</li>\n", count - kMostLines);
  }

  // Time at stake, confidence, rule.
  void write_facts(const Finding& finding) {
    const bool is_per_step =
        finding.kind == FindingKind::kBound || finding.kind == FindingKind::kCost;
    out_ += "<dl class=\"facts\">\n";
    if (finding.at_stake_ns > 0 && is_per_step) {
      const double ratio = std::clamp(finding.at_stake_ratio, 0.0, 1.0);
      out_ += fmt::format(
          "<div><dt>at stake, at most</dt><dd><b>{}</b>{}, {:.1f}% <svg class=\"meter\" "
          "width=\"100\" height=\"12\" viewBox=\"0 0 100 12\" aria-hidden=\"true\"><rect "
          "width=\"100\" height=\"12\" class=\"rail\"/><rect width=\"{:.1f}\" height=\"12\" "
          "class=\"stake\"/></svg></dd></div>\n",
          format_time_ns(finding.at_stake_ns), facts_.steps.marked ? " per step" : "",
          finding.at_stake_ratio * 100, ratio * 100);
    }
    const int dots = finding.confidence == Confidence::kHigh     ? 3
                     : finding.confidence == Confidence::kMedium ? 2
                                                                 : 1;
    std::string marks;
    for (int i = 0; i < 3; ++i) marks += i < dots ? "&#9679;" : "&#9675;";
    out_ += fmt::format(
        "<div><dt>confidence</dt><dd><span aria-hidden=\"true\">{}</span> {}, from {} "
        "{}</dd></div>\n<div><dt>rule</dt><dd><code>{}</code></dd></div>\n</dl>\n",
        marks, confidence_name(finding.confidence), format_count(finding.sample_count),
        html_escaped(sample_noun_text(finding)), html_escaped(finding.rule));
  }

  void write(std::size_t number, std::size_t place, const Evidence& evidence) {
    out_ += fmt::format("<li>{}", sentence_html(evidence.text));
    const SliceId slice = evidence.slice;
    if (slice != kNone<SliceId>) {
      const Trace& trace = *facts_.trace;
      out_ += fmt::format(" <span class=\"where\">at {}, {} long, {}</span>",
                          format_time_ns(trace.start_ns(slice) - trace.window_start_ns()),
                          format_time_ns(trace.dur_ns(slice)),
                          html_escaped(track_place(trace.track(slice))));
      if (const auto drawn = drawn_.find(raw(slice)); drawn != drawn_.end())
        out_ += fmt::format("; its picture is at finding {}", drawn->second);
      else
        draw(number, place, slice);
    }
    out_ += "</li>\n";
  }

  void draw(std::size_t number, std::size_t place, SliceId slice) {
    if (drawn_.size() >= kMostPictures || pictures_here_ >= kMostPicturesOfFinding) {
      ++left_out_;
      return;
    }
    ++pictures_here_;
    drawn_.emplace(raw(slice), number);
    const view::Scene scene = view::make_evidence_scene(facts_, slice);
    out_ += "\n<figure>\n";
    out_ += picture_html(fmt::format("e{}-{}", number, place),
                         [&](const std::string& id, PictureWidth width) {
                           return evidence_svg(id, facts_, scene, width);
                         });
    out_ += fmt::format("<figcaption>{}</figcaption></figure>",
                        html_escaped(evidence_caption(facts_, scene)));
  }

  const Facts& facts_;
  const Explanation& explanation_;
  std::string out_;
  std::unordered_map<std::uint32_t, std::size_t> drawn_;  // raw SliceId -> finding
  std::size_t pictures_here_ = 0, left_out_ = 0;
};

}  // namespace

std::string sentence_html(const explain::Sentence& sentence) {
  std::string out;
  std::string_view rest = sentence.pattern;
  for (const Value& value : sentence.values) {
    const std::size_t hole = rest.find("{}");
    if (hole == std::string_view::npos) break;
    out += html_escaped(rest.substr(0, hole));
    const std::string text = html_escaped(value_text(value));
    const bool is_name = value.kind == Value::Kind::kName || value.kind == Value::Kind::kKernel;
    const bool is_word = value.kind == Value::Kind::kText;
    out += is_word ? text : is_name ? "<code>" + text + "</code>" : "<b>" + text + "</b>";
    rest.remove_prefix(hole + 2);
  }
  return out += html_escaped(rest);
}

std::string do_first_section_html(const Facts& facts, const Explanation& explanation,
                                  bool has_links) {
  const auto first = explain::do_first(facts, explanation);
  if (first.empty()) {
    const auto lines = nothing_to_do_lines(facts, explanation);
    if (lines.empty()) return {};
    std::string html =
        fmt::format("<section id=\"first\">\n<h2>{}</h2>\n<ul>\n", nothing_title(facts));
    for (const std::string& line : lines) html += fmt::format("<li>{}</li>\n", html_escaped(line));
    return html + "</ul>\n</section>\n";
  }
  std::string html = fmt::format("<section id=\"first\">\n<h2>{}</h2>\n<ol>\n",
                                 do_first_title(facts, explanation, first));
  for (const explain::Suggestion& each : first) {
    const std::string verdict = html_escaped(rounded_sentence(each.verdict));
    html += "<li>" + (has_links
                          ? fmt::format("<a href=\"#finding-{}\">{}</a>", each.finding + 1, verdict)
                          : verdict);
    if (const std::string gain = gain_text(each); !gain.empty())
      html += fmt::format(" <b>{}</b>", html_escaped(gain));
    html += fmt::format("<br/>{}</li>\n", html_escaped(action_text(each)));
  }
  html += "</ol>\n";
  if (const std::string together = together_text(explanation, first); !together.empty())
    html += fmt::format("<p>{}</p>\n", html_escaped(together));
  if (const std::string base = base_text(facts, explanation); !base.empty())
    html += fmt::format("<p>{}</p>\n", html_escaped(base));
  return html + "</section>\n";
}

std::string findings_section_html(const Facts& facts, const Explanation& explanation) {
  return FindingsHtml(facts, explanation).run();
}

std::string asked_rules_section_html(const Explanation& explanation) {
  std::string html = "<section id=\"asked\">\n<h2>What you asked</h2>\n<ul>\n";
  for (const RuleRun& run : runs_found_first(explanation)) {
    std::string answer = html_escaped(rule_answer_text(explanation, run));
    if (const auto number = finding_number(explanation, run))
      answer = fmt::format("<a href=\"#finding-{}\">{}</a>", *number, answer);
    html += fmt::format("<li><code>{}</code> {} <b>{}</b></li>\n", html_escaped(run.id),
                        html_escaped(run.question), answer);
  }
  return html + "</ul>\n</section>\n";
}

std::string other_rules_section_html(const Explanation& explanation) {
  std::string quiet, missing, covered;
  for (const RuleRun& run : explanation.runs) {
    if (run.state == RuleRun::State::kCovered)
      covered += fmt::format("<li><code>{}</code>, by <code>{}</code></li>\n", html_escaped(run.id),
                             html_escaped(run.covered_by));
    if (run.state == RuleRun::State::kQuiet)
      quiet += fmt::format("<li><code>{}</code> {}</li>\n", html_escaped(run.id),
                           html_escaped(run.question));
    if (run.state == RuleRun::State::kNotChecked)
      missing += fmt::format("<li><code>{}</code> {} <b>Needs</b> {}</li>\n", html_escaped(run.id),
                             html_escaped(run.question), html_escaped(run.missing));
  }
  if (quiet.empty() && missing.empty() && covered.empty()) return {};
  std::string html = "<section id=\"asked\">\n<h2>What else was checked</h2>\n";
  if (!covered.empty()) html += "<h3>Part of another finding</h3>\n<ul>\n" + covered + "</ul>\n";
  if (!missing.empty()) html += "<h3>Not checked, and why</h3>\n<ul>\n" + missing + "</ul>\n";
  if (!quiet.empty())
    html += "<h3>No issue, or below the threshold</h3>\n<ul>\n" + quiet + "</ul>\n";
  return html + "</section>\n";
}

}  // namespace lanescope::report
