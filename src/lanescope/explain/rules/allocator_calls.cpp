// GPU memory is allocated or freed while the training loop runs: torch's cache is missed.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/start_up_calls.h"
#include "lanescope/explain/rules/step_sequences.h"

namespace lanescope::explain::rules {
namespace {

// Threads whose time decides when the GPU gets work.
std::set<std::uint32_t> launching_threads(const Facts& facts) {
  std::set<std::uint32_t> threads;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch != kNone<SliceId>) threads.insert(raw(facts.trace->slices().track[raw(launch)]));
  }
  return threads;
}

// Calls inside an operator that allocates first, frees as often, and last: the workspace of a library such as cuSOLVER.
// torch's cache keeps what an operator frees, and frees only to allocate again.
struct OwnCalls {
  std::string op;  // with most of them
  bool are_all = false;
};

OwnCalls calls_of_libraries(const Facts& facts, const std::vector<SliceId>& calls) {
  struct Pairs {
    std::uint64_t allocations = 0, frees = 0;
    bool begins_with_free = false, ends_with_free = false;
  };
  std::map<std::uint32_t, Pairs> by_operator;  // one call of an operator
  std::uint64_t paired = 0;
  std::map<std::string, std::uint64_t> by_name;
  for (const SliceId call : calls) {
    SliceId op = facts.nesting.parent[raw(call)];
    while (op != kNone<SliceId> && facts.trace->kind(op) != CategoryKind::kCpuOp)
      op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId>) return {};
    Pairs& pairs = by_operator[raw(op)];
    const bool is_free = facts.trace->api_call(call).does(api_effect::kFrees);
    if (pairs.allocations + pairs.frees == 0) pairs.begins_with_free = is_free;
    pairs.ends_with_free = is_free;
    ++(is_free ? pairs.frees : pairs.allocations);
  }
  for (const auto& [op, pairs] : by_operator) {
    if (pairs.allocations != pairs.frees || pairs.begins_with_free || !pairs.ends_with_free)
      continue;
    paired += pairs.allocations + pairs.frees;
    by_name[std::string(facts.trace->name(SliceId{op}))] += pairs.allocations + pairs.frees;
  }
  OwnCalls found;
  std::uint64_t most = 0;
  for (const auto& [op, count] : by_name)
    if (count > most) {
      most = count;
      found.op = op;
    }
  found.are_all = !calls.empty() && paired == calls.size();
  return found;
}

// Memory that steps allocate in operators and free outside of all operators. torch's cache frees only where it allocates, so
// the program, or a library that it calls, gives the memory back.
struct GivenBack {
  bool is_so = false;
  bool is_equal = false;  // for the same operators on the same recorded shapes in each step
  bool empties_cache = false, makes_pools = false;  // as Python frames show
};

SliceId operator_around(const Facts& facts, SliceId call) {
  return ancestor_where(facts, call,
                        [](std::string_view name) { return name.starts_with("aten::"); });
}

bool is_of_host(const Trace& trace, SliceId call) {
  return trace.name(call).find("Host") != std::string_view::npos;
}

// What allocates in each steady step is the same: "aten::addmm [[8, 8], [8, 8]];".
bool allocates_equally(const Facts& facts, const std::vector<SliceId>& allocations) {
  const Trace& trace = *facts.trace;
  std::map<std::size_t, std::string> of_steps;
  for (const SliceId call : allocations) {
    const SliceId op = operator_around(facts, call);
    if (op == kNone<SliceId>) return false;
    const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
    if (!dims) return false;
    std::string& text = of_steps[steady_step_at(facts, trace.start_ns(call))];
    text.append(trace.name(op)).append(trace.text(*dims)).append(";");
  }
  return of_steps.size() >= 2 && of_steps.size() == facts.selection.steady.size() &&
         std::all_of(of_steps.begin(), of_steps.end(),
                     [&](const auto& step) { return step.second == of_steps.begin()->second; });
}

