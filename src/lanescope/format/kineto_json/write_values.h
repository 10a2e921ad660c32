// The texts, scalars and arguments of a Trace as JSON. Each string is checked once for what needs
// escapes.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/kineto_json/field_reader.h"
#include "lanescope/format/kineto_json/json_output.h"
#include "lanescope/format/spool/tensor_identities.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// Borrows both. One thread.
class JsonValues {
 public:
  JsonValues(const Trace& trace, JsonOutput& text)
      : trace_(trace),
        text_(text),
        string_state_(trace.strings().size(), kUnknown),
        tensors_(trace.strings().find(kTensorIdentities)) {}

  std::string scalar_text(const Scalar& scalar) const {
    return scalar.is_text ? std::string(trace_.text(scalar.text)) : std::to_string(scalar.number);
  }
  void append_scalar(std::string& out, const Scalar& scalar) const {
    if (!scalar.is_text) {
      out += std::to_string(scalar.number);
      return;
    }
    out += '"';
    codec::append_escaped_json(out, trace_.text(scalar.text));
    out += '"';
  }

  // A string's text between quotes. Checks once per string whether it needs escapes.
  // Inlined: 2 % of the instructions of an export.
  [[gnu::always_inline]] void add_string(StringId id) {
    text_.add('"');
    add_string_body(id);
    text_.add('"');
  }
  [[gnu::always_inline]] void add_string_body(StringId id) {
    if (id == kNone<StringId>) return;
    const std::string_view text = trace_.text(id);
    std::uint8_t& state = string_state_[raw(id)];
    if (state == kPlain) return text_.add(text);
    const std::size_t before = text_.raw().size();
    codec::append_escaped_json(text_.raw(), text);
    if (state == kUnknown)
      state = std::string_view(text_.raw()).substr(before) == text ? kPlain : kNeedsEscape;
  }
  // Raw JSON. If a program gave something as JSON that is not JSON, it becomes a string.
  void add_json(StringId id) {
    if (json_state_.empty()) json_state_.resize(string_state_.size(), kUnknown);
    std::uint8_t& state = json_state_[raw(id)];
    if (state == kUnknown) state = codec::is_strict_json(trace_.text(id)) ? kStrictJson : kNotJson;
    if (state == kStrictJson)
      text_.add(trace_.text(id));
    else
      add_string(id);
  }

  void write_args(ArgsId id) {
    const ArgsView args = trace_.args(id);
    if (args.empty()) return;
    // The reader puts fields of the event after its arguments. An entry counts as a field only there.
    std::size_t own = args.size();
    while (own > 0 && is_other_field(args.field(own - 1))) --own;
    bool is_open = false;
    for (std::size_t i = 0; i < own; ++i) {
      if (args.field(i).key == tensors_) continue;
      text_.add(std::exchange(is_open, true) ? "," : ",\"args\":{");
      add_string(args.field(i).key);
      text_.add(':');
      write_value(args, args.field(i));
    }
    if (is_open) text_.add('}');
    for (std::size_t i = own; i < args.size(); ++i) {
      text_.add(",\"");
      codec::append_escaped_json(text_.raw(),
                                 trace_.text(args.field(i).key).substr(kOtherFieldPrefix.size()));
      text_.add("\":");
      write_value(args, args.field(i));
    }
  }

 private:
  enum StringState : std::uint8_t { kUnknown, kPlain, kNeedsEscape, kStrictJson, kNotJson };

  // An argument that a program named "event:ts" must not become the event's time.
  bool is_other_field(const ArgField& field) const {
    std::string_view key = trace_.text(field.key);
    if (!key.starts_with(kOtherFieldPrefix)) return false;
    key.remove_prefix(kOtherFieldPrefix.size());
    for (const std::string_view known :
         {"ph", "ts", "dur", "name", "cat", "pid", "tid", "id", "id2", "bp", "s", "args"})
      if (key == known) return false;
    return true;
  }
  void write_value(const ArgsView& args, const ArgField& field) {
    const std::uint64_t bits = args.bits(field);
    switch (field.type) {
      case ArgType::kNull:
        return text_.add("null");
      case ArgType::kFalse:
        return text_.add("false");
      case ArgType::kTrue:
        return text_.add("true");
      case ArgType::kInt32:
        return text_.add_integer(static_cast<std::int32_t>(bits));
      case ArgType::kInt64:
        return text_.add_integer(static_cast<std::int64_t>(bits));
      case ArgType::kUint64:
        return text_.add(std::to_string(bits));
      case ArgType::kDouble:
        return text_.add_double(std::bit_cast<double>(bits));
      case ArgType::kString:
        return add_string(StringId{static_cast<std::uint32_t>(bits)});
      case ArgType::kJson:
        return add_json(StringId{static_cast<std::uint32_t>(bits)});
    }
  }

  const Trace& trace_;
  JsonOutput& text_;
  std::vector<std::uint8_t> string_state_, json_state_;
  StringId tensors_;  // the key of identities of tensors; kNone: no event has them
};

}  // namespace lanescope::format
