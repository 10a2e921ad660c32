#include "lanescope/report/ranks_hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::CallState;
using ranks::FlightCall;
using ranks::FlightDump;
using ranks::HangFinding;
using ranks::HangKind;
using ranks::HangRank;
using ranks::HangReport;

constexpr std::size_t kMostRankLines = 32, kMostFindings = 12, kMostHangRemarks = 8;

const char* state_text(const FlightCall& call) {
  if (call.timed_out) return "timed out";
  switch (call.state) {
    case CallState::kScheduled:
      return "not ended";
    case CallState::kStarted:
      return "running";
    case CallState::kCompleted:
      return "ended";
  }
  return "";
}

const char* state_word(CallState state) {
  switch (state) {
    case CallState::kScheduled:
      return "scheduled";
    case CallState::kStarted:
      return "started";
    case CallState::kCompleted:
      return "completed";
  }
  return "";
}

const char* title(HangKind kind) {
  switch (kind) {
    case HangKind::kMismatch:
      return "Ranks disagree: ";
    case HangKind::kNotCalled:
      return "Not called: ";
    case HangKind::kNotPaired:
      return "Without its other side: ";
    case HangKind::kNoDump:
      return "Missing: ";
    case HangKind::kNotEnded:
      return "Not ended: ";
  }
  return "";
}

std::string call_text(const FlightDump& dump, const FlightCall& call) {
  std::string text =
      fmt::format("{} {} of group {}", call.sequence, call.text(), dump.groups[call.group].name);
  if (dump.is_recording)
    text += fmt::format(", its last call, {:.1f} s before the recording ends",
                        static_cast<double>(dump.end_ns - call.created_ns) / 1e9);
  else
    text += fmt::format(", {}", state_text(call));
  if (!call.place.empty()) text += ", " + call.place;
  return text;
}

// As CSV wants it; control characters, also ends of lines, are shown as text.
std::string csv_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char letter : one_line(text)) {
    if (letter == '"') out += '"';
    out += letter;
  }
  return out + '"';
}

void write_call(JsonWriter& json, std::string_view key, const FlightDump& dump,
                std::optional<std::size_t> at) {
  if (!at) {
    json.null(key);
    return;
  }
  const FlightCall& call = dump.calls[*at];
  json.begin_object(key).text("group", dump.groups[call.group].name);
  json.text("group_description", dump.groups[call.group].description);
  json.integer("sequence", call.sequence).boolean("point_to_point", call.point_to_point);
  json.text("name", call.name).text("dtype", call.dtype);
  if (call.in_elements >= 0) json.integer("in_elements", call.in_elements);
  if (call.out_elements >= 0) json.integer("out_elements", call.out_elements);
  json.text("state", state_word(call.state)).boolean("timed_out", call.timed_out);
  json.integer("created_ns", call.created_ns).text("place", call.place).end_object();
}

}  // namespace

std::string hang_summary(const HangReport& report) {
  std::set<std::string> versions;
  bool recordings = false;
  for (const FlightDump& dump : report.dumps) {
    versions.insert(one_line(dump.version));
    recordings |= dump.is_recording;
  }
  if (recordings)
    return fmt::format(
        "Recordings of {} rank{}: {} calls in {} process group{}. Which of the last "
        "calls have ended is unknown.",
        report.dumps.size(), report.dumps.size() == 1 ? "" : "s", format_count(report.calls),
        report.groups, report.groups == 1 ? "" : "s");
  return fmt::format(
      "Flight-recorder dumps of {} rank{} (version {}): {} call{} in {} process "
      "group{}.",
      report.dumps.size(), report.dumps.size() == 1 ? "" : "s", fmt::join(versions, " and "),
      format_count(report.calls), report.calls == 1 ? "" : "s", report.groups,
      report.groups == 1 ? "" : "s");
}

std::string hang_text_of(const HangFinding& finding) {
  return title(finding.kind) + finding.text + ".";
}

std::string hang_place_of(const HangReport& report, std::size_t index) {
  const HangRank& rank = report.ranks[index];
  const FlightDump& dump = report.dumps[index];
  if (rank.open) return call_text(dump, dump.calls[*rank.open]);
  if (rank.ended) return "in no collective; last " + call_text(dump, dump.calls[*rank.ended]);
  return "no call";
}

