#include "lanescope/ranks/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "lanescope/base/sort_rows.h"

namespace lanescope::ranks {
namespace {

constexpr std::size_t kMostRemarksOfAKind = 8, kMostRuns = 6;

std::string file_name(const std::string& path) {
  const std::filesystem::path file(path);
  return file.has_filename() ? file.filename().string() : path;
}

// The end of `path` that tells it from `other`: its name, or that and the folders in which they differ.
std::string name_apart_from(const std::string& path, const std::string& other) {
  const std::filesystem::path one(path), two(other);
  auto a = one.end(), b = two.end();
  std::filesystem::path name;
  while (a != one.begin() && b != two.begin()) {
    --a;
    --b;
    name = name.empty() ? *a : *a / name;
    if (*a != *b) return name.string();
  }
  return path;
}

// The number after the word "rank" in one part of a path.
std::optional<std::int64_t> rank_in_part(std::string_view name) {
  constexpr std::string_view kWord = "rank";
  for (std::size_t at = name.find(kWord); at != name.npos; at = name.find(kWord, at + 1)) {
    if (at > 0 && std::isalpha(static_cast<unsigned char>(name[at - 1])) != 0) continue;
    std::size_t first = at + kWord.size();
    while (first < name.size() && std::string_view("_-.=").find(name[first]) != name.npos) ++first;
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(name.data() + first, name.data() + name.size(), rank);
    if (error == std::errc()) return rank;
  }
  return std::nullopt;
}

struct Candidate {
  RankSummary summary;
  std::optional<std::int64_t> rank;
};

class Roster {
 public:
  Result<Job> run(std::vector<RankFile> files) {
    std::vector<RankFile*> by_name;
    for (RankFile& file : files) by_name.push_back(&file);
    sort_rows(by_name.begin(), by_name.end(),
              [](const RankFile* a, const RankFile* b) { return a->file < b->file; });
    const Error* first_error = nullptr;
    for (RankFile* const each : by_name) {
      RankFile& file = *each;
      if (const Error* error = std::get_if<Error>(&file.content)) {
        if (!first_error) first_error = error;
        remark(RemarkKind::kUnreadable, fmt::format("{} is left out: {}", file_name(file.file),
                                                    message_without(file.file, error->message)));
      } else {
        add(std::move(std::get<RankSummary>(file.content)));
      }
    }
    if (candidates_.empty())
      return first_error
                 ? *first_error
                 : Error{Errc::kInvalidArgument,
                         "expected trace files of a job's ranks, found none; name a folder, "
                         "or the files themselves"};
    leave_out_other_jobs();
    number_the_nameless();
    leave_out_duplicates();
    finish();
    return std::move(job_);
  }

 private:
  void remark(RemarkKind kind, std::string text) {
    std::size_t& count = counts_[kind];
    if (++count <= kMostRemarksOfAKind) job_.remarks.push_back({kind, std::move(text)});
  }

  void add(RankSummary summary) {
    Candidate candidate;
    const auto named = rank_in_name(summary.file);
    candidate.rank = summary.rank ? summary.rank : named;
    if (summary.rank && named && *summary.rank != *named)
      remark(RemarkKind::kOtherRank,
             fmt::format("{} holds rank {}, although its name says {}: counted as rank {}",
                         file_name(summary.file), *summary.rank, *named, *summary.rank));
    if (summary.truncated)
      remark(RemarkKind::kTruncated,
             fmt::format("{} ends in the middle: what comes later is missing",
                         file_name(summary.file)));
    candidate.summary = std::move(summary);
    candidates_.push_back(std::move(candidate));
  }

  // The job is what most files say; ties: the first one by name.
  void leave_out_other_jobs() {
    using JobKey = std::pair<std::int64_t, std::string>;  // world size, backend
    const auto key_of = [](const RankSummary& summary) {
      return JobKey(summary.world_size.value_or(-1), summary.backend);
    };
    std::map<JobKey, std::size_t> votes;
    for (const Candidate& candidate : candidates_)
      if (candidate.summary.world_size) ++votes[key_of(candidate.summary)];
    if (votes.empty()) return;
    std::size_t most = 0;
    for (const auto& [key, count] : votes) most = std::max(most, count);
    JobKey chosen;
    for (const Candidate& candidate : candidates_)
      if (candidate.summary.world_size && votes[key_of(candidate.summary)] == most) {
        chosen = key_of(candidate.summary);
        break;
      }
    job_.world_size = chosen.first;
    std::erase_if(candidates_, [&](const Candidate& candidate) {
      const RankSummary& summary = candidate.summary;
      if (!summary.world_size || key_of(summary) == chosen) return false;
      remark(
          RemarkKind::kOtherJob,
          fmt::format("{} is left out: it is of another job, with {} ranks on {}; most files are "
                      "of one with {} on {}",
                      file_name(summary.file), *summary.world_size,
                      summary.backend.empty() ? "an unknown backend" : summary.backend,
                      chosen.first, chosen.second));
      return true;
    });
  }

