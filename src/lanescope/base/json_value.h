// A small JSON value for the little pieces of JSON that a Trace keeps as text: shapes, device
// properties, process groups. Whole files go through codec/, which is built for speed; this parser
// is built to be short and safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lanescope {

// A tree of values. Several threads may read one at the same time.
struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  double number = 0;                    // kNumber
  std::optional<std::int64_t> integer;  // kNumber without point or exponent that fits 64 bits
  std::string text;                     // kString, escapes resolved, UTF-8
  std::vector<JsonValue> items;         // kArray
  std::vector<std::pair<std::string, JsonValue>> members;  // kObject, in the text's order

  // These are defined in the .cpp, because clang 16 cannot compile `members` if they are defined here.
  JsonValue();
  JsonValue(const JsonValue&);
  JsonValue(JsonValue&&) noexcept;
  JsonValue& operator=(const JsonValue&);
  JsonValue& operator=(JsonValue&&) noexcept;
  ~JsonValue();

  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }
  bool is_string() const { return kind == Kind::kString; }
  // The last member with that name, as in most JSON readers; nullptr: there is none.
  const JsonValue* find(std::string_view name) const;
};

// Returns nothing unless the whole text is one value, nested at most 64 deep. Also accepts what
// profilers write by mistake: NaN, Infinity and -Infinity (read as 0) and raw control characters
// inside strings. Cost: one pass; memory in proportion to the text.
std::optional<JsonValue> parse_json(std::string_view text);

}  // namespace lanescope
