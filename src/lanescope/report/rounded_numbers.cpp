#include "lanescope/report/rounded_numbers.h"

#include <fmt/format.h>

#include "lanescope/report/explain_words.h"

namespace lanescope::report {
namespace {

using explain::Sentence;
using explain::Value;

// Three digits: 1.23, 12.3, 123, 1234.
std::string three_digits(double value) {
  return value < 9.995   ? fmt::format("{:.2f}", value)
         : value < 99.95 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:.0f}", value);
}

std::string rounded_value(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNs:
      return rounded_time(value.integer);
    case Value::Kind::kRatio:
      return rounded_percent(value.real);
    default:
      return value_text(value);
  }
}

}  // namespace

std::string rounded_time(std::int64_t ns) {
  if (ns == 0) return "0 us";
  if (ns < 0) return fmt::format("-{}", rounded_time(-ns));
  const auto value = static_cast<double>(ns);
  if (ns >= 999'500'000) return fmt::format("{} s", three_digits(value / 1e9));
  if (ns >= 999'500) return fmt::format("{} ms", three_digits(value / 1e6));
  return fmt::format("{} us", three_digits(value / 1e3));
}

std::string rounded_percent(double ratio) {
  if (ratio > 0 && ratio < 0.005) return "<1 %";
  if (ratio < 1 && ratio >= 0.995) return ">99 %";
  return fmt::format("{:.0f} %", ratio * 100);
}

std::string rounded_sentence(const Sentence& sentence, bool markdown) {
  return fill_sentence(sentence, markdown, rounded_value);
}

std::vector<SentencePiece> rounded_pieces(const Sentence& sentence) {
  std::vector<SentencePiece> pieces;
  const auto add = [&](std::string_view text) {
    if (pieces.empty() || pieces.back().is_link()) pieces.emplace_back();
    pieces.back().text += text;
  };
  visit_sentence(sentence, add, [&](const Value& value) {
    SentencePiece piece{rounded_value(value), value.shows, value.slice};
    if (piece.is_link())
      pieces.push_back(std::move(piece));
    else
      add(piece.text);
  });
  return pieces;
}

}  // namespace lanescope::report
