#include "lanescope/explain/run_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "lanescope/explain/cut_steps.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain {
namespace {

// A new rule is a file in rules/, a line in rules.h and a line here.
constexpr Rule kRules[] = {
    {"host-bound", "is the GPU waiting for the CPU?", rules::host_bound},
    {"gpu-bound", "is the GPU itself the limit?", rules::gpu_bound},
    {"communication-bound", "is the step waiting for communication?", rules::communication_bound},
    {"gpu-idle", "where are the gaps, and why?", rules::gpu_idle},
    {"cpu-time", "what does the CPU do in a step, where no GPU works?", rules::cpu_time},
    {"dataloader-wait", "is the step waiting for input data?", rules::dataloader_wait},
    {"exposed-copy", "do copies hold up the GPU?", rules::exposed_copy},
    {"host-sync", "does the program wait for the GPU in the middle of a step?", rules::host_sync},
    {"pageable-copy", "do copies go through memory that is not pinned?", rules::pageable_copy},
    {"allocator-calls", "is GPU memory allocated or freed in steady steps?",
     rules::allocator_calls},
    {"tiny-kernels", "are there so many small kernels that launching is the work?",
     rules::tiny_kernels},
    {"many-calls", "is one operator called so often that its calls are the cost?",
     rules::many_calls},
    {"python-indexing", "does a Python loop take tensors apart?", rules::python_indexing},
    {"hotspot-kernel", "is there one kernel that most GPU time goes to?", rules::hotspot_kernel},
    {"kernel-spread", "why does the same kernel take different times?", rules::kernel_spread},
    {"compiled-code", "did torch.compile fuse anything?", rules::compiled_code},
    {"slow-first-step", "why is the first step slow?", rules::slow_first_step},
    {"long-step", "did one step take longer than all others?", rules::long_step},
    {"dead-window", "what is the wait before the first operator of a range?", rules::dead_window},
    {"edge-gap", "is the gap at the edge of the recording real?", rules::edge_gap},
    {"lone-gap", "is the big gap a part of every step?", rules::lone_gap},
    {"final-sync", "what is the long synchronize at the end?", rules::final_sync},
    {"profiler-stall", "what did the profiler itself cost?", rules::profiler_stall},
    {"earlier-work", "is there GPU work that was launched before the recording?",
     rules::earlier_work},
    {"no-gpu-work", "why is there no GPU work in the trace?", rules::no_gpu_work},
    {"clock-offset", "do the clocks of CPU and GPU agree?", rules::clock_offset},
    {"lost-events", "did the recorder lose launches or GPU work?", rules::lost_events},
    {"damaged-file", "is the file whole?", rules::damaged_file},
    {"few-steps", "were enough steps recorded?", rules::few_steps},
    {"stack-cost", "did recording Python stacks slow the CPU?", rules::stack_cost},
    {"start-up-lag", "why does the GPU's lane begin so late?", rules::start_up_lag},
    {"cpu-ahead", "why does GPU work begin long after its launch?", rules::cpu_ahead},
    {"full-queue", "do launch calls wait for a full queue?", rules::full_queue},
    {"slow-launches", "do launch calls take too long?", rules::slow_launches},
    {"uneven-steps", "why are some steps slower than others?", rules::uneven_steps},
    {"memory-growth", "does GPU memory grow from step to step?", rules::memory_growth},
    {"memory-limit", "is GPU memory nearly full?", rules::memory_limit},
    {"memory-fragmentation", "does the allocator hold much more than tensors take?",
     rules::memory_fragmentation},
    {"memory-peak", "is the peak of GPU memory made of temporaries?", rules::memory_peak},
    {"small-collectives", "are there many collectives of small messages?",
     rules::small_collectives},
    {"serial-communication", "why does communication not overlap with compute?",
     rules::serial_communication},
    {"first-collective", "why is the first collective slow?", rules::first_collective},
    {"slowed-compute", "does communication slow the kernels beside it?", rules::slowed_compute},
    {"micro-step-sync", "does gradient accumulation communicate in each micro-step?",
     rules::micro_step_sync},
    {"cpu-built-tensor", "are tensors made on the CPU and moved at once?", rules::cpu_built_tensor},
    {"growing-cat", "is a growing buffer copied again and again?", rules::growing_cat},
    {"collective-keys", "can collectives be matched across ranks?", rules::collective_keys},
    {"copy-before-gemm", "why is there a copy before the matmul?", rules::copy_before_gemm},
    {"fp32-matmul", "do float32 matmuls leave the tensor cores unused?", rules::fp32_matmul},
    {"half-off-tensor-cores", "do half-precision matmuls run without tensor cores?",
     rules::half_off_tensor_cores},
    {"unaligned-dims", "do matmuls have sizes that tensor cores are slow at?",
     rules::unaligned_dims},
    {"slow-gemm", "are large matmuls far below the GPU's peak?", rules::slow_gemm},
    {"slow-attention", "is fused attention far below the GPU's peak?", rules::slow_attention},
    {"same-flops", "do matmuls of equal work take different times?", rules::same_flops},
    {"wave-tail", "does the last wave of blocks leave the GPU half empty?", rules::wave_tail},
    {"few-blocks", "do kernels have too few blocks to fill the GPU?", rules::few_blocks},
    {"low-occupancy",
     "do registers or shared memory keep memory-bound kernels from hiding latency?",
     rules::low_occupancy},
    {"memory-roof", "is the GPU limited by its memory bandwidth?", rules::memory_roof},
    {"no-roof", "is the GPU busy but far from what it can do?", rules::no_roof},
    {"layout-copies", "are tensors copied only to change their layout?", rules::layout_copies},
    {"conv-layout", "do convolutions shuffle their tensors between layouts?", rules::conv_layout},
    {"conv-bias", "is a convolution's bias added only for batch norm to remove it?",
     rules::conv_bias},
    {"math-attention", "does attention run without a fused kernel?", rules::math_attention},
    {"matmul-chain", "which matmul is it, and what do the views around it cost?",
     rules::matmul_chain},
    {"occupancy-query", "what is the occupancy query before a launch?", rules::occupancy_query},
    {"split-k", "what is the splitKreduce kernel after a matmul?", rules::split_k},
    // torch.compile, CUDA graphs, the training loop, cold start.
    {"unfused-chain", "do elementwise kernels run one by one that could be one?",
     rules::unfused_chain},
    {"unfused-norm", "do norms, softmax or rotary embeddings run operator by operator?",
     rules::unfused_norm},
    {"graph-breaks", "does torch.compile leave its graph?", rules::graph_breaks},
    {"recompiles", "does torch.compile compile again while the steps run?", rules::recompiles},
    {"compile-overhead", "does the GPU wait for torch.compile's own layers?",
     rules::compile_overhead},
    {"graph-opportunity", "can I use CUDA graphs?", rules::graph_opportunity},
    {"graph-gaps", "does the GPU wait between replays of a CUDA graph?", rules::graph_gaps},
    {"outside-graphs", "what runs outside of the CUDA graphs?", rules::outside_graphs},
    {"optimizer-loop", "does the optimizer loop over its tensors?", rules::optimizer_loop},
    {"optimizer-share", "is the optimizer a large part of the step?", rules::optimizer_share},
    {"zero-grad-fills", "does zero_grad fill gradients with zeros?", rules::zero_grad_fills},
    {"backward-gap", "does the GPU wait at the turn from forward to backward?",
     rules::backward_gap},
    {"recompute", "does the backward pass run forward work again?", rules::recompute},
    {"logits-loss", "is the loss over a large vocabulary a large part?", rules::logits_loss},
    {"scaler-sync", "does the gradient scaler or clipping wait for the GPU?", rules::scaler_sync},
    {"cold-compile", "did torch.compile compile inside the first step?", rules::cold_compile},
    {"lazy-loading", "were kernels loaded during the recording?", rules::lazy_loading},
    {"first-allocations", "did the first step fill the memory cache?", rules::first_allocations},
    {"cudnn-benchmark", "did convolutions try out algorithms?", rules::cudnn_benchmark},
    {"triton-autotune", "were kernels autotuned during the recording?", rules::triton_autotune},
    {"worker-restart", "are the DataLoader's workers started again?", rules::worker_restart},
    {"compile-layers", "what are the rows around a compiled call?", rules::compile_layers},
    {"collapsed-graph", "which operators do a CUDA graph's kernels come from?",
     rules::collapsed_graph},
    {"self-total", "what is the difference between Self and total time?", rules::self_total, true},
};

// These name what bounds a step: the headline asks them, whichever rules are asked.
constexpr std::string_view kBoundRules[] = {"host-bound", "gpu-bound", "communication-bound"};

bool contains(const std::vector<std::string>& ids, std::string_view id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

Sentence cpu_headline(const Facts& facts) {
  if (is_truncated(*facts.trace))
    return say(
        "The file was cut, and what is left of it holds no GPU work: what bounds a step "
        "cannot be told.");
  const Outcome outcome = rules::cpu_time(facts);
  const auto* finding = std::get_if<Finding>(&outcome);
  if (!finding)
    return say("The trace holds no GPU work: what bounds a step on a GPU cannot be told.");
  Sentence headline = finding->verdict;
  headline.pattern = "The trace holds no GPU work. " + headline.pattern;
  return headline;
}

// What is left to say when no rule names the bound.
Sentence plain_headline(const Facts& facts) {
  const Trace& trace = *facts.trace;
  if (!facts.main_device) {
    const bool called =
        std::any_of(trace.categories().begin(), trace.categories().end(),
                    [](const Category& category) { return is_api_call(category.kind); });
    return called ? say("The trace holds calls to the GPU but no GPU work: it does not say what "
                        "the GPU did.")
                  : cpu_headline(facts);
  }
  const auto& part = facts.wall.partition;
  if (is_truncated(trace)) return say("What bounds a step cannot be told.");
  if (rules::is_thin(facts))
    return say("There is too little GPU work in the trace to say what bounds a step.");
  if (part.idle_ns * 2 > part.wall_ns) {
    const std::int64_t untold = facts.wall.idle_by(analysis::IdleCause::kWaiting) +
                                facts.wall.idle_by(analysis::IdleCause::kUnknown);
    return say("Idle: of the {} a step took the GPU worked {} ({}); {}.",
               {ns(facts.per_step(part.wall_ns)), ns(facts.per_step(part.busy_ns())),
                ratio(part.busy_ns(), part.wall_ns),
                text(untold * 2 > part.idle_ns
                         ? "for most of the rest the trace does not tell what it waited for"
                         : "no single cause explains the rest")});
  }
  const std::string limit =
      part.compute_ns * 4 >= part.wall_ns * 3 ? "Mostly GPU-bound" : "No single limit";
  return say(limit +
                 ": of the {} a step took the GPU computed {}, moved data or communicated alone "
                 "{} and was idle {}.",
             {ns(facts.per_step(part.wall_ns)), ratio(part.compute_ns, part.wall_ns),
              ratio(part.exposed_communication_ns + part.exposed_copy_ns, part.wall_ns),
              ratio(part.idle_ns, part.wall_ns)});
}

// A gap in which the GPU was most likely busy with work that was not recorded is no part of the
// wall that a cost is a share of.
void leave_out_edge_gap(const Facts& facts, const analysis::Gap* edge, Finding& finding) {
  if (!edge || finding.kind != FindingKind::kCost || finding.rule == "gpu-idle") return;
  const std::int64_t rest = facts.wall.partition.wall_ns - (edge->end_ns - edge->start_ns);
  if (rest <= 0) return;
  finding.at_stake_ratio =
      std::min(1.0, static_cast<double>(finding.at_stake_ns) *
                        static_cast<double>(facts.steady.size()) / static_cast<double>(rest));
}

// A general finding says nothing new when another explains nine tenths of its time; no-roof, which
// names no cause at all, when one explains most of it.
double needed_share(std::string_view rule) { return rule == "no-roof" ? 0.6 : 0.9; }

void leave_out_covered(Explanation& result) {
  std::vector<std::string> covered;
  for (const Finding& general : result.findings) {
    if (general.kind != FindingKind::kCost && general.kind != FindingKind::kOnce) continue;
    const Finding* best = nullptr;
    std::int64_t best_ns = 0;
    for (const Finding& exact : result.findings)
      for (const Explained& part : exact.explains)
        if ((exact.kind == general.kind || exact.kind == FindingKind::kCost ||
             exact.kind == FindingKind::kBound) &&
            general.rule == part.rule && part.at_stake_ns > best_ns) {
          best = &exact;
          best_ns = part.at_stake_ns;
        }
    if (!best || static_cast<double>(best_ns) <
                     needed_share(general.rule) * static_cast<double>(general.at_stake_ns))
      continue;
    covered.push_back(general.rule);
    for (RuleRun& run : result.runs)
      if (run.id == general.rule) {
        run.state = RuleRun::State::kCovered;
        run.covered_by = best->rule;
      }
  }
  std::erase_if(result.findings,
                [&](const Finding& finding) { return contains(covered, finding.rule); });
}

// What comes first: what limits the step, what ends the program, what this recording mostly
// consists of; then by kind, and in a kind what gives back most.
int group_of(const Finding& finding) {
  if (finding.kind <= FindingKind::kEnds) return static_cast<int>(finding.kind);
  return finding.leads ? static_cast<int>(FindingKind::kCost) : static_cast<int>(finding.kind) + 1;
}

// Longer than all steps without the one that it lies in.
bool leads(const Facts& facts, const Finding& finding) {
  if (finding.kind != FindingKind::kOnce || !facts.steps.marked || facts.one_step_chosen ||
      !facts.main_device)
    return false;
  const auto& steps = facts.steps.steps;
  std::optional<std::size_t> own;
  if (finding.rule == "long-step" ||
      std::any_of(finding.explains.begin(), finding.explains.end(), [](const Explained& part) {
        return std::string_view(part.rule) == "long-step" && part.at_stake_ns > 0;
      }))
    own = facts.long_step;
  const SliceId slice = finding.evidence.empty() ? kNone<SliceId> : finding.evidence.front().slice;
  for (std::size_t i = 0; !own && slice != kNone<SliceId> && i < steps.size(); ++i) {
    const std::int64_t time_ns = facts.trace->start_ns(slice);
    if (time_ns >= steps[i].cpu_start_ns && time_ns < steps[i].cpu_end_ns) own = i;
  }
  std::int64_t others_ns = 0;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (i != own) others_ns += facts.device().windows[i].length_ns();
  return finding.at_stake_ns > others_ns;
}

void put_in_order(const Facts& facts, std::vector<Finding>& findings) {
  for (Finding& finding : findings) finding.leads = leads(facts, finding);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (group_of(a) != group_of(b)) return group_of(a) < group_of(b);
    return a.at_stake_ns > b.at_stake_ns;
  });
}

