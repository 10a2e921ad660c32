// Reads single values of trace events: JSON text becomes a type and bits for ArgsBuilder.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/format/kineto_json/json_walk.h"
#include "lanescope/model/time_limits.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct ArgValue {
  ArgType type = ArgType::kNull;
  std::uint64_t bits = 0;
  std::string_view raw;  // its text; for a string, without the quotes
};

// Microseconds with up to three decimals, like nearly all times, as nanoseconds. False: use
// codec::parse_decimal. `token` is in a text with codec::kJsonPadding.
bool parse_plain_time(std::string_view token, std::int64_t& ns);

// Any JSON number, as the narrowest type that fits. False: not a number. Padding as above.
bool read_number(ArgValue& value);

inline bool has_escape(std::string_view raw) { return raw.find('\\') != std::string_view::npos; }

// A number's text as a double: 1e400 is infinite, 1e-400 is zero.
double parse_double(std::string_view token);

// Reads values and keeps texts in the builder's string pool. Remembers the latest ones, because
// events repeat them. One thread; borrows the builder. Texts need codec::kJsonPadding.
class ValueReader {
 public:
  explicit ValueReader(TraceBuilder& builder) : builder_(builder) {}

  // The value at the walk. False: not strict JSON. Numbers that writers misspell (NaN, inf) are
  // read and set `odd`.
  bool read(JsonWalk& walk, ArgValue& value, bool& odd);
  // Reads the text between two quotes. False: a bad escape.
  bool read_string(std::string_view raw, StringId& id);

 private:
  struct RecentText {
    const char* text = nullptr;  // the string pool's copy
    std::size_t size = 0;
    StringId id{};
  };
  struct RecentReal {
    std::array<std::uint64_t, 2> text{};  // padded with zeros
    std::uint64_t bits = 0;
  };
  bool read_nested(std::string_view text, StringId& id);
  bool read_real(ArgValue& value);

  TraceBuilder& builder_;
  std::string scratch_;
  std::vector<bool> strict_;  // by StringId: nested JSON that was checked
  std::array<RecentText, 256> recent_texts_;
  std::array<RecentText, 64> recent_nested_;  // strict ones only
  std::array<RecentReal, 64> recent_reals_;
};

}  // namespace lanescope::format
