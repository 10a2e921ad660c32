// The training loop asks its DataLoader for the next batch, and the GPU is idle meanwhile.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/loader_waits.h"
#include "lanescope/explain/rules/loader_work.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/explain/sampled_workers.h"

namespace lanescope::explain::rules {

namespace {

// A worker hands over a batch in some hundred us, so workers help only if loading takes longer.
constexpr std::int64_t kShortBatchNs = 1'000'000;

// If there is GPU work, its launch calls are needed.
constexpr Need kLaunchCallsOfAnyGpu = {
    [](const Facts& facts) { return !facts.main_device || has_launches(facts); },
    need::kLaunchCalls.missing};

// Each step is a pass over all batches, and only its first call of the loader and its last are long.
struct PassEnds {
  std::int64_t first_ns = 0, last_ns = 0;  // the longest of each
};

struct LoaderWait {
  WaitTime wait;
  std::int64_t batch_ns = 0;      // the median of the loader's calls
  std::uint64_t selects = 0;      // of rows, in the longest call
  std::int64_t receiving_ns = 0;  // of the waits: a batch is there, and is unpickled
  std::optional<PassEnds> pass_ends;
  // Of a loader without workers.
  LoaderGpuWork gpu_work;
  std::optional<HostShare> function;
};

bool is_single_process(const Facts& facts, const WaitTime& wait) {
  return facts.trace->name(wait.longest).find("SingleProcess") != std::string_view::npos;
}

// Workers put tensors into shared memory. The training process opens that of each tensor through a connection to the worker,
// which with stacks shows as pickle's loads() inside the queue's get().
std::int64_t receiving_in_waits(const Facts& facts, SliceId example) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(example);
  const std::vector<analysis::Window> waits = batch_wait_windows(facts);
  std::vector<analysis::Window> receiving;
  auto wait = waits.begin();
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kPythonFunction ||
        trace.name(id) != "<built-in function loads>")
      continue;
    while (wait != waits.end() && wait->end_ns <= trace.start_ns(id)) ++wait;
    for (auto each = wait; each != waits.end() && each->start_ns < trace.end_ns(id); ++each)
      receiving.push_back(
          {std::max(each->start_ns, trace.start_ns(id)), std::min(each->end_ns, trace.end_ns(id))});
  }
  return total_length(std::move(receiving));
}

// The median length of the calls of one name in the steady steps: few long ones, while other work takes the core, do not count.
std::int64_t median_call_ns(const Facts& facts, SliceId example) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::vector<std::int64_t> lengths_ns;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    if (trace.slices().name[i] != trace.slices().name[raw(example)] ||
        is_device_work(trace.kind(SliceId{i})) || !inside(windows, trace.start_ns(SliceId{i})))
      continue;
    lengths_ns.push_back(trace.dur_ns(SliceId{i}));
  }
  return lengths_ns.empty() ? trace.dur_ns(example) : analysis::lower_median(lengths_ns);
}

// If the calls in the middle of each pass are short, the workers keep up, and more of them would not help. That a step is a pass
// shows in its last call: it brings no batch, so that no kernel is launched after it. A step of several batches, such as micro
// batches, works on its last one, too.
std::optional<PassEnds> pass_ends_of(const Facts& facts, SliceId example) {
  constexpr std::size_t kFewestCalls = 5;
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(example);
  PassEnds ends;
  for (const std::size_t index : facts.selection.steady) {
    const analysis::Window step{facts.steps.steps[index].cpu_start_ns,
                                facts.steps.steps[index].cpu_end_ns};
    std::vector<SliceId> calls;
    bool works_on_last = false;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      if (trace.start_ns(id) < step.start_ns) continue;
      if (trace.start_ns(id) >= step.end_ns) break;
      if (trace.slices().name[i] == trace.slices().name[raw(example)]) {
        calls.push_back(id);
        works_on_last = false;
      }
      for (const SliceId work : facts.links.launched_by(id))
        works_on_last = works_on_last || trace.kind(work) == CategoryKind::kKernel;
    }
    if (calls.size() < kFewestCalls || works_on_last) return std::nullopt;
    for (std::size_t i = 1; i + 1 < calls.size(); ++i)
      if (trace.dur_ns(calls[i]) >= kShortBatchNs) return std::nullopt;
    ends.first_ns = std::max(ends.first_ns, trace.dur_ns(calls.front()));
    ends.last_ns = std::max(ends.last_ns, trace.dur_ns(calls.back()));
  }
  return ends;
}

