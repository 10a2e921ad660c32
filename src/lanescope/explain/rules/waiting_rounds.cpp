// A loop launches a few tiny kernels, waits for a value, and goes on by what it says: non-maximum suppression or a search written in
// Python. Each round costs the CPU far more than the GPU, and no graph and no compiler can join rounds that wait.
//
// Idea: cut what one thread launches at its waits for values. Parts of few, short kernels of few threads, one after the other, are such
// a loop. The grids say that the tensors are small. Layers are none of them: their weights may be large, so they belong on the GPU.
//
// Example: [sub, mul, clamp, le, item] x 178 of kernels with 128 threads and 1 us each.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/gaps.h"
#include "lanescope/analysis/iterations.h"
#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kind_of_work.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr double kLeastWaitingRoundsShare = 0.25;
constexpr std::uint64_t kFewestWaitingRounds = 16;  // waits in a row
constexpr std::uint64_t kFewestRoundsOfStep = 4;  // of a marked step: one wait may be for its loss
constexpr std::uint64_t kFewestTinyKernels = 2;   // for each wait: fewer only read values
constexpr std::uint64_t kMostTinyKernels = 64;
constexpr std::int64_t kLongestTinyMeanNs = 5'000;  // an empty kernel takes about 1 us
constexpr std::int64_t kLongestTinyNs = 20'000;
// A thread of torch's loops takes four numbers. A CPU core adds 16,384 numbers about as fast as it launches a kernel.
constexpr std::int64_t kMostTinyMeanThreads = 4'096, kMostTinyThreads = 16'384;
constexpr std::int64_t kMostThreadsOfElement =
    1'024;  // a block: one element is what a thread of it takes
constexpr std::int64_t kMostValueBytes = 4'096;  // of a copy between CPU and GPU

// A layer of a model, whose weights may be large.
bool is_of_model(std::string_view op) {
  constexpr std::string_view kBegins[] = {
      "aten::conv", "aten::scaled_dot", "aten::_scaled_dot", "aten::linalg_",   "aten::_linalg_",
      "aten::lstm", "aten::gru",        "aten::rnn",         "aten::embedding", "aten::einsum"};
  return is_layer_operator(op) || is_product(op) || op.starts_with(kEvaluateNode) ||
         op.find("_norm") != op.npos || names::is_optimizer_step(op) ||
         std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view each) { return op.starts_with(each); });
}

// 0: not recorded.
std::int64_t threads_of_grid(const Trace& trace, SliceId kernel) {
  constexpr std::int64_t kDamaged = std::int64_t{1} << 40;
  std::int64_t threads = 1;
  for (const ArgKey key : {ArgKey::kGrid, ArgKey::kBlock}) {
    const auto list = trace.slice_args(kernel).text(key);
    if (!list) return 0;
    for (const JsonValue& size : parse_json(trace.text(*list)).value_or(JsonValue{}).items) {
      if (!size.integer || *size.integer <= 0 || *size.integer > kDamaged / threads) return 0;
      threads *= *size.integer;
    }
  }
  return threads;
}

// Rounds one after the other: from the first wait to the last.
struct WaitingRun {
  std::vector<SliceId> waits;            // the operators
  std::uint64_t kernels = 0, sizes = 0;  // sizes: waits for one, as masks have
  std::uint64_t full_parts = 0;          // with kFewestTinyKernels or more
  std::int64_t gpu_ns = 0;
  std::int64_t calls_ns = 0;                   // launch calls, copies, waits
  std::int64_t threads = 0, most_threads = 0;  // of all kernels, of one
  bool knows_threads = true;
  void add(const WaitingRun& other) {
    waits.insert(waits.end(), other.waits.begin(), other.waits.end());
    kernels += other.kernels;
    sizes += other.sizes;
    full_parts += other.full_parts;
    gpu_ns += other.gpu_ns;
    calls_ns += other.calls_ns;
    threads += other.threads;
    most_threads = std::max(most_threads, other.most_threads);
    knows_threads = knows_threads && other.knows_threads;
  }
};

// Reads the launching thread's events in order.
class RunFinder {
 public:
  explicit RunFinder(const Facts& facts) : facts_(facts), trace_(*facts.trace) {
    for (const DeviceWork& work : facts.device().timeline.work)
      if (const SliceId call = facts.links.launch_of[raw(work.slice)]; call != kNone<SliceId>)
        launched_.emplace_back(raw(call), &work);
    std::sort(launched_.begin(), launched_.end());
  }

