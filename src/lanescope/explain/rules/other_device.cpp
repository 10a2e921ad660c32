// A device whose rows are not those of a GPU: what it did, from its own rows.
#include <map>
#include <optional>
#include <string>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct RowTime {
  std::string name;
  std::int64_t time_ns = 0;  // of all its rows in steady steps
  SliceId longest = kNone<SliceId>;
};

std::vector<RowTime> row_times(const Facts& facts, const std::vector<SliceId>& slices) {
  std::map<std::string, RowTime> sums;
  for (const SliceId slice : slices) {
    if (!inside(facts.steady_windows, facts.trace->start_ns(slice))) continue;
    RowTime& sum = sums[std::string(facts.trace->name(slice))];
    sum.time_ns += facts.trace->dur_ns(slice);
    if (sum.longest == kNone<SliceId> ||
        facts.trace->dur_ns(slice) > facts.trace->dur_ns(sum.longest))
      sum.longest = slice;
  }
  std::vector<RowTime> works;
  for (auto& [name, sum] : sums) {
    sum.name = name;
    works.push_back(std::move(sum));
  }
  sort_rows(works.begin(), works.end(),
            [](const RowTime& a, const RowTime& b) { return a.time_ns > b.time_ns; });
  if (works.size() > 3) works.resize(3);
  return works;
}

enum class LargestPart : std::uint8_t { kCompute, kCommunication, kCopies, kIdle, kNothing };

struct OtherDeviceTimes {
  analysis::VendorWall wall;
  LargestPart most = LargestPart::kNothing;
  std::vector<RowTime> works, collectives;
};

std::optional<OtherDeviceTimes> measure_other_device(const Facts& facts) {
  OtherDeviceTimes found;
  found.wall = facts.vendor_wall;
  if (found.wall.wall_ns <= 0) return std::nullopt;
  const std::pair<std::int64_t, LargestPart> parts[] = {
      {found.wall.compute_ns, LargestPart::kCompute},
      {found.wall.exposed_communication_ns, LargestPart::kCommunication},
      {found.wall.exposed_copy_ns, LargestPart::kCopies},
      {found.wall.idle_ns(), LargestPart::kIdle}};
  for (const auto& [time_ns, most] : parts)
    if (time_ns * 2 > found.wall.wall_ns) found.most = most;
  found.works = row_times(facts, facts.vendor->works);
  found.collectives = row_times(facts, facts.vendor->collectives);
  return found;
}

const char* words_for_limit(LargestPart most) {
  switch (most) {
    case LargestPart::kCompute:
      return "Bound by the work of the {}";
    case LargestPart::kCommunication:
      return "Communication-bound on the {}";
    case LargestPart::kCopies:
      return "Copy-bound on the {}";
    case LargestPart::kIdle:
      return "Mostly idle: the {}";
    case LargestPart::kNothing:
      break;
  }
  return "No single limit on the {}";
}

Sentence other_device_verdict(const Facts& facts, const OtherDeviceTimes& found) {
  const analysis::VendorWall& wall = found.wall;
  const auto share = [&](std::int64_t part, const char* shows) {
    return linked(ratio(part, wall.wall_ns), shows);
  };
  const Value step = linked(ns(facts.per_step(wall.wall_ns)), shows::kStep);
  const Value computing = share(wall.compute_ns, shows::kCompute);
  Sentence verdict = say(words_for_limit(found.most), {text(facts.vendor->name)});
  append(verdict,
         found.most == LargestPart::kIdle
             ? say(facts, " computed for {} of the {} [a step took]", {computing, step})
             : say(facts, ": of the {} [a step took], it computed for {}", {step, computing}));
  if (wall.exposed_communication_ns > 0)
    append(verdict, say(", only {} ran for {},",
                        {text(facts.vendor->communication_name),
                         share(wall.exposed_communication_ns, shows::kCommunication)}));
  append(verdict, say(" and it was idle or waited for {}.", {share(wall.idle_ns(), shows::kIdle)}));
  return verdict;
}

// One line for the first screen; empty if the device was mostly idle, since the rows do not say why.
Sentence other_device_action(const Facts& facts, const OtherDeviceTimes& found) {
  const auto longest = [&](const std::vector<RowTime>& rows) {
    return std::vector<Value>{name(rows.front().name), ns(facts.per_step(rows.front().time_ns))};
  };
  if (found.most == LargestPart::kCommunication && !found.collectives.empty())
    return say(facts,
               "compare {}, {} [per step], with the same one in the other ranks' traces (lanescope "
               "ranks FOLDER): a rank in which it is much shorter comes late",
               longest(found.collectives));
  if (found.most == LargestPart::kCompute && !found.works.empty())
    return say(facts, "the device's longest work is {}, {} [per step]: make that cheaper first",
               longest(found.works));
  return {};
}

Finding tell_other_device(const Facts& facts, const OtherDeviceTimes& found) {
  const analysis::VendorWall& wall = found.wall;
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict = other_device_verdict(facts, found);
  Sentence sum = sum_of({{"computing", facts.per_step(wall.compute_ns)},
                         {"collectives alone", facts.per_step(wall.exposed_communication_ns)},
                         {"copies alone", facts.per_step(wall.exposed_copy_ns)},
                         {"idle or waiting", facts.per_step(wall.idle_ns())}});
  append(sum, say(facts, " = {} [per step]", {ns(facts.per_step(wall.wall_ns))}));
  finding.arithmetic.push_back(std::move(sum));
  finding.arithmetic.push_back(say(
      facts,
      "from the device's own rows on {} [stream|streams]; why it was idle is not known, because "
      "the trace does not join its work with the calls that started it",
      {count(facts.vendor->stream_count)}));
  for (const auto* works : {&found.collectives, &found.works})
    for (const RowTime& work : *works) {
      if (work.time_ns * 50 < wall.wall_ns) continue;
      finding.evidence.push_back(
          {work.longest,
           say(facts, "{}: {} [per step]", {name(work.name), ns(facts.per_step(work.time_ns))})});
    }
  if (found.most == LargestPart::kCommunication && !found.collectives.empty())
    finding.try_next = {
        "compare the longest collective with the same one in the traces of the other ranks: if it "
        "is much shorter in one of them, that rank comes late and the others wait for it",
        "if it takes as long in all ranks, move less data or overlap it with the backward pass"};
  else if (found.most == LargestPart::kIdle)
    finding.try_next = {
        "see what the CPU does while the device is idle: the rows of the thread that runs the "
        "steps, lanescope tree"};
  else
    finding.try_next = {"look at what takes most of the device's time, in the rows below"};
  finding.action = other_device_action(facts, found);
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule other_device_rule = {
    .id = "other-device",
    .question = "what does an NPU, or another device that is not a GPU, do?",
    .meant_by = "npu ascend mtia accelerator",
    .order = 48,
    .only_if = [](const Facts& facts) { return facts.vendor.has_value(); },
    .run = measure_and_tell<measure_other_device, tell_other_device>,
    .is_cpu_headline = true,
    .survives_cut = false,
};

}  // namespace lanescope::explain::rules
