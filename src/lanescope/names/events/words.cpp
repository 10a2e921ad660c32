#include "lanescope/names/events/words.h"

#include <algorithm>

#include "lanescope/model/api_calls.h"

namespace lanescope::names::events {

const Row* find_row(std::span<const Row> rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [name](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

void fill(EventKind kind, const Row& row, EventName& out) {
  out.kind = kind;
  out.text = row.text;
  out.what = row.what;
  out.cpu_waits = row.cpu_waits;
  out.gpu_work = row.gpu_work;
  out.note = row.note;
  out.rule = row.rule;
}

bool only_waits(std::string_view call) {
  const ApiCall known = find_api_call(call);
  return known.does(api_effect::kBlocks) && !known.does(api_effect::kCopies);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_identifier(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_';
  });
}

std::string_view without_trailing_digits(std::string_view text) {
  while (!text.empty() && is_digit(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::string_view> after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

std::string with_numbers_folded(std::string_view text) {
  const auto is_hex = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const bool in_word = i > 0 && is_letter(text[i - 1]);
    if (!is_digit(text[i])) {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    const bool address =
        text[i] == '0' && i + 2 < text.size() && text[i + 1] == 'x' && is_hex(text[i + 2]);
    if (address) {
      end = i + 2;
      while (end < text.size() && is_hex(text[end])) ++end;
    } else {
      while (end < text.size() && is_digit(text[end])) ++end;
    }
    if (in_word && !address)
      out += text.substr(i, end - i);
    else
      out += '*';
    i = end;
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit || limit < 8) return std::string(text.substr(0, limit));
  std::size_t end = limit - 3;
  while (end > limit - 7 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)).append("...");
}

}  // namespace lanescope::names::events
