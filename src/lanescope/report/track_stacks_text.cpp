#include "lanescope/report/track_stacks_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lanescope/analysis/track_flame.h"
#include "lanescope/model/nested_rows.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/stack_text.h"

namespace lanescope::report {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

std::string scalar_text(const Trace& trace, const Scalar& scalar) {
  return scalar.is_text ? std::string(trace.text(scalar.text)) : std::to_string(scalar.number);
}

// Gathers small texts for the sink.
class Pieces {
 public:
  explicit Pieces(const TextSink& sink) : sink_(sink) {}
  ~Pieces() { flush(); }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  std::string& text() { return text_; }
  // False: the sink wants no more.
  bool pass_on() {
    if (text_.size() >= kPieceBytes) flush();
    return wanted_;
  }

 private:
  void flush() {
    wanted_ = wanted_ && (text_.empty() || sink_(text_));
    text_.clear();
  }
  const TextSink& sink_;
  std::string text_;
  bool wanted_ = true;
};

struct Extent {
  std::int64_t first = 0, last = 0;
};
Extent extent_of(const Trace& trace) {
  const SliceColumns& slices = trace.slices();
  Extent extent;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    const std::int64_t end = trace.end_ns(SliceId{i});
    extent.first = i == 0 ? slices.start_ns[i] : std::min(extent.first, slices.start_ns[i]);
    extent.last = i == 0 ? end : std::max(extent.last, end);
  }
  return extent;
}

// From the first slice on; never negative. A trace may last longer than 64-bit nanoseconds count.
std::uint64_t since(std::int64_t ns, std::int64_t first) {
  return static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(first);
}

}  // namespace

std::string track_label(const Trace& trace, const Track& track) {
  const Process& process = trace.process(track.process);
  const std::string tid = scalar_text(trace, track.tid);
  std::string label;
  if (track.kind == TrackKind::kStream) {
    label =
        fmt::format("GPU {}, stream {}",
                    track.device ? std::to_string(*track.device) : scalar_text(trace, process.pid),
                    track.stream ? std::to_string(*track.stream) : tid);
  } else {
    label = "process " + scalar_text(trace, process.pid);
    if (const std::string_view name = trace.text(process.name); !name.empty())
      label += fmt::format(" ({})", name);
    label += (track.kind == TrackKind::kThread ? ", thread " : ", async ") + tid;
    const StringId name = track.kind == TrackKind::kThread ? track.name : track.series;
    // Kineto's names of threads have the number too: "thread 566 (python3)".
    if (const std::string_view text = trace.text(name); !text.empty() && text != "thread " + tid)
      label += fmt::format(" ({})", text);
  }
  return folded_name(label);
}

void write_folded_tracks(const Trace& trace, const TextSink& sink) {
  Pieces pieces(sink);
  for (const Track& track : trace.tracks()) {
    if (track.slice_count == 0) continue;
    const auto nodes = analysis::compute_track_flame(trace, track);
    const std::string label = track_label(trace, track);
    std::vector<std::pair<std::string, std::int64_t>> lines;
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].self > 0) lines.emplace_back(folded_stack(trace, nodes, i), nodes[i].self);
    std::sort(lines.begin(), lines.end());
    for (const auto& [stack, self_ns] : lines) {
      pieces.text() += fmt::format("{};{} {}\n", label, stack, self_ns);
      if (!pieces.pass_on()) return;
    }
  }
}

void write_speedscope_tracks(const Trace& trace, const TextSink& sink) {
  Pieces pieces(sink);
  SpeedscopeFrames frames(trace.strings().size());
  for (const StringId name : trace.slices().name) frames.add(name);
  const Extent extent = extent_of(trace);
  std::string& text = pieces.text();
  text += frames.head(trace) + "\"profiles\": [";
  bool is_first_profile = true;
  for (const Track& track : trace.tracks()) {
    const NestedRows rows = find_nested_rows(trace, track);
    for (std::size_t row = 0; row < rows.row_count(); ++row) {
      const std::string label = json_escaped(track_label(trace, track)) +
                                (row == 0 ? "" : fmt::format(" (row {})", row + 1));
      text += fmt::format(
          "{}\n{{\"type\": \"evented\", \"name\": \"{}\", \"unit\": \"nanoseconds\", "
          "\"startValue\": 0, \"endValue\": {}, \"events\": [",
          std::exchange(is_first_profile, false) ? "" : ",", label,
          since(extent.last, extent.first));
      bool is_first = true;
      const auto add = [&](char type, SliceId slice, std::int64_t ns) {
        text += fmt::format("{}\n{{\"type\":\"{}\",\"frame\":{},\"at\":{}}}",
                            std::exchange(is_first, false) ? "" : ",", type,
                            frames.frame(trace.slices().name[raw(slice)]), since(ns, extent.first));
        pieces.pass_on();
      };
      for_each_edge(
          trace, rows.row(row), [&](SliceId slice) { add('O', slice, trace.start_ns(slice)); },
          [&](SliceId slice) { add('C', slice, trace.end_ns(slice)); });
      text += "\n]}";
      if (!pieces.pass_on()) return;
    }
  }
  text += "\n]}\n";
}

}  // namespace lanescope::report