// Python frames of steady steps: "torch/cuda/memory.py(1257): __init__".
void look_for_frames(const Facts& facts, const std::vector<SliceId>& frees, GivenBack& found) {
  constexpr std::string_view kMemory = "torch/cuda/memory.py(";
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::size_t emptying = 0, made = 0;
  bool has_pool = false;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId frame{i};
    if (trace.kind(frame) != CategoryKind::kPythonFunction ||
        !inside(windows, trace.start_ns(frame)))
      continue;
    const std::string_view name = trace.name(frame);
    if (name.find("_cuda_emptyCache") != std::string_view::npos ||
        (name.find(kMemory) != std::string_view::npos && name.ends_with(": empty_cache"))) {
      emptying += std::any_of(frees.begin(), frees.end(), [&](SliceId call) {
        return trace.start_ns(frame) <= trace.start_ns(call) &&
               trace.end_ns(call) <= trace.end_ns(frame);
      });
      continue;
    }
    if (name.find(kMemory) == std::string_view::npos) continue;
    made += name.ends_with(": __init__") ? 1 : 0;
    has_pool = has_pool || name.ends_with(": use_mem_pool");
  }
  found.empties_cache = emptying > 0;
  found.makes_pools = !found.empties_cache && has_pool && made >= facts.selection.steady.size();
}

GivenBack given_back(const Facts& facts, const std::vector<SliceId>& calls) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> allocations, frees;
  for (const SliceId call : calls) {
    if (is_of_host(trace, call)) return {};
    (trace.api_call(call).does(api_effect::kFrees) ? frees : allocations).push_back(call);
  }
  const auto is_in_operator = [&](SliceId call) {
    return operator_around(facts, call) != kNone<SliceId>;
  };
  GivenBack found;
  found.is_so = facts.steps.marked && frees.size() >= facts.selection.steady.size() &&
                std::none_of(frees.begin(), frees.end(), is_in_operator) &&
                std::any_of(allocations.begin(), allocations.end(), is_in_operator);
  if (!found.is_so) return {};
  found.is_equal = allocates_equally(facts, allocations);
  look_for_frames(facts, frees, found);
  return found;
}

// Each steady step takes new memory from the driver in its operators, and none is freed.
struct NewMemory {
  bool is_so = false;
  std::size_t steps = 0;  // steady ones
  // They launch the same, so shapes repeat: torch's cache would serve them if nothing were kept.
  bool is_for_the_same = false;
};

NewMemory new_memory(const Facts& facts, const std::vector<SliceId>& allocations) {
  const Trace& trace = *facts.trace;
  NewMemory found{.steps = facts.selection.steady.size()};
  std::map<std::size_t, std::uint64_t> of_steps;
  for (const SliceId call : allocations) {
    if (is_of_host(trace, call) || trace.api_call(call).does(api_effect::kInStreamOrder))
      return found;
    if (operator_around(facts, call) != kNone<SliceId>)
      ++of_steps[steady_step_at(facts, trace.start_ns(call))];
  }
  // A cache that fills up asks for less and less.
  found.is_so = facts.steps.marked && !of_steps.empty() && of_steps.size() == found.steps &&
                of_steps.rbegin()->second * 2 >= of_steps.begin()->second;
  found.is_for_the_same = found.is_so && launch_the_same(step_sequences(facts));
  return found;
}

constexpr Need kNotOnlyTheFirstStep = {
    [](const Facts& facts) { return !facts.steps.marked || has_marked_steps<2>(facts); },
    need::kRecordSteps};

struct AllocatorCalls {
  std::map<std::string, Named> by_name;
  std::uint64_t calls = 0;
  std::int64_t cpu_ns = 0;
  std::uint64_t allocations = 0;
  bool is_cache_off = false;
  std::int64_t launches_late_ns = 0;  // on threads that launch GPU work
  std::int64_t during_ns = 0;         // idle time of the GPU during the calls
  std::int64_t at_stake_ns = 0;
  // What a step allocates and keeps. 0: nothing; none: memory is freed, or not recorded.
  std::optional<std::int64_t> growth_bytes;
  NewMemory new_memory;
  std::vector<SliceId> slices;  // the calls
  OwnCalls own;
  GivenBack given_back;
};

