#include "lanescope/codec/json_event_bounds.h"

namespace lanescope::codec {

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_json_blank(text[at])) ++at;
  return at;
}

bool starts_event_key(std::string_view text, std::size_t quote) {
  for (const std::string_view key :
       {"ph", "name", "cat", "ts", "pid", "tid", "dur", "id", "args", "bp", "s"}) {
    if (text.substr(quote + 1, key.size()) != key) continue;
    const std::size_t end = quote + 1 + key.size();
    if (end >= text.size() || text[end] != '"') continue;
    const std::size_t colon = skip_blanks(text, end + 1);
    return colon < text.size() && text[colon] == ':';
  }
  return false;
}

std::size_t find_event_start(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('{', from); at != std::string_view::npos;
       at = text.find('{', at + 1)) {
    const std::size_t quote = skip_blanks(text, at + 1);
    if (quote >= text.size() || text[quote] != '"' || !starts_event_key(text, quote)) continue;
    std::size_t before = at;
    while (before > from && is_json_blank(text[before - 1])) --before;
    if (before > from && text[before - 1] == ':') continue;  // the args of an event
    return at;
  }
  return std::string_view::npos;
}

std::size_t find_last_event_end(std::string_view text) {
  for (std::size_t at = text.rfind('{'); at != std::string_view::npos && at > 0;
       at = text.rfind('{', at - 1)) {
    const std::size_t quote = skip_blanks(text, at + 1);
    if (quote >= text.size() || text[quote] != '"' || !starts_event_key(text, quote)) continue;
    std::size_t before = at;
    while (before > 0 && is_json_blank(text[before - 1])) --before;
    if (before == 0 || text[before - 1] != ',') continue;
    const std::size_t end = before;
    --before;
    while (before > 0 && is_json_blank(text[before - 1])) --before;
    if (before > 0 && text[before - 1] == '}') return end;
  }
  return 0;
}

}  // namespace lanescope::codec
