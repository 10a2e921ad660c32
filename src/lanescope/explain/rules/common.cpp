#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool has_launches(const Facts& facts) {
  return facts.links.launched_count * 2 > facts.links.device_work_count;
}

bool is_host_bound(const Facts& facts) {
  if (!facts.main_device || !has_launches(facts)) return false;
  const auto& launches = facts.launches;
  return share_of(facts.waiting_for_cpu_ns(), facts.wall.partition.wall_ns) > 0.3 &&
         launches.empty_queue_count * 2 > launches.linked_count;
}

void add_host_evidence(const Facts& facts, const std::vector<HostShare>& shares, Finding& finding) {
  std::int64_t all = 0;
  for (const HostShare& share : shares) all += share.time_ns;
  for (std::size_t i = 0; i < shares.size() && i < 3; ++i) {
    if (shares[i].time_ns * 20 < all) break;  // below 5 % it explains nothing
    Sentence text = describe(shares[i]);
    text.pattern = "CPU meanwhile: " + text.pattern + ": {} per step, {}";
    text.values.push_back(ns(facts.per_step(shares[i].time_ns)));
    text.values.push_back(ratio(shares[i].time_ns, all));
    finding.evidence.push_back({shares[i].longest, std::move(text)});
  }
}

}  // namespace lanescope::explain::rules
