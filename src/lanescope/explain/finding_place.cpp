#include "lanescope/explain/finding_place.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

// The place of findings about a whole step: where most of its work is launched, from a few pieces of it.
Sentence place_of_most_work(const Facts& facts) {
  constexpr std::size_t kPieces = 9;
  const auto& works = rules::steady_work(facts);
  if (works.empty()) return {};
  std::map<std::string, std::pair<std::size_t, Sentence>> places;
  for (std::size_t i = 0; i < kPieces; ++i) {
    Sentence place =
        outer_user_code(facts, works[works.size() * (2 * i + 1) / (2 * kPieces)]->slice);
    if (place.pattern.empty()) continue;
    auto& [pieces, sentence] = places[place.pattern + place.values.front().text];
    ++pieces;
    sentence = std::move(place);
  }
  const auto most = std::max_element(
      places.begin(), places.end(),
      [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  // A few of nine pieces are no place of a whole step.
  return most == places.end() || most->second.first * 2 < kPieces ? Sentence{}
                                                                  : most->second.second;
}

// Without the number of a line: "model.py:62 forward" and "model.py:63 forward" are one function.
std::string without_line(std::string place) {
  const std::size_t colon = place.find(".py:");
  const std::size_t end = colon == std::string::npos ? colon : place.find(' ', colon);
  return end == std::string::npos ? place : place.substr(0, colon) + place.substr(end);
}

// Pieces that are spread evenly, but not at equal distances: works that take turns would all have one turn.
std::size_t piece_at(std::size_t index, std::size_t pieces, std::size_t size) {
  if (pieces >= size) return index;
  constexpr double kGolden = 0.6180339887498949;
  const double turns = static_cast<double>(index) * kGolden;
  return std::min(
      size - 1, static_cast<std::size_t>((turns - std::floor(turns)) * static_cast<double>(size)));
}

// Is half of the finding's work or less at this place? Asked of a few pieces. Of a place in the backward pass, makes that of the forward
// pass, if pieces are there.
bool is_mostly_elsewhere(const Facts& facts, const Finding& finding, Sentence& place) {
  constexpr std::string_view kBackward = "in the backward pass of ";
  constexpr std::size_t kMostPieces = 32;
  if (place.pattern.empty() || place.values.empty() || finding.all_work.empty()) return false;
  const std::size_t pieces = std::min(kMostPieces, finding.all_work.size());
  std::size_t here = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    const SliceId work = finding.all_work[piece_at(i, pieces, finding.all_work.size())];
    const Sentence its = user_code(facts, work);
    // A function's forward and backward pass are one place.
    if (its.values.empty() ||
        without_line(its.values.front().text) != without_line(place.values.front().text))
      continue;
    ++here;
    if (place.pattern.starts_with(kBackward) && !its.pattern.starts_with(kBackward)) place = its;
  }
  // Of a sample, two pieces more may be chance.
  const std::size_t chance = pieces < finding.all_work.size() ? 2 : 0;
  return here * 2 <= pieces + 2 * chance;
}

}  // namespace

Sentence place_of_finding(const Facts& facts, const Finding& finding, bool is_of_all_launches) {
  // Its evidence is where a step begins, or what prevents a graph.
  if (is_of_all_launches || finding.is_about_all_work)
    return facts.main_device ? place_of_most_work(facts) : Sentence{};
  // What the CPU did meanwhile is no cause: an operator of it would mislead.
  const bool is_bound = finding.kind == FindingKind::kBound;
  const PlaceDetail detail = is_bound ? PlaceDetail::kNoOperators : PlaceDetail::kOperators;
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.slice == kNone<SliceId>) continue;
    Sentence place = user_code(facts, evidence.slice, detail);
    // The first event has most of the cost: where it has no place, that of others would mislead.
    if (is_mostly_elsewhere(facts, finding, place)) return {};
    if (!is_bound || !place.pattern.empty()) return place;
  }
  if (!finding.evidence.empty() || !facts.main_device) return {};
  return place_of_most_work(facts);
}

}  // namespace lanescope::explain