// A dataset of tensors gives its rows one by one: aten::select for each, then aten::stack. One that reads
// or changes its samples runs other operators, or takes longer for a row than a view of a tensor does.
constexpr std::uint64_t kFewestRows = 16;
constexpr std::int64_t kLongestRowNs = 200'000;
std::uint64_t selects_in(const Trace& trace, SliceId call) {
  std::uint64_t selects = 0, others = 0;
  bool stacks = false;
  std::int64_t outermost_end_ns = 0;
  for (std::uint32_t i = raw(call) + 1;
       i < trace.slices().size() && trace.slices().track[i] == trace.slices().track[raw(call)] &&
       trace.start_ns(SliceId{i}) < trace.end_ns(call);
       ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || trace.start_ns(id) < outermost_end_ns) continue;
    outermost_end_ns = trace.end_ns(id);
    const bool is_row = trace.name(id) == "aten::select",
               is_stack = trace.name(id) == "aten::stack";
    selects += is_row;
    stacks = stacks || is_stack;
    others += !is_row && !is_stack;
  }
  const bool are_plain = stacks && others <= 2 * selects && selects > 0 &&
                         trace.dur_ns(call) / static_cast<std::int64_t>(selects) <= kLongestRowNs;
  return are_plain ? selects : 0;
}

std::optional<LoaderWait> measure_dataloader_wait(const Facts& facts) {
  WaitTime wait = waiting_for_batches(facts);
  // Waits for new workers are worker-restart's. Where they are most of it, more workers would make it worse.
  std::int64_t restarting_ns = 0;
  const auto leave_out = [&](const analysis::Window& window) {
    for (const analysis::Window& each : batch_wait_windows(facts))
      wait.time_ns -= std::max<std::int64_t>(
          0, std::min(each.end_ns, window.end_ns) - std::max(each.start_ns, window.start_ns));
  };
  for (const analysis::Window& restart : repeated_worker_restarts(facts)) {
    restarting_ns += restart.length_ns();
    leave_out(restart);
  }
  for (const analysis::Window& window : waits_after_worker_restarts(facts)) leave_out(window);
  if (wait.time_ns < restarting_ns) return std::nullopt;
  if ((facts.main_device && is_thin(facts)) ||
      share_of(wait.time_ns, facts.steady_wall_ns()) < 0.05)
    return std::nullopt;
  LoaderWait found{wait,
                   median_call_ns(facts, wait.longest),
                   selects_in(*facts.trace, wait.longest),
                   receiving_in_waits(facts, wait.longest),
                   {},
                   {},
                   {}};
  if (is_single_process(facts, wait)) {
    found.gpu_work = gpu_work_of_loader(facts, wait.longest);
    found.function = function_of_loader(facts, wait.longest, wait.time_ns);
  } else if (facts.main_device) {
    found.pass_ends = pass_ends_of(facts, wait.longest);
  }
  return found;
}

// Samples that are on the GPU when the loader returns them: workers cannot make them after a fork, and pinned memory is for
// tensors of the CPU.
void tell_gpu_work(const Facts& facts, const LoaderGpuWork& work, Finding& finding) {
  constexpr std::uint64_t kCopiesOfBatch = 4;  // inputs and targets; more are copies of samples
  const std::uint64_t batches = std::max<std::uint64_t>(1, work.batches);
  const std::uint64_t copies = (work.copies + batches / 2) / batches,
                      kernels = (work.kernels + batches / 2) / batches;
  finding.arithmetic.push_back(
      say(facts,
          "in one call of the loader, on average: {} [copy|copies] to the GPU and {} "
          "[kernel|kernels]",
          {count(copies), count(kernels)}));
  if (work.first != kNone<SliceId>)
    finding.evidence.insert(finding.evidence.begin(),
                            called_at(facts, work.first, say("the loader works on the GPU")));
  if (copies == 0) {
    finding.brief = say(facts,
                        "The GPU waits for its next batch, which the loader makes on the GPU: {} "
                        "[kernel|kernels] [per step]",
                        {count(work.kernels / steps_of(facts))});
    finding.action =
        say("Take and change a whole batch in one call, such as x[indices]: workers cannot do it");
    finding.try_next = {
        "the samples are on the GPU: take a batch by its indices, x[indices], and change all of it "
        "at once",
        "worker processes and pinned memory are for samples on the CPU"};
    finding.gain_is_bound = true;
    return;
  }
  finding.try_next = {
      "return tensors of the CPU from the data set and the collate function, and copy a batch in "
      "the loop: batch.to(device, non_blocking=True)",
      "worker processes (num_workers) and pin_memory=True then work, too: neither takes tensors "
      "that are on the GPU",
      "if all samples fit into the GPU's memory: copy them once, before the loop, and take a batch "
      "by its indices"};
  if (copies <= kCopiesOfBatch) {
    finding.action =
        say("Copy to the GPU in the loop, not in the loader: num_workers and pin_memory then work");
    return;
  }
  finding.brief = say(facts,
                      "The GPU waits for its next batch, copied sample by sample: {} "
                      "[copy|copies] [per step]",
                      {count(work.copies / steps_of(facts))});
  finding.action =
      say("Return CPU tensors, and copy a batch at once: num_workers and pin_memory then work, "
          "too; or keep all data on the GPU");
}