Measurement<AllocatorCalls> measure_allocator_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::map<std::string, Named> by_name;
  std::vector<SliceId> slices;
  std::uint64_t calls = 0, frees = 0, turns = 0;
  std::optional<bool> last_was_free;
  std::int64_t cpu_ns = 0;
  const auto launching = launching_threads(facts);
  const StartUpCalls& start_up = start_up_calls(facts);
  analysis::IntervalUnion launches_late;         // by these calls
  std::vector<analysis::Window> all, elsewhere;  // elsewhere: on threads that launch nothing
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const ApiCall call = trace.api_call(id);
    if (!call.does(api_effect::kAllocates | api_effect::kFrees) ||
        !inside(cpu_windows, trace.start_ns(id)) || start_up.contains(id))
      continue;
    by_name[std::string(trace.name(id))].add(id, trace.dur_ns(id));
    slices.push_back(id);
    ++calls;
    const bool freed = call.does(api_effect::kFrees);
    frees += freed ? 1 : 0;
    // In stream order the driver's pool is the cache, so each operator allocates and frees.
    if (!call.does(api_effect::kInStreamOrder)) {
      if (last_was_free && *last_was_free != freed) ++turns;
      last_was_free = freed;
    }
    cpu_ns += trace.dur_ns(id);
    all.push_back({trace.start_ns(id), trace.end_ns(id)});
    if (launching.contains(raw(trace.slices().track[i])))
      launches_late.add(trace.start_ns(id), trace.end_ns(id));
    else
      elsewhere.push_back({trace.start_ns(id), trace.end_ns(id)});
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (calls == 0 || share_of(cpu_ns, wall_ns) < 0.01) return Quiet{};
  // The first calls fill the cache. Without steps, only many calls show that it goes on.
  if (!facts.steps.marked &&
      (calls < 20 || idle_in_first_uses(facts) * 2 > facts.wall.partition.wall_ns))
    return NotChecked{need::kRecordSteps};
  launches_late.finish();
  // Without the calls, everything after them would be launched earlier by their time; the GPU's own
  // work stays. A call that frees waits for the GPU, so the launches that it delays come after it.
  const std::int64_t idle_ns = facts.wall.partition.idle_ns;
  const std::int64_t during_ns = device_idle_during(facts, within_steady(facts, all));
  const std::int64_t at_stake_ns = std::min(
      launches_late.length_ns() + device_idle_during(facts, within_steady(facts, elsewhere)),
      idle_ns);
  // With torch's cache, calls of one kind come in runs: a flush frees everything, and the next step
  // allocates again. Without it, nearly every operator allocates its result, and a free follows
  // nearly every allocation.
  const bool is_cache_off = calls >= 40 && turns * 4 > calls && frees * 3 > calls &&
                            (calls - frees) * 4 > facts.launches.linked_count;
  OwnCalls own = is_cache_off ? OwnCalls{} : calls_of_libraries(facts, slices);
  const GivenBack back = is_cache_off ? GivenBack{} : given_back(facts, slices);
  const auto growth = frees == 0 ? growth_of_a_step(facts) : std::nullopt;
  const NewMemory taken = frees == 0 && !growth ? new_memory(facts, slices) : NewMemory{};
  return AllocatorCalls{.by_name = std::move(by_name),
                        .calls = calls,
                        .cpu_ns = cpu_ns,
                        .allocations = calls - frees,
                        .is_cache_off = is_cache_off,
                        .launches_late_ns = launches_late.length_ns(),
                        .during_ns = during_ns,
                        .at_stake_ns = at_stake_ns,
                        .growth_bytes = growth,
                        .new_memory = taken,
                        .slices = std::move(slices),
                        .own = std::move(own),
                        .given_back = back};
}

// Without memory records nobody knows whether memory is kept. No setting of the cache helps where it is.
bool tells_new_memory(const NewMemory& found) {
  return found.is_so && (found.is_for_the_same || found.steps < 2);
}

