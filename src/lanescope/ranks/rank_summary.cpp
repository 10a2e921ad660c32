#include "lanescope/ranks/rank_summary.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/step_selection.h"
#include "lanescope/base/json_value.h"
#include "lanescope/explain/facts.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/ranks/host_times.h"
#include "lanescope/ranks/rank_calls.h"

namespace lanescope::ranks {
namespace {

using analysis::Window;
using explain::Facts;

std::string string_member(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value && value->is_string() ? value->text : std::string();
}

std::optional<std::int64_t> integer_member(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value ? value->integer : std::nullopt;
}

ProcessGroup group_of(const JsonValue& entry) {
  ProcessGroup group;
  group.name = string_member(entry, "pg_name");
  group.description = string_member(entry, "pg_desc");
  group.backend = string_member(entry, "backend_config");
  group.size = integer_member(entry, "pg_size").value_or(0);
  if (const JsonValue* ranks = entry.find("ranks");
      ranks && ranks->is_array() && ranks->items.size() <= kMostGroupRanks)
    for (const JsonValue& rank : ranks->items)
      if (rank.integer) group.ranks.push_back(*rank.integer);
  if (group.size <= 0) group.size = static_cast<std::int64_t>(group.ranks.size());
  return group;
}

// Only the groups that a collective of the trace names are kept in the end: jobs have hundreds.
std::vector<ProcessGroup> read_job(const Trace& trace, RankSummary& summary) {
  std::vector<ProcessGroup> groups;
  if (const auto host = trace.metadata_json("host_name"))
    if (const auto value = parse_json(*host); value && value->is_string())
      summary.host_name = value->text;
  const auto text = trace.metadata_json("distributedInfo");
  const auto job = text ? parse_json(*text) : std::nullopt;
  if (!job || !job->is_object()) return groups;
  summary.rank = integer_member(*job, "rank");
  summary.world_size = integer_member(*job, "world_size");
  if (summary.rank && *summary.rank < 0) summary.rank.reset();
  if (summary.world_size && *summary.world_size <= 0) summary.world_size.reset();
  summary.backend = string_member(*job, "backend");
  if (const JsonValue* list = job->find("pg_config"); list && list->is_array())
    for (const JsonValue& entry : list->items)
      if (entry.is_object()) groups.push_back(group_of(entry));
  return groups;
}

void read_devices(const Facts& facts, RankSummary& summary) {
  summary.device_count = facts.devices.size();
  if (facts.vendor) {
    summary.device = facts.vendor->name;
    summary.device_count = 1;
  }
  const auto json = facts.trace->metadata_json("deviceProperties");
  if (!json || !facts.main_device) return;
  for (const GpuDevice& device : parse_gpu_devices(*json))
    if (summary.device.empty() || device.id == facts.device().timeline.device)
      summary.device = device.name;
}

std::uint64_t mixed(std::uint64_t value) {  // splitmix64's finaliser
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

std::uint64_t hash_of(std::string_view text) {  // FNV-1a: the same on every machine
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ull;
  return hash;
}

// Which kernels computed in each step. Sums of hashes do not depend on the order.
void hash_kernels(const Facts& facts, std::vector<RankStep>& steps) {
  const Trace& trace = *facts.trace;
  std::size_t step = 0;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    while (step < steps.size() && work.start_ns >= facts.step_window(step).end_ns) ++step;
    if (step == steps.size()) break;
    if (work.work != analysis::WorkClass::kCompute ||
        work.start_ns < facts.step_window(step).start_ns)
      continue;
    const ArgsView args = trace.slice_args(work.slice);
    const auto grid = args.text(ArgKey::kGrid), block = args.text(ArgKey::kBlock);
    const std::uint64_t name = hash_of(trace.name(work.slice));
    RankStep& into = steps[step];
    ++into.kernels;
    into.names_hash += mixed(name);
    into.shapes_hash += mixed(name ^ mixed(hash_of(grid ? trace.text(*grid) : "")) ^
                              (mixed(hash_of(block ? trace.text(*block) : "")) << 1));
  }
}

void add_gpu_walls(const Facts& facts, std::vector<RankStep>& steps,
                   const analysis::IntervalUnion& communication) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const explain::WallTimes& wall = facts.device().walls[i];
    const Window window = facts.step_window(i);
    steps[i].compute_ns = wall.partition.compute_ns;
    steps[i].exposed_ns = wall.partition.exposed_communication_ns;
    steps[i].hidden_ns = communication.length_within_ns(window.start_ns, window.end_ns) -
                         wall.partition.exposed_communication_ns;
    steps[i].copy_ns = wall.partition.exposed_copy_ns;
    steps[i].idle = wall.idle;
  }
  hash_kernels(facts, steps);
}

