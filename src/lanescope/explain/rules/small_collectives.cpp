// Many collectives of small messages: each pays the latency of the network, not its bandwidth.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::WorkClass;

namespace {

struct CollectiveGroup {
  std::uint64_t calls = 0;
  std::int64_t bytes = 0, total_ns = 0, exposed_ns = 0, longest_ns = -1;
  SliceId longest = kNone<SliceId>;
};

// The exposed parts of calls of one name and size.
struct EqualMessages {
  std::int64_t shortest_ns = std::numeric_limits<std::int64_t>::max();  // whole, exposed or not
  std::vector<std::int64_t> exposed_ns;
};

struct SmallCollectives {
  std::map<std::string_view, CollectiveGroup> groups;
  std::uint64_t all = 0;
  std::uint64_t small = 0;
  std::int64_t exposed_ns = 0;
  // The part by which calls exceed the shortest equal call: waits for another rank, or busy links.
  // Fewer calls would not end these.
  std::int64_t waited_ns = 0;
};

Measurement<SmallCollectives> measure_small_collectives(const Facts& facts) {
  const auto& timeline = facts.device().timeline;
  const auto calls = analysis::find_collective_calls(*facts.trace, facts.links, timeline);
  std::map<std::string_view, CollectiveGroup> groups;
  std::map<std::pair<std::string_view, std::int64_t>, EqualMessages> equal;
  std::uint64_t all = 0, sized = 0, small = 0;
  std::int64_t exposed_ns = 0, counted_until = 0;
  for (const auto& call : calls) {
    if (!inside(facts.steady_windows, call.work.start_ns)) continue;
    ++all;
    if (!call.message_bytes) continue;
    ++sized;
    if (*call.message_bytes >= analysis::kSmallMessageBytes) continue;
    ++small;
    CollectiveGroup& group = groups[facts.trace->text(call.name)];
    const std::int64_t length = call.work.end_ns - call.work.start_ns;
    // Several streams may communicate at once: each moment counts once.
    const std::int64_t from = std::max(call.work.start_ns, counted_until);
    const std::int64_t alone =
        from < call.work.end_ns
            ? timeline.time_within(
                  from, call.work.end_ns)[static_cast<std::size_t>(WorkClass::kCommunication)]
            : 0;
    counted_until = std::max(counted_until, call.work.end_ns);
    ++group.calls;
    group.bytes = analysis::add_bytes(group.bytes, *call.message_bytes);
    group.total_ns += length;
    group.exposed_ns += alone;
    exposed_ns += alone;
    EqualMessages& messages = equal[{facts.trace->text(call.name), *call.message_bytes}];
    messages.shortest_ns = std::min(messages.shortest_ns, length);
    messages.exposed_ns.push_back(alone);
    if (length > group.longest_ns) {
      group.longest_ns = length;
      group.longest = call.work.slice;
    }
  }
  if (all > 0 && sized * 2 < all)
    return NotChecked{"sizes of the collectives (torch 2.3 or newer writes them)"};
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const auto steps = step_count(facts);
  std::int64_t waited_ns = 0;
  for (const auto& [key, messages] : equal)
    for (const std::int64_t each : messages.exposed_ns)
      waited_ns += std::max<std::int64_t>(0, each - messages.shortest_ns);
  if (small < analysis::kManySmallMessages * steps ||
      share_of(exposed_ns - waited_ns, wall_ns) < 0.02)
    return Quiet{};
  return SmallCollectives{std::move(groups), all, small, exposed_ns, waited_ns};
}

Finding tell_small_collectives(const Facts& facts, const SmallCollectives& measured) {
  const auto& [groups, all, small, exposed_ns, waited_ns] = measured;
  const std::int64_t latency_ns = exposed_ns - waited_ns;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict =
      say(facts,
          "{} of {} collectives [per step] carry less than 2 MiB each: they pay the latency of "
          "{} calls, and for {} [per step] nothing computes meanwhile.",
          {count(a_step(facts, small)), count(a_step(facts, all)), count(a_step(facts, small)),
           ns(facts.per_step(exposed_ns))});
  finding.at_stake_ns = facts.per_step(latency_ns);
  finding.at_stake_ratio = share_of(latency_ns, wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "of these {} [call|calls] [per step], the time counts in which only communication ran; "
          "the same bytes in few calls still take time",
          {count(small / steps)}));
  if (waited_ns > 0)
    finding.arithmetic.push_back(
        say(facts,
            "not counted: {} [per step] that calls take longer than the shortest one of the same "
            "name and size; there the GPU waits for another rank or for busy links",
            {ns(facts.per_step(waited_ns))}));
  for (const auto& [label, group] : groups)
    finding.evidence.push_back(
        {group.longest,
         say(facts, "{} x{}: {} each on average, {} in all [per step], exposed {}",
             {name(label), count(group.calls),
              bytes(group.bytes / static_cast<std::int64_t>(group.calls)),
              ns(facts.per_step(group.total_ns)), ns(facts.per_step(group.exposed_ns))})});
  sort_rows(finding.evidence.begin(), finding.evidence.end(),
            [](const Evidence& a, const Evidence& b) {
              return a.text.values[4].integer > b.text.values[4].integer;
            });
  if (finding.evidence.size() > 3) finding.evidence.resize(3);
  finding.try_next = {
      "use larger buckets (DDP bucket_cap_mb, FSDP units of more layers), or one coalesced call "
      "(torch.distributed._coalescing_manager, a flattened tensor)"};
  finding.confidence = facts.confidence();
  finding.sample_count = small;
  finding.sample_noun = "collective";
  finding.brief = say("{} of {} collectives carry less than 2 MiB", {count(small), count(all)});
  finding.action = say("Use larger buckets (DDP bucket_cap_mb, larger FSDP units)");
  return finding;
}

}  // namespace

extern constinit const Rule small_collectives_rule = {
    .id = "small-collectives",
    .question = "are there many collectives of small messages?",
    .order = 400,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_small_collectives, tell_small_collectives>,
    .is_regression = true,
    .fix = Fix::kCommunication,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
