#include "lanescope/format/perfetto/annotations.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

constexpr int kDeepestAnnotation = 32;

struct AnnotationValue {
  enum Kind {
    kNothing,
    kBoolean,
    kUnsigned,
    kSigned,
    kReal,
    kText,
    kInternedText,
    kJson
  } kind = kNothing;
  std::uint64_t bits = 0;
  std::string_view text = {};
};

void add_number(std::string& json, auto value) {
  char digits[40];
  json.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void add_quoted(std::string& json, std::string_view text) {
  json += '"';
  codec::append_escaped_json(json, text);
  json += '"';
}

void add_real(std::string& json, double value) {
  if (std::isfinite(value))
    add_number(json, value);
  else
    json += "null";
}

std::string_view interned(const TextByIid& texts, std::uint64_t iid, const TraceBuilder& builder) {
  const StringId* const found = texts.find(iid);
  return found ? builder.text(*found) : std::string_view();
}

// The older form of nested values. Its keys and values are two lists.
void add_nested(std::string_view message, int depth, std::string& json) {
  if (depth > kDeepestAnnotation) {
    json += "null";
    return;
  }
  std::string list;
  bool is_dictionary = false, is_array = false;
  for (WireReader field(message); field.next();) {
    switch (field.number()) {
      case pftrace::kNestedInt:
        return add_number(json, field.signed_integer());
      case pftrace::kNestedDouble:
        return add_real(json, field.real());
      case pftrace::kNestedBool:
        json += field.integer() != 0 ? "true" : "false";
        return;
      case pftrace::kNestedString:
        return add_quoted(json, field.bytes());
      case pftrace::kNestedKeys:
        is_dictionary = true;
        break;
      case pftrace::kNestedArray:
        list += is_array ? ", " : "";
        is_array = true;
        add_nested(field.bytes(), depth + 1, list);
        break;
      default:
        break;
    }
  }
  if (!is_dictionary) {
    json += is_array ? "[" + list + "]" : "null";
    return;
  }
  json += '{';
  WireReader values(message);
  bool is_first = true;
  for (WireReader key(message); key.next();) {
    if (key.number() != pftrace::kNestedKeys) continue;
    json += is_first ? "" : ", ";
    is_first = false;
    add_quoted(json, key.bytes());
    json += ": ";
    bool has_value = false;
    while (!has_value && values.next()) has_value = values.number() == pftrace::kNestedValues;
    if (has_value)
      add_nested(values.bytes(), depth + 1, json);
    else
      json += "null";
  }
  json += '}';
}

// The last one of an annotation counts.
struct NameFound {
  std::string_view text;
  std::optional<std::uint64_t> iid;

  void take(const WireReader& field) {
    if (field.number() == pftrace::kAnnotationName) *this = {field.bytes(), std::nullopt};
    if (field.number() == pftrace::kAnnotationNameIid) *this = {{}, field.integer()};
  }
};

class AnnotationJson {
 public:
  AnnotationJson(const SequenceState& state, const TraceBuilder& builder)
      : state_(state), builder_(builder) {}

  // The value of a DebugAnnotation. `list` gets the JSON of nested values, `name` its name.
  AnnotationValue value_of(std::string_view message, int depth, std::string& list,
                           NameFound& name) {
    AnnotationValue value;
    bool is_dictionary = false, is_array = false;
    for (WireReader field(message); field.next();) {
      switch (field.number()) {
        case pftrace::kBool:
          value = {AnnotationValue::kBoolean, field.integer()};
          break;
        case pftrace::kUint:
        case pftrace::kPointer:
          value = {AnnotationValue::kUnsigned, field.integer()};
          break;
        case pftrace::kInt:
          value = {AnnotationValue::kSigned, field.integer()};
          break;
        case pftrace::kDouble:
          value = {AnnotationValue::kReal, field.integer()};
          break;
        case pftrace::kString:
          value = {AnnotationValue::kText, 0, field.bytes()};
          break;
        case pftrace::kStringIid:
          value = {AnnotationValue::kInternedText, field.integer()};
          break;
        case pftrace::kJson:
          value = {AnnotationValue::kJson, 0, field.bytes()};
          break;
        case pftrace::kNested:
          list.clear();
          add_nested(field.bytes(), depth + 1, list);
          value.kind = AnnotationValue::kJson;
          break;
        case pftrace::kDict:
        case pftrace::kArray:
          if (depth >= kDeepestAnnotation) break;
          list += list.empty() ? (field.number() == pftrace::kDict ? "{" : "[") : ", ";
          is_dictionary = field.number() == pftrace::kDict;
          is_array = true;
          if (is_dictionary) {
            add_quoted(list, name_of(field.bytes()));
            list += ": ";
          }
          add(field.bytes(), depth + 1, list);
          break;
        default:
          name.take(field);
          break;
      }
    }
    if (is_array) {
      // The bracket that it began with.
      list += list.front() == '{' ? '}' : ']';
      value = {AnnotationValue::kJson};
    }
    if (value.kind == AnnotationValue::kJson && value.text.empty()) value.text = list;
    return value;
  }
  std::string_view name_of(std::string_view message) const {
    NameFound name;
    for (WireReader field(message); field.next();) name.take(field);
    if (!name.iid) return name.text;
    const AnnotationName* const found = state_.annotation_names.find(*name.iid);
    return found ? builder_.text(found->text) : std::string_view();
  }

 private:
  void add(std::string_view message, int depth, std::string& json) {
    std::string list;
    NameFound name;
    const AnnotationValue value = value_of(message, depth, list, name);
    switch (value.kind) {
      case AnnotationValue::kNothing:
        json += "null";
        break;
      case AnnotationValue::kBoolean:
        json += value.bits != 0 ? "true" : "false";
        break;
      case AnnotationValue::kUnsigned:
        add_number(json, value.bits);
        break;
      case AnnotationValue::kSigned:
        add_number(json, static_cast<std::int64_t>(value.bits));
        break;
      case AnnotationValue::kReal:
        add_real(json, std::bit_cast<double>(value.bits));
        break;
      case AnnotationValue::kText:
        add_quoted(json, value.text);
        break;
      case AnnotationValue::kInternedText:
        if (state_.lists.find(value.bits))
          json += interned(state_.lists, value.bits, builder_);
        else
          add_quoted(json, interned(state_.texts, value.bits, builder_));
        break;
      case AnnotationValue::kJson:
        json += codec::is_strict_json(value.text) ? std::string(value.text) : "null";
        break;
    }
  }

  const SequenceState& state_;
  const TraceBuilder& builder_;
};

AnnotationName key_of(const NameFound& name, const SequenceState& state, TraceBuilder& builder) {
  if (name.iid)
    if (const AnnotationName* const found = state.annotation_names.find(*name.iid)) return *found;
  const StringId key = builder.intern(codec::valid_utf8(name.text));
  return {key, arg_key(builder.text(key))};
}

}  // namespace

