// Large collectives that are far slower than the links of the GPU, or than those of another group of ranks.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/model/gpu_device.h"

namespace lanescope::explain::rules {

using analysis::CollectiveCall;

namespace {

// Smaller messages pay the latency of the links as well (small-collectives).
constexpr std::int64_t kLargeMessageBytes = 8 << 20;
constexpr std::uint64_t kFewestLargeCalls = 4;
constexpr double kLeastExposed = 0.02;  // of the wall
constexpr double kLinkOverRate = 8;     // a healthy collective reaches more than half of the link
constexpr double kOtherGroupOverRate =
    4;                                 // hosts are connected by slower links than the GPUs of one
constexpr std::int64_t kLikeSize = 4;  // the larger message is at most so many times the other

// NVLink in one direction, all links of a GPU together: half of the data sheet's number. The GPUs of one host are connected by it.
struct NvlinkOfGpu {
  std::string_view part_of_name, not_in_name;
  double bytes_per_s;
};
constexpr std::array<NvlinkOfGpu, 8> kNvlinks{{
    {"v100-sxm", "", 150e9},
    {"a100-sxm", "", 300e9},
    {"a100-pg509", "", 300e9},
    {"h100 80gb hbm3", "", 450e9},
    {"h200", "nvl", 450e9},
    {"b200", "", 900e9},
    {"b300", "", 900e9},
    {"h20", "h200", 450e9},
}};

// Nothing: the GPU is unknown, or the process sees fewer GPUs than there are ranks, so that they share no host.
std::optional<double> link_of_host(const Facts& facts, std::int64_t ranks) {
  const auto json = facts.trace->metadata_json("deviceProperties");
  if (!json) return std::nullopt;
  const std::vector<GpuDevice> devices = parse_gpu_devices(*json);
  if (static_cast<std::int64_t>(devices.size()) < ranks) return std::nullopt;
  for (const GpuDevice& gpu : devices) {
    if (gpu.id != facts.device().timeline.device) continue;
    std::string name = gpu.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    for (const NvlinkOfGpu& link : kNvlinks)
      if (name.find(link.part_of_name) != std::string::npos &&
          (link.not_in_name.empty() || name.find(link.not_in_name) == std::string::npos))
        return link.bytes_per_s;
  }
  return std::nullopt;
}

// Equal calls: of one name, size and group.
struct FastestCall {
  SliceId slice = kNone<SliceId>;
  StringId name = kNone<StringId>;
  std::int64_t bytes = 0, time_ns = 0;
  double factor = 0, bytes_per_s = 0;  // bus bandwidth
};

struct GroupOfRanks {
  StringId name = kNone<StringId>;
  std::int64_t ranks = 0, total_ns = 0, exposed_ns = 0;
  std::uint64_t calls = 0;
  FastestCall fastest;
};

struct SlowCollectives {
  GroupOfRanks group;
  std::optional<double> link_bytes_per_s;  // of the GPU; nothing: the other group is compared
  GroupOfRanks other;
};

bool is_like(std::int64_t a, std::int64_t b) { return a <= b * kLikeSize && b <= a * kLikeSize; }

std::map<StringId, GroupOfRanks> groups_of_large_calls(const Facts& facts,
                                                       const std::vector<CollectiveCall>& calls) {
  const auto& timeline = facts.device().timeline;
  std::map<StringId, GroupOfRanks> groups;
  std::int64_t counted_until = 0;
  for (const CollectiveCall& call : calls) {
    if (!call.message_bytes || *call.message_bytes < kLargeMessageBytes ||
        call.name == kNone<StringId> || !inside(facts.steady_windows, call.work.start_ns))
      continue;
    const double factor = analysis::bus_factor(facts.trace->text(call.name), call.group_size);
    const std::int64_t time_ns = call.work.end_ns - call.work.start_ns;
    if (factor == 0 || time_ns <= 0) continue;
    GroupOfRanks& group = groups[call.group];
    group.name = call.group;
    group.ranks = call.group_size;
    group.total_ns += time_ns;
    ++group.calls;
    // Several streams may communicate at once: each moment counts once.
    const std::int64_t from = std::max(call.work.start_ns, counted_until);
    if (from < call.work.end_ns)
      group.exposed_ns += timeline.time_within(
          from, call.work.end_ns)[static_cast<std::size_t>(analysis::WorkClass::kCommunication)];
    counted_until = std::max(counted_until, call.work.end_ns);
    const double rate =
        static_cast<double>(*call.message_bytes) * factor * 1e9 / static_cast<double>(time_ns);
    if (rate > group.fastest.bytes_per_s)
      group.fastest = {call.work.slice, call.name, *call.message_bytes, time_ns, factor, rate};
  }
  return groups;
}

Measurement<SlowCollectives> measure_slow_collectives(const Facts& facts) {
  const auto calls =
      analysis::find_collective_calls(*facts.trace, facts.links, facts.device().timeline);
  const auto unknown = std::count_if(calls.begin(), calls.end(), [](const CollectiveCall& call) {
    return !call.message_bytes || call.group_size == 0;
  });
  if (static_cast<std::size_t>(unknown) * 2 > calls.size())
    return NotChecked{"sizes of the collectives and their groups (torch 2.3 or newer writes them)"};
  const auto groups = groups_of_large_calls(facts, calls);
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  std::optional<SlowCollectives> slowest;
  for (const auto& [id, group] : groups) {
    if (group.calls < kFewestLargeCalls || share_of(group.exposed_ns, wall_ns) < kLeastExposed ||
        (slowest && group.exposed_ns <= slowest->group.exposed_ns))
      continue;
    const double rate = group.fastest.bytes_per_s;
    if (const auto link = link_of_host(facts, group.ranks); link && rate * kLinkOverRate < *link) {
      slowest = SlowCollectives{group, link, {}};
      continue;
    }
    for (const auto& [other_id, other] : groups)
      if (other_id != id && is_like(other.fastest.bytes, group.fastest.bytes) &&
          rate * kOtherGroupOverRate < other.fastest.bytes_per_s)
        slowest = SlowCollectives{group, std::nullopt, other};
  }
  if (!slowest) return Quiet{};
  return *std::move(slowest);
}

Finding tell_slow_collectives(const Facts& facts, const SlowCollectives& found) {
  const GroupOfRanks& group = found.group;
  const FastestCall& fastest = group.fastest;
  const Trace& trace = *facts.trace;
  const auto rate = [](double bytes_per_s) {
    return bytes(static_cast<std::int64_t>(bytes_per_s));
  };
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict = say(
      "Large collectives of {} ranks are slow: the fastest, {} of {}, takes {}, which is {}/s of "
      "bus bandwidth. ",
      {count(static_cast<std::uint64_t>(group.ranks)), name(trace.text(fastest.name)),
       bytes(fastest.bytes), ns(fastest.time_ns), rate(fastest.bytes_per_s)});
  if (found.link_bytes_per_s)
    append(finding.verdict,
           say("NVLink of this GPU moves {}/s each way, if all of them share a host.",
               {rate(*found.link_bytes_per_s)}));
  else
    append(finding.verdict, say("Those of group {}, of {} ranks, reach {}/s.",
                                {name(trace.text(found.other.name)),
                                 count(static_cast<std::uint64_t>(found.other.ranks)),
                                 rate(found.other.fastest.bytes_per_s)}));
  finding.at_stake_ns = 0;
  const auto ranks = static_cast<double>(group.ranks);
  const bool is_twice = fastest.factor * ranks > ranks - 0.5;  // of an all-reduce
  finding.arithmetic.push_back(
      say("bus bandwidth = {} x {} / {}, as in nccl-tests",
          {bytes(fastest.bytes), text(is_twice ? "2 (n - 1) / n" : "(n - 1) / n"),
           ns(fastest.time_ns)}));
  finding.arithmetic.push_back(
      say(facts,
          "{} [call|calls] of 8 MiB or more [in {} steps]: {} [per step], for {} of it nothing "
          "computes",
          {count(group.calls), count(facts.selection.steady.size()),
           ns(facts.per_step(group.total_ns)), ns(facts.per_step(group.exposed_ns))}));
  finding.arithmetic.push_back(say(
      "one rank's trace cannot tell waiting from transfer: if this rank waited for others even in "
      "the fastest call, the links are faster than that"));
  finding.evidence.push_back(
      {fastest.slice, say("the fastest of them, in group {}", {name(trace.text(group.name))})});
  finding.try_next = {
      "compare the ranks' traces: lanescope ranks FOLDER tells waiting from transfer",
      "run with NCCL_DEBUG=INFO: it says whether NCCL uses NVLink (P2P), host memory (SHM) or a "
      "socket in a host, and InfiniBand (NET/IB) or sockets (NET/Socket) between hosts"};
  finding.confidence = facts.confidence();
  finding.sample_count = group.calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule slow_collectives_rule = {
    .id = "slow-collectives",
    .question = "are collectives slower than the links between GPUs?",
    .meant_by = "bandwidth nvlink infiniband",
    .order = 405,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_slow_collectives, tell_slow_collectives>,
};

}  // namespace lanescope::explain::rules
