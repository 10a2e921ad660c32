// Does a quote end its string? Writers forget to escape quotes, so only what follows tells; for
// json_mend.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lanescope::codec {

enum class QuoteEnds : std::uint8_t { kNo, kYes, kNeedMore };

// The text and where in it the reader is.
struct JsonContext {
  std::string_view text;
  bool at_end = false;    // nothing follows `text`
  std::string_view open;  // the brackets that are open, outermost first
  bool in_object() const { return !open.empty() && open.back() == '{'; }
  bool in_array() const { return !open.empty() && open.back() == '['; }
};

// Does the quote at `quote` end a string? Yes, where the grammar can go on after it. `is_key`: the
// string is a key. Looks ahead up to the end of the next key, at most 256 bytes after blanks.
QuoteEnds ends_string(const JsonContext& json, std::size_t quote, bool is_key);

// Is `, "key":` at `at`? Strict JSON cannot have that inside a value, so the \" before it was a
// \ and the end of the value. A key can: "\",":" is one.
bool next_key_follows(const JsonContext& json, std::size_t at);

// Does the stray quote at `quote` open the first key of another event?
bool opens_next_event(std::string_view text, std::size_t quote);

}  // namespace lanescope::codec
