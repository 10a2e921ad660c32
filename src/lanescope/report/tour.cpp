// The order of the stops, the verdict at their beginning and the findings at their end.
#include "lanescope/report/tour.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/explain/do_first.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/screen_wall.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/tour_maker.h"

namespace lanescope::report {

using analysis::Window;
using view::LaneKind;

namespace {

constexpr std::size_t kMostFindingStops = 5, kTourNameWidth = 70;

// gain_text() as a sentence, with a space before it. Empty: nothing is known to be saved.
std::string saving_text(const explain::Suggestion& suggestion, bool has_steps) {
  const std::string gain = rounded_time(suggestion.gain_ns),
                    most = rounded_time(suggestion.at_most_ns);
  const std::string_view of = has_steps ? " a step" : " of the recording";
  if (suggestion.is_predicted)
    return fmt::format(" The prediction is that this saves {}{}{}.", gain, of,
                       gain == most ? "" : fmt::format(", and at most {}", most));
  return suggestion.gain_ns <= 0 ? "" : fmt::format(" This saves at most {}{}.", gain, of);
}

}  // namespace

std::vector<TourStop> TourMaker::run() {
  if (lanes_.lanes().empty()) return {};
  if (is_of_ranks())
    add_ranks();
  else
    add_verdict();
  add_steps();
  add_thread();
  choose_kernel();
  if (kernel_ != kNone<SliceId>)
    add_way_to_the_gpu();
  else
    add_operator(longest_operator());
  add_other_device();
  add_self_and_total();
  add_gap();
  add_wait_of_other_device();
  add_queue();
  add_profiler();
  add_memory();
  if (is_of_ranks())
    name_ranks();
  else
    add_findings();
  return std::move(stops_);
}

bool TourMaker::is_of_ranks() const {
  return std::any_of(lanes_.lanes().begin(), lanes_.lanes().end(),
                     [&](const view::Lane& lane) { return lanes_.rank_of(lane).has_value(); });
}

// The verdict and the findings are about one program, and here are several.
void TourMaker::add_ranks() {
  add("All ranks in one picture",
      "The lanes of all ranks lie below each other, on one clock: of each rank its busiest thread, "
      "the times when its GPU was idle, and its busiest streams. Time runs from left to right. The "
      "sentence at the top of the page says which rank delays the others. The next stops explain "
      "the lanes; each says which rank it shows.",
      window_);
}

void TourMaker::name_ranks() {
  for (TourStop& stop : stops_)
    if (!stop.lanes.empty())
      if (const auto rank = lanes_.rank_of(lanes_.lanes()[stop.lanes.front()]))
        stop.text += fmt::format(" This is rank {}.", *rank);
}

// The steady step of median length; without marked steps, the recording.
Window TourMaker::usual_window() const {
  std::vector<std::pair<std::int64_t, std::size_t>> lengths;
  if (facts_.steps.marked)
    for (const std::size_t step : facts_.selection.steady)
      lengths.emplace_back(facts_.step_window(step).length_ns(), step);
  if (lengths.empty()) return {lanes_.origin_ns(), lanes_.end_ns()};
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const auto& step = facts_.steps.steps[middle->second];
  const Window device = facts_.step_window(middle->second);
  return {std::min(step.cpu_start_ns, device.start_ns), std::max(step.cpu_end_ns, device.end_ns)};
}

std::optional<std::uint32_t> TourMaker::main_lane(LaneKind kind) const {
  for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i)
    if (lanes_.lanes()[i].kind == kind && lanes_.lanes()[i].is_main) return i;
  return std::nullopt;
}

std::string TourMaker::name_of(SliceId slice) const {
  const std::string_view name = trace_.name(slice);
  return shorten(one_line(is_device_work(trace_.kind(slice)) ? names::readable_kernel_name(name)
                                                             : std::string(name.substr(0, 500))),
                 kTourNameWidth);
}

TourStop& TourMaker::add(std::string title, std::string text, const Window& window,
                         std::string word) {
  TourStop stop;
  stop.title = std::move(title);
  stop.text = std::move(text);
  stop.word = std::move(word);
  const std::int64_t margin = std::max<std::int64_t>(window.length_ns() / 20, 100);
  stop.start_ns = window.start_ns - margin;
  stop.end_ns = window.end_ns + margin;
  stops_.push_back(std::move(stop));
  return stops_.back();
}

TourStop& TourMaker::add_slice(std::string title, std::string text, SliceId slice,
                               std::string word) {
  // Enough around it to see where it lies.
  const std::int64_t around = std::max<std::int64_t>(trace_.dur_ns(slice), 1000);
  TourStop& stop = add(std::move(title), std::move(text),
                       {trace_.start_ns(slice) - around / 2, trace_.end_ns(slice) + around / 2},
                       std::move(word));
  stop.slice = slice;
  if (const auto place = lanes_.place(slice)) stop.lanes.push_back(place->lane);
  return stop;
}

// Some writers give a step the category of operators.
bool TourMaker::is_operator(SliceId slice) const {
  return trace_.kind(slice) == CategoryKind::kCpuOp &&
         !trace_.name(slice).starts_with("ProfilerStep");
}

void TourMaker::add_verdict() {
  std::string text = rounded_sentence(explanation_.headline);
  const std::vector<WallLine> wall = wall_lines(facts_);
  if (!wall.empty()) {
    const std::string length = rounded_time(facts_.per_step(facts_.steady_wall_ns()));
    text += " Time runs from left to right.";
    if (!facts_.steps.marked)
      text += fmt::format(
          " The recording takes {}{}:", length,
          facts_.main_device ? ", from its first launch to the end of the GPU's last work" : "");
    else if (facts_.selection.steady.size() == 1)
      text += fmt::format(" What you see is one step. It takes {}:", length);
    else
      text += fmt::format(" What you see is one step. On average a step takes {}:", length);
    for (std::size_t i = 0; i < wall.size(); ++i)
      text +=
          fmt::format("{} {} {}", i == 0 ? "" : ",", rounded_percent(wall[i].ratio), wall[i].label);
    text += ".";
  }
  add("The whole in one sentence", std::move(text), window_);
}

// What to do first, each on its evidence; then it is the reader's turn.
void TourMaker::add_findings() {
  std::size_t count = 0;
  for (const explain::Suggestion& each : explain::do_first(facts_, explanation_)) {
    if (count == kMostFindingStops) break;
    const explain::Finding& finding = explanation_.findings[each.finding];
    std::string text = rounded_sentence(each.verdict);
    if (!text.ends_with('.')) text += '.';
    text += fmt::format(" What to do: {}.", action_text(each));
    if (text.ends_with("..")) text.pop_back();
    text += saving_text(each, facts_.steps.marked);
    const auto evidence =
        std::find_if(finding.evidence.begin(), finding.evidence.end(),
                     [](const explain::Evidence& e) { return e.slice != kNone<SliceId>; });
    const std::string title = fmt::format("Do this {}", count == 0 ? "first" : "next");
    TourStop& stop = evidence == finding.evidence.end()
                         ? add(title, std::move(text), window_)
                         : add_slice(title, std::move(text), evidence->slice);
    stop.rule = finding.rule;
    ++count;
  }
}

std::vector<TourStop> make_tour(const view::Lanes& lanes, const explain::Explanation& explanation) {
  return TourMaker(lanes, explanation).run();
}

}  // namespace lanescope::report
