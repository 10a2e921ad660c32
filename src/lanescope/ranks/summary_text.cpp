#include "lanescope/ranks/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "lanescope/analysis/time_span.h"
#include "lanescope/base/json_value.h"

namespace lanescope::ranks {
namespace {

// 0 to 4095 is [0, 1, 4096]: first, distance, count. Lists of a job's groups are regular.
std::string rank_runs(const std::vector<std::int64_t>& ranks) {
  std::string out = "[";
  for (std::size_t i = 0; i < ranks.size();) {
    const std::int64_t distance = i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 1;
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == distance) ++end;
    out += fmt::format("{}[{},{},{}]", i == 0 ? "" : ",", ranks[i], distance, end - i);
    i = end;
  }
  return out + "]";
}

std::string optional_text(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "null";
}

std::string groups_text(const RankSummary& summary) {
  std::string out;
  for (const ProcessGroup& group : summary.groups)
    out += fmt::format("{}[{},{},{},{},{}]", out.empty() ? "" : ",", json_text(group.name),
                       json_text(group.description), json_text(group.backend), group.size,
                       rank_runs(group.ranks));
  return out;
}

std::string kinds_text(const RankSummary& summary) {
  std::string out;
  for (const CollectiveKind& kind : summary.kinds)
    out += fmt::format("{}[{},{},{},{},{},{},{}]", out.empty() ? "" : ",", json_text(kind.name),
                       json_text(kind.dtype), kind.in_elements, kind.out_elements, kind.bytes,
                       kind.group, kind.has_metadata ? 1 : 0);
  return out;
}

std::string steps_text(const RankSummary& summary) {
  std::string out;
  for (const RankStep& step : summary.steps)
    out += fmt::format(
        "{}[{},{},{},{},{},{},{},{},[{}],{},{},{},{},{},{},{}]", out.empty() ? "" : ",",
        step.number, step.steady ? 1 : 0, step.start_ns, step.wall_ns, step.compute_ns,
        step.exposed_ns, step.hidden_ns, step.copy_ns, fmt::join(step.idle, ","), step.kernels,
        std::bit_cast<std::int64_t>(step.names_hash), std::bit_cast<std::int64_t>(step.shapes_hash),
        step.host_work_ns, step.host_loader_ns, step.host_outside_ns, step.host_recording_ns);
  return out;
}

// Starts count from the start of the collective before; ends are lengths.
std::string collectives_text(const RankSummary& summary, std::size_t count) {
  std::string out;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const CollectiveRecord& call = summary.collectives[i];
    out +=
        fmt::format("{}[{},{},{},{},{},{}]", i == 0 ? "" : ",", call.kind, call.step, call.sequence,
                    call.start_ns - before, call.end_ns - call.start_ns, call.exposed_ns);
    before = call.start_ns;
  }
  return out;
}

std::string host_text(const RankSummary& summary) {
  std::string out;
  for (const HostPart& part : summary.host_parts)
    out += fmt::format("{}[{},{}]", out.empty() ? "" : ",", json_text(part.name), part.time_ns);
  return out;
}

std::string text_with(const RankSummary& summary, std::size_t collectives) {
  return fmt::format(
      "{},\"file\":{},\"rank\":{},\"world_size\":{},\"backend\":{},\"host\":{},\"device\":{},"
      "\"device_count\":{},\"origin_ns\":{},\"window_ns\":{},\"truncated\":{},\"lost_events\":{},"
      "\"steps_marked\":{},\"step_unit\":{},\"unlinked\":{},\"dropped\":{},\"groups_unknown\":{},"
      "\"groups\":[{}],"
      "\"kinds\":[{}],\"steps\":[{}],\"collectives\":[{}],\"host_parts\":[{}]}}",
      kSummaryMark, json_text(summary.file), optional_text(summary.rank),
      optional_text(summary.world_size), json_text(summary.backend), json_text(summary.host_name),
      json_text(summary.device), summary.device_count, summary.origin_ns, summary.window_ns,
      summary.truncated ? 1 : 0, summary.lost_events, summary.steps_marked ? 1 : 0,
      json_text(summary.step_unit), summary.unlinked_collectives,
      summary.dropped_collectives + (summary.collectives.size() - collectives),
      summary.groups_unknown ? 1 : 0, groups_text(summary), kinds_text(summary),
      steps_text(summary), collectives_text(summary, collectives), host_text(summary));
}

Error corrupt(std::string_view what) {
  return {Errc::kCorruptInput,
          fmt::format("expected a rank summary of lanescope, found one in which {}; write the "
                      "summaries again with lanescope ranks --shard",
                      what)};
}