void tell_new_memory(const Facts& facts, const NewMemory& found, Finding& finding) {
  constexpr std::size_t kEnoughSteps = 4;
  const bool is_sure = found.steps >= kEnoughSteps;
  finding.arithmetic.push_back(
      found.steps < 2
          ? say("the only step that counts takes new memory from the driver and frees none: its "
                "cache may still fill up, or memory grows from step to step")
          : say(facts,
                "{} steps launch the same work, so their shapes repeat. Each takes new memory from "
                "the driver, and none is freed: {}",
                {count(found.steps),
                 text(is_sure ? "memory grows, as it does where tensors are kept"
                              : "memory grows, or the cache still fills up")}));
  finding.try_next = {
      "record six steps or more with profile_memory=True, then: lanescope memory. It lists what "
      "each step keeps",
      "tensors are kept by lists of losses or outputs (append loss.item() or loss.detach()), by "
      "graphs (retain_graph) and by caches without a limit"};
  finding.action = is_sure
                       ? say("Memory grows: record with profile_memory=True, then lanescope memory")
                       : say("Memory may grow: record six steps with profile_memory=True, then "
                             "lanescope memory");
}

void add_cache_advice(const Facts& facts, const AllocatorCalls& found, Finding& finding) {
  if (found.growth_bytes.value_or(0) > 0) {
    finding.arithmetic.push_back(say(
        "memory grows by {} per step, and nothing is freed: new memory is what the program keeps",
        {bytes(*found.growth_bytes)}));
    finding.try_next = {
        "see memory-growth: once the program keeps no tensors from step to step, "
        "the cache serves these allocations"};
    finding.action = say("Keep no tensors from step to step (memory-growth)");
    return;
  }
  const bool is_rocm = find_api_call(found.by_name.begin()->first).runtime() == ApiRuntime::kHip;
  if (found.is_cache_off) {
    finding.arithmetic.push_back(
        say(facts,
            "{} allocations for {} [piece|pieces] of GPU work, and they alternate with "
            "frees: this is what happens when torch's memory cache is off",
            {count(found.allocations), count(facts.launches.linked_count)}));
    finding.try_next.push_back(
        is_rocm ? "if PYTORCH_NO_HIP_MEMORY_CACHING (or PYTORCH_NO_CUDA_MEMORY_CACHING) is set, "
                  "unset it: with the cache nearly all of these calls disappear"
                : "if PYTORCH_NO_CUDA_MEMORY_CACHING is set, unset it: with the cache nearly all "
                  "of these calls disappear");
  }
  finding.try_next.push_back(is_rocm ? "keep shapes the same from step to step"
                                     : "keep shapes the same from step to step, or set "
                                       "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  finding.try_next.push_back(
      "do not call torch.cuda.empty_cache() inside the loop; leave some GPU memory free, so that "
      "the cache does not have to return any to the driver");
  finding.action = found.is_cache_off ? say("Unset {}: the memory cache is off",
                                            {text(is_rocm ? "PYTORCH_NO_HIP_MEMORY_CACHING"
                                                          : "PYTORCH_NO_CUDA_MEMORY_CACHING")})
                   : is_rocm          ? say("Keep shapes the same from step to step")
                                      : say("Keep shapes the same, or set "
                                                     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

// No setting of torch's cache reaches them.
void tell_own_calls(const AllocatorCalls& found, Finding& finding) {
  finding.kind = FindingKind::kWhere;
  finding.arithmetic.push_back(
      say("each operator that allocates frees as often before it ends: this is its own workspace, "
          "which torch's cache does not serve"));
  finding.try_next = {"call " + found.own.op +
                      " less often, or for several inputs at once: its library allocates and frees "
                      "in each call"};
}

// No setting keeps what the program gives back.
void tell_given_back(const GivenBack& found, Finding& finding) {
  finding.arithmetic.push_back(
      found.is_equal
          ? say("each step allocates for the same operators on the same shapes, and all memory is "
                "freed outside of operators: the program gives it back, torch's cache does not")
          : say("all memory is freed outside of operators: the program gives it back, torch's "
                "cache does not"));
  constexpr char kPool[] =
      "make a torch.cuda.MemPool once, before the loop, and use it in each step: a new pool has no "
      "memory, and one that goes frees all of its own";
  constexpr char kEmpty[] =
      "do not call torch.cuda.empty_cache() in the loop: it frees what the next step needs";
  if (found.makes_pools) {
    finding.action =
        say("Make the torch.cuda.MemPool once, before the loop: a new one has no memory");
    finding.try_next = {kPool};
  } else if (found.empties_cache) {
    finding.action = say("Do not call torch.cuda.empty_cache() in the loop");
    finding.try_next = {kEmpty};
  } else {
    finding.action =
        say("Find what frees it in each step: empty_cache(), a new MemPool, a library's buffers");
    finding.try_next = {kEmpty, kPool,
                        "a library may free its own buffers when its object goes: make that object "
                        "once, before the loop"};
  }
}

Finding tell_allocator_calls(const Facts& facts, const AllocatorCalls& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const std::int64_t idle_ns = facts.wall.partition.idle_ns;
  Finding finding;
  finding.verdict = say(
      facts,
      facts.steps.marked ? "Memory is allocated or freed at the driver while the loop runs: {} "
                           "[call|calls] [in {} steps], {} of CPU time [per step]."
                         : "Memory is allocated or freed at the driver: {} [call|calls] [in {} "
                           "steps], {} of CPU time.",
      {count(found.calls), count(facts.selection.steady.size()), ns(facts.per_step(found.cpu_ns))});
  finding.at_stake_ns = facts.per_step(found.at_stake_ns);
  finding.at_stake_ratio = share_of(found.at_stake_ns, wall_ns);
  finding.spared_calls = found.slices;
  finding.arithmetic.push_back(
      say(facts,
          "on threads that launch GPU work these calls take {} [per step], by which launches would "
          "come earlier without them; the saving is at most the GPU's idle time of {} [per step]; "
          "during the calls the GPU was idle for {}",
          {ns(facts.per_step(found.launches_late_ns)), ns(facts.per_step(idle_ns)),
           ns(facts.per_step(found.during_ns))}));
  if (!facts.steps.marked)
    finding.arithmetic.push_back(
        say("no steps are marked, so calls of the start-up are counted too"));
  for (const auto& [label, entry] : found.by_name)
    finding.evidence.push_back(
        {entry.longest, say("{} x{}: {}", {name(label), count(entry.count), ns(entry.time_ns)})});
  if (found.own.are_all)
    tell_own_calls(found, finding);
  else if (found.given_back.is_so)
    tell_given_back(found.given_back, finding);
  else if (tells_new_memory(found.new_memory))
    tell_new_memory(facts, found.new_memory, finding);
  else
    add_cache_advice(facts, found, finding);
  finding.confidence = facts.confidence();
  finding.sample_count = found.calls;
  finding.sample_noun = "call";
  finding.brief =
      say(facts,
          found.given_back.is_equal
              ? "The same GPU memory is allocated and freed, {} [time|times] [in {} steps]"
          : tells_new_memory(found.new_memory)
              ? "New GPU memory is taken from the driver, {} [time|times] [in {} steps], and none "
                "is freed"
              : "GPU memory is allocated or freed at the driver, {} [time|times] [in {} steps]",
          {count(found.calls), count(facts.selection.steady.size())});
  return finding;
}

}  // namespace

extern constinit const Rule allocator_calls_rule = {
    .id = "allocator-calls",
    .question = "is GPU memory allocated or freed in steady steps?",
    .meant_by = "cudamalloc cudafree",
    .order = 100,
    .needs = {need::kGpuWork, kNotOnlyTheFirstStep},
    .run = measure_and_tell<measure_allocator_calls, tell_allocator_calls>,
    .is_regression = true,
    .fix = Fix::kCpu,
};

}  // namespace lanescope::explain::rules
