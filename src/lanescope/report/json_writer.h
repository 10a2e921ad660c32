// Writes the JSON of `--json`: one escaper, one envelope, numbers as integers where the field
// counts something.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::report {

// Builds one document in memory, with nesting and commas. Invalid UTF-8 becomes U+FFFD; NaN and
// infinity, which JSON does not have, become null. Members of the outermost two levels, and rows,
// have a line each. Not thread-safe.
class JsonWriter {
 public:
  // Opens {"lanescope": {"schema": 1, "command": ...}; take() closes it.
  explicit JsonWriter(std::string_view command);

  JsonWriter& begin_object(std::string_view key = {});
  JsonWriter& end_object();
  JsonWriter& begin_array(std::string_view key = {});
  JsonWriter& end_array();
  // An empty key writes an element of the open array.
  JsonWriter& text(std::string_view key, std::string_view value);
  JsonWriter& integer(std::string_view key, std::signed_integral auto value) {
    return number_text(key, std::to_string(value));
  }
  JsonWriter& integer(std::string_view key, std::unsigned_integral auto value) {
    return number_text(key, std::to_string(value));
  }
  JsonWriter& real(std::string_view key, double value);
  JsonWriter& boolean(std::string_view key, bool value) {
    return number_text(key, value ? "true" : "false");
  }
  JsonWriter& null(std::string_view key) { return number_text(key, "null"); }

  // The finished document with a newline at its end. Every opened object and array must be closed.
  std::string take();

 private:
  JsonWriter& number_text(std::string_view key, std::string_view text);
  void start_value(std::string_view key);

  std::string out_;
  std::vector<bool> has_items_;  // one per open bracket
};

// The content of a JSON string, without the quotes.
std::string json_escaped(std::string_view text);

}  // namespace lanescope::report
