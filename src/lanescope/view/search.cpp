#include "lanescope/view/search.h"

#include <algorithm>

#include "lanescope/base/duration.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::view {
namespace {

constexpr std::size_t kLongestSearched = 64 << 10;  // bytes of a name

std::string lower(std::string_view text) {
  std::string out(text.substr(0, kLongestSearched));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool has_all(std::string_view name, const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.find(word) != name.npos; });
}

// Names that have all words.
std::vector<bool> matching_names(const Lanes& lanes, const std::vector<std::string>& words) {
  const Trace& trace = lanes.trace();
  std::vector<bool> matches(trace.strings().size(), false), seen(matches.size(), false);
  for (const StringId name : trace.slices().name) {
    if (seen[raw(name)]) continue;
    seen[raw(name)] = true;
    const std::string_view text = trace.text(name);
    matches[raw(name)] =
        has_all(lower(text), words) || (lanes.name_use(name) == NameUse::kWork &&
                                        has_all(lower(names::readable_kernel_name(text)), words));
  }
  return matches;
}

}  // namespace

std::optional<std::int64_t> parse_length_ns(std::string_view text) {
  const std::optional<double> number = take_decimal(&text);
  if (!number) return std::nullopt;
  const double scale = text == "ns"   ? 1
                       : text == "us" ? 1e3
                       : text == "ms" ? 1e6
                       : text == "s"  ? 1e9
                                      : 0;
  if (scale == 0 || *number * scale > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*number * scale);
}

const char* time_kind_key(TimeKind kind) {
  static constexpr std::array<const char*, kTimeKindCount> kKeys{
      "operator",      "annotation", "python", "call", "compute",
      "communication", "copy",       "wait",   "other"};
  return kKeys[static_cast<std::size_t>(kind)];
}

Result<SearchQuery> parse_search(std::string_view text) {
  SearchQuery query;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word = lower(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (word.starts_with("kind:")) {
      for (std::size_t i = 0; i < kTimeKindCount; ++i)
        if (word.substr(5) == time_kind_key(static_cast<TimeKind>(i)))
          query.kind = static_cast<TimeKind>(i);
      if (!query.kind)
        return Error{Errc::kInvalidArgument,
                     "kind: expects operator, annotation, python, call, compute, communication, "
                     "copy, wait or other"};
    } else if (word.starts_with("lane:")) {
      std::uint32_t lane = 0;
      for (const char digit : word.substr(5)) {
        if (digit < '0' || digit > '9' || lane > 100'000'000)
          return Error{Errc::kInvalidArgument, "lane: expects the number of a lane"};
        lane = lane * 10 + static_cast<std::uint32_t>(digit - '0');
      }
      query.lane = lane;
    } else if (word.size() > 1 && (word[0] == '>' || word[0] == '<')) {
      const std::optional<std::int64_t> ns = parse_length_ns(std::string_view(word).substr(1));
      if (!ns)
        return Error{Errc::kInvalidArgument, "> and < expect a length, such as >100us or <1ms"};
      if (word[0] == '>')
        query.longer_than_ns = *ns;
      else
        query.shorter_than_ns = *ns;
    } else {
      query.words.push_back(word);
    }
  }
  return query;
}

SearchResult search(const Lanes& lanes, const SearchQuery& query,
                    const std::vector<std::uint32_t>& in_lanes, std::size_t limit) {
  const Trace& trace = lanes.trace();
  const std::vector<bool> matches = matching_names(lanes, query.words);
  std::vector<bool> wanted(lanes.lanes().size(), in_lanes.empty());
  for (const std::uint32_t lane : in_lanes)
    if (lane < wanted.size()) wanted[lane] = true;
  SearchResult result;
  std::vector<bool> named(matches.size(), false);
  for (std::uint32_t number = 0; number < lanes.lanes().size(); ++number) {
    const Lane& lane = lanes.lanes()[number];
    if (!wanted[number] || !Lanes::has_slices(lane.kind) || (query.lane && *query.lane != number))
      continue;
    std::uint64_t count = 0;
    for (std::uint32_t row = lane.first_row; row < lane.first_row + lane.row_count; ++row) {
      for (std::size_t i = 0; i < lanes.index().size(row); ++i) {
        const LevelSlice each = lanes.index().slice(row, i);
        const StringId name = trace.slices().name[each.id];
        if (!matches[raw(name)] || each.dur_ns <= query.longer_than_ns ||
            (query.shorter_than_ns && each.dur_ns >= *query.shorter_than_ns) ||
            (query.kind && lanes.kind(SliceId{each.id}) != *query.kind))
          continue;
        ++count;
        if (!named[raw(name)] && result.names.size() < kMostSearchNames) {
          named[raw(name)] = true;
          result.names.push_back(name);
        }
        result.hits.push_back(SliceId{each.id});
      }
    }
    const auto by_time = [&](SliceId a, SliceId b) {
      return std::pair(trace.start_ns(a), raw(a)) < std::pair(trace.start_ns(b), raw(b));
    };
    // Never more than the limit and one lane.
    if (result.hits.size() > limit) {
      std::nth_element(result.hits.begin(),
                       result.hits.begin() + static_cast<std::ptrdiff_t>(limit), result.hits.end(),
                       by_time);
      result.hits.resize(limit);
    }
    sort_rows(result.hits.begin(), result.hits.end(), by_time);
    result.total += count;
    if (count > 0) result.lanes.emplace_back(number, count);
  }
  return result;
}

}  // namespace lanescope::view
