#include "lanescope/profiler/newest_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/with_commas.h"
#include "lanescope/format/formats.h"
#include "lanescope/record/recording_name.h"

namespace lanescope {
namespace {
namespace fs = std::filesystem;

// The first one that exists is opened.
std::span<const std::string_view> trace_endings() { return format::format_endings(); }

struct Candidate {
  std::size_t ending = std::numeric_limits<std::size_t>::max();
  fs::file_time_type changed = fs::file_time_type::min();  // the newest of its files
};

using Candidates = std::map<std::string, Candidate>;  // by name without ending

Candidates candidates_in(const fs::path& folder) {
  const auto endings = trace_endings();
  Candidates found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const auto ending = std::find_if(endings.begin(), endings.end(), [&](std::string_view one) {
      return name.size() > one.size() && name.ends_with(one);
    });
    std::error_code gone;
    if (ending == endings.end() || !at->is_regular_file(gone)) continue;
    const fs::file_time_type changed = at->last_write_time(gone);
    if (gone) continue;
    Candidate& candidate = found[name.substr(0, name.size() - ending->size())];
    candidate.ending =
        std::min(candidate.ending, static_cast<std::size_t>(ending - endings.begin()));
    candidate.changed = std::max(candidate.changed, changed);
  }
  return found;
}

const std::string& newest_of(const Candidates& all) {
  return std::max_element(all.begin(), all.end(),
                          [](const auto& a, const auto& b) {
                            return std::pair(a.second.changed, a.first) <
                                   std::pair(b.second.changed, b.first);
                          })
      ->first;
}

std::string passed_over_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 3;
  if (names.empty()) return "";
  std::string text = names.size() == 1
                         ? std::string("; passed over a newer file that is no trace: ")
                         : fmt::format("; passed over {} newer files that are no traces: ",
                                       with_commas(names.size()));
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  return names.size() > kMostNames ? text + ", ..." : text;
}

struct RankedName {
  std::string run;  // the same for all ranks of one run
  std::uint32_t rank = 0;
};

// The number after the word "rank", as in "rank3", "trace_rank-3_of_8"; the rest of the name
// belongs to the run.
std::optional<RankedName> rank_in(std::string_view name) {
  constexpr std::string_view kWord = "rank";
  for (std::size_t at = name.find(kWord); at != name.npos; at = name.find(kWord, at + 1)) {
    if (at > 0 && std::isalpha(static_cast<unsigned char>(name[at - 1])) != 0) continue;
    std::size_t first = at + kWord.size();
    if (first < name.size() && std::string_view("_-.").find(name[first]) != std::string_view::npos)
      ++first;
    std::uint32_t rank = 0;
    const char* const end = name.data() + name.size();
    const auto [after, error] = std::from_chars(name.data() + first, end, rank);
    if (error != std::errc()) continue;
    return RankedName{std::string(name.substr(0, first)) + '#' + std::string(after, end), rank};
  }
  return std::nullopt;
}

// A dump does not count as another rank.
std::optional<RankedName> ranked_name(const std::string& base) {
  if (base.find("_dump") != std::string::npos) return std::nullopt;
  const auto name = record::parse_recording_name(base);
  if (!name) return rank_in(base);
  if (!name->rank) return std::nullopt;
  return RankedName{name->program + ' ' + name->started, *name->rank};
}

// The ranks of the run of `base`, each with the name of its first trace.
std::map<std::uint32_t, std::string> ranks_of_run(const Candidates& all, const std::string& base) {
  std::map<std::uint32_t, std::string> ranks;
  const auto newest = ranked_name(base);
  if (!newest) return ranks;
  for (const auto& [other, candidate] : all)
    if (const auto name = ranked_name(other); name && name->run == newest->run)
      ranks.emplace(name->rank, other);
  return ranks;
}

// "0 to 7", or "0, 2 and 5" if some are missing.
std::string ranks_text(const std::map<std::uint32_t, std::string>& ranks) {
  constexpr std::size_t kMostNumbers = 16;
  const std::uint32_t first = ranks.begin()->first, last = ranks.rbegin()->first;
  if (ranks.size() > 2 && last - first + 1 == ranks.size())
    return fmt::format("{} to {}", first, last);
  if (ranks.size() > kMostNumbers)
    return fmt::format("{} to {} ({} of them)", first, last, ranks.size());
  std::string text;
  for (const auto& [rank, name] : ranks)
    text += fmt::format("{}{}", text.empty() ? "" : rank == last ? " and " : ", ", rank);
  return text;
}

}  // namespace

Result<NewestTrace> newest_trace_in(const std::string& folder, OtherRanks others) {
  Candidates all = candidates_in(folder);
  if (all.empty())
    return Error{
        Errc::kInvalidArgument,
        fmt::format("expected a trace file, found a folder without one: '{}'; record one there "
                    "(lanescope record -o '{}' -- python3 train.py), or give the folder or "
                    "file that your profiler writes",
                    folder, folder)};
  const auto path_of = [&](const std::string& base) {
    return (fs::path(folder) / (base + std::string(trace_endings()[all.at(base).ending]))).string();
  };
  std::vector<std::string> passed_over;
  std::string chosen = newest_of(all);
  while (all.size() > 1 && !format::may_be_trace(path_of(chosen))) {
    passed_over.push_back(fs::path(path_of(chosen)).filename().string());
    all.erase(chosen);
    chosen = newest_of(all);
  }
  std::string about_ranks;
  NewestTrace newest;
  if (const auto ranks = ranks_of_run(all, chosen); ranks.size() > 1) {
    chosen = ranks.begin()->second;
    for (const auto& [rank, base] : ranks) newest.ranks.emplace_back(rank, path_of(base));
    about_ranks =
        fmt::format("; it is rank {}, and ranks {} of its run are here: ", ranks.begin()->first,
                    ranks_text(ranks));
    if (others == OtherRanks::kInPage)
      about_ranks += "the list at the top of the page opens the others";
    else
      about_ranks += fmt::format("to open another one, name its file, such as '{}'",
                                 path_of(std::next(ranks.begin())->second));
  }
  newest.path = path_of(chosen);
  newest.is_choice = all.size() > 1 || !passed_over.empty();
  newest.line =
      fmt::format("opened '{}', {} in '{}'{}{}", newest.path,
                  all.size() == 1 ? std::string("the only trace")
                                  : fmt::format("the newest of {} traces", with_commas(all.size())),
                  folder, passed_over_text(passed_over), about_ranks);
  return newest;
}

}  // namespace lanescope
