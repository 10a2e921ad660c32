#include "lanescope/report/svg_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/svg_time_axis.h"
#include "lanescope/report/svg_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using explain::Facts;
using Anchor = SvgWriter::Anchor;
using Look = view::SceneBar::Look;

// Where lanes begin and end. On a narrow screen, their titles are above them.
struct Layout {
  explicit Layout(PictureWidth picture)
      : is_narrow(picture == PictureWidth::kNarrow),
        width(picture_width(picture)),
        left(is_narrow ? 4 : 132),
        right(width - (is_narrow ? 4 : 8)),
        title_room(is_narrow ? 15 : 0) {}
  bool is_narrow;
  double width, left, right, title_room;
};
constexpr double kLanesTop = 18, kRowHeight = 20, kRowGap = 2, kLaneGap = 8, kArrowRoom = 16;
constexpr std::size_t kShortestName = 9, kNameInTooltip = 200, kWideName = 44, kNarrowName = 26,
                      kNameInCaption = 60, kPathNames = 8;

// Kernels by their readable names.
std::string short_name(const Trace& trace, SliceId slice, std::size_t width) {
  const std::string_view name = trace.name(slice);
  if (is_device_work(trace.kind(slice))) {
    const names::KernelName kernel = names::parse_kernel_name(name);
    if (kernel.known()) return shorten(one_line(kernel.text), width);
  }
  return shorten(one_line(name.substr(0, 4 * width + 4)), width);
}

const char* look_class(Look look) {
  switch (look) {
    case Look::kOperator:
      return "k-op";
    case Look::kAnnotation:
      return "k-range";
    case Look::kPython:
      return "k-python";
    case Look::kCall:
      return "k-call";
    case Look::kCompute:
      return "k-compute";
    case Look::kCommunication:
      return "k-comm";
    case Look::kCopy:
      return "k-copy";
    case Look::kOther:
      return "k-other";
  }
  return "";
}

std::string delay_text(const view::SceneArrow& arrow) {
  return arrow.work_start_ns < arrow.launch_end_ns
             ? fmt::format("starts {} after its call began, while the call goes on",
                           format_time_ns(arrow.work_start_ns - arrow.launch_start_ns))
             : fmt::format("starts {} after its launch call ended",
                           format_time_ns(arrow.work_start_ns - arrow.launch_end_ns));
}

class EvidenceSvg {
 public:
  EvidenceSvg(std::string_view id, const Facts& facts, const view::Scene& scene, PictureWidth width)
      : trace_(*facts.trace),
        scene_(scene),
        layout_(width),
        svg_(id, layout_.width, height_of(scene, layout_), "Timeline around the evidence",
             evidence_caption(facts, scene)) {}

  std::string run() {
    band();
    double y = kLanesTop;
    for (std::size_t i = 0; i < scene_.lanes.size(); ++i) {
      y += room_above(scene_, i) + layout_.title_room;
      tops_.push_back(y);
      lane(scene_.lanes[i], y);
      y += lane_height(scene_.lanes[i]);
    }
    if (scene_.device) {
      y += layout_.title_room;
      idle(y);
      y += kRowHeight + kLaneGap;
    }
    for (const view::SceneArrow& each : scene_.arrows) arrow(each);
    draw_time_axis(svg_, layout_.left, layout_.right, y, scene_.window.length_ns());
    return svg_.take();
  }

 private:
  static double lane_height(const view::SceneLane& lane) {
    return lane.row_count * (kRowHeight + kRowGap) - kRowGap + kLaneGap;
  }
  static double height_of(const view::Scene& scene, const Layout& layout) {
    double height = kLanesTop + kTimeAxisHeight + 2;
    for (std::size_t i = 0; i < scene.lanes.size(); ++i)
      height += lane_height(scene.lanes[i]) + room_above(scene, i) + layout.title_room;
    return height + (scene.device ? kRowHeight + kLaneGap + layout.title_room : 0);
  }
  // Between calls and streams the arrows need room.
  static double room_above(const view::Scene& scene, std::size_t lane) {
    const auto is_stream = [&](std::size_t i) {
      return scene.lanes[i].kind == view::SceneLane::Kind::kStream;
    };
    return lane > 0 && is_stream(lane) && !is_stream(lane - 1) ? kArrowRoom : 0;
  }

  double x_of(std::int64_t time_ns) const {
    const auto& window = scene_.window;
    const std::int64_t inside = std::clamp(time_ns, window.start_ns, window.end_ns);
    return layout_.left + (layout_.right - layout_.left) *
                              static_cast<double>(inside - window.start_ns) /
                              static_cast<double>(std::max<std::int64_t>(1, window.length_ns()));
  }

