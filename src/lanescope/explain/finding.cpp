#include "lanescope/explain/finding.h"

#include <algorithm>
#include <utility>

namespace lanescope::explain {

Value::Value() = default;
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

Sentence::Sentence() = default;
Sentence::Sentence(std::string_view text, std::vector<Value> numbers)
    : pattern(text), values(std::move(numbers)) {}
Sentence::Sentence(const Sentence& other) = default;
Sentence::Sentence(Sentence&& other) noexcept = default;
Sentence& Sentence::operator=(const Sentence& other) = default;
Sentence& Sentence::operator=(Sentence&& other) noexcept = default;
Sentence::~Sentence() = default;

Finding::Finding() = default;
Finding::Finding(const Finding& other) = default;
Finding::Finding(Finding&& other) noexcept = default;
Finding& Finding::operator=(const Finding& other) = default;
Finding& Finding::operator=(Finding&& other) noexcept = default;
Finding::~Finding() = default;

namespace {
Value whole_number(Value::Kind kind, std::int64_t value) {
  Value result;
  result.kind = kind;
  result.integer = value;
  return result;
}
Value written(Value::Kind kind, std::string value) {
  Value result;
  result.kind = kind;
  result.text = std::move(value);
  return result;
}

// "<built-in method get of Queue object at 0x7f3dda44a6b0>" becomes "<built-in method get of Queue object>": the address says
// nothing, and differs in each run.
std::string without_addresses(std::string_view name) {
  constexpr std::string_view kAddress = " at 0x";
  std::string kept;
  for (std::size_t at = name.find(kAddress); at != std::string_view::npos;
       at = name.find(kAddress)) {
    kept += name.substr(0, at);
    name.remove_prefix(at + kAddress.size());
    name.remove_prefix(std::min(name.find_first_not_of("0123456789abcdefABCDEF"), name.size()));
  }
  return kept += name;
}
}  // namespace

Value ns(std::int64_t value) { return whole_number(Value::Kind::kNs, value); }
Value count(std::uint64_t value) {
  return whole_number(Value::Kind::kCount, static_cast<std::int64_t>(value));
}
Value ratio(std::int64_t part, std::int64_t whole) {
  Value result;
  result.kind = Value::Kind::kRatio;
  result.real = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  return result;
}
Value factor(std::int64_t value, std::int64_t of) {
  Value result = ratio(value, of);
  result.kind = Value::Kind::kFactor;
  return result;
}
Value bytes(std::int64_t value) { return whole_number(Value::Kind::kBytes, value); }
Value text(std::string value) { return written(Value::Kind::kText, std::move(value)); }
Value name(std::string_view value) { return written(Value::Kind::kName, without_addresses(value)); }
Value kernel(std::string_view value) { return written(Value::Kind::kKernel, std::string(value)); }

Value linked(Value value, const char* shows) {
  value.shows = shows;
  return value;
}
Value linked(Value value, SliceId slice) {
  value.slice = slice;
  return value;
}

Sentence say(std::string_view pattern, std::initializer_list<Value> values) {
  return {pattern, std::vector<Value>(values)};
}
Sentence say(std::string_view pattern, std::vector<Value> values) {
  return {pattern, std::move(values)};
}

void append(Sentence& to, const Sentence& more) {
  to.pattern += more.pattern;
  to.values.insert(to.values.end(), more.values.begin(), more.values.end());
}

void replace_limit(Sentence& sentence, const Sentence& words) {
  if (sentence.limit == LimitWords::kNone) return;
  sentence.pattern.replace(0, sentence.limit_size, words.pattern);
  sentence.values.insert(sentence.values.begin(), words.values.begin(), words.values.end());
  sentence.limit = LimitWords::kNone;
  sentence.limit_size = 0;
}

const char* finding_kind_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kBound:
      return "bound";
    case FindingKind::kEnds:
      return "ends";
    case FindingKind::kCost:
      return "cost";
    case FindingKind::kWhere:
      return "where";
    case FindingKind::kMemory:
      return "memory";
    case FindingKind::kOnce:
      return "once";
    case FindingKind::kNormal:
      return "normal";
    case FindingKind::kTrust:
      return "trust";
  }
  return "";
}

const char* confidence_name(Confidence confidence) {
  return confidence == Confidence::kHigh     ? "high"
         : confidence == Confidence::kMedium ? "medium"
                                             : "low";
}

}  // namespace lanescope::explain