// The workers keep up between the first batch of a pass and its end.
void tell_pass_ends(const PassEnds& ends, Finding& finding) {
  const bool stops = ends.last_ns >= kShortBatchNs;
  finding.gain_is_bound = true;
  finding.arithmetic.push_back(
      say("each step is a pass over all batches: the first call of the loader takes up to {}, the "
          "last, which brings no batch, up to {}; each one between them takes less than {}",
          {ns(ends.first_ns), ns(ends.last_ns), ns(kShortBatchNs)}));
  finding.try_next = {
      "more workers do not help: between the first batch of a pass and its end they keep up",
      stops ? "DataLoader(persistent_workers=True) keeps the workers from pass to pass"
            : "make one batch cheaper to load: only the first of a pass is late"};
  finding.brief = say("The GPU waits where a pass over the DataLoader begins or ends");
  finding.action = stops ? say("Keep the workers: DataLoader(persistent_workers=True); more of "
                               "them do not help")
                         : say("Make one batch cheaper to load; more workers do not help: only the "
                               "first batch is late");
}

// What a Python function does in most of the waits, where stacks are recorded.
void tell_function(const Facts& facts, const LoaderWait& found, Finding& finding) {
  const HostShare& function = *found.function;
  const Value share = ratio(function.time_ns, found.wait.time_ns);
  Sentence text = describe(function);
  append(text, say(": {} of these waits", {share}));
  finding.evidence.insert(finding.evidence.begin(), called_at(facts, function.longest, text));
  if (!is_tensor_of_list(function)) return;
  finding.try_next.insert(
      finding.try_next.begin(),
      "torch.tensor reads a Python list number by number; torch.as_tensor of a NumPy array, "
      "torch.stack and pad_sequence of tensors copy memory: make the tensors once, when the data "
      "is read");
  finding.action =
      say("Keep samples as tensors: torch.tensor(list) takes {} of the wait; or load in worker "
          "processes",
          {share});
}

// What the loading code did during the waits, if there are samples of Python stacks.
void tell_samples(const Facts& facts, const WaitTime& wait, bool single, Finding& finding) {
  const Trace& trace = *facts.trace;
  if (single) {
    const TrackId thread = trace.slices().track[raw(wait.longest)];
    const auto code = find_sampled_code(trace, thread, batch_wait_windows(facts));
    if (!code) return;
    Sentence line = say("samples of the waiting thread's Python stack: ");
    append(line, describe(*code));
    finding.arithmetic.push_back(std::move(line));
    return;
  }
  const auto code = find_worker_code(trace, batch_wait_windows(facts));
  if (!code) return;
  Sentence line = say("samples of the workers' Python stacks in these waits: ");
  append(line, describe(*code));
  finding.arithmetic.push_back(std::move(line));
  if (code->function.empty()) return;
  finding.action =
      say("Make {} faster, or raise num_workers: it takes about {} of the time in which workers "
          "make batches",
          {name(code->function), ratio(code->in_function, code->busy)});
}