// Rules speak of steps. A trace that marks none is spoken of as one recording.
void speak_of_recording(std::string& pattern) {
  static constexpr std::pair<std::string_view, std::string_view> kPhrases[] = {
      {"a step takes", "the recording takes"}, {"a step took", "the recording took"},
      {"a step's", "the recording's"},         {" per step", ""},
      {" in {} steps", " in {} recording"},
  };
  for (const auto& [from, to] : kPhrases)
    for (std::size_t at = pattern.find(from); at != std::string::npos;
         at = pattern.find(from, at + to.size()))
      pattern.replace(at, from.size(), to);
}

void speak_of_recording(Finding& finding) {
  speak_of_recording(finding.verdict.pattern);
  speak_of_recording(finding.brief.pattern);
  speak_of_recording(finding.action.pattern);
  for (Sentence& line : finding.arithmetic) speak_of_recording(line.pattern);
  for (Evidence& evidence : finding.evidence) speak_of_recording(evidence.text.pattern);
  if (finding.sample_noun == "step") finding.sample_noun = "recording";
}

// What would be wrong if some of the GPU work of the steps were missing.
bool speaks_of_a_mean(const Outcome& outcome) {
  const auto* finding = std::get_if<Finding>(&outcome);
  return finding && (finding->kind == FindingKind::kBound || finding->kind == FindingKind::kCost ||
                     finding->kind == FindingKind::kWhere);
}

