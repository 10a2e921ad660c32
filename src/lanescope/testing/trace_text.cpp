#include "lanescope/testing/trace_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

namespace lanescope::testing {
namespace {

class Writer {
 public:
  Writer(const Trace& trace, std::string_view left_out) : trace_(trace), left_out_(left_out) {}

  std::string run() {
    for (const Track& track : trace_.tracks()) tracks_.push_back(track_name(track));
    for (const Track& track : trace_.tracks()) arrow_ends_.push_back(end_of_arrow(track));
    std::vector<std::string> lines;
    lines.push_back("base " + std::to_string(trace_.base_time_ns()));
    lines.push_back("window " + std::to_string(trace_.window_start_ns()) + " " +
                    std::to_string(trace_.window_end_ns()));
    std::map<std::string, std::string> metadata;
    for (const Metadata& entry : trace_.metadata())
      metadata[std::string(trace_.text(entry.key))] = trace_.text(entry.json);
    for (const auto& [key, json] : metadata) lines.push_back("metadata " + key + " " + json);
    for (const StringId event : trace_.other_metadata_events())
      lines.push_back("event " + text(event));
    add_labels(lines);
    add_slices(lines);
    add_others(lines);
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
  }

 private:
  std::string text(StringId id) const {
    return id == kNone<StringId> ? "-" : "'" + std::string(trace_.text(id)) + "'";
  }
  std::string scalar(const Scalar& value) const {
    return value.is_text ? text(value.text) : std::to_string(value.number);
  }
  std::string category(CategoryId id) const { return text(trace_.categories()[raw(id)].text); }
  std::string track_name(const Track& track) const {
    constexpr const char* kKinds[] = {"thread", "stream", "async", "counter"};
    std::string name = std::string(kKinds[static_cast<int>(track.kind)]) + " " +
                       scalar(trace_.process(track.process).pid);
    name += "/" + scalar(track.tid);
    if (track.kind == TrackKind::kCounter) name += " " + text(track.name);
    if (track.kind == TrackKind::kCounter || track.kind == TrackKind::kAsync)
      name += " " + text(track.series);
    return name;
  }
  // In a file, an arrow's end is a pid and a tid. When a thread and a stream share them, the file
  // cannot say which of the two was meant.
  std::string end_of_arrow(const Track& track) const {
    const auto is_place = [](TrackKind kind) {
      return kind == TrackKind::kThread || kind == TrackKind::kStream;
    };
    const auto shares_place = [&](const Track& other) {
      return other.kind != track.kind && is_place(other.kind) && other.process == track.process &&
             scalar(other.tid) == scalar(track.tid);
    };
    if (is_place(track.kind) && std::ranges::any_of(trace_.tracks(), shares_place))
      return "either " + scalar(trace_.process(track.process).pid) + "/" + scalar(track.tid);
    return track_name(track);
  }
  std::string args(ArgsId id) const {
    const ArgsView view = trace_.args(id);
    std::string out;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const ArgField& field = view.field(i);
      if (!left_out_.empty() && trace_.text(field.key) == left_out_) continue;
      out += " " + std::string(trace_.text(field.key)) + "=" +
             std::to_string(static_cast<int>(field.type)) + ":";
      const std::uint64_t bits = view.bits(field);
      if (field.type == ArgType::kDouble && std::isnan(std::bit_cast<double>(bits))) {
        out.replace(out.size() - 2, 2, "0:0");  // JSON has no such number: null
        continue;
      }
      if (field.type == ArgType::kString || field.type == ArgType::kJson)
        out += text(StringId{static_cast<std::uint32_t>(bits)});
      else
        out += std::to_string(bits);
    }
    return out;
  }
  static void sorted(std::vector<std::string>& lines, std::vector<std::string>& more) {
    std::sort(more.begin(), more.end());
    lines.insert(lines.end(), more.begin(), more.end());
    more.clear();
  }

  void add_labels(std::vector<std::string>& lines) const {
    std::vector<std::string> labels;
    const auto index = [](const std::optional<std::int64_t>& value) {
      return value ? std::to_string(*value) : "-";
    };
    for (const Process& process : trace_.processes())
      if (process.name != kNone<StringId> || process.labels != kNone<StringId> ||
          process.sort_index)
        labels.push_back("process " + scalar(process.pid) + " " + text(process.name) + " " +
                         text(process.labels) + " " + index(process.sort_index));
    // Chrome labels a pid and a tid. When a thread and a stream share them, the stream's counts.
    std::map<std::string, std::pair<std::string, std::string>> by_place;  // name, sort index
    for (const TrackKind kind : {TrackKind::kThread, TrackKind::kAsync, TrackKind::kStream})
      for (const Track& track : trace_.tracks()) {
        if (track.kind != kind || (track.name == kNone<StringId> && !track.sort_index)) continue;
        auto& [name, sort_index] =
            by_place[scalar(trace_.process(track.process).pid) + "/" + scalar(track.tid)];
        if (track.name != kNone<StringId> || name.empty()) name = text(track.name);
        if (track.sort_index || sort_index.empty()) sort_index = index(track.sort_index);
      }
    for (const auto& [place, label] : by_place)
      labels.push_back("label " + place + " " + label.first + " " + label.second);
    sorted(lines, labels);
  }
  void add_slices(std::vector<std::string>& lines) const {
    const SliceColumns& slices = trace_.slices();
    std::map<std::string, std::string> by_track;
    for (std::size_t t = 0; t < tracks_.size(); ++t) {
      const Track& track = trace_.tracks()[t];
      std::string& out = by_track[tracks_[t]];
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
        out += "\n  " + std::to_string(slices.start_ns[i]) + "+" +
               std::to_string(slices.dur_ns[i]) + " " + text(slices.name[i]) + " " +
               category(slices.category[i]) + args(slices.args[i]);
    }
    for (const auto& [name, out] : by_track)
      if (!out.empty()) lines.push_back("slices of " + name + out);
  }
  void add_others(std::vector<std::string>& lines) const {
    std::vector<std::string> found;
    const InstantColumns& instants = trace_.instants();
    for (std::size_t i = 0; i < instants.size(); ++i)
      found.push_back("instant " + tracks_[raw(instants.track[i])] + " " +
                      std::to_string(instants.time_ns[i]) + " " + instants.scope[i] + " " +
                      text(instants.name[i]) + " " + category(instants.category[i]) +
                      args(instants.args[i]));
    sorted(lines, found);
    const CounterColumns& counters = trace_.counters();
    for (std::size_t i = 0; i < counters.size(); ++i)
      found.push_back("value " + tracks_[raw(counters.track[i])] + " " +
                      std::to_string(counters.time_ns[i]) + " " +
                      std::to_string(std::bit_cast<std::uint64_t>(counters.value[i])));
    sorted(lines, found);
    for (const Flow& flow : trace_.flows())
      found.push_back("flow " + category(flow.category) + " " + text(flow.name) + " " +
                      scalar(flow.id()) + " " + arrow_ends_[raw(flow.from_track)] + " " +
                      std::to_string(flow.from_ns) + " -> " + arrow_ends_[raw(flow.to_track)] +
                      " " + std::to_string(flow.to_ns) + (flow.binds_enclosing ? " e" : ""));
    sorted(lines, found);
  }

  const Trace& trace_;
  std::string_view left_out_;
  std::vector<std::string> tracks_, arrow_ends_;
};

}  // namespace

std::string trace_text(const Trace& trace, std::string_view left_out) {
  return Writer(trace, left_out).run();
}

}  // namespace lanescope::testing
