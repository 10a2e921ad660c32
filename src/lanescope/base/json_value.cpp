#include "lanescope/base/json_value.h"

#include <charconv>

#include "lanescope/base/json_escape.h"

namespace lanescope {
namespace {

constexpr int kMaxDepth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool whole(JsonValue& out) {
    if (!value(out, 0)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    if (static_cast<std::size_t>(end_ - at_) < expected.size()) return false;
    if (std::string_view(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  bool value(JsonValue& out, int depth) {
    skip_space();
    if (at_ == end_ || depth > kMaxDepth) return false;
    switch (*at_) {
      case '{':
        return object(out, depth);
      case '[':
        return array(out, depth);
      case '"':
        out.kind = JsonValue::Kind::kString;
        return string(out.text);
      case 't':
        out.kind = JsonValue::Kind::kBool;
        out.boolean = true;
        return word("true");
      case 'f':
        out.kind = JsonValue::Kind::kBool;
        return word("false");
      case 'n':
        return word("null");
      default:
        return number(out);
    }
  }

  bool number(JsonValue& out) {
    out.kind = JsonValue::Kind::kNumber;
    if (word("NaN") || word("nan") || word("Infinity") || word("-Infinity") || word("-NaN"))
      return true;
    const char* first = at_;
    bool whole = true;
    if (at_ != end_ && *at_ == '-') ++at_;
    for (; at_ != end_; ++at_) {
      const char c = *at_;
      if (c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-')
        whole = false;
      else if (c < '0' || c > '9')
        break;
    }
    if (at_ == first) return false;
    if (whole) {
      std::int64_t parsed = 0;
      const auto [stop, error] = std::from_chars(first, at_, parsed);
      if (error == std::errc() && stop == at_) out.integer = parsed;
    }
    const auto [stop, error] = std::from_chars(first, at_, out.number);
    return stop == at_ && (error == std::errc() || error == std::errc::result_out_of_range);
  }

  bool array(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kArray;
    ++at_;
    if (take(']')) return true;
    do {
      out.items.emplace_back();
      if (!value(out.items.back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool object(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kObject;
    ++at_;
    if (take('}')) return true;
    do {
      skip_space();
      if (at_ == end_ || *at_ != '"') return false;
      out.members.emplace_back();
      if (!string(out.members.back().first) || !take(':')) return false;
      if (!value(out.members.back().second, depth + 1)) return false;
    } while (take(','));
    return take('}');
  }

  bool string(std::string& out) {
    const char* const begin = ++at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ == '\\' && ++at_ == end_) return false;
      ++at_;
    }
    if (at_ == end_) return false;
    const std::string_view raw(begin, static_cast<std::size_t>(at_++ - begin));
    return unescape_json(raw, out, EscapePolicy::kLenient);
  }

  const char* at_;
  const char* end_;
};

}  // namespace

JsonValue::JsonValue() = default;
JsonValue::JsonValue(const JsonValue&) = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue&) = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;
JsonValue::~JsonValue() = default;

const JsonValue* JsonValue::find(std::string_view name) const {
  for (auto it = members.rbegin(); it != members.rend(); ++it)
    if (it->first == name) return &it->second;
  return nullptr;
}

std::optional<JsonValue> parse_json(std::string_view text) {
  JsonValue value;
  if (!Parser(text).whole(value)) return std::nullopt;
  return value;
}

}  // namespace lanescope
