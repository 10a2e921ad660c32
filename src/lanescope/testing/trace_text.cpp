#include "lanescope/testing/trace_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <map>
#include <vector>

namespace lanescope::testing {
namespace {

// Appended, not added to a new text each: tests with sanitizers write every trace of the repository.
void put_one(std::string& out, std::string_view text) { out.append(text); }
void put_one(std::string& out, std::integral auto number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}
void put(std::string& out, const auto&... parts) { (put_one(out, parts), ...); }

class Writer {
 public:
  Writer(const Trace& trace, std::string_view left_out) : trace_(trace), left_out_(left_out) {}

  std::string run() {
    for (const Track& track : trace_.tracks()) tracks_.push_back(track_name(track));
    for (const Track& track : trace_.tracks()) arrow_ends_.push_back(end_of_arrow(track));
    for (const Category& each : trace_.categories()) categories_.push_back(text(each.text));
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
    for (const std::string& line : lines) put(out, line, "\n");
    return out;
  }

 private:
  void put_text(std::string& out, StringId id) const {
    if (id == kNone<StringId>) return put(out, "-");
    put(out, "'", trace_.text(id), "'");
  }
  std::string text(StringId id) const {
    std::string out;
    put_text(out, id);
    return out;
  }
  std::string scalar(const Scalar& value) const {
    return value.is_text ? text(value.text) : std::to_string(value.number);
  }
  const std::string& category(CategoryId id) const { return categories_[raw(id)]; }
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
  void put_args(std::string& out, ArgsId id) const {
    const ArgsView view = trace_.args(id);
    for (std::size_t i = 0; i < view.size(); ++i) {
      const ArgField& field = view.field(i);
      const std::string_view key = trace_.text(field.key);
      if (!left_out_.empty() && key == left_out_) continue;
      const std::uint64_t bits = view.bits(field);
      if (field.type == ArgType::kDouble && std::isnan(std::bit_cast<double>(bits))) {
        put(out, " ", key, "=0:0");  // JSON has no such number: null
        continue;
      }
      put(out, " ", key, "=", static_cast<int>(field.type), ":");
      if (field.type == ArgType::kString || field.type == ArgType::kJson)
        put_text(out, StringId{static_cast<std::uint32_t>(bits)});
      else
        put(out, bits);
    }
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
      for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
        put(out, "\n  ", slices.start_ns[i], "+", slices.dur_ns[i], " ");
        put_text(out, slices.name[i]);
        put(out, " ", category(slices.category[i]));
        put_args(out, slices.args[i]);
      }
    }
    for (const auto& [name, out] : by_track)
      if (!out.empty()) lines.push_back("slices of " + name + out);
  }
  void add_others(std::vector<std::string>& lines) const {
    std::vector<std::string> found;
    const InstantColumns& instants = trace_.instants();
    for (std::size_t i = 0; i < instants.size(); ++i) {
      std::string& out = found.emplace_back();
      put(out, "instant ", tracks_[raw(instants.track[i])], " ", instants.time_ns[i], " ");
      out += instants.scope[i];
      put(out, " ");
      put_text(out, instants.name[i]);
      put(out, " ", category(instants.category[i]));
      put_args(out, instants.args[i]);
    }
    sorted(lines, found);
    const CounterColumns& counters = trace_.counters();
    for (std::size_t i = 0; i < counters.size(); ++i)
      put(found.emplace_back(), "value ", tracks_[raw(counters.track[i])], " ", counters.time_ns[i],
          " ", std::bit_cast<std::uint64_t>(counters.value[i]));
    sorted(lines, found);
    for (const Flow& flow : trace_.flows()) {
      std::string& out = found.emplace_back();
      put(out, "flow ", category(flow.category), " ");
      put_text(out, flow.name);
      put(out, " ", scalar(flow.id()), " ", arrow_ends_[raw(flow.from_track)], " ", flow.from_ns,
          " -> ", arrow_ends_[raw(flow.to_track)], " ", flow.to_ns,
          flow.binds_enclosing ? " e" : "");
    }
    sorted(lines, found);
  }

  const Trace& trace_;
  std::string_view left_out_;
  std::vector<std::string> tracks_, arrow_ends_, categories_;  // texts, made once
};

}  // namespace

std::string trace_text(const Trace& trace, std::string_view left_out) {
  return Writer(trace, left_out).run();
}

}  // namespace lanescope::testing
