#include "lanescope/report/ranks_diff.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/roster.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/ranks_words.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::CollectiveChange;
using ranks::CollectiveSide;
using ranks::JobComparison;
using ranks::JobPart;
using ranks::kJobPartCount;
using ranks::RankChange;

constexpr std::size_t kMostRankRows = 16, kMostCollectiveRows = 8, kPartWidth = 26,
                      kNumberWidth = 11;

const char* part_label(JobPart part) {
  switch (part) {
    case JobPart::kCompute:
      return "compute";
    case JobPart::kCpuIdle:
      return "idle, CPU late";
    case JobPart::kOtherIdle:
      return "idle, other";
    case JobPart::kCopies:
      return "copies";
    case JobPart::kTransfer:
      return "transfer";
    case JobPart::kWaits:
      return "waits for others";
  }
  return "";
}

std::string signed_time(std::int64_t ns) {
  if (ns == 0) return "0";
  return (ns < 0 ? "-" : "+") + rounded_time(std::llabs(ns));
}

std::string line_of(const std::string& name, std::int64_t a, std::int64_t b,
                    const std::string& remark = {}) {
  return fmt::format(
      "{}{}{}{}{}\n", pad_right(name, kPartWidth), pad_left(rounded_time(a), kNumberWidth),
      pad_left(rounded_time(b), kNumberWidth), pad_left(signed_time(b - a), kNumberWidth),
      remark.empty() ? "" : "  " + remark);
}

std::string headline(const JobComparison& change) {
  const std::int64_t delta = change.b_step_ns - change.a_step_ns;
  const std::string from = fmt::format("{} in A, {} in B", rounded_time(change.a_step_ns),
                                       rounded_time(change.b_step_ns));
  if (std::llabs(delta) <= change.limit_ns)
    return fmt::format("A step takes as long in both jobs: {}; less than {} is no difference.",
                       from, rounded_time(change.limit_ns));
  const double percent = change.a_step_ns > 0 ? 100.0 * static_cast<double>(std::llabs(delta)) /
                                                    static_cast<double>(change.a_step_ns)
                                              : 0;
  return fmt::format("A step takes {} {} in B: {} ({:.0f} %).", rounded_time(std::llabs(delta)),
                     delta > 0 ? "longer" : "less", from, percent);
}

std::string side_text(const char* name, const JobSide& side) {
  std::string text = fmt::format("{}, {} rank{}: ", one_line(side.label), side.job->ranks.size(),
                                 side.job->ranks.size() == 1 ? "" : "s");
  text += verdict_sentences(*side.verdict).front();
  std::string out = wrapped(fmt::format("{}  ", name), text);
  if (!side.job->remarks.empty())
    out += wrapped("   ! ", fmt::format("{} remark{} about its files: lanescope ranks {}",
                                        side.job->remarks.size(),
                                        side.job->remarks.size() == 1 ? "" : "s", side.label));
  return out;
}

// Why a difference of a part does not count.
const char* no_change_text(const JobComparison& change, JobPart part) {
  const auto i = static_cast<std::size_t>(part);
  const bool is_small = std::llabs(change.b[i] - change.a[i]) <= change.clock_limit_ns;
  if (part == JobPart::kTransfer && !is_small) return "may be waits";
  if (part == JobPart::kWaits && !is_small) return "may be transfer";
  return "too small to count";
}

// Where one job does not know its waits.
std::string unknown_waits_line(const JobComparison& change) {
  constexpr auto kWaits = static_cast<std::size_t>(JobPart::kWaits);
  const auto cell = [](bool known, std::int64_t ns) {
    return pad_left(known ? rounded_time(ns) : "unknown", kNumberWidth);
  };
  return fmt::format("{}{}{}{}  where unknown, transfer includes them\n",
                     pad_right(part_label(JobPart::kWaits), kPartWidth),
                     cell(change.a_waits_known, change.a[kWaits]),
                     cell(change.b_waits_known, change.b[kWaits]), pad_left("", kNumberWidth));
}