  std::vector<WaitingRun> find() {
    const auto steady = facts_.steady_cpu_windows();
    const Track& track = trace_.track(facts_.main_thread);
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId id{i};
      const CategoryKind kind = trace_.kind(id);
      if (kind == CategoryKind::kPythonFunction) continue;
      if (!inside(steady, trace_.start_ns(id)))
        part_is_tiny_ = false;
      else if (is_api_call(kind))
        read_call(id);
      else if (is_of_model(trace_.name(id)))
        part_is_tiny_ = false;
    }
    end_run();
    return std::move(runs_);
  }

 private:
  void read_call(SliceId call) {
    auto work = std::lower_bound(launched_.begin(), launched_.end(),
                                 std::pair{raw(call), static_cast<const DeviceWork*>(nullptr)});
    const ApiCall api = trace_.api_call(call);
    if (api.does(api_effect::kAllocates | api_effect::kFrees)) return;
    const bool launches = work != launched_.end() && work->first == raw(call);
    const bool waits = analysis::is_blocking_call(trace_, facts_.links, call);
    if (!launches && !waits) return;
    const SliceId op = outermost_operator(facts_, call);
    if (api.does(api_effect::kLaunchesGraph) || !trace_.name(op).starts_with("aten::"))
      part_is_tiny_ = false;  // what no CPU tensor can do, or no value
    part_.calls_ns += trace_.dur_ns(call);
    for (; work != launched_.end() && work->first == raw(call); ++work)
      read_work(*work->second, op);
    if (!waits || op == uploading_ || op == waiting_) return;
    part_.sizes += asks_for_size(facts_, call) ? 1 : 0;
    end_part(op);
  }

  void read_work(const DeviceWork& work, SliceId op) {
    const std::string_view label = trace_.name(work.slice);
    if (label.starts_with("Memcpy") || label.starts_with("Memset")) {
      if (trace_.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0) > kMostValueBytes)
        part_is_tiny_ = false;
      if (label.starts_with("Memcpy HtoD")) uploading_ = op;
      return;
    }
    const std::int64_t length_ns = work.end_ns - work.start_ns;
    const std::int64_t threads = threads_of_grid(trace_, work.slice);
    ++part_.kernels;
    part_.gpu_ns += length_ns;
    part_.threads += threads;
    part_.most_threads = std::max(part_.most_threads, threads);
    part_.knows_threads = part_.knows_threads && threads > 0;
    if (work.work != analysis::WorkClass::kCompute || length_ns > kLongestTinyNs ||
        threads > kMostTinyThreads || is_of_layer(work.slice))
      part_is_tiny_ = false;
  }

  bool is_of_layer(SliceId kernel) {
    const auto [at, is_new] = of_layers_.try_emplace(raw(trace_.slices().name[raw(kernel)]), false);
    if (is_new) {
      const std::string kind = kind_of_work(facts_, kernel);
      at->second = kind == "matrix products" || kind == "convolutions" || kind == "attention" ||
                   kind == "normalization" || kind == "communication";
    }
    return at->second;
  }

  void end_part(SliceId wait) {
    const auto kernels = static_cast<std::int64_t>(part_.kernels);
    if (part_.kernels > kMostTinyKernels || part_.threads > kernels * kMostTinyMeanThreads ||
        part_.gpu_ns > kernels * kLongestTinyMeanNs)
      part_is_tiny_ = false;
    part_.full_parts = part_.kernels >= kFewestTinyKernels ? 1 : 0;
    if (!part_is_tiny_)
      end_run();
    else if (!run_.waits.empty())
      run_.add(part_);
    run_.waits.push_back(wait);
    part_ = {};
    part_is_tiny_ = true;
    waiting_ = wait;
  }

  void end_run() {
    // A loop around it may read a list, before and after which a part has fewer kernels.
    if (run_.waits.size() >= kFewestWaitingRounds &&
        (run_.kernels >= run_.waits.size() * kFewestTinyKernels ||
         run_.full_parts * 10 >= run_.waits.size() * 9))
      runs_.push_back(std::move(run_));
    run_ = {};
  }

  const Facts& facts_;
  const Trace& trace_;
  std::vector<std::pair<std::uint32_t, const DeviceWork*>> launched_;  // by launch call
  std::map<std::uint32_t, bool> of_layers_;                            // by the kernel's name
  std::vector<WaitingRun> runs_;
  WaitingRun run_, part_;                                          // part_: since the last wait
  bool part_is_tiny_ = true;                                       // what came since the last wait
  SliceId uploading_ = kNone<SliceId>, waiting_ = kNone<SliceId>;  // the last such operators
};