Finding tell_dataloader_wait(const Facts& facts, const LoaderWait& found) {
  const WaitTime& wait = found.wait;
  const std::int64_t wall_ns = facts.steady_wall_ns();
  const bool single = is_single_process(facts, wait);
  Finding finding;
  finding.verdict =
      say(facts,
          facts.main_device
              ? "Input-bound in part: the GPU is idle {} [per step] ({}) while the loop waits for "
                "its next batch{}."
              : "Input-bound in part: the loop waits {} [per step] ({}) for its next batch{}.",
          {ns(facts.per_step(wait.time_ns)), ratio(wait.time_ns, wall_ns),
           text(single ? ", which is loaded in the training process itself" : "")});
  finding.at_stake_ns = facts.per_step(wait.time_ns);
  finding.at_stake_ratio = share_of(wait.time_ns, wall_ns);
  finding.evidence.push_back({wait.longest, say("the longest such wait")});
  finding.try_next = {single ? "load in worker processes: DataLoader(num_workers=...)"
                             : "use more workers (num_workers), a larger prefetch_factor or "
                               "cheaper decoding; persistent_workers=True avoids restarts"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  finding.brief = single ? say("The {} waits for its next batch, loaded in the training process",
                               {text(facts.main_device ? "GPU" : "loop")})
                         : say("The {} waits for its next batch, although workers load it",
                               {text(facts.main_device ? "GPU" : "loop")});
  finding.action =
      single ? say(facts.main_device ? "Load in worker processes: DataLoader(num_workers=4, "
                                       "pin_memory=True)"
                                     : "Load in worker processes: DataLoader(num_workers=4)")
             : say("Raise num_workers and prefetch_factor, or make decoding cheaper");
  if (!single && found.receiving_ns * 2 > wait.time_ns) {
    finding.gain_is_bound = true;
    finding.arithmetic.push_back(
        say(facts, "{} [per step] of it go into unpickling batches that have arrived",
            {ns(facts.per_step(found.receiving_ns))}));
    finding.try_next = {
        "DataLoader(pin_memory=True) receives batches in a thread of its own, ahead of the loop",
        "each tensor is handed over through a connection to its worker: join small ones in the "
        "collate function, or torch.multiprocessing.set_sharing_strategy(\"file_system\")",
        "for small batches no workers (num_workers=0) may be faster"};
    finding.brief = say("The {} waits while the training process receives batches from its workers",
                        {text(facts.main_device ? "GPU" : "loop")});
    finding.action =
        say("Use pin_memory=True: a thread receives them ahead; or join their tensors into fewer");
  }
  if (found.pass_ends) tell_pass_ends(*found.pass_ends, finding);
  if (single && found.batch_ns < kShortBatchNs) {
    finding.try_next = {
        "take a batch from memory in one call: slice a tensor, or give the dataset __getitems__()",
        "worker processes (num_workers) gain little here: handing a batch over takes some hundred "
        "microseconds, too"};
    finding.action = say("Take a batch in one call (slice a tensor): {} is too short for workers",
                         {ns(found.batch_ns)});
  }
  if (single && found.selects >= kFewestRows) {
    finding.arithmetic.push_back(say(
        "the longest call takes {} rows from tensors one by one (aten::select), and stacks them",
        {count(found.selects)}));
    finding.try_next = {
        "the data is in memory: take a batch by its indices, x[indices], instead of row by row",
        "with a DataLoader: give the dataset __getitems__(), or batch_size=None with a "
        "BatchSampler as sampler"};
    finding.action = say("Take a batch in one call, x[indices]: its rows come one by one now");
  }
  if (found.function) tell_function(facts, found, finding);
  // Work of most batches, not of the first one alone.
  if (std::max(found.gpu_work.copies, found.gpu_work.kernels) >=
          std::max<std::uint64_t>(1, found.gpu_work.batches) &&
      found.selects < kFewestRows)
    tell_gpu_work(facts, found.gpu_work, finding);
  if (!found.pass_ends) tell_samples(facts, wait, single, finding);
  return finding;
}

}  // namespace

extern constinit const Rule dataloader_wait_rule = {
    .id = "dataloader-wait",
    .question = "is the step waiting for input data?",
    .meant_by = "dataloader worker loaderprocess",
    .order = 60,
    .needs = {need::kAnyWork, kLaunchCallsOfAnyGpu},
    .run = measure_and_tell<measure_dataloader_wait, tell_dataloader_wait>,
    .is_regression = true,
    .fix = Fix::kLoader,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