// Without a GPU that Kineto knows: all that is neither computing nor communicating is idle. A CPU that
// computes is then in code outside of operators; why another device waits is unknown.
void add_other_walls(const Facts& facts, const RankCalls& calls, std::vector<RankStep>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Window window = facts.step_window(i);
    RankStep& step = steps[i];
    const auto within = [&](const analysis::IntervalUnion& what) {
      return what.length_within_ns(window.start_ns, window.end_ns);
    };
    step.compute_ns = within(calls.compute);
    step.exposed_ns = within(calls.compute_or_communication) - step.compute_ns;
    step.hidden_ns = within(calls.communication) - step.exposed_ns;
    const auto cause =
        facts.cpu && !facts.vendor ? analysis::IdleCause::kHostLate : analysis::IdleCause::kUnknown;
    step.idle[static_cast<std::size_t>(cause)] = step.wall_ns - step.compute_ns - step.exposed_ns;
  }
}

// "20 x Optimizer.step#Adam.step", "2 x aten::item in generate", "round of 12 operators (aten::mm, ...)".
std::string unit_of(const analysis::Iterations& found) {
  constexpr std::size_t kLongestMark = 160;
  std::string unit = found.mark.substr(0, kLongestMark);
  const std::string owner = found.owner.substr(0, kLongestMark);
  if (found.kind == analysis::IterationMark::kRangeEnd)
    return owner.empty() ? unit : owner + " x " + unit;
  if (found.kind != analysis::IterationMark::kWait) return unit;
  unit = std::to_string(found.waits) + " x " + unit;
  return owner.empty() ? unit : unit + " in " + owner;
}

void add_steps(const Facts& facts, const RankCalls& calls, RankSummary& summary) {
  std::vector<RankStep> steps(facts.steps.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Window window = facts.step_window(i);
    steps[i].number =
        facts.steps.marked && !facts.steps.found ? facts.steps.steps[i].number.value_or(-1) : -1;
    steps[i].start_ns = window.start_ns;
    steps[i].wall_ns = std::max<std::int64_t>(0, window.length_ns());
  }
  for (const std::size_t index : facts.selection.steady) steps[index].steady = true;
  if (facts.main_device)
    add_gpu_walls(facts, steps, calls.communication);
  else
    add_other_walls(facts, calls, steps);
  add_host_times(facts, steps);
  summary.steps_marked = facts.steps.marked;
  if (facts.steps.found) summary.step_unit = unit_of(*facts.steps.found);
  if (steps.size() > kMostSteps) steps.resize(kMostSteps);
  summary.steps = std::move(steps);
}

// The step in which a moment of the CPU lies.
std::int32_t step_at(const Facts& facts, std::int64_t time_ns) {
  const auto& steps = facts.steps.steps;
  const auto after = std::upper_bound(
      steps.begin(), steps.end(), time_ns,
      [](std::int64_t time, const analysis::StepRange& step) { return time < step.cpu_start_ns; });
  if (after == steps.begin() || time_ns >= std::prev(after)->cpu_end_ns) return -1;
  const auto index = std::prev(after) - steps.begin();
  return index < static_cast<std::ptrdiff_t>(kMostSteps) ? static_cast<std::int32_t>(index) : -1;
}

// The two ranks of a send or receive in a group of more, rising; empty: not such a call, or unknown. Whether
// the recorded number counts within the group or in the job is not documented: it must mean one rank.
std::vector<std::int64_t> pair_in_group(const FoundCall& call,
                                        const std::vector<ProcessGroup>& known,
                                        std::optional<std::int64_t> rank) {
  if (!call.peer || !rank || *call.peer < 0) return {};
  std::vector<std::int64_t> ranks = call.group.ranks;
  for (const ProcessGroup& group : known)
    if (group.name == call.group.name && !group.ranks.empty()) ranks = group.ranks;
  if (ranks.size() <= 2 || std::find(ranks.begin(), ranks.end(), *rank) == ranks.end()) return {};
  const bool in_job = std::find(ranks.begin(), ranks.end(), *call.peer) != ranks.end();
  const bool in_group = *call.peer < static_cast<std::int64_t>(ranks.size());
  if (!in_job && !in_group) return {};
  const std::int64_t as_job = *call.peer;
  const std::int64_t as_group = in_group ? ranks[static_cast<std::size_t>(*call.peer)] : as_job;
  if (in_job && in_group && as_job != as_group) return {};
  const std::int64_t other = in_job ? as_job : as_group;
  if (other == *rank) return {};
  return {std::min(*rank, other), std::max(*rank, other)};
}