  // Without any number the order of names decides, and the reader must know.
  void number_the_nameless() {
    std::set<std::int64_t> taken;
    for (const Candidate& candidate : candidates_)
      if (candidate.rank) taken.insert(*candidate.rank);
    std::int64_t next = 0;
    for (Candidate& candidate : candidates_) {
      if (candidate.rank) continue;
      while (taken.contains(next)) ++next;
      candidate.rank = next;
      taken.insert(next);
      remark(RemarkKind::kNoRank,
             fmt::format("{} does not say which rank it is: called rank {} here",
                         file_name(candidate.summary.file), next));
    }
  }

  // The file with more steps is kept; ties: the first by name.
  void leave_out_duplicates() {
    sort_rows(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return *a.rank < *b.rank; });
    std::vector<Candidate> kept;
    for (Candidate& candidate : candidates_) {
      if (kept.empty() || *kept.back().rank != *candidate.rank) {
        kept.push_back(std::move(candidate));
        continue;
      }
      if (candidate.summary.steps.size() > kept.back().summary.steps.size())
        std::swap(candidate, kept.back());
      remark(RemarkKind::kDuplicate,
             fmt::format("{} is left out: {} is rank {} as well",
                         name_apart_from(candidate.summary.file, kept.back().summary.file),
                         name_apart_from(kept.back().summary.file, candidate.summary.file),
                         *candidate.rank));
    }
    candidates_ = std::move(kept);
  }

  void finish() {
    std::vector<std::int64_t> missing;
    for (Candidate& candidate : candidates_) {
      job_.numbers.push_back(*candidate.rank);
      job_.ranks.push_back(std::move(candidate.summary));
    }
    const std::set<std::int64_t> present(job_.numbers.begin(), job_.numbers.end());
    constexpr std::int64_t kMostRanks = 1 << 20;
    const std::int64_t end = job_.world_size ? std::min(*job_.world_size, kMostRanks)
                                             : std::min(job_.numbers.back(), kMostRanks - 1) + 1;
    for (std::int64_t rank = 0; rank < end; ++rank)
      if (!present.contains(rank)) missing.push_back(rank);
    if (!missing.empty())
      remark(RemarkKind::kMissing,
             fmt::format("no file of {} {}: what {} did is unknown",
                         missing.size() == 1 ? "rank" : "ranks", ranks_text(missing),
                         missing.size() == 1 ? "it" : "they"));
    for (const auto& [kind, count] : counts_)
      if (count > kMostRemarksOfAKind)
        job_.remarks.push_back(
            {kind,
             fmt::format("{} more files: {}", count - kMostRemarksOfAKind,
                         kind == RemarkKind::kUnreadable  ? "left out, not readable"
                         : kind == RemarkKind::kDuplicate ? "left out, of a rank that is there"
                         : kind == RemarkKind::kOtherJob  ? "left out, of another job"
                                                          : remark_name(kind))});
  }

  Job job_;
  std::vector<Candidate> candidates_;
  std::map<RemarkKind, std::size_t> counts_;
};

}  // namespace

const char* remark_name(RemarkKind kind) {
  switch (kind) {
    case RemarkKind::kUnreadable:
      return "unreadable";
    case RemarkKind::kNoRank:
      return "no-rank";
    case RemarkKind::kOtherRank:
      return "other-rank";
    case RemarkKind::kDuplicate:
      return "duplicate";
    case RemarkKind::kOtherJob:
      return "other-job";
    case RemarkKind::kMissing:
      return "missing";
    case RemarkKind::kTruncated:
      return "truncated";
    case RemarkKind::kOtherModel:
      return "other-model";
    case RemarkKind::kMismatch:
      return "mismatch";
    case RemarkKind::kUnmatched:
      return "unmatched";
    case RemarkKind::kNoSteps:
      return "no-steps";
    case RemarkKind::kClock:
      return "clock";
  }
  return "";
}

std::optional<std::int64_t> rank_in_name(std::string_view path) {
  std::filesystem::path at{path};
  for (int part = 0; part < 3 && at.has_filename(); ++part, at = at.parent_path())
    if (const auto rank = rank_in_part(at.filename().string())) return rank;
  return std::nullopt;
}

std::string message_without(const std::string& path, const std::string& message) {
  return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
}

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  std::vector<std::string> runs;
  std::size_t named = 0;
  for (std::size_t i = 0; i < ranks.size() && runs.size() < kMostRuns;) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i > 2) {
      runs.push_back(fmt::format("{} to {}", ranks[i], ranks[end - 1]));
    } else {
      for (std::size_t k = i; k < end; ++k) runs.push_back(std::to_string(ranks[k]));
    }
    named += end - i;
    i = end;
  }
  if (named < ranks.size()) runs.push_back(fmt::format("{} more", ranks.size() - named));
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += (i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ") + runs[i];
  return text;
}

Result<Job> make_roster(std::vector<RankFile> files) { return Roster().run(std::move(files)); }

std::string named_ranks(const std::vector<std::int64_t>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranks_text(ranks));
}

}  // namespace lanescope::ranks
