#include "lanescope/codec/json_string_end.h"

#include <cstring>

#include "lanescope/codec/json_event_bounds.h"

namespace lanescope::codec {
namespace {

constexpr std::size_t kKeyLookahead = 256;

QuoteEnds at_end_of_text(const JsonContext& json) {
  return json.at_end ? QuoteEnds::kYes : QuoteEnds::kNeedMore;
}

// After a closing bracket the grammar allows only these.
QuoteEnds bracket_may_close(const JsonContext& json, std::size_t at) {
  at = skip_blanks(json.text, at + 1);
  if (at >= json.text.size()) return at_end_of_text(json);
  const char c = json.text[at];
  return c == ',' || c == '}' || c == ']' || c == '{' ? QuoteEnds::kYes : QuoteEnds::kNo;
}

QuoteEnds is_key_at(const JsonContext& json, std::size_t quote) {
  const std::string_view text = json.text;
  const QuoteEnds past_end = json.at_end ? QuoteEnds::kNo : QuoteEnds::kNeedMore;
  for (std::size_t at = quote + 1; at < quote + kKeyLookahead; ++at) {
    if (at >= text.size()) return past_end;
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      at = skip_blanks(text, at + 1);
      if (at >= text.size()) return past_end;
      return text[at] == ':' ? QuoteEnds::kYes : QuoteEnds::kNo;
    }
  }
  return QuoteEnds::kYes;  // a very long key
}

// What follows commas after a quote, from `at`.
QuoteEnds may_follow_comma(const JsonContext& json, std::size_t at) {
  const std::string_view text = json.text;
  while (at < text.size() && (text[at] == ',' || is_json_blank(text[at]))) ++at;
  if (at >= text.size()) return at_end_of_text(json);
  const char c = text[at];
  if (!json.in_object())
    return std::strchr("\"[{-0123456789tfnNI]", c) ? QuoteEnds::kYes : QuoteEnds::kNo;
  if (c == '"') return is_key_at(json, at);
  if (c == '}') return bracket_may_close(json, at);
  // A lost closing bracket: the next event starts here.
  const std::size_t quote = skip_blanks(text, at + 1);
  const bool starts_event =
      c == '{' && quote < text.size() && text[quote] == '"' && starts_event_key(text, quote);
  return starts_event ? QuoteEnds::kYes : QuoteEnds::kNo;
}

}  // namespace

QuoteEnds ends_string(const JsonContext& json, std::size_t quote, bool is_key) {
  const std::size_t at = skip_blanks(json.text, quote + 1);
  if (at >= json.text.size()) return at_end_of_text(json);
  const char c = json.text[at];
  if (is_key) return c == ':' ? QuoteEnds::kYes : QuoteEnds::kNo;
  if (json.open.empty()) return QuoteEnds::kYes;
  switch (c) {
    case '}':
      return json.in_object() ? bracket_may_close(json, at) : QuoteEnds::kNo;
    case ']':
      return json.in_array() ? bracket_may_close(json, at) : QuoteEnds::kNo;
    case '"':
      return json.in_object() ? is_key_at(json, at) : QuoteEnds::kNo;
    case ',':
      return may_follow_comma(json, at);
    default:
      return QuoteEnds::kNo;
  }
}

bool next_key_follows(const JsonContext& json, std::size_t at) {
  const std::string_view text = json.text;
  at = skip_blanks(text, at);
  if (at >= text.size() || text[at] != ',') return false;
  at = skip_blanks(text, at + 1);
  return at < text.size() && text[at] == '"' && is_key_at(json, at) == QuoteEnds::kYes;
}

bool opens_next_event(std::string_view text, std::size_t quote) {
  if (!starts_event_key(text, quote)) return false;
  std::size_t at = quote;
  const auto ends_with = [&](char c) {  // before `at`, blanks aside
    while (at > 0 && is_json_blank(text[at - 1])) --at;
    return at > 0 && text[--at] == c;
  };
  return ends_with('{') && ends_with(',') && ends_with('}');
}

}  // namespace lanescope::codec