  void band() {
    const double from = x_of(trace_.start_ns(scene_.evidence));
    const double to = std::max(from + 2, x_of(trace_.end_ns(scene_.evidence)));
    const double bottom = height_of(scene_, layout_) - kTimeAxisHeight - 2;
    svg_.rect(from, kLanesTop - 4, to - from, bottom - kLanesTop + 4, "band");
    const double middle = (from + to) / 2;
    const std::string text = fmt::format(
        "evidence: {}, {}",
        short_name(trace_, scene_.evidence, layout_.is_narrow ? kNarrowName : kWideName),
        format_time_ns(trace_.dur_ns(scene_.evidence)));
    if (layout_.is_narrow) {
      const double width = SvgWriter::width_of(text);
      svg_.text(std::clamp(middle - width / 2, layout_.left,
                           std::max(layout_.left, layout_.right - width)),
                11, "small strong", text);
      return;
    }
    const Anchor anchor = middle < layout_.left + 200    ? Anchor::kStart
                          : middle > layout_.right - 200 ? Anchor::kEnd
                                                         : Anchor::kMiddle;
    const double x = anchor == Anchor::kStart ? from : anchor == Anchor::kEnd ? to : middle;
    svg_.text(x, 11, "small strong", text, anchor);
  }

  void title(std::string_view text, double y) {
    if (layout_.is_narrow)
      svg_.text(layout_.left, y - 4, "small", text);
    else
      svg_.text(layout_.left - 8, y + 14, "small", shorten(text, 20), Anchor::kEnd);
  }

  std::string lane_title(const view::SceneLane& lane) const {
    const Track& track = trace_.track(lane.track);
    const std::string place = track_place(track);
    switch (lane.kind) {
      case view::SceneLane::Kind::kOperators:
        return "CPU " + place;
      case view::SceneLane::Kind::kCalls:
        return "its GPU calls";
      case view::SceneLane::Kind::kStream:
        return "GPU " + place;
      case view::SceneLane::Kind::kOwnTrack:
        return trace_.kind(scene_.evidence) == CategoryKind::kPythonFunction ? "Python calls"
               : trace_.kind(scene_.evidence) == CategoryKind::kOverhead     ? "the profiler"
                                                                             : place;
    }
    return {};
  }

  void lane(const view::SceneLane& lane, double y) {
    title(lane_title(lane), y);
    for (std::uint32_t row = 0; row < lane.row_count; ++row)
      svg_.rect(layout_.left, y + row * (kRowHeight + kRowGap), layout_.right - layout_.left,
                kRowHeight, "rail");
    for (const view::SceneBar& each : lane.bars) bar(each, y + each.row * (kRowHeight + kRowGap));
    if (lane.bars.empty()) svg_.text(layout_.left + 6, y + 14, "small", "no event here");
  }

  void bar(const view::SceneBar& bar, double y) {
    const double from = x_of(bar.start_ns);
    const double width = std::max(x_of(bar.end_ns) - from, bar.is_evidence ? 3.0 : 1.0);
    const char* look = look_class(bar.look);
    if (bar.folded_count > 1) {
      // The height shows how busy the bar is, so that gaps stay visible.
      const double span = static_cast<double>(std::max<std::int64_t>(1, bar.end_ns - bar.start_ns));
      const double busy = std::clamp(static_cast<double>(bar.busy_ns) / span, 0.05, 1.0);
      svg_.rect(from, y + kRowHeight * (1 - busy), width, kRowHeight * busy, look,
                fmt::format("{} short ones, {} of {}, the longest: {}", bar.folded_count,
                            format_time_ns(bar.busy_ns), format_time_ns(bar.end_ns - bar.start_ns),
                            short_name(trace_, bar.slice, kNameInTooltip)));
      return;
    }
    svg_.rect(from, y, width, kRowHeight,
              fmt::format("{}{}", look, bar.is_evidence ? " evidence" : ""),
              fmt::format("{}: {}", short_name(trace_, bar.slice, kNameInTooltip),
                          format_time_ns(bar.end_ns - bar.start_ns)));
    const bool more_left = bar.start_ns < scene_.window.start_ns;
    const bool more_right = bar.end_ns > scene_.window.end_ns;
    if (more_left) svg_.mark_continues_left(from, y, kRowHeight);
    if (more_right) svg_.mark_continues_right(from + width, y, kRowHeight);
    const std::size_t characters =
        SvgWriter::characters_in(width - 8 - (more_left ? 8 : 0) - (more_right ? 8 : 0));
    if (characters < 2) return;
    // Too few characters of a name are useless.
    const std::string text = short_name(trace_, bar.slice, std::max(characters, kShortestName));
    if (text_length(text) <= characters)
      svg_.text(from + 4 + (more_left ? 8 : 0), y + 14, fmt::format("in-{}", look), text);
  }

