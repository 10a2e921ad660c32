#include "lanescope/cli/kept_info.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <string_view>

#include "lanescope/analysis/trace_info.h"
#include "lanescope/cli/open_kept.h"
#include "lanescope/record/range.h"
#include "lanescope/report/trace_info_text.h"

namespace lanescope::cli {
namespace {

// This program file in its present state: another one may say it in other words. Empty: unknown.
std::string program_state() {
  struct stat info {};
  if (::stat("/proc/self/exe", &info) != 0) return "";
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec);
}

// The lengths of both, a line end, the JSON, the text.
std::string head_of(std::size_t json_bytes, std::size_t text_bytes) {
  return fmt::format("{} {}\n", json_bytes, text_bytes);
}
std::string note_of(const InfoTexts& texts) {
  return head_of(texts.json.size(), texts.text.size()) + texts.json + texts.text;
}

std::optional<InfoTexts> texts_of(std::string_view note) {
  const std::size_t head_bytes = note.find('\n') + 1;
  std::size_t json_bytes = 0;
  const auto [at, failed] = std::from_chars(note.data(), note.data() + note.size(), json_bytes);
  if (failed != std::errc() || head_bytes == 0 || json_bytes > note.size() - head_bytes)
    return std::nullopt;
  const std::string_view json = note.substr(head_bytes, json_bytes);
  const std::string_view text = note.substr(head_bytes + json_bytes);
  if (note.substr(0, head_bytes) != head_of(json.size(), text.size())) return std::nullopt;
  return InfoTexts{std::string(text), std::string(json)};
}

}  // namespace

InfoTexts info_texts(const Trace& trace) {
  RecordFunction stage("trace info");
  const analysis::TraceInfo info = analysis::compute_trace_info(trace);
  return {report::trace_info_text(info), report::trace_info_json(info)};
}

std::optional<InfoTexts> open_info(const std::string& path, Output& output, int* code) {
  format::KeptSections kept;
  const std::string program = program_state();
  kept.layer = "info " + program;
  const std::optional<Trace> trace =
      open_trace_kept(path, output, code, &kept, Damage::kShownByCaller);
  if (!trace) return std::nullopt;
  if (!program.empty())
    if (auto remembered = texts_of(kept.note)) return remembered;
  InfoTexts texts = info_texts(*trace);
  // The memory of a trace that was read differs from that of its index.
  if (kept.owner && !program.empty()) kept.remember_note(note_of(texts));
  return texts;
}

}  // namespace lanescope::cli
