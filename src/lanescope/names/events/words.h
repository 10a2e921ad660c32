// Helpers for parts of event names (counters, addresses, identifiers) and for rows of the families' tables.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lanescope/names/event_name.h"

namespace lanescope::names::events {

// A name without parameters, and the texts about it. All of them are static.
struct Row {
  std::string_view name, text, what;
  std::string_view cpu_waits = {}, gpu_work = {}, note = {}, rule = {};
};
const Row* find_row(std::span<const Row> rows, std::string_view name);
void fill(EventKind kind, const Row& row, EventName& out);

// True: this call of the runtime or driver does nothing but make the CPU wait.
bool only_waits(std::string_view call);

bool is_digit(char c);
bool is_letter(char c);                     // A-Z, a-z
bool is_digits(std::string_view text);      // one or more, nothing else
bool is_identifier(std::string_view text);  // letters, digits, "_"; begins with no digit
std::string_view without_trailing_digits(std::string_view text);

// The text after `prefix`; nothing: the text does not begin with it.
std::optional<std::string_view> after(std::string_view text, std::string_view prefix);

// "object at 0x7f80" -> "object at *", "iter_12" -> "iter_*"; digits after a letter stay, because
// "layer3" and "conv2d" are names.
std::string with_numbers_folded(std::string_view text);

// At most `limit` bytes, without cutting UTF-8 sequences; a cut text ends in "...".
std::string shortened(std::string_view text, std::size_t limit);

}  // namespace lanescope::names::events