std::string parts_text(const JobComparison& change) {
  std::string text = fmt::format("{}{}{}{}\n", pad_right("a step, mean of ranks", kPartWidth),
                                 pad_left("A", kNumberWidth), pad_left("B", kNumberWidth),
                                 pad_left("change", kNumberWidth));
  for (std::size_t i = 0; i < kJobPartCount; ++i) {
    const auto part = static_cast<JobPart>(i);
    if (part == JobPart::kWaits && !(change.a_waits_known && change.b_waits_known)) {
      text += unknown_waits_line(change);
      continue;
    }
    const bool is_noise = change.a[i] != change.b[i] && !change.changed(part);
    text += line_of(part_label(part), change.a[i], change.b[i],
                    is_noise ? no_change_text(change, part) : "");
  }
  return text + line_of("step", change.a_step_ns, change.b_step_ns);
}

std::string ranks_section(const JobComparison& change) {
  std::vector<const RankChange*> own;
  std::vector<std::int64_t> waits;
  for (const RankChange& rank : change.ranks) {
    if (rank.own_changed) own.push_back(&rank);
    if (rank.waits_changed) waits.push_back(rank.rank);
  }
  sort_rows(own.begin(), own.end(), [](const RankChange* a, const RankChange* b) {
    return std::llabs(a->b_own_ns - a->a_own_ns) > std::llabs(b->b_own_ns - b->a_own_ns);
  });
  std::string text = "\nRanks\n";
  for (std::size_t i = 0; i < own.size() && i < kMostRankRows; ++i) {
    const RankChange& rank = *own[i];
    const auto part = static_cast<std::size_t>(rank.most_changed);
    text += line_of(fmt::format("  rank {}, own time", rank.rank), rank.a_own_ns, rank.b_own_ns,
                    fmt::format("most of it: {} {}", part_label(rank.most_changed),
                                signed_time(rank.b[part] - rank.a[part])));
  }
  if (own.size() > kMostRankRows)
    text += fmt::format("  and {} more ranks; --csv has all\n", own.size() - kMostRankRows);
  if (own.empty())
    text += wrapped("  ", fmt::format("No rank's own time changed by more than {}.",
                                      rounded_time(change.limit_ns)));
  if (!waits.empty())
    text +=
        wrapped("  ", fmt::format("Waits for other ranks changed by more than {} on {}.",
                                  rounded_time(change.clock_limit_ns), ranks::named_ranks(waits)));
  if (!change.only_a.empty())
    text += wrapped("  ", "Only in A: ranks " + ranks::ranks_text(change.only_a) + ".");
  if (!change.only_b.empty())
    text += wrapped("  ", "Only in B: ranks " + ranks::ranks_text(change.only_b) + ".");
  return text;
}

std::string calls_text(const std::optional<CollectiveSide>& side) {
  if (!side) return "none";
  const double rounded = std::round(side->per_step);
  const std::string count = std::abs(side->per_step - rounded) < 0.05
                                ? fmt::format("{:.0f}", rounded)
                                : fmt::format("{:.1f}", side->per_step);
  std::string text = fmt::format("{} a step, {} each", count, rounded_time(side->together_ns));
  if (side->bus_bandwidth > 0) text += fmt::format(", bus {:.1f} GB/s", side->bus_bandwidth / 1e9);
  return text;
}

std::string collectives_section(const JobComparison& change) {
  std::string text = "\nCollectives while all their ranks take part\n";
  if (change.collectives.empty())
    return text + wrapped("  ", fmt::format("No kind of collective changed in number or time ({} "
                                            "{} compared).",
                                            change.collective_kinds,
                                            change.collective_kinds == 1 ? "was" : "were"));
  for (std::size_t i = 0; i < change.collectives.size() && i < kMostCollectiveRows; ++i) {
    const CollectiveChange& each = change.collectives[i];
    text += wrapped(
        "  ", fmt::format("{} in group {}: {} in A; {} in B ({} a step)",
                          shorten(one_line(each.kind), 44),
                          each.group.empty() ? "of the job" : shorten(one_line(each.group), 24),
                          calls_text(each.a), calls_text(each.b), signed_time(each.step_ns)));
  }
  if (change.collective_changes > kMostCollectiveRows)
    text += fmt::format("  and {} more\n", change.collective_changes - kMostCollectiveRows);
  return text;
}

void write_parts(JsonWriter& json, std::string_view key, const ranks::JobParts& parts) {
  json.begin_object(key);
  for (std::size_t i = 0; i < parts.size(); ++i)
    json.integer(std::string(job_part_name(static_cast<JobPart>(i))) + "_ns", parts[i]);
  json.end_object();
}

