#include "lanescope/explain/finding.h"

#include <utility>

namespace lanescope::explain {

Value ns(std::int64_t value) { return {.kind = Value::Kind::kNs, .integer = value}; }
Value count(std::uint64_t value) {
  return {.kind = Value::Kind::kCount, .integer = static_cast<std::int64_t>(value)};
}
Value ratio(std::int64_t part, std::int64_t whole) {
  return {.kind = Value::Kind::kRatio,
          .real = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole)};
}
Value factor(std::int64_t value, std::int64_t of) {
  Value result = ratio(value, of);
  result.kind = Value::Kind::kFactor;
  return result;
}
Value bytes(std::int64_t value) { return {.kind = Value::Kind::kBytes, .integer = value}; }
Value text(std::string value) { return {.kind = Value::Kind::kText, .text = std::move(value)}; }
Value name(std::string_view value) {
  return {.kind = Value::Kind::kName, .text = std::string(value)};
}

Value kernel(std::string_view value) {
  return {.kind = Value::Kind::kKernel, .text = std::string(value)};
}

Value linked(Value value, const char* shows) {
  value.shows = shows;
  return value;
}
Value linked(Value value, SliceId slice) {
  value.slice = slice;
  return value;
}

Sentence say(std::string pattern, std::vector<Value> values) {
  return {std::move(pattern), std::move(values)};
}

void append(Sentence& to, const Sentence& more) {
  to.pattern += more.pattern;
  to.values.insert(to.values.end(), more.values.begin(), more.values.end());
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
