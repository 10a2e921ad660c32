#include "lanescope/ranks/part_file.h"

#include <fmt/format.h>

#include <utility>

#include "lanescope/base/json_value.h"
#include "lanescope/ranks/summary_text.h"

namespace lanescope::ranks {
namespace {

constexpr std::string_view kErrorMark = R"({"lanescope_rank_error":1)";
constexpr std::string_view kEndMark = R"({"lanescope_ranks_end":)";
constexpr std::size_t kLongestMessage = 2000;

std::string error_line(const RankFile& file, const Error& error) {
  return fmt::format("{},\"file\":{},\"code\":{},\"message\":{}}}", kErrorMark,
                     json_text(file.file), static_cast<int>(error.code),
                     json_text(std::string_view(error.message).substr(0, kLongestMessage)));
}

RankFile read_error(std::string_view line, std::string_view name) {
  const auto row = parse_json(line);
  RankFile file{std::string(name), Error{Errc::kCorruptInput, "the row is damaged"}};
  if (!row || !row->is_object()) return file;
  const JsonValue* const path = row->find("file");
  const JsonValue* const message = row->find("message");
  const JsonValue* const code = row->find("code");
  if (path && path->is_string()) file.file = path->text;
  if (message && message->is_string() && code && code->integer && *code->integer >= 0 &&
      *code->integer <= static_cast<int>(Errc::kUnavailable))
    file.content = Error{static_cast<Errc>(*code->integer), message->text};
  return file;
}

// The number of rows that the last line says; nothing: it is no last line.
std::optional<std::uint64_t> end_count(std::string_view line) {
  if (!line.starts_with(kEndMark)) return std::nullopt;
  const auto row = parse_json(line);
  const JsonValue* const count = row ? row->find("lanescope_ranks_end") : nullptr;
  if (!count || !count->integer || *count->integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*count->integer);
}

}  // namespace

std::string write_part(std::span<const RankFile> files) {
  std::string out = fmt::format("{},\"files\":{}}}\n", kPartMark, files.size());
  for (const RankFile& file : files) {
    if (const Error* error = std::get_if<Error>(&file.content))
      out += error_line(file, *error);
    else
      out += write_summary(std::get<RankSummary>(file.content));
    out += '\n';
  }
  return out + fmt::format("{}{}}}\n", kEndMark, files.size());
}

bool is_part(std::string_view head) { return head.starts_with(kPartMark); }

Result<std::vector<RankFile>> read_part(std::string_view text, std::string_view name) {
  if (!is_part(text))
    return Error{Errc::kCorruptInput,
                 fmt::format("expected summaries that lanescope ranks --shard wrote, found "
                             "something else in {}",
                             name)};
  std::vector<RankFile> out;
  bool ended = false;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos && at + 1 < text.size();) {
    const std::size_t next = text.find('\n', at + 1);
    const std::string_view line = text.substr(at + 1, next - at - 1);
    at = next;
    if (const auto count = end_count(line)) {
      ended = *count == out.size();
      break;
    }
    if (line.starts_with(kErrorMark)) {
      out.push_back(read_error(line, name));
      continue;
    }
    Result<RankSummary> summary = read_summary(line);
    if (!summary)
      out.push_back({fmt::format("{} row {}", name, out.size() + 1), summary.error()});
    else
      out.push_back({summary->file, *std::move(summary)});
  }
  if (!ended)
    out.push_back(
        {std::string(name),
         Error{Errc::kCorruptInput,
               fmt::format("the part ends early, after {} ranks; write it again", out.size())}});
  return out;
}

}  // namespace lanescope::ranks
