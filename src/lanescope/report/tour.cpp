#include "lanescope/report/tour.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/analysis/thinning.h"
#include "lanescope/explain/do_first.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/event_name.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/screen_wall.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/tour_other_device.h"

namespace lanescope::report {
namespace {

using analysis::Window;
using view::Lane;
using view::LaneKind;

constexpr std::size_t kMostFindingStops = 5, kTourNameWidth = 70;

class TourMaker {
 public:
  TourMaker(const view::Lanes& lanes, const explain::Explanation& explanation)
      : lanes_(lanes), facts_(lanes.facts()), trace_(*facts_.trace), explanation_(explanation) {
    window_ = usual_window();
  }

  std::vector<TourStop> run() {
    if (lanes_.lanes().empty()) return {};
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
    add_findings();
    return std::move(stops_);
  }

 private:
  // The steady step of median length; without marked steps, the recording.
  Window usual_window() const {
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

  std::optional<std::uint32_t> main_lane(LaneKind kind) const {
    for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i)
      if (lanes_.lanes()[i].kind == kind && lanes_.lanes()[i].is_main) return i;
    return std::nullopt;
  }

  std::string name_of(SliceId slice) const {
    const std::string_view name = trace_.name(slice);
    return shorten(one_line(is_device_work(trace_.kind(slice)) ? names::readable_kernel_name(name)
                                                               : std::string(name.substr(0, 500))),
                   kTourNameWidth);
  }

  TourStop& add(std::string title, std::string text, const Window& window, std::string word = {}) {
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

  TourStop& add_slice(std::string title, std::string text, SliceId slice, std::string word = {}) {
    // Enough around it to see where it lies.
    const std::int64_t around = std::max<std::int64_t>(trace_.dur_ns(slice), 1000);
    TourStop& stop = add(std::move(title), std::move(text),
                         {trace_.start_ns(slice) - around / 2, trace_.end_ns(slice) + around / 2},
                         std::move(word));
    stop.slice = slice;
    if (const auto place = lanes_.place(slice)) stop.lanes.push_back(place->lane);
    return stop;
  }

  void add_verdict() {
    std::string text = rounded_sentence(explanation_.headline);
    const std::vector<WallLine> wall = wall_lines(facts_);
    if (!wall.empty()) {
      text += fmt::format(" Time runs from left to right. What you see is one {} of {}:",
                          facts_.steps.marked ? "step" : "recording",
                          rounded_time(facts_.per_step(facts_.steady_wall_ns())));
      for (std::size_t i = 0; i < wall.size(); ++i)
        text += fmt::format("{} {} {}", i == 0 ? "" : ",", rounded_percent(wall[i].ratio),
                            wall[i].label);
      text += ".";
    }
    add("The whole in one sentence", std::move(text), window_);
  }

  void add_steps() {
    const auto lane = main_lane(LaneKind::kSteps);
    if (!lane) return;
    const bool found = facts_.steps.found.has_value();
    TourStop& stop = add(
        found ? "Iterations of your loop" : "Steps of your loop",
        found ? fmt::format("Each block is one iteration. The program did not mark steps, so "
                            "lanescope found {} iterations by what repeats. "
                            "Calling profiler.step() once an iteration marks them exactly.",
                            facts_.steps.steps.size())
              : fmt::format("Each block is one step: the time between two calls of profiler.step() "
                            "in your loop. torch.profiler writes it "
                            "as ProfilerStep and a number. The trace has {} of them{}",
                            facts_.steps.steps.size(),
                            facts_.steps.start_up_count > 0
                                ? "; the first also pays for start-up, so the numbers leave it out."
                                : "."),
        window_, found ? "" : "ProfilerStep");
    stop.lanes.push_back(*lane);
  }

  void add_thread() {
    const auto lane = main_lane(LaneKind::kCpu);
    if (!lane) return;
    TourStop& stop = add(
        "The CPU: your program",
        std::string(facts_.main_device ? "This lane is the thread of your program that launches "
                                         "most of the GPU's work."
                    : facts_.steps.marked && !facts_.steps.found
                        ? "This lane is the thread of your program that its steps run on."
                        : "This lane is the busiest thread of your program.") +
            " A bar is something that ran there; a bar below another was called by it. Where there "
            "is no bar, Python or other code ran that the profiler did not record." +
            (facts_.main_device
                 ? " The CPU does not compute on the GPU itself: it asks the GPU to, and goes on."
                 : ""),
        window_);
    stop.lanes.push_back(*lane);
  }

  // Devices that are no GPU write their streams as threads, and mostly without their launches.
  void add_other_device() {
    if (!facts_.vendor) return;
    const SliceId longest = longest_of_other_device(*facts_.trace, *facts_.vendor, window_);
    if (longest == kNone<SliceId>) return;
    add_slice("The device",
              fmt::format("The {0} does the work that the CPU gives it. This lane is one of its "
                          "streams, a queue: its work runs one after the other, and work of "
                          "different streams may run at the same time. The longest computation "
                          "of this {1} is {2}, for {3}. Bars with stripes are waits.",
                          facts_.vendor->name, facts_.steps.marked ? "step" : "recording",
                          name_of(longest), rounded_time(trace_.dur_ns(longest))),
              longest, "stream");
  }

  void add_wait_of_other_device() {
    if (!facts_.vendor) return;
    const Window longest = longest_wait_of_other_device(*facts_.trace, window_);
    if (longest.length_ns() <= 0) return;
    TourStop& stop = add(
        "Where the device waits",
        fmt::format("Here no stream of the {} computes, communicates or copies for {}. The reason "
                    "is unknown: lanescope does not tie this device's work to calls of the CPU. "
                    "What the CPU did meanwhile is in the lanes above.",
                    facts_.vendor->name, rounded_time(longest.length_ns())),
        longest, "idle");
    for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i)
      if (lanes_.lanes()[i].kind == LaneKind::kDevice && lanes_.lanes()[i].is_main)
        stop.lanes.push_back(i);
  }