// Reads members and rows, and remembers the first thing that is wrong.
class SummaryReader {
 public:
  explicit SummaryReader(const JsonValue& root) : root_(root) {}

  Result<RankSummary> read() {
    RankSummary out;
    out.file = text(root_.find("file"), 4096);
    out.rank = optional_number("rank");
    out.world_size = optional_number("world_size");
    out.backend = text(root_.find("backend"), 256);
    out.host_name = text(root_.find("host"), 256);
    out.device = text(root_.find("device"), 256);
    out.device_count = count(root_.find("device_count"));
    out.origin_ns = number(root_.find("origin_ns"));
    out.window_ns = time(root_.find("window_ns"));
    out.truncated = count(root_.find("truncated")) != 0;
    out.lost_events = count(root_.find("lost_events"));
    out.steps_marked = count(root_.find("steps_marked")) != 0;
    out.step_unit = text(root_.find("step_unit"), 4096);
    out.unlinked_collectives = count(root_.find("unlinked"));
    out.dropped_collectives = count(root_.find("dropped"));
    out.groups_unknown = count(root_.find("groups_unknown")) != 0;
    read_groups(out);
    read_kinds(out);
    read_steps(out);
    read_collectives(out);
    for (const JsonValue& row : rows("host_parts", 2, kMostHostParts))
      out.host_parts.push_back({text(&row.items[0], 1000), length(&row.items[1])});
    if (out.rank && *out.rank < 0) wrong("the rank is negative");
    if (out.world_size && *out.world_size <= 0) wrong("the world size is not positive");
    if (!wrong_.empty()) return corrupt(wrong_);
    return out;
  }

 private:
  void wrong(std::string_view what) {
    if (wrong_.empty()) wrong_ = what;
  }
  std::string text(const JsonValue* value, std::size_t longest) {
    if (value && value->is_string() && value->text.size() <= longest) return value->text;
    wrong("a text is missing or too long");
    return {};
  }
  std::int64_t number(const JsonValue* value) {
    if (value && value->integer) return *value->integer;
    wrong("a number is missing");
    return 0;
  }
  std::uint64_t count(const JsonValue* value) {
    const std::int64_t read = number(value);
    if (read < 0) wrong("a count is negative");
    return read < 0 ? 0 : static_cast<std::uint64_t>(read);
  }
  std::int64_t time(const JsonValue* value) {
    const std::int64_t read = number(value);
    if (read > analysis::kLongestSpanNs || read < -analysis::kLongestSpanNs) {
      wrong("a time is more than 104 days away");
      return 0;
    }
    return read;
  }
  std::int64_t length(const JsonValue* value) {
    const std::int64_t read = time(value);
    if (read < 0) wrong("a length is negative");
    return read < 0 ? 0 : read;
  }
  std::optional<std::int64_t> optional_number(std::string_view name) {
    const JsonValue* value = root_.find(name);
    if (value && value->kind == JsonValue::Kind::kNull) return std::nullopt;
    return number(value);
  }
  // Rows that are not lists of `width` values end the reading of the table.
  std::vector<JsonValue> rows(std::string_view name, std::size_t width, std::size_t most) {
    const JsonValue* list = root_.find(name);
    if (!list || !list->is_array() || list->items.size() > most) {
      wrong("a table is missing or too long");
      return {};
    }
    for (const JsonValue& row : list->items)
      if (!row.is_array() || row.items.size() != width) {
        wrong("a row of a table has the wrong length");
        return {};
      }
    return list->items;
  }