  void idle(double y) {
    title("GPU idle", y);
    svg_.rect(layout_.left, y, layout_.right - layout_.left, kRowHeight, "rail");
    for (const view::SceneIdle& part : scene_.idle) {
      const double from = x_of(part.start_ns), width = x_of(part.end_ns) - from;
      const std::string time = format_time_ns(part.idle_ns);
      const std::string text =
          part.folded_count > 1 ? fmt::format("{} short gaps, {} in all", part.folded_count, time)
                                : fmt::format("{}: {}", time, idle_cause_text(part.cause));
      svg_.rect(from, y, std::max(width, 0.6), kRowHeight, width < 4 ? "k-wait thin" : "k-wait",
                text);
      const std::size_t characters = SvgWriter::characters_in(width - 6);
      const bool is_wide = characters >= text_length(text);
      if (!is_wide && characters < text_length(time)) continue;
      const std::string& shown = is_wide ? text : time;
      const double plate = static_cast<double>(text_length(shown)) * 6.1 + 4;
      svg_.rect(from + width / 2 - plate / 2, y + 3, plate, kRowHeight - 6, "plate");
      svg_.text(from + width / 2, y + 14, "small", shown, Anchor::kMiddle);
    }
  }

  // To the right of x if there is room, else to the left; if neither has room, it is only the
  // arrow's tooltip.
  void label_near(double x, double y, std::string_view text) {
    const double width = SvgWriter::width_of(text);
    const bool fits = x + width < layout_.right;
    if (!fits && layout_.is_narrow && x - 20 - width < 0) return;
    svg_.text(fits ? x : x - 20, y, "small", text, fits ? Anchor::kStart : Anchor::kEnd);
  }

  void arrow(const view::SceneArrow& arrow) {
    const double call_y =
        tops_[arrow.call_lane] + arrow.call_row * (kRowHeight + kRowGap) + kRowHeight;
    const double work_y = tops_[arrow.work_lane] + arrow.work_row * (kRowHeight + kRowGap);
    // A copy may begin before its call returns.
    const bool began_within = arrow.work_start_ns < arrow.launch_end_ns;
    const std::int64_t from_ns =
        std::max(std::min(arrow.launch_end_ns, arrow.work_start_ns), arrow.launch_start_ns);
    svg_.arrow(x_of(from_ns), call_y, x_of(arrow.work_start_ns), work_y, delay_text(arrow));
    const double y = call_y + kArrowRoom - 2;
    if (arrow.launch_end_ns < scene_.window.start_ns)
      label_near(x_of(arrow.work_start_ns) + 10, y, delay_text(arrow));
    else if (arrow.work_start_ns > scene_.window.end_ns && !began_within)
      svg_.text(layout_.right - 10, y, "small", delay_text(arrow), Anchor::kEnd);
  }

  const Trace& trace_;
  const view::Scene& scene_;
  const Layout layout_;
  SvgWriter svg_;
  std::vector<double> tops_;
};

}  // namespace

std::string evidence_svg(std::string_view id, const Facts& facts, const view::Scene& scene,
                         PictureWidth width) {
  return EvidenceSvg(id, facts, scene, width).run();
}

std::string evidence_caption(const Facts& facts, const view::Scene& scene) {
  const Trace& trace = *facts.trace;
  std::string text =
      fmt::format("{} of the recording, from {} on.", format_time_ns(scene.window.length_ns()),
                  format_time_ns(scene.window.start_ns - trace.window_start_ns()));
  if (scene.is_clip)
    text += fmt::format(" A part of the {} that the evidence lasts.",
                        format_time_ns(trace.dur_ns(scene.evidence)));
  std::span<const SliceId> path = scene.path;
  if (!path.empty() && path.back() == scene.evidence) path = path.first(path.size() - 1);
  if (!path.empty()) {
    const std::size_t first = path.size() > kPathNames ? path.size() - kPathNames : 0;
    std::string names = first > 0 ? "... > " : "";
    for (std::size_t i = first; i < path.size(); ++i)
      names += (i > first ? " > " : "") + short_name(trace, path[i], kNameInCaption);
    text += fmt::format(" {}{}.",
                        is_device_work(trace.kind(scene.evidence)) ? "Launched by " : "In ", names);
  }
  if (scene.arrows.size() == 1)
    text += fmt::format(" The work {}.", delay_text(scene.arrows.front()));
  if (scene.device)
    text += scene.idle_ns == 0 ? fmt::format(" GPU {} is never idle here.", *scene.device)
                               : fmt::format(" GPU {} is idle for {} of it.", *scene.device,
                                             format_time_ns(scene.idle_ns));
  if (scene.deeper_row_count > 0)
    text += fmt::format(" {} deeper rows of operators are left out.", scene.deeper_row_count);
  if (scene.hidden_stream_count > 0)
    text += fmt::format(" {} more streams with work are left out.", scene.hidden_stream_count);
  if (scene.hidden_arrow_count > 0)
    text += fmt::format(" {} more launches have no arrow.", scene.hidden_arrow_count);
  return text;
}

}  // namespace lanescope::report
