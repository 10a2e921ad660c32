// Collectives that cannot be matched across ranks: they have no name, or share a sequence number.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct UnmatchedKeys {
  std::uint64_t all = 0;
  std::uint64_t nameless = 0;
  std::uint64_t foreign = 0;  // nameless ones that are no kernels of NCCL or RCCL
  std::uint64_t twice = 0;    // sequence numbers that occur again
  SliceId first = kNone<SliceId>;
  SliceId second = kNone<SliceId>;
};

std::optional<UnmatchedKeys> measure_collective_keys(const Facts& facts) {
  const auto calls =
      analysis::find_collective_calls(*facts.trace, facts.links, facts.device().timeline);
  std::uint64_t all = 0, nameless = 0, foreign = 0, twice = 0;
  SliceId first = kNone<SliceId>, second = kNone<SliceId>;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> seen;
  for (const auto& call : calls) {
    if (call.work.before_recording) continue;  // launched before: normal
    ++all;
    if (call.name == kNone<StringId>) {
      if (nameless++ == 0) first = call.work.slice;
      if (facts.trace->name(call.work.slice).find("nccl") == std::string_view::npos) ++foreign;
    }
    if (call.sequence && ++seen[{raw(call.group), raw(call.name), *call.sequence}] == 2 &&
        twice++ == 0)
      second = call.work.slice;
  }
  if (all < 5 || (nameless * 10 <= all && twice * 10 <= all)) return std::nullopt;
  return UnmatchedKeys{.all = all,
                       .nameless = nameless,
                       .foreign = foreign,
                       .twice = twice,
                       .first = first,
                       .second = second};
}

Finding tell_collective_keys(const Facts& facts, const UnmatchedKeys& found) {
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict =
      found.nameless * 10 > found.all
          ? say(facts,
                "{} of {} communication kernels do not say which collective they are: "
                "across ranks they can be matched by order only.",
                {count(found.nameless), count(found.all)})
          : say(facts,
                "{} sequence [number of collectives occurs|numbers of collectives occur] twice in "
                "one process group: these numbers do not show which calls of different ranks "
                "belong together.",
                {count(found.twice)});
  finding.arithmetic.push_back(say(
      "kernels that were launched before the recording are not counted: they never have names"));
  if (found.first != kNone<SliceId> && found.nameless * 10 > found.all)
    finding.evidence.push_back({found.first, say("the first without a name")});
  if (found.second != kNone<SliceId>)
    finding.evidence.push_back({found.second, say("the first repeated one")});
  if (found.foreign * 2 > found.nameless)
    finding.try_next = {
        "change nothing: most are not kernels of NCCL or RCCL (symmetric memory, a server's own "
        "all-reduce), and no recording names those"};
  else
    finding.try_next = {
        "record with a newer torch, and with record_shapes=True: record_param_comms writes names, "
        "sizes and groups"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = found.all;
  finding.sample_noun = "collective";
  return finding;
}

}  // namespace

extern constinit const Rule collective_keys_rule = {
    .id = "collective-keys",
    .question = "can collectives be matched across ranks?",
    .order = 470,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_collective_keys, tell_collective_keys>,
};

}  // namespace lanescope::explain::rules
