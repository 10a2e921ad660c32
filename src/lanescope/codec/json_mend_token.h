// Writes one token of odd JSON as strict JSON: a number or word, or a piece of a string. For json_mend.cpp, which knows where
// tokens start and end.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_string_end.h"

namespace lanescope::codec {

// Borrows all three. Offsets below are in `text`.
struct TokenMender {
  std::string_view text;
  std::string& out;
  Mends& mends;

  // The number or word in [from, end), which is not empty: "nan" becomes null, "+05" 5, `abc` "abc".
  void write_scalar(std::size_t from, std::size_t end);

  // The character at `at`, escaped for the inside of a string. Returns where the next one starts, at most `end`.
  std::size_t write_character(std::size_t at, std::size_t end);

  // The backslash at `at` and what it escapes. A backslash that escapes nothing is doubled. Returns where the text goes on.
  std::size_t write_escape(const JsonContext& json, std::size_t at, bool in_key);
};

}  // namespace lanescope::codec
