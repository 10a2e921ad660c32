#include "lanescope/report/ranks_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/roster.h"
#include "lanescope/report/ranks_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::Job;
using ranks::JobVerdict;
using ranks::RankTimes;
using ranks::VerdictKind;

constexpr std::size_t kMostRows = 16, kExtremes = 5, kMostRates = 6, kMostGroupNames = 4;

std::string devices_text(const Job& job) {
  std::map<std::string, std::size_t> devices;
  for (const auto& rank : job.ranks)
    if (!rank.device.empty()) ++devices[rank.device];
  std::string text;
  for (const auto& [name, count] : devices)
    text +=
        fmt::format("{}{} x {}", text.empty() ? "" : " and ", count, shorten(one_line(name), 40));
  return text;
}

std::string hosts_text(const Job& job) {
  std::set<std::string> hosts;
  std::size_t unnamed = 0;
  for (const auto& rank : job.ranks)
    if (rank.host_name.empty())
      ++unnamed;
    else
      hosts.insert(rank.host_name);
  if (hosts.empty()) return "hosts not recorded";
  return fmt::format("{} host{}{}", hosts.size(), hosts.size() == 1 ? "" : "s",
                     unnamed == 0 ? "" : fmt::format(" ({} ranks do not name theirs)", unnamed));
}

std::string groups_text(const Job& job) {
  const auto& groups = job.matching.groups;
  if (groups.empty()) {
    std::uint64_t unlinked = 0;
    for (const auto& rank : job.ranks) unlinked += rank.unlinked_collectives;
    return unlinked == 0 ? "no collectives"
                         : fmt::format("0 of {} collective calls matched", format_count(unlinked));
  }
  std::string names;
  std::uint64_t matched = 0, all = 0;
  for (const auto& group : groups) {
    matched += group.matched;
    all += group.matched + group.unmatched;
  }
  for (std::size_t i = 0; i < groups.size() && i < kMostGroupNames; ++i)
    if (!groups[i].name.empty())
      names +=
          fmt::format("{}{}{}", names.empty() ? " (" : ", ", shorten(one_line(groups[i].name), 24),
                      groups[i].description.empty() || groups[i].description == "undefined"
                          ? ""
                          : " " + shorten(one_line(groups[i].description), 24));
  if (!names.empty()) names += groups.size() > kMostGroupNames ? ", ...)" : ")";
  return fmt::format("{} process group{}{}, {} of {} collective calls matched", groups.size(),
                     groups.size() == 1 ? "" : "s", names, format_count(matched),
                     format_count(all));
}

struct RankColumn {
  const char* title;
  std::size_t width;
};
constexpr RankColumn kColumns[] = {{"rank", 6},    {"step", 10},  {"own", 10},      {"compute", 10},
                                   {"idle", 10},   {"copies", 9}, {"transfer", 10}, {"waits", 10},
                                   {"hidden", 10}, {"clock", 20}};

std::string row_text(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += i == 0 ? pad_right(cells[i], kColumns[i].width) : pad_left(cells[i], kColumns[i].width);
  while (text.ends_with(' ')) text.pop_back();
  return text + "\n";
}

std::string clock_text(const ranks::RankClock& clock, bool is_reference) {
  if (is_reference) return "reference";
  if (!clock.known || clock.contradicts) return "unknown";
  const std::string sign = clock.offset_ns < 0 ? "-" : "+";
  return fmt::format("{}{} +- {}", sign, rounded_time(std::abs(clock.offset_ns)),
                     rounded_time(clock.error_ns));
}

constexpr char kColumnsNote[] =
    "step = own + transfer + waits; own = compute + idle + copies. Means of the steady steps.\n";
constexpr char kUnknownWaitsNote[] = "Where waits are unknown, transfer includes them.\n";

std::vector<std::string> cells_of(const std::string& name, const RankTimes& times, bool knows_waits,
                                  const std::string& clock) {
  return {name,
          rounded_time(times.wall_ns),
          rounded_time(times.own_ns),
          rounded_time(times.compute_ns),
          rounded_time(times.idle_ns()),
          rounded_time(times.copy_ns),
          rounded_time(times.exposed_transfer_ns()),
          knows_waits || times.exposed_ns == 0 ? rounded_time(times.exposed_wait_ns) : "unknown",
          rounded_time(times.hidden_ns),
          clock};
}