std::string no_hang_text(const HangReport& report) {
  return report.dumps.front().is_recording
             ? "No sign of a hang: all ranks call the same collectives, and no rank is a call "
               "behind the others and silent for a second."
             : "No sign of a hang: all ranks that have a dump call the same collectives, and every "
               "call has ended.";
}

std::string ranks_hang_text(const HangReport& report) {
  std::string text = wrapped("", hang_summary(report));
  for (std::size_t i = 0; i < report.remarks.size() && i < kMostHangRemarks; ++i)
    text += wrapped("! ", report.remarks[i]);
  if (report.remarks.size() > kMostHangRemarks)
    text +=
        fmt::format("! and {} more files are left out\n", report.remarks.size() - kMostHangRemarks);
  text += "\n";
  if (report.findings.empty()) text += wrapped("", no_hang_text(report));
  for (std::size_t i = 0; i < report.findings.size() && i < kMostFindings; ++i)
    text += wrapped("", hang_text_of(report.findings[i]));
  if (report.findings.size() > kMostFindings)
    text += fmt::format("and {} more; --json has all\n", report.findings.size() - kMostFindings);
  text += "\n   rank  where it was at the end\n";
  for (std::size_t i = 0; i < report.ranks.size() && i < kMostRankLines; ++i)
    text += wrapped(fmt::format("  {}  ", pad_left(std::to_string(report.ranks[i].rank), 5)),
                    hang_place_of(report, i));
  if (report.ranks.size() > kMostRankLines)
    text +=
        fmt::format("  and {} more ranks; --json has all\n", report.ranks.size() - kMostRankLines);
  return text;
}

std::string ranks_hang_json(const HangReport& report) {
  JsonWriter json("ranks hang");
  json.integer("rank_count", report.dumps.size()).integer("call_count", report.calls);
  json.integer("group_count", report.groups).begin_array("findings");
  for (const HangFinding& finding : report.findings) {
    json.begin_object().text("kind", ranks::hang_name(finding.kind)).begin_array("ranks");
    for (const std::int64_t rank : finding.ranks) json.integer("", rank);
    json.end_array().text("group", finding.group).integer("sequence", finding.sequence);
    json.text("text", finding.text).end_object();
  }
  json.end_array().begin_array("remarks");
  for (const std::string& remark : report.remarks) json.text("", remark);
  json.end_array().begin_array("ranks");
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const HangRank& rank = report.ranks[i];
    json.begin_object().integer("rank", rank.rank).text("file", rank.file);
    json.text("version", report.dumps[i].version).boolean("whole", report.dumps[i].is_whole);
    json.boolean("recording", report.dumps[i].is_recording);
    json.integer("calls", rank.calls);
    write_call(json, "open", report.dumps[i], rank.open);
    write_call(json, "ended", report.dumps[i], rank.ended);
    json.end_object();
  }
  return json.end_array().take();
}

std::string ranks_hang_csv(const HangReport& report) {
  std::string out =
      "rank,file,calls,state,group,group_description,sequence,call,dtype,in_elements,out_elements,"
      "timed_out,created_ns,place,findings\n";
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const HangRank& rank = report.ranks[i];
    const FlightDump& dump = report.dumps[i];
    out += fmt::format("{},{},{}", rank.rank, csv_quoted(rank.file), rank.calls);
    const std::optional<std::size_t> at = rank.open ? rank.open : rank.ended;
    if (at) {
      const FlightCall& call = dump.calls[*at];
      const auto elements = [](std::int64_t count) {
        return count < 0 ? std::string() : std::to_string(count);
      };
      out += fmt::format(
          ",{},{},{},{},{},{},{},{},{:d},{},{}", state_word(call.state),
          csv_quoted(dump.groups[call.group].name), csv_quoted(dump.groups[call.group].description),
          call.sequence, csv_quoted(call.name), csv_quoted(call.dtype), elements(call.in_elements),
          elements(call.out_elements), call.timed_out, call.created_ns, csv_quoted(call.place));
    } else {
      out += ",,,,,,,,,,,";
    }
    std::string found;
    for (const HangFinding& finding : report.findings) {
      if (std::find(finding.ranks.begin(), finding.ranks.end(), rank.rank) == finding.ranks.end())
        continue;
      if (!found.empty()) found += ' ';
      found += ranks::hang_name(finding.kind);
    }
    out += fmt::format(",{}\n", found);
  }
  return out;
}

}  // namespace lanescope::report
