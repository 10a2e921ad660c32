#include "lanescope/cli/newest_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "lanescope/cli/text.h"
#include "lanescope/record/recording_name.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

// The first one that is there is opened.
constexpr std::array<std::string_view, 4> kEndings = {".json", ".json.gz", ".json.zst", ".lspool"};

struct Candidate {
  std::size_t ending = kEndings.size();
  fs::file_time_type changed = fs::file_time_type::min();  // the newest of its files
};

using Candidates = std::map<std::string, Candidate>;  // by name without ending

Candidates candidates_in(const fs::path& folder) {
  Candidates found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const auto ending = std::find_if(kEndings.begin(), kEndings.end(), [&](std::string_view one) {
      return name.size() > one.size() && name.ends_with(one);
    });
    std::error_code gone;
    if (ending == kEndings.end() || !at->is_regular_file(gone)) continue;
    const fs::file_time_type changed = at->last_write_time(gone);
    if (gone) continue;
    Candidate& candidate = found[name.substr(0, name.size() - ending->size())];
    candidate.ending =
        std::min(candidate.ending, static_cast<std::size_t>(ending - kEndings.begin()));
    candidate.changed = std::max(candidate.changed, changed);
  }
  return found;
}

// The ranks of the run that `base` belongs to, with the name of each one's first trace. Dumps are
// no ranks of their own.
std::map<std::uint32_t, std::string> ranks_of_run(const Candidates& all, const std::string& base) {
  std::map<std::uint32_t, std::string> ranks;
  const auto newest = record::parse_recording_name(base);
  if (!newest || !newest->rank || base.find("_dump") != std::string::npos) return ranks;
  for (const auto& [other, candidate] : all) {
    const auto name = record::parse_recording_name(other);
    if (name && name->rank && name->program == newest->program &&
        name->started == newest->started && other.find("_dump") == std::string::npos)
      ranks.emplace(*name->rank, other);
  }
  return ranks;
}

}  // namespace

Result<NewestTrace> newest_trace_in(const std::string& folder) {
  const Candidates all = candidates_in(folder);
  if (all.empty())
    return Error{Errc::kInvalidArgument,
                 fmt::format("expected a trace file, found a folder without one: '{}'", folder)};
  std::string chosen =
      std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.changed, a.first) < std::pair(b.second.changed, b.first);
      })->first;
  std::string about_ranks;
  if (const auto ranks = ranks_of_run(all, chosen); ranks.size() > 1) {
    chosen = ranks.begin()->second;
    about_ranks = fmt::format("; its run has {} ranks, {} to {}, and this is rank {}", ranks.size(),
                              ranks.begin()->first, ranks.rbegin()->first, ranks.begin()->first);
  }
  const std::string path =
      (fs::path(folder) / (chosen + std::string(kEndings[all.at(chosen).ending]))).string();
  return NewestTrace{
      path, fmt::format("opened '{}', {} in '{}'{}", path,
                        all.size() == 1
                            ? std::string("the only trace")
                            : fmt::format("the newest of {} traces", with_commas(all.size())),
                        folder, about_ranks)};
}

}  // namespace lanescope::cli