// Places in Job::compared: all of them, or the ones with the longest and shortest own time.
std::vector<std::size_t> shown_rows(const Job& job) {
  std::vector<std::size_t> rows(job.compared.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (rows.size() <= kMostRows) return rows;
  sort_rows(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return job.times[a].own_ns > job.times[b].own_ns;
  });
  rows.erase(rows.begin() + kExtremes, rows.end() - kExtremes);
  return rows;
}

RankTimes median_times(const Job& job) {
  std::vector<std::size_t> rows(job.times.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  sort_rows(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return job.times[a].own_ns > job.times[b].own_ns;
  });
  return job.times[rows[rows.size() / 2]];
}

std::string titles_text() {
  std::vector<std::string> titles;
  for (const RankColumn& column : kColumns) titles.emplace_back(column.title);
  return row_text(titles);
}

std::string rank_row(const Job& job, std::size_t row) {
  const std::uint32_t rank = job.compared[row];
  return row_text(cells_of(std::to_string(job.numbers[rank]), job.times[row], job.knows_waits(rank),
                           clock_text(job.clocks[rank], rank == 0)));
}

// Or there is nothing to wait in.
bool knows_all_waits(const Job& job) {
  for (std::size_t row = 0; row < job.compared.size(); ++row)
    if (job.times[row].exposed_ns > 0 && !job.knows_waits(job.compared[row])) return false;
  return true;
}

// Waits are never overstated. Where they may be much longer, transfer is much shorter.
std::string hidden_waits_note(const Job& job) {
  std::int64_t more = 0;
  for (const RankTimes& times : job.times)
    if (const std::int64_t ns = times.most_exposed_wait_ns() - times.exposed_wait_ns;
        ns > ranks::least_difference_ns(times.wall_ns))
      more = std::max(more, ns);
  if (more == 0) return {};
  return fmt::format("Waits are at least these: up to {} of a rank's transfer may be waits.\n",
                     rounded_time(more));
}

std::string columns_note(const Job& job) {
  return std::string(kColumnsNote) + (knows_all_waits(job) ? "" : kUnknownWaitsNote) +
         hidden_waits_note(job);
}

std::string table_text(const Job& job) {
  if (job.compared.empty()) return {};
  std::string text = titles_text();
  const std::vector<std::size_t> rows = shown_rows(job);
  const bool all = rows.size() == job.compared.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!all && i == kExtremes)
      text += row_text(
          cells_of("median", median_times(job), knows_all_waits(job),
                   fmt::format(" ({} ranks left out)", job.compared.size() - rows.size())));
    text += rank_row(job, rows[i]);
  }
  if (!all)
    text += fmt::format(
        "The {} ranks with the longest and the {} with the shortest own time; --csv "
        "has all.\n",
        kExtremes, kExtremes);
  return text + columns_note(job);
}

std::string rates_text(const Job& job) {
  std::string text;
  std::size_t rows = 0;
  for (const auto& rate : job.rates) {
    if (rate.bus_bandwidth <= 0 || rows == kMostRates) continue;
    if (rows++ == 0) text += "\nCollectives while all their ranks take part (medians)\n";
    const auto& group = job.matching.groups[rate.group];
    text += fmt::format(
        "  {:>6} x {}{}: {}, algorithm {:.1f} GB/s, bus {:.1f} GB/s; ranks arrive within {}\n",
        rate.count, shorten(one_line(rate.kind), 44),
        group.name.empty() || job.matching.groups.size() == 1
            ? ""
            : " in group " + shorten(one_line(group.name), 20),
        rounded_time(rate.together_ns), rate.algorithm_bandwidth / 1e9, rate.bus_bandwidth / 1e9,
        rounded_time(rate.wait_ns));
  }
  return text;
}

// Where communication has several purposes.
std::string groups_table(const Job& job) {
  constexpr std::size_t kMostPurposes = 8;
  if (job.groups.size() < 2) return {};
  std::string text =
      "\nExposed communication by purpose of the groups (a step, mean of all ranks)\n";
  for (std::size_t i = 0; i < job.groups.size() && i < kMostPurposes; ++i) {
    const ranks::GroupTimes& groups = job.groups[i];
    text += fmt::format("  {}: {} transfer, {} waits; {} call{}\n", ranks::groups_name(groups),
                        rounded_time(groups.transfer_ns()), rounded_time(groups.exposed_wait_ns),
                        groups.calls, groups.calls == 1 ? "" : "s");
  }
  if (job.groups.size() > kMostPurposes)
    text += fmt::format("  {} more; --json has all\n", job.groups.size() - kMostPurposes);
  return text;
}