struct WaitingRounds {
  WaitingRun all;
  SliceId first = kNone<SliceId>;  // a wait at the line where most are
  std::int64_t waiting_ns = 0;
};

// A wait at the line of the program that waits most often, as far as 32 of them show.
SliceId usual_wait(const Facts& facts, const std::vector<SliceId>& waits) {
  constexpr std::size_t kMostAsked = 32;
  std::map<std::string, std::pair<std::size_t, SliceId>> lines;
  const std::size_t asked = std::min(kMostAsked, waits.size());
  for (std::size_t i = 0; i < asked; ++i) {
    const SliceId wait = waits[i * waits.size() / asked];
    ++lines.try_emplace(python_line(facts, wait), 0, wait).first->second.first;
  }
  return std::max_element(
             lines.begin(), lines.end(),
             [](const auto& a, const auto& b) { return a.second.first < b.second.first; })
      ->second.second;
}

// One wait of a step may be for a value that is only reported. Several, or one for a size, decide what comes next.
bool decides_rounds(const Facts& facts, const WaitingRun& all) {
  const std::uint64_t steps = facts.selection.steady.size();
  if (!facts.steps.marked) return true;
  const auto& found = facts.steps.found;
  if (found && found->kind == analysis::IterationMark::kWait)
    return all.waits.size() >= 2 * steps || all.sizes >= steps;
  return all.waits.size() >= kFewestRoundsOfStep * steps;
}

std::optional<WaitingRounds> measure_waiting_rounds(const Facts& facts) {
  if (facts.main_thread == kNone<TrackId>) return std::nullopt;
  const Trace& trace = *facts.trace;
  std::vector<std::int64_t> nodes;
  for (const SliceId node : slices_starting_with(facts, kEvaluateNode))
    nodes.push_back(trace.start_ns(node));
  std::sort(nodes.begin(), nodes.end());
  WaitingRounds found;
  std::vector<Window> windows;
  for (const WaitingRun& run : RunFinder(facts).find()) {
    const Window window{trace.end_ns(run.waits.front()), trace.end_ns(run.waits.back())};
    // A backward pass, which mostly runs on a thread of its own: a training step.
    const auto node = std::lower_bound(nodes.begin(), nodes.end(), window.start_ns);
    if (node != nodes.end() && *node < window.end_ns) continue;
    found.all.add(run);
    windows.push_back(window);
  }
  if (found.all.waits.empty() || !decides_rounds(facts, found.all)) return std::nullopt;
  found.waiting_ns =
      lost_in(facts, steady_parts(facts, joined(std::move(windows)))).waiting_for_cpu_ns;
  if (share_of(found.waiting_ns, facts.steady_wall_ns()) < kLeastWaitingRoundsShare)
    return std::nullopt;
  found.first = usual_wait(facts, found.all.waits);
  return found;
}

// True: a function around it has non-maximum suppression in its name.
bool is_suppression(const Facts& facts, SliceId wait) {
  std::string line = python_line(facts, wait);
  line = line.substr(std::min(line.size(), line.rfind(": ") + 1));
  return line.find("nms") != line.npos || line.find("suppress") != line.npos;
}

// Each round compares one element, waits for the answer and changes one: where() does that for all elements. Nine tenths of the waits
// are branches, and a round launches no more than these two kernels.
bool only_branches(const Facts& facts, const WaitingRun& all) {
  const auto branches = std::count_if(all.waits.begin(), all.waits.end(), [&](SliceId wait) {
    return facts.trace->name(wait) == "aten::is_nonzero";
  });
  return static_cast<std::size_t>(branches) * 10 >= all.waits.size() * 9 &&
         all.kernels <= all.waits.size() * 2 && all.most_threads <= kMostThreadsOfElement &&
         all.knows_threads;
}

