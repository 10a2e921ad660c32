// Turns one damaged JSON value, as real profilers write it, into strict JSON. This is the slow path
// for text that the fast parser rejects.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lanescope::codec {

enum class Mend : std::uint8_t {
  kText,        // escaped a stray quote, backslash or control character in a string
  kUtf8,        // bytes that are not UTF-8 became U+FFFD
  kNotANumber,  // NaN became null, Infinity 1e999
  kSyntax,      // a comma or bracket was missing, doubled or of the wrong kind
  kCount
};

struct Mends {
  struct Counter {
    std::uint32_t count = 0;
    std::size_t first = 0;  // offset in the text given
  };
  std::array<Counter, static_cast<std::size_t>(Mend::kCount)> counters{};
  const Counter& operator[](Mend mend) const { return counters[static_cast<std::size_t>(mend)]; }
  void add(Mend mend, std::size_t at) {
    Counter& counter = counters[static_cast<std::size_t>(mend)];
    if (counter.count++ == 0) counter.first = at;
  }
  bool any() const {
    for (const Counter& counter : counters)
      if (counter.count > 0) return true;
    return false;
  }
};

enum class MendStatus : std::uint8_t {
  kDone,      // `used` bytes were one value; `out` is its strict form
  kNeedMore,  // the text ends inside the value
  kBroken,    // not understood, and its end is unknown
};

struct MendResult {
  MendStatus status = MendStatus::kBroken;
  std::size_t used = 0;
  Mends mends;
};

// Mends the value at the start of `text` (no blanks before it) into `out`, which is cleared first.
// Strict input comes out byte for byte and with no mends. `at_end`: nothing follows `text`. Nesting
// is limited to 512 levels. A quote ends a string only where the grammar can go on after it. A
// trace event that starts inside a value ends the value there. One pass, except after stray quotes
// (up to 256 bytes each). Any thread.
MendResult mend_json(std::string_view text, bool at_end, std::string& out);

// Strict JSON, one value, no blanks around it.
bool is_strict_json(std::string_view text);

}  // namespace lanescope::codec
