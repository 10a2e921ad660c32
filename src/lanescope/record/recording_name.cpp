#include "lanescope/record/recording_name.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <charconv>

namespace lanescope::record {
namespace {

constexpr std::size_t kMostProgram = 80, kMostHost = 40;
constexpr std::string_view kStampForm = "ddddddddTddddddZ";  // d: a digit

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter_or_digit(char c) {
  return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_stamp(std::string_view text) {
  if (text.size() != kStampForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (kStampForm[i] == 'd' ? !is_digit(text[i]) : text[i] != kStampForm[i]) return false;
  return true;
}

std::string program_part(std::string_view program) {
  program = program.substr(program.rfind('/') + 1);
  std::string part;
  for (const char c : program.substr(0, kMostProgram))
    part += is_letter_or_digit(c) || c == '.' || c == '_' || c == '-' ? c : '_';
  return part.empty() ? "program" : part;
}

// Takes the digits at the front of `rest`.
std::optional<std::uint64_t> take_number(std::string_view* rest) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), number);
  if (error != std::errc()) return std::nullopt;
  rest->remove_prefix(static_cast<std::size_t>(end - rest->data()));
  return number;
}

}  // namespace

std::string run_stamp() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = "";
  strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

std::string short_host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return host_part(name);
}

std::string host_part(std::string_view name) {
  std::string host;
  for (const char c : name.substr(0, kMostHost)) {
    if (c == '.') break;
    host += is_letter_or_digit(c) ? c : '-';
  }
  return host.empty() ? "host" : host;
}

std::string recording_name(std::string_view program, std::optional<std::uint32_t> rank,
                           std::string_view started) {
  return fmt::format("{}_{}{}_{}_{}", program_part(program),
                     is_stamp(started) ? std::string(started) : run_stamp(),
                     rank ? fmt::format("_rank{}", *rank) : "", short_host_name(), getpid());
}

std::optional<RecordingName> parse_recording_name(std::string_view name) {
  // The program's part can contain anything, so search the stamp from the right.
  for (std::size_t at = name.size(); at-- > 1;) {
    if (name[at] != '_' || !is_stamp(name.substr(at + 1, kStampForm.size()))) continue;
    RecordingName found;
    found.program = name.substr(0, at);
    found.started = name.substr(at + 1, kStampForm.size());
    std::string_view rest = name.substr(at + 1 + kStampForm.size());
    if (rest.starts_with("_rank")) {
      std::string_view after = rest.substr(5);
      const auto rank = take_number(&after);
      if (rank && *rank <= UINT32_MAX && after.starts_with('_')) {
        found.rank = static_cast<std::uint32_t>(*rank);
        rest = after;
      }
    }
    if (!rest.starts_with('_')) return std::nullopt;
    rest.remove_prefix(1);
    const std::size_t end = rest.find('_');
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    found.host = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const auto pid = take_number(&rest);
    if (!pid || !(rest.empty() || rest.front() == '_' || rest.front() == '.')) return std::nullopt;
    found.pid = *pid;
    return found;
  }
  return std::nullopt;
}

}  // namespace lanescope::record