// The elements' views go with the loop.
void tell_branches(const Facts& facts, Finding& finding, const Value& kernels, const Value& waits,
                   const Value& steps) {
  finding.try_next = {
      "compute all rounds at once on the GPU if none needs another's result: gather() the "
      "elements, "
      "choose with torch.where() instead of a branch, scatter() the results",
      "if each round needs what the last one decided: run the loop on the CPU, after one copy",
      "a CUDA graph or torch.compile cannot join rounds that wait"};
  finding.brief = say(
      facts,
      "A loop branches on a GPU value after every {} tiny kernels, {} [time|times] [in {} steps]",
      {kernels, waits, steps});
  finding.action =
      say("Compute all rounds at once on the GPU (gather, where, scatter), if none needs another's "
          "result");
  finding.explains.push_back({"python-indexing", finding.at_stake_ns});
}

Finding tell_waiting_rounds(const Facts& facts, const WaitingRounds& found) {
  const WaitingRun& all = found.all;
  const Value kernels = count((all.kernels + all.waits.size() / 2) / all.waits.size()),
              waits = count(all.waits.size()), steps = count(facts.selection.steady.size());
  Finding finding;
  finding.verdict =
      say(facts,
          "A loop waits for a value after every {} tiny kernels on average ({} each), {} "
          "[time|times] [in {} steps]: meanwhile the GPU waits {} [per step] ({}) for the CPU.",
          {kernels, ns(all.gpu_ns / static_cast<std::int64_t>(all.kernels)), waits, steps,
           ns(facts.per_step(found.waiting_ns)), ratio(found.waiting_ns, facts.steady_wall_ns())});
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, facts.steady_wall_ns());
  finding.waiting_ns = finding.at_stake_ns;
  finding.confidence = facts.confidence();
  finding.sample_count = all.waits.size();
  finding.sample_noun = "wait";
  finding.gain_is_bound = true;
  finding.arithmetic.push_back(
      say(facts,
          "of it, launch calls, copies and waits take the CPU {} [per step]: tensors on the CPU "
          "need none of them. Its operators and Python stay",
          {ns(facts.per_step(all.calls_ns))}));
  finding.arithmetic.push_back(
      all.knows_threads
          ? say("its largest kernel has {} threads: the tensors are small",
                {count(static_cast<std::uint64_t>(all.most_threads))})
          : say("the kernels' grids are not recorded, so how large the tensors are is unknown"));
  finding.arithmetic.push_back(
      say("between these waits: no layer of a model, no backward pass, no optimizer, and no copy "
          "of more than 4,096 bytes"));
  finding.evidence.push_back(called_at(facts, found.first, say("one of these waits")));
  finding.try_next = {
      "if each round needs what the last one decided: .cpu() the inputs before the loop, and run "
      "the same code there. For tensors of a few thousand numbers a CPU core is faster than "
      "launches and waits",
      "where the work of all rounds is known ahead, such as all pairs: compute it at once on the "
      "GPU, copy the result once, and decide on the CPU",
      "a CUDA graph or torch.compile cannot join rounds that wait"};
  if (is_suppression(facts, found.first))
    finding.try_next.insert(
        finding.try_next.begin(),
        "non-maximum suppression: torchvision.ops.batched_nms does all of it in one call");
  finding.brief = say(
      facts, "A loop waits for a value after every {} tiny kernels, {} [time|times] [in {} steps]",
      {kernels, waits, steps});
  finding.action =
      say(all.knows_threads
              ? "Small tensors: run the loop on the CPU, after one copy; or compute all rounds at "
                "once and read once"
              : "If its tensors are small: run the loop on the CPU, after one copy; or compute all "
                "rounds at once and read once");
  for (const char* covered : {"host-sync", "tiny-kernels", "looped-calls", "many-calls",
                              "same-calls-twice", "unfused-chain", "graph-opportunity"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  if (only_branches(facts, all)) tell_branches(facts, finding, kernels, waits, steps);
  return finding;
}

}  // namespace

extern constinit const Rule waiting_rounds_rule = {
    .id = "waiting-rounds",
    .question = "does a loop wait for a value after every few tiny kernels?",
    .meant_by = "nms greedy while nonzero item search matching",
    .order = 129,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_waiting_rounds, tell_waiting_rounds>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
    .covered_from = 0.5,
};

}  // namespace lanescope::explain::rules