  void read_groups(RankSummary& out) {
    for (const JsonValue& row : rows("groups", 5, kMostGroups)) {
      ProcessGroup group;
      group.name = text(&row.items[0], 1000);
      group.description = text(&row.items[1], 1000);
      group.backend = text(&row.items[2], 1000);
      group.size = length(&row.items[3]);
      if (row.items[4].is_array())
        for (const JsonValue& run : row.items[4].items) add_run(run, group.ranks);
      out.groups.push_back(std::move(group));
    }
  }
  void add_run(const JsonValue& run, std::vector<std::int64_t>& ranks) {
    if (!run.is_array() || run.items.size() != 3) return wrong("a run of ranks is wrong");
    const std::int64_t first = number(&run.items[0]), distance = number(&run.items[1]);
    const std::uint64_t many = count(&run.items[2]);
    constexpr std::int64_t kFar = std::int64_t{1} << 32;
    if (many + ranks.size() > kMostGroupRanks || first < -kFar || first > kFar ||
        distance < -kFar || distance > kFar)
      return wrong("a run of ranks is too long");
    for (std::uint64_t i = 0; i < many; ++i)
      ranks.push_back(first + distance * static_cast<std::int64_t>(i));
  }
  void read_kinds(RankSummary& out) {
    for (const JsonValue& row : rows("kinds", 7, kMostKinds)) {
      CollectiveKind kind;
      kind.name = text(&row.items[0], 1000);
      kind.dtype = text(&row.items[1], 1000);
      kind.in_elements = number(&row.items[2]);
      kind.out_elements = number(&row.items[3]);
      kind.bytes = number(&row.items[4]);
      const std::uint64_t group = count(&row.items[5]);
      if (group >= out.groups.size()) return wrong("a collective names a group that is not there");
      kind.group = static_cast<std::uint32_t>(group);
      kind.has_metadata = number(&row.items[6]) != 0;
      out.kinds.push_back(std::move(kind));
    }
  }
  void read_steps(RankSummary& out) {
    for (const JsonValue& row : rows("steps", 16, kMostSteps)) {
      RankStep step;
      step.number = number(&row.items[0]);
      step.steady = number(&row.items[1]) != 0;
      step.start_ns = time(&row.items[2]);
      std::int64_t* const lengths[] = {&step.wall_ns, &step.compute_ns, &step.exposed_ns,
                                       &step.hidden_ns, &step.copy_ns};
      for (std::size_t i = 0; i < std::size(lengths); ++i) *lengths[i] = length(&row.items[3 + i]);
      if (!row.items[8].is_array() || row.items[8].items.size() != step.idle.size())
        return wrong("a step has another number of causes");
      for (std::size_t i = 0; i < step.idle.size(); ++i)
        step.idle[i] = length(&row.items[8].items[i]);
      step.kernels = count(&row.items[9]);
      step.names_hash = std::bit_cast<std::uint64_t>(number(&row.items[10]));
      step.shapes_hash = std::bit_cast<std::uint64_t>(number(&row.items[11]));
      step.host_work_ns = length(&row.items[12]);
      step.host_loader_ns = length(&row.items[13]);
      step.host_outside_ns = length(&row.items[14]);
      step.host_recording_ns = length(&row.items[15]);
      out.steps.push_back(step);
    }
  }
  void read_collectives(RankSummary& out) {
    std::int64_t before = 0;
    for (const JsonValue& row : rows("collectives", 6, kMostCollectives)) {
      CollectiveRecord call;
      const std::uint64_t kind = count(&row.items[0]);
      const std::int64_t step = number(&row.items[1]);
      if (kind >= out.kinds.size() || step < -1 ||
          step >= static_cast<std::int64_t>(out.steps.size()))
        return wrong("a collective names a kind or a step that is not there");
      call.kind = static_cast<std::uint32_t>(kind);
      call.step = static_cast<std::int32_t>(step);
      call.sequence = number(&row.items[2]);
      call.start_ns = before + time(&row.items[3]);
      if (call.start_ns > analysis::kLongestSpanNs || call.start_ns < -analysis::kLongestSpanNs)
        return wrong("a time is more than 104 days away");
      before = call.start_ns;
      call.end_ns = call.start_ns + length(&row.items[4]);
      call.exposed_ns = length(&row.items[5]);
      out.collectives.push_back(call);
    }
  }

  const JsonValue& root_;
  std::string wrong_;
};

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\')
      out += {'\\', letter};
    else if (static_cast<unsigned char>(letter) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(letter));
    else
      out += letter;
  }
  return out + '"';
}

std::string write_summary(const RankSummary& summary) {
  std::size_t collectives = std::min(summary.collectives.size(), kMostCollectives);
  std::string text = text_with(summary, collectives);
  while (text.size() > kMostSummaryBytes && collectives > 0) {
    collectives /= 2;
    text = text_with(summary, collectives);
  }
  return text;
}

Result<RankSummary> read_summary(std::string_view text) {
  if (text.size() > kMostSummaryBytes)
    return Error{Errc::kLimit, fmt::format("expected a rank summary of at most {} bytes, found {}; "
                                           "write it again with lanescope ranks --shard",
                                           kMostSummaryBytes, text.size())};
  if (!text.starts_with(kSummaryMark)) return corrupt("the first member is another one");
  const auto root = parse_json(text);
  if (!root || !root->is_object()) return corrupt("the JSON is not whole");
  return SummaryReader(*root).read();
}

}  // namespace lanescope::ranks