void add_annotation(std::string_view message, const SequenceState& state, TraceBuilder& builder) {
  AnnotationJson json(state, builder);
  std::string list;
  NameFound name;
  const AnnotationValue value = json.value_of(message, 0, list, name);
  const auto [key, known] = key_of(name, state, builder);
  ArgsBuilder& args = builder.args();
  switch (value.kind) {
    case AnnotationValue::kNothing:
      return args.add(key, known, ArgType::kNull);
    case AnnotationValue::kBoolean:
      return args.add(key, known, value.bits != 0 ? ArgType::kTrue : ArgType::kFalse);
    case AnnotationValue::kUnsigned:
      return args.add_uint(key, known, value.bits);
    case AnnotationValue::kSigned:
      return args.add_int(key, known, static_cast<std::int64_t>(value.bits));
    case AnnotationValue::kReal:
      return args.add_double(key, known, std::bit_cast<double>(value.bits));
    case AnnotationValue::kText:
      return args.add_string(key, known, builder.intern(codec::valid_utf8(value.text)));
    case AnnotationValue::kInternedText:
      if (const StringId* const list_text = state.lists.find(value.bits))
        return args.add_json(key, known, *list_text);
      if (const StringId* const text = state.texts.find(value.bits))
        return args.add_string(key, known, *text);
      return args.add_string(key, known, builder.intern(""));
    case AnnotationValue::kJson:
      if (value.text == "null") return args.add(key, known, ArgType::kNull);
      if (!codec::is_strict_json(value.text))
        return args.add_string(key, known, builder.intern(codec::valid_utf8(value.text)));
      return args.add_json(key, known, builder.intern(value.text));
  }
}

}  // namespace lanescope::format
