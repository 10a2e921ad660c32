#include "lanescope/explain/time_takers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kind_of_work.h"
#include "lanescope/explain/owner_words.h"
#include "lanescope/explain/rules/copy_sources.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/explain/step_path.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

constexpr std::size_t kMostTakers = 3;
constexpr double kLeastTakerShare = 0.05;

std::vector<TimeTaker> ranked(const Facts& facts, std::vector<TimeTaker> takers) {
  sort_rows(takers.begin(), takers.end(),
            [](const TimeTaker& a, const TimeTaker& b) { return a.per_step_ns > b.per_step_ns; });
  const analysis::Gap* edge = rules::find_edge_gap(facts);
  const auto wall_ns =
      static_cast<double>(facts.steady_wall_ns() - (edge ? edge->end_ns - edge->start_ns : 0));
  for (TimeTaker& taker : takers) {
    taker.ratio = std::min(1.0, static_cast<double>(taker.per_step_ns) / wall_ns);
    taker.per_step_ns = facts.per_step(taker.per_step_ns);
  }
  std::erase_if(takers, [](const TimeTaker& taker) { return taker.ratio < kLeastTakerShare; });
  if (takers.size() > kMostTakers) takers.resize(kMostTakers);
  return takers;
}

}  // namespace

std::vector<TimeTaker> largest_kernels(const Facts& facts) {
  std::vector<TimeTaker> takers;
  if (!facts.main_device || facts.steady_wall_ns() == 0) return takers;
  std::map<std::string, std::pair<std::int64_t, SliceId>> by_name;
  std::int64_t all_ns = 0;
  for (const analysis::DeviceWork* work : rules::steady_work(facts)) {
    auto& [time_ns, first] =
        by_name.try_emplace(std::string(facts.trace->name(work->slice)), 0, work->slice)
            .first->second;
    time_ns += work->end_ns - work->start_ns;
    all_ns += work->end_ns - work->start_ns;
  }
  for (const auto& [label, sum] : by_name)
    takers.push_back({say("{}", {kernel(label)}), sum.first, 0, sum.second});
  takers = ranked(facts, std::move(takers));
  for (TimeTaker& taker : takers)
    taker.ratio_of_gpu_time =
        static_cast<double>(taker.per_step_ns) /
        static_cast<double>(std::max<std::int64_t>(1, facts.per_step(all_ns)));
  // Only for the few that are left, because finding a place looks through the thread's events.
  for (TimeTaker& taker : takers) {
    const Sentence place = user_code(facts, taker.example);
    if (place.pattern.empty()) continue;
    taker.what.pattern += ", ";
    append(taker.what, place);
  }
  return takers;
}

namespace {

// The two operators that ask for most of the casts and copies, with three twentieths of them or more each.
Sentence sources_of_copies(const Facts& facts) {
  constexpr std::int64_t kLeastTwentieths = 3;
  const std::vector<rules::CopySource> sources = rules::copy_sources(facts);
  std::int64_t all_ns = 0;
  for (const rules::CopySource& each : sources) all_ns += each.time_ns;
  Sentence text;
  for (std::size_t i = 0; i < sources.size() && i < 2; ++i) {
    if (sources[i].time_ns * 20 < all_ns * kLeastTwentieths) break;
    append(text, say(i == 0 ? "most in {}" : " and {}", {name(sources[i].name)}));
  }
  return text;
}

}  // namespace