std::string next_text(const Job& job, const JobVerdict& verdict) {
  if (job.compared.empty() || verdict.kind == VerdictKind::kUnknown) return {};
  std::size_t late = 0, usual = 0;
  std::vector<std::size_t> rows(job.times.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  sort_rows(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return job.times[a].own_ns > job.times[b].own_ns;
  });
  late = rows.front();
  usual = rows[rows.size() / 2];
  const auto file = [&](std::size_t row) { return one_line(job.ranks[job.compared[row]].file); };
  std::string text = "\nLook next\n";
  if (verdict.kind == VerdictKind::kBalanced)
    return text + fmt::format("  lanescope explain {}\n", file(usual));
  text += fmt::format("  lanescope explain {}\n", file(late));
  if (late != usual && verdict.kind != VerdictKind::kRotating &&
      verdict.kind != VerdictKind::kPipeline)
    text += fmt::format("  lanescope diff {} {}\n", file(usual), file(late));
  return text;
}

std::int64_t sort_key(const RankTimes& times, const std::string& column) {
  if (column == "step") return times.wall_ns;
  if (column == "own") return times.own_ns;
  if (column == "compute") return times.compute_ns;
  if (column == "idle") return times.idle_ns();
  if (column == "copies") return times.copy_ns;
  if (column == "transfer") return times.exposed_transfer_ns();
  if (column == "waits") return times.exposed_wait_ns;
  if (column == "hidden") return times.hidden_ns;
  return 0;
}

}  // namespace

std::string ranks_table(const Job& job, const RanksTableOptions& options) {
  std::vector<std::size_t> rows(job.compared.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  sort_rows(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return sort_key(job.times[a], options.sort_by) > sort_key(job.times[b], options.sort_by);
  });
  const std::size_t left_out = options.row_limit > 0 && rows.size() > options.row_limit
                                   ? rows.size() - options.row_limit
                                   : 0;
  rows.resize(rows.size() - left_out);
  std::string text = titles_text();
  for (const std::size_t row : rows) text += rank_row(job, row);
  if (left_out > 0) text += fmt::format("({} more rank{})\n", left_out, left_out == 1 ? "" : "s");
  if (job.ranks.size() > job.compared.size())
    text += fmt::format("(not compared: {}; lanescope ranks says why)\n",
                        job.ranks.size() - job.compared.size());
  return text + columns_note(job);
}

std::string job_sentence(const Job& job) {
  std::set<std::string> backends;
  for (const auto& rank : job.ranks)
    if (!rank.backend.empty()) backends.insert(one_line(rank.backend));
  std::string text = fmt::format("{} rank{}", job.ranks.size(), job.ranks.size() == 1 ? "" : "s");
  if (job.world_size && *job.world_size != static_cast<std::int64_t>(job.ranks.size()))
    text += fmt::format(" of {}", *job.world_size);
  text += fmt::format(", {}", backends.empty() ? "backend not recorded"
                                               : fmt::format("{}", fmt::join(backends, " and ")));
  if (const std::string devices = devices_text(job); !devices.empty()) text += ", " + devices;
  text += ", " + hosts_text(job) + "; " + groups_text(job);
  const std::uint64_t steps = job.steady_count();
  if (steps > 0 && job.compared.size() > 1)
    text += fmt::format("; {} step{} compared", steps, steps == 1 ? "" : "s");
  return text + ".";
}

std::string ranks_text(const Job& job, const JobVerdict& verdict) {
  std::string text = wrapped("", job_sentence(job));
  for (const ranks::Remark& remark : job.remarks) text += wrapped("! ", remark.text);
  text += "\n";
  for (const std::string& sentence : verdict_sentences(verdict)) text += wrapped("", sentence);
  for (const ranks::JobNote& note : verdict.notes) text += wrapped("- ", note.text);
  text += "\n" + table_text(job) + groups_table(job) + rates_text(job) + next_text(job, verdict);
  return text;
}

}  // namespace lanescope::report