  // The longest GPU work of the usual step whose operator and launch are known.
  void choose_kernel() {
    if (!facts_.main_device) return;
    for (const auto& work : facts_.device().timeline.work) {
      const SliceId launch = facts_.links.launch_of[raw(work.slice)];
      if (launch == kNone<SliceId> || trace_.start_ns(launch) < window_.start_ns ||
          work.end_ns > window_.end_ns || trace_.kind(work.slice) != CategoryKind::kKernel)
        continue;
      const bool has_op = facts_.links.op_of[raw(work.slice)] != kNone<SliceId>;
      const bool had_op =
          kernel_ != kNone<SliceId> && facts_.links.op_of[raw(kernel_)] != kNone<SliceId>;
      if (kernel_ == kNone<SliceId> || (has_op && !had_op) ||
          (has_op == had_op && work.end_ns - work.start_ns > trace_.dur_ns(kernel_)))
        kernel_ = work.slice;
    }
  }

  // Some writers give a step the category of operators.
  bool is_operator(SliceId slice) const {
    return trace_.kind(slice) == CategoryKind::kCpuOp &&
           !trace_.name(slice).starts_with("ProfilerStep");
  }

  SliceId longest_operator() const {
    SliceId longest = kNone<SliceId>;
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      const SliceId slice{i};
      if (!is_operator(slice) || trace_.start_ns(slice) < window_.start_ns ||
          trace_.end_ns(slice) > window_.end_ns)
        continue;
      if (longest == kNone<SliceId> ||
          facts_.nesting.self_ns[i] > facts_.nesting.self_ns[raw(longest)])
        longest = slice;
    }
    return longest;
  }

  void add_operator(SliceId op) {
    if (op == kNone<SliceId> || trace_.kind(op) != CategoryKind::kCpuOp) return;
    operator_ = op;
    const explain::Sentence code =
        explain::user_code(facts_, op, explain::PlaceDetail::kNoOperators);
    std::string text =
        code.pattern.empty()
            ? fmt::format("Here your program calls {}.", name_of(op))
            : fmt::format("Here your program, {}, calls {}.", rounded_sentence(code), name_of(op));
    const names::EventName about = names::explain_event_name(trace_.name(op), trace_.kind(op));
    if (!about.what.empty()) text += fmt::format(" {}", one_line(about.what));
    if (trace_.name(op).starts_with("aten::"))
      text +=
          " Names that begin with aten:: are PyTorch's own operators: aten::mm is what torch.mm "
          "calls.";
    add_slice("An operator", std::move(text), op,
              trace_.name(op).starts_with("aten::") ? "aten::" : "");
  }