// Whole threads, streams or steps may stand in the part of a file that is missing: what bounds a
// step and where the GPU or the CPU was idle cannot be told from the rest.
bool rests_on_lost_work(const Facts& facts, const Rule& rule, const Outcome& outcome) {
  const auto* finding = std::get_if<Finding>(&outcome);
  return finding && is_truncated(*facts.trace) &&
         (finding->kind == FindingKind::kBound || std::string_view(rule.id) == "gpu-idle" ||
          std::string_view(rule.id) == "cpu-time");
}

// The verdict on what bounds a step: of a finding in `result`, or of a rule that was not asked.
std::optional<Sentence> bound_headline(const Facts& facts, const Explanation& result) {
  std::optional<Finding> best;
  const auto consider = [&](const Finding& finding) {
    if (finding.kind == FindingKind::kBound && (!best || finding.at_stake_ns > best->at_stake_ns))
      best = finding;
  };
  for (const Rule& rule : kRules) {
    if (std::find(std::begin(kBoundRules), std::end(kBoundRules), rule.id) == std::end(kBoundRules))
      continue;
    const bool asked = std::any_of(result.runs.begin(), result.runs.end(),
                                   [&](const RuleRun& run) { return run.id == rule.id; });
    if (asked) continue;
    const Outcome outcome = rule.run(facts);
    if (rests_on_lost_work(facts, rule, outcome)) continue;
    if (const auto* finding = std::get_if<Finding>(&outcome)) consider(*finding);
  }
  for (const Finding& finding : result.findings) consider(finding);
  return best ? std::optional(best->verdict) : std::nullopt;
}

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