std::vector<KindOfWork> kinds_of_gpu_work(const Facts& facts) {
  constexpr std::size_t kMostKinds = 4;
  std::vector<KindOfWork> kinds;
  if (!facts.main_device) return kinds;
  std::map<std::uint32_t, std::int64_t> by_name;
  std::map<std::uint32_t, SliceId> example;
  std::int64_t all_ns = 0;
  for (const analysis::DeviceWork* work : rules::steady_work(facts)) {
    const std::uint32_t named = raw(facts.trace->slices().name[raw(work->slice)]);
    by_name[named] += work->end_ns - work->start_ns;
    example.try_emplace(named, work->slice);
    all_ns += work->end_ns - work->start_ns;
  }
  std::map<std::string, std::int64_t> by_kind;
  for (const auto& [named, time_ns] : by_name)
    by_kind[kind_of_work(facts, example.at(named))] += time_ns;
  for (const auto& [words, time_ns] : by_kind)
    if (!words.empty() && all_ns > 0)
      kinds.push_back({words, static_cast<double>(time_ns) / static_cast<double>(all_ns)});
  std::erase_if(kinds, [](const KindOfWork& each) { return each.ratio < kLeastTakerShare; });
  sort_rows(kinds.begin(), kinds.end(),
            [](const KindOfWork& a, const KindOfWork& b) { return a.ratio > b.ratio; });
  if (kinds.size() > kMostKinds) kinds.resize(kMostKinds);
  // What is largest of all needs a place, because no product or loss is in its name.
  constexpr double kLeastWithSources = 0.15;
  if (!kinds.empty() && kinds.front().words == kCastsAndCopies &&
      kinds.front().ratio >= kLeastWithSources)
    kinds.front().sources = sources_of_copies(facts);
  return kinds;
}

namespace {

// Owners that are one operator at several lines of the program are one: each alone may look small.
std::vector<std::vector<const Owner*>> joined_by_operator(const std::vector<Owner>& owners) {
  std::vector<std::vector<const Owner*>> groups;
  const auto is_one_line = [](const Owner& owner) {
    return owner.kind == OwnerKind::kOperator && owner.around_kind == OwnerKind::kLine &&
           !owner.is_rest;
  };
  for (const Owner& owner : owners) {
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const std::vector<const Owner*>& group) {
          return is_one_line(owner) && is_one_line(*group.front()) &&
                 group.front()->name == owner.name;
        });
    if (same == groups.end())
      groups.push_back({&owner});
    else
      same->push_back(&owner);
  }
  return groups;
}

TimeTaker taker_of(const Facts& facts, const Owners& owners,
                   const std::vector<const Owner*>& group) {
  const Owner& first = *group.front();
  std::int64_t total_ns = 0;
  for (const Owner* owner : group) total_ns += owner->total_ns;
  const bool is_one = group.size() == 1;
  return {is_one ? owner_sentence(facts, first) : owners_sentence(facts, group),
          facts.per_step(total_ns),
          static_cast<double>(total_ns) / static_cast<double>(owners.total_ns),
          first.example,
          first.kind == OwnerKind::kStep,
          is_one ? owner_name(facts, first) : say("{}", {name(first.name)}),
          &first};
}

}  // namespace

std::vector<TimeTaker> largest_time_takers(const Facts& facts) {
  std::vector<TimeTaker> takers;
  if (facts.steady_wall_ns() == 0) return takers;
  if (const Owners* owners = step_owners(facts)) {
    for (const auto& group : joined_by_operator(owners->owners))
      takers.push_back(taker_of(facts, *owners, group));
    sort_rows(takers.begin(), takers.end(), [](const TimeTaker& a, const TimeTaker& b) {
      return std::pair(rank_of_owner(a.is_whole_step, a.ratio), -a.per_step_ns) <
             std::pair(rank_of_owner(b.is_whole_step, b.ratio), -b.per_step_ns);
    });
    // "All other parts" may not be shown because of something smaller.
    const auto rest = std::find_if(takers.begin(), takers.end(),
                                   [](const TimeTaker& each) { return each.is_whole_step; });
    if (takers.size() > kMostTakers && rest >= takers.begin() + kMostTakers &&
        rest != takers.end() && rest->per_step_ns > takers[kMostTakers - 1].per_step_ns)
      std::swap(*rest, takers[kMostTakers - 1]);
    if (takers.size() > kMostTakers) takers.resize(kMostTakers);
    return takers;
  }
  if (facts.main_device) return largest_kernels(facts);
  if (!facts.cpu || !facts.host) return takers;
  std::vector<HostStretch> stretches;
  for (const analysis::Window& window : facts.steady_windows)
    stretches.push_back({facts.cpu->thread, window.start_ns, window.end_ns, kNone<SliceId>});
  for (const HostShare& share : host_shares(facts, stretches))
    takers.push_back({describe(share), share.time_ns, 0, kNone<SliceId>});
  return ranked(facts, std::move(takers));
}

}  // namespace lanescope::explain