  void add_way_to_the_gpu() {
    const SliceId launch = facts_.links.launch_of[raw(kernel_)];
    add_operator(facts_.links.op_of[raw(kernel_)]);
    const std::size_t started = facts_.links.launched_by(launch).size();
    add_slice(
        "The launch",
        fmt::format(
            "{} hands {} to the GPU. It takes {} on the CPU and returns before the GPU has done "
            "anything. So a long "
            "operator on the CPU does not mean long work on the GPU, and the other way round.",
            name_of(launch),
            started > 1 ? fmt::format("{} pieces of work at once", format_count(started))
                        : "one piece of work, a kernel,",
            rounded_time(trace_.dur_ns(launch))),
        launch, name_of(launch));
    const std::int64_t delay = trace_.start_ns(kernel_) - trace_.end_ns(launch);
    const Track& stream = trace_.track(kernel_);
    TourStop& stop = add(
        "The kernel on the GPU",
        fmt::format("{} it runs on the GPU, for {}: {}. The lane is {}. A stream is a queue of the "
                    "GPU: its work runs one after the "
                    "other, and work of different streams may run at the same time. The arrow "
                    "leads from the launch to the kernel.",
                    delay >= 0 ? fmt::format("{} after that call returned,", rounded_time(delay))
                               : "While that call still runs,",
                    rounded_time(trace_.dur_ns(kernel_)), name_of(kernel_),
                    one_line(track_place(stream))),
        {std::min(trace_.start_ns(launch), trace_.start_ns(kernel_)),
         std::max(trace_.end_ns(launch), trace_.end_ns(kernel_))},
        "stream");
    stop.slice = kernel_;
    stop.arrow = {launch, kernel_};
    for (const SliceId each : {launch, kernel_})
      if (const auto place = lanes_.place(each)) stop.lanes.push_back(place->lane);
  }

  void add_self_and_total() {
    if (operator_ == kNone<SliceId>) return;
    // The outermost operator around it that has others inside.
    SliceId outer = operator_;
    for (SliceId up = facts_.nesting.parent[raw(operator_)]; up != kNone<SliceId>;
         up = facts_.nesting.parent[raw(up)])
      if (is_operator(up)) outer = up;
    const std::int64_t self = facts_.nesting.self_ns[raw(outer)], total = trace_.dur_ns(outer);
    if (self < 0 || self >= total) return;
    add_slice("Self and total",
              fmt::format("{} takes {} in total. {} of these are its own, its self time; the rest "
                          "is in the bars below it, which it "
                          "calls. Self times add up, totals do not: the time of a bar is in the "
                          "total of every bar above it.",
                          name_of(outer), rounded_time(total), rounded_time(self)),
              outer, "Self and total");
  }

  void add_gap() {
    if (!facts_.main_device) return;
    const auto device = static_cast<std::uint32_t>(*facts_.main_device);
    std::optional<std::uint32_t> longest;
    for (std::uint32_t i = 0; i < lanes_.idle_items().size(); ++i) {
      if (lanes_.idle_items()[i].device != device) continue;
      const auto& part = lanes_.idle_part(i);
      if (part.start_ns < window_.start_ns || part.end_ns > window_.end_ns) continue;
      if (!longest || part.end_ns - part.start_ns >
                          lanes_.idle_part(*longest).end_ns - lanes_.idle_part(*longest).start_ns)
        longest = i;
    }
    if (!longest) return;
    const auto& part = lanes_.idle_part(*longest);
    const auto& gap = lanes_.gap(*longest);
    std::string text = fmt::format(
        "Here GPU {} has nothing to run for {}. Reason: {}.", facts_.device().timeline.device,
        rounded_time(part.end_ns - part.start_ns), idle_cause_text(part.cause));
    if (part.thread != kNone<TrackId>) {
      const auto shares =
          explain::host_shares(facts_, {{part.thread, part.start_ns, part.end_ns, part.blame}});
      if (!shares.empty())
        text += fmt::format(" What the CPU did most of that time: {}.",
                            rounded_sentence(describe(shares.front())));
    }
    text +=
        " Such gaps are drawn as a lane of their own, because empty space is what a slow program "
        "mostly consists of.";
    TourStop& stop =
        add("Where the GPU waits", std::move(text), {part.start_ns, part.end_ns}, "idle");
    stop.slice = gap.next_work;
    if (const auto lane = lanes_.lane_of_idle(facts_.devices[device].timeline.device))
      stop.lanes.push_back(*lane);
    if (gap.next_work != kNone<SliceId>)
      if (const auto place = lanes_.place(gap.next_work)) stop.lanes.push_back(place->lane);
  }