Result<Explanation> run_rules(const Facts& facts, const RuleOptions& options) {
  for (const auto* ids : {&options.only, &options.off})
    for (const std::string& id : *ids)
      if (std::none_of(std::begin(kRules), std::end(kRules),
                       [&](const Rule& rule) { return id == rule.id; }))
        return Error{Errc::kInvalidArgument, fmt::format("expected a rule's id, found '{}'", id)};

  Explanation result;
  const analysis::Gap* edge = rules::find_edge_gap(facts);
  for (const Rule& rule : kRules) {
    if ((options.only.empty() ? rule.on_request : !contains(options.only, rule.id)) ||
        contains(options.off, rule.id))
      continue;
    RuleRun run{rule.id, rule.question, RuleRun::State::kQuiet, {}, {}, 0};
    const auto began = std::chrono::steady_clock::now();
    Outcome outcome = rule.run(facts);
    run.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now() - began)
                      .count();
    if (facts.is_cut && speaks_of_a_mean(outcome))
      outcome = NotChecked{"all GPU work of a step (it is missing from the end of the trace)"};
    if (rests_on_lost_work(facts, rule, outcome))
      outcome = NotChecked{"the whole file (its end is missing)"};
    if (auto* finding = std::get_if<Finding>(&outcome)) {
      if (is_truncated(*facts.trace) && speaks_of_a_mean(outcome))
        finding->confidence = Confidence::kLow;
      run.state = RuleRun::State::kFound;
      finding->rule = rule.id;
      leave_out_edge_gap(facts, edge, *finding);
      if (!facts.steps.marked) speak_of_recording(*finding);
      result.findings.push_back(std::move(*finding));
    } else if (const auto* missing = std::get_if<NotChecked>(&outcome)) {
      run.state = RuleRun::State::kNotChecked;
      run.missing = missing->missing;
    }
    result.runs.push_back(std::move(run));
  }
  result.is_answer = !options.only.empty();
  if (!result.is_answer) leave_out_covered(result);
  put_in_order(facts, result.findings);
  result.headline = facts.is_cut
                        ? say("What bounds a step cannot be told: GPU work of it is missing.")
                        : bound_headline(facts, result).value_or(plain_headline(facts));
  if (facts.long_step) {
    const std::size_t step = *facts.long_step;
    append(result.headline,
           say(" Step {} took {}, longer than the other {} together, and is left out.",
               {step_number(facts, step), ns(facts.step_window(step).length_ns()),
                count(facts.steady.size())}));
  }
  if (is_truncated(*facts.trace) && facts.main_device)
    result.headline.pattern +=
        " The end of the file is missing: whole threads or streams may be, too.";
  const Sentence note = cut_steps_note(facts);
  if (!note.pattern.empty()) {
    result.headline.pattern += " ";
    append(result.headline, note);
  }
  if (!facts.steps.marked) speak_of_recording(result.headline.pattern);
  return result;
}

}  // namespace lanescope::explain
