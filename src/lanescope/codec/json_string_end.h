// Whether a quote ends its string. Writers forget to escape quotes, so only the text after the
// quote can tell. For json_mend.cpp.
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

// Whether the quote at `quote` ends a string. kYes: the grammar can go on after it. `is_key`: the
// string is a key. Looks ahead up to the end of the next key, at most 256 bytes after blanks.
QuoteEnds ends_string(const JsonContext& json, std::size_t quote, bool is_key);

// True: `, "key":` follows at `at`. Strict JSON cannot have that inside a value. So a \" before it
// was a backslash and the end of the value. In keys it can be: "\",":" is one.
bool next_key_follows(const JsonContext& json, std::size_t at);

// True: the stray quote at `quote` opens the first key of another event.
bool opens_next_event(std::string_view text, std::size_t quote);

}  // namespace lanescope::codec