  void add_queue() {
    for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i) {
      const Lane& lane = lanes_.lanes()[i];
      if (lane.kind != LaneKind::kCounter || !lane.is_main ||
          lane.source != view::CounterSource::kQueueDepth)
        continue;
      TourStop& stop = add(
          "How far the CPU is ahead",
          fmt::format("This line counts work that was launched and has not begun; at most {} here. "
                      "While it is above 0, "
                      "the GPU has its next work ready. Where it is 0, the GPU waits for the CPU.",
                      format_count(static_cast<std::uint64_t>(lanes_.counter(lane).largest()))),
          window_, "queue");
      stop.lanes.push_back(i);
      return;
    }
  }

  void add_profiler() {
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      const SliceId slice{i};
      if (trace_.kind(slice) != CategoryKind::kOverhead ||
          !trace_.name(slice).starts_with("Activity Buffer Request"))
        continue;
      add_slice("The profiler itself",
                fmt::format("Activity Buffer Request is not your program: the profiler fetches "
                            "memory for its own notes, {} here. Without "
                            "the profiler it does not happen.",
                            rounded_time(trace_.dur_ns(slice))),
                slice, "Activity Buffer Request");
      return;
    }
  }

  void add_memory() {
    for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i) {
      const Lane& lane = lanes_.lanes()[i];
      if (lane.kind != LaneKind::kCounter || lane.source != view::CounterSource::kAllocated ||
          !lane.device)
        continue;
      TourStop& stop = add(
          "Memory",
          fmt::format(
              "This line is the memory that PyTorch has given to tensors on GPU {}: at most {}.",
              *lane.device, format_size(static_cast<std::int64_t>(lanes_.counter(lane).largest()))),
          {lanes_.origin_ns(), lanes_.end_ns()}, "memory");
      if (const auto end = analysis::find_memory_end(trace_))
        stop.text += fmt::format(" It was recorded for the first {}; then the budget ended it.",
                                 rounded_time(*end - lanes_.origin_ns()));
      stop.lanes.push_back(i);
      return;
    }
  }

  // What to do first, each on its evidence; then it is the reader's turn.
  void add_findings() {
    std::size_t count = 0;
    for (const explain::Suggestion& each : explain::do_first(facts_, explanation_)) {
      if (count == kMostFindingStops) break;
      const explain::Finding& finding = explanation_.findings[each.finding];
      std::string text = rounded_sentence(each.verdict);
      if (!text.ends_with('.')) text += '.';
      text += fmt::format(" What to do: {}.", action_text(each));
      if (text.ends_with("..")) text.pop_back();
      if (const std::string gain = gain_text(each); !gain.empty())
        text += fmt::format(" It would save {} a step.", gain);
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

  const view::Lanes& lanes_;
  const explain::Facts& facts_;
  const Trace& trace_;
  const explain::Explanation& explanation_;
  Window window_;
  SliceId kernel_ = kNone<SliceId>, operator_ = kNone<SliceId>;
  std::vector<TourStop> stops_;
};

}  // namespace

std::vector<TourStop> make_tour(const view::Lanes& lanes, const explain::Explanation& explanation) {
  return TourMaker(lanes, explanation).run();
}

}  // namespace lanescope::report