void write_side(JsonWriter& json, std::string_view key, const JobSide& side) {
  json.begin_object(key).text("job", side.label).integer("rank_count", side.job->ranks.size());
  json.integer("compared_ranks", side.job->compared.size());
  json.integer("steps", side.job->steady_count()).integer("remarks", side.job->remarks.size());
  json.text("verdict", ranks::verdict_name(side.verdict->kind)).begin_array("late_ranks");
  for (const std::int64_t rank : side.verdict->ranks) json.integer("", rank);
  json.end_array().end_object();
}

void write_ranks(JsonWriter& json, const JobComparison& change) {
  json.begin_array("ranks");
  for (const RankChange& rank : change.ranks) {
    json.begin_object().integer("rank", rank.rank);
    json.integer("a_own_ns", rank.a_own_ns).integer("b_own_ns", rank.b_own_ns);
    json.boolean("own_changed", rank.own_changed).boolean("waits_changed", rank.waits_changed);
    json.text("most_changed", job_part_name(rank.most_changed));
    write_parts(json, "a", rank.a);
    write_parts(json, "b", rank.b);
    json.end_object();
  }
  json.end_array().begin_array("only_a");
  for (const std::int64_t rank : change.only_a) json.integer("", rank);
  json.end_array().begin_array("only_b");
  for (const std::int64_t rank : change.only_b) json.integer("", rank);
  json.end_array();
}

void write_collective(JsonWriter& json, std::string_view key,
                      const std::optional<CollectiveSide>& side) {
  if (!side) {
    json.null(key);
    return;
  }
  json.begin_object(key).real("calls_per_step", side->per_step);
  json.integer("together_ns", side->together_ns);
  if (side->bus_bandwidth > 0) json.real("bus_bytes_per_s", side->bus_bandwidth);
  json.end_object();
}

}  // namespace

std::string ranks_diff_text(const JobComparison& change, const JobSide& a, const JobSide& b) {
  std::string text = wrapped("", headline(change)) + side_text("A", a) + side_text("B", b) + "\n";
  text += parts_text(change) + ranks_section(change) + collectives_section(change);
  return text;
}

std::string ranks_diff_json(const JobComparison& change, const JobSide& a, const JobSide& b) {
  JsonWriter json("ranks diff");
  write_side(json, "a", a);
  write_side(json, "b", b);
  json.integer("a_step_ns", change.a_step_ns).integer("b_step_ns", change.b_step_ns);
  json.integer("a_most_waits_ns", change.a_most_waits_ns)
      .integer("b_most_waits_ns", change.b_most_waits_ns)
      .boolean("a_waits_known", change.a_waits_known)
      .boolean("b_waits_known", change.b_waits_known);
  json.integer("limit_ns", change.limit_ns).integer("clock_limit_ns", change.clock_limit_ns);
  json.begin_array("parts");
  for (std::size_t i = 0; i < kJobPartCount; ++i) {
    const auto part = static_cast<JobPart>(i);
    json.begin_object().text("part", job_part_name(part));
    json.integer("a_ns", change.a[i]).integer("b_ns", change.b[i]);
    json.boolean("changed", change.changed(part)).end_object();
  }
  json.end_array();
  write_ranks(json, change);
  json.integer("collective_changes", change.collective_changes).begin_array("collectives");
  for (const CollectiveChange& each : change.collectives) {
    json.begin_object().text("group", each.group).text("kind", each.kind);
    json.boolean("count_changed", each.count_changed).boolean("time_changed", each.time_changed);
    json.integer("step_ns", each.step_ns);
    write_collective(json, "a", each.a);
    write_collective(json, "b", each.b);
    json.end_object();
  }
  return json.end_array().take();
}

std::string ranks_diff_csv(const JobComparison& change) {
  std::string out = "rank,a_own_ns,b_own_ns";
  for (const char* side : {"a", "b"})
    for (std::size_t i = 0; i < kJobPartCount; ++i)
      out += fmt::format(",{}_{}_ns", side, job_part_name(static_cast<JobPart>(i)));
  out += ",own_changed,waits_changed\n";
  for (const RankChange& rank : change.ranks) {
    out += fmt::format("{},{},{}", rank.rank, rank.a_own_ns, rank.b_own_ns);
    for (const ranks::JobParts* parts : {&rank.a, &rank.b})
      for (const std::int64_t part : *parts) out += fmt::format(",{}", part);
    out += fmt::format(",{:d},{:d}\n", rank.own_changed, rank.waits_changed);
  }
  return out;
}

}  // namespace lanescope::report
