#include "lanescope/report/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "lanescope/base/check.h"

namespace lanescope::report {
namespace {

// Bytes of the UTF-8 sequence at the start of `text`; 0 if there is none (also for overlong forms
// and surrogates).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::string json_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else if (const std::size_t length = sequence_length(text.substr(i)); length > 0) {
      out += text.substr(i, length);
      i += length;
      continue;
    } else {
      out += "\xEF\xBF\xBD";
    }
    ++i;
  }
  return out;
}

JsonWriter::JsonWriter(std::string_view command) : out_("{"), has_items_{false} {
  begin_object("lanescope").integer("schema", 1).text("command", command).end_object();
}

void JsonWriter::start_value(std::string_view key) {
  LANESCOPE_CHECK(!has_items_.empty());
  if (has_items_.back()) out_ += ',';
  const bool own_line = has_items_.size() <= 2;
  if (own_line)
    out_.append(1, '\n').append(2 * has_items_.size(), ' ');
  else if (has_items_.back())
    out_ += ' ';
  has_items_.back() = true;
  if (!key.empty()) out_.append(1, '"').append(json_escaped(key)).append("\": ");
}

JsonWriter& JsonWriter::begin_object(std::string_view key) {
  start_value(key);
  out_ += '{';
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  has_items_.pop_back();
  out_ += '}';
  return *this;
}

JsonWriter& JsonWriter::begin_array(std::string_view key) {
  start_value(key);
  out_ += '[';
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  has_items_.pop_back();
  out_ += ']';
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view key, std::string_view value) {
  start_value(key);
  out_.append(1, '"').append(json_escaped(value)).append(1, '"');
  return *this;
}

JsonWriter& JsonWriter::real(std::string_view key, double value) {
  return number_text(key, std::isfinite(value) ? fmt::format("{}", value) : "null");
}

JsonWriter& JsonWriter::number_text(std::string_view key, std::string_view text) {
  start_value(key);
  out_ += text;
  return *this;
}

std::string JsonWriter::take() {
  LANESCOPE_CHECK(has_items_.size() == 1);
  return std::move(out_) + "\n}\n";
}

}  // namespace lanescope::report