// Finds the group of a call, or adds it. A pair in a larger group is a group of its own.
std::uint32_t group_index(const FoundCall& call, const std::vector<ProcessGroup>& known,
                          const std::vector<std::int64_t>& pair, std::vector<ProcessGroup>& used) {
  const auto same = [&](const ProcessGroup& group) { return group.name == call.group.name; };
  const auto same_used = [&](const ProcessGroup& group) {
    const bool is_pair = group.ranks.size() == 2 && group.size > 2;
    return same(group) && (pair.empty() ? !is_pair : group.ranks == pair);
  };
  auto found = std::find_if(used.begin(), used.end(), same_used);
  if (found != used.end() || used.size() >= kMostGroups)
    return static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(
        found - used.begin(), static_cast<std::ptrdiff_t>(kMostGroups) - 1));
  const auto declared = std::find_if(known.begin(), known.end(), same);
  ProcessGroup group = call.group;
  if (declared != known.end() && !call.group.name.empty()) {
    group.description = declared->description;
    group.backend = declared->backend;
    if (!declared->ranks.empty()) group.ranks = declared->ranks;
    if (declared->size > 0) group.size = declared->size;
  }
  if (!pair.empty()) {
    group.size = std::max<std::int64_t>(group.size, 3);
    group.ranks = pair;
  }
  used.push_back(std::move(group));
  return static_cast<std::uint32_t>(used.size() - 1);
}

void add_collectives(const Facts& facts, const RankCalls& calls,
                     const std::vector<ProcessGroup>& known, RankSummary& summary) {
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::uint32_t>,
           std::uint32_t>
      kinds;
  for (const FoundCall& call : calls.calls) {
    if (summary.collectives.size() >= kMostCollectives) {
      ++summary.dropped_collectives;
      continue;
    }
    CollectiveKind kind = call.kind;
    kind.group = group_index(call, known, pair_in_group(call, known, summary.rank), summary.groups);
    const auto [entry, is_new] =
        kinds.try_emplace({kind.name, kind.dtype, kind.in_elements, kind.out_elements, kind.group},
                          static_cast<std::uint32_t>(summary.kinds.size()));
    if (is_new) {
      if (summary.kinds.size() >= kMostKinds) {
        kinds.erase(entry);
        ++summary.dropped_collectives;
        continue;
      }
      summary.kinds.push_back(std::move(kind));
    }
    summary.collectives.push_back(
        {.kind = entry->second,
         .step = step_at(facts, call.launch_ns),
         .sequence = call.sequence.value_or(-1),
         .start_ns = call.start_ns,
         .end_ns = call.end_ns,
         .exposed_ns = call.end_ns - call.start_ns -
                       calls.compute.length_within_ns(call.start_ns, call.end_ns)});
  }
  summary.unlinked_collectives = calls.unlinked;
}

// Gloo's ranges do not name their group. That is no question if all groups of this rank have the same ranks.
bool names_no_group(const Facts& facts, const std::vector<ProcessGroup>& known,
                    std::optional<std::int64_t> rank) {
  if (facts.main_device || facts.vendor) return false;
  std::set<std::vector<std::int64_t>> different;
  for (const ProcessGroup& group : known)
    if (group.ranks.size() > 1 &&
        (!rank || std::find(group.ranks.begin(), group.ranks.end(), *rank) != group.ranks.end()))
      different.insert(group.ranks);
  return different.size() > 1;
}

// All times count from the first one, and the origin keeps where that is on the file's clock.
void move_to_origin(const Trace& trace, RankSummary& summary) {
  const std::int64_t begin = trace.window_start_ns();
  std::int64_t origin = 0;
  if (__builtin_add_overflow(trace.base_time_ns(), begin, &origin)) origin = begin;
  summary.origin_ns = origin;
  summary.window_ns = trace.window_end_ns() - begin;
  for (RankStep& step : summary.steps) step.start_ns -= begin;
  for (CollectiveRecord& call : summary.collectives) {
    call.start_ns -= begin;
    call.end_ns -= begin;
  }
}

}  // namespace

std::int64_t RankStep::idle_ns() const {
  return std::accumulate(idle.begin(), idle.end(), std::int64_t{0});
}

Result<RankSummary> summarize_rank(const Trace& trace, std::string file) {
  LANESCOPE_TRY(const Facts facts, explain::gather_facts(trace, {}, 1));
  RankSummary summary;
  summary.file = std::move(file);
  const std::vector<ProcessGroup> known = read_job(trace, summary);
  read_devices(facts, summary);
  RankCalls calls = find_rank_calls(facts);
  if (!calls.calls.empty() && names_no_group(facts, known, summary.rank)) {
    summary.groups_unknown = true;
    calls.unlinked += calls.calls.size();
    calls.calls.clear();
  }
  add_steps(facts, calls, summary);
  add_collectives(facts, calls, known, summary);
  summary.host_parts = find_host_parts(facts, calls.compute_or_communication);
  // A group that no collective uses says how the job is made; the first is the whole job.
  if (summary.groups.empty() && !known.empty()) summary.groups.push_back(known.front());
  summary.truncated = trace.import_stats().is_truncated();
  summary.lost_events = trace.import_stats().lost_anything() ? 1 : 0;
  move_to_origin(trace, summary);
  return summary;
}

}  // namespace lanescope::ranks
