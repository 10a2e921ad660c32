// A Python loop reads a tensor element by element or row by row.
//
// In a trace a loop looks like this: the program itself calls one indexing operator on tensors of
// one shape, ten times or more in a step, each time at another index and with at most
// kLongestBody operators between two calls. Layers that slice in the same way have more operators
// between them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/loader_waits.h"
#include "lanescope/explain/rules/operator_advice.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/quiet_code.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::IntervalUnion;
using analysis::Window;

namespace {

constexpr std::size_t kLongestBody = 8;  // operators
constexpr std::uint64_t kLeastCalls = 10;
constexpr double kLeastLongWork = 0.05;  // of the wall

// sub_, mul_, ...: changes its tensor by what is in it. copy_ and fill_ do not read it.
bool changes_in_place(std::string_view op) {
  return op.starts_with("aten::") && op.ends_with('_') && !op.ends_with("__") &&
         op != "aten::copy_" && op != "aten::fill_" && op != "aten::zero_" &&
         op != "aten::requires_grad_" && op != "aten::detach_";
}

bool is_indexing(std::string_view op) {
  return op == "aten::select" || op == "aten::slice" || op == "aten::narrow";
}

// Operator and shape of its inputs, as the trace writes it; without shapes the operator alone.
using Key = std::pair<std::uint32_t, std::uint32_t>;

// What the calls between two indexing calls show of the rounds of a loop.
enum class RoundKind : std::uint8_t {
  kOnlyRead,  // the CPU reads elements that the GPU computed: one copy reads all of them
  kOnlyMove,  // data is taken apart, copied, read or joined: one call can do that for all rounds
  kUnknown,   // other calls: a round may need the one before it
  kHaveProducts,      // products, norms or convolutions: work of its own, which stays
  kWait,              // the CPU reads what the GPU computed, which may decide on the next round
  kChangeInPlace,     // later rounds read what earlier ones wrote
  kAreRecurrentCells  // each needs the state that the one before it left
};
// One call over all rows would not spare the rounds: only the calls that index can go.
bool keeps_rounds(RoundKind rounds) { return rounds >= RoundKind::kHaveProducts; }

struct IndexChain {
  std::uint64_t calls = 0, moves = 0;  // moves: another index than in the call before
  std::set<std::uint32_t> places;      // the different indices; empty: not recorded
  std::size_t first = 0, last = 0;     // places among the program's own operators
  std::uint32_t concrete = 0;
  bool has_concrete = false;
};

struct Loops {
  std::uint64_t calls = 0, loops = 0;
  bool are_joined = false;  // nothing between the calls, and a stack or cat after the last
  RoundKind rounds = RoundKind::kOnlyRead;
  std::uint64_t reads = 0;  // of rounds that only read
  SliceId first = kNone<SliceId>;
};

struct FoundIndexing {
  std::map<std::uint32_t, std::vector<Window>> windows;  // by raw thread
  std::vector<SliceId> later_calls;                      // those of all turns but the first
  std::unordered_set<std::uint32_t> indexing;            // of rounds that stay: calls that can go
  std::unordered_set<std::uint32_t> reads;               // of rounds that only read
  std::map<Key, Loops> by_key;
};

// Rounds that take an element or a row, and change a range of a tensor in place: `w = x[:, i]; ...; x[:, i:] -= ...`. A later
// round reads what this one wrote. `x[i] += y` changes the row alone, with no range.
bool changes_ranges_in_place(const Trace& trace, const std::vector<SliceId>& ops, std::size_t first,
                             std::size_t end) {
  std::size_t selects = 0, slices = 0, changes = 0;
  for (std::size_t at = first; at <= end; ++at) {
    const std::string_view op = trace.name(ops[at]);
    selects += op == "aten::select" ? 1 : 0;
    slices += op == "aten::slice" || op == "aten::narrow" ? 1 : 0;
    changes += changes_in_place(op) ? 1 : 0;
  }
  // The loop's first or last round may be cut.
  return changes >= kLeastCalls && slices + 1 >= changes && selects + 1 >= changes;
}

// Takes data apart, copies it, reads a value of it or joins it.
bool only_moves(std::string_view op) {
  constexpr std::string_view kMoves[] = {
      "aten::copy_", "aten::to",         "aten::clone",   "aten::contiguous",
      "aten::item",  "aten::index_put_", "aten::cat",     "aten::index_copy_",
      "aten::fill_", "aten::zero_",      "aten::reshape", "aten::stack"};
  return is_indexing(op) || is_view(op) || is_factory(op) ||
         std::find(std::begin(kMoves), std::end(kMoves), op) != std::end(kMoves);
}

// The program's own operators in which the CPU waits for a value or a size that the GPU computes. Copies to the GPU wait for
// no result.
std::unordered_set<std::uint32_t> operators_that_read(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::unordered_set<std::uint32_t> waiting;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId call{i};
    if (!is_api_call(trace.kind(call)) || !inside(windows, trace.start_ns(call))) continue;
    const SliceId op = outermost_operator_of(facts, call);
    if (op != kNone<SliceId> &&
        !trace.api_call(call).does(api_effect::kAllocates | api_effect::kFrees) &&
        analysis::is_blocking_call(trace, facts.links, call))
      waiting.insert(raw(op));
  }
  for (const std::uint32_t op : uploading_operators(facts)) waiting.erase(op);
  return waiting;
}

// The loop's calls of one thread and step, from its first indexing call to the end of its last round.
struct CallsOfLoop {
  const std::vector<SliceId>& ops;
  std::size_t first = 0, end = 0;
  std::uint64_t indexing = 0;  // calls of its operator
};

bool reads_value(std::string_view op) { return op == "aten::item" || op == "aten::is_nonzero"; }

// x[i, j].item() in each round, and nothing else: views, and a read for four of them or fewer.
bool only_reads(const Trace& trace, const CallsOfLoop& loop,
                const std::unordered_set<std::uint32_t>& reading) {
  constexpr std::uint64_t kMostViewsPerRead = 4;
  std::uint64_t reads = 0, others = 0;
  for (std::size_t at = loop.first; at <= loop.end; ++at) {
    const std::string_view op = trace.name(loop.ops[at]);
    if (reads_value(op))
      reads += reading.contains(raw(loop.ops[at])) ? 1 : 0;
    else if (!is_indexing(op) && !is_view(op))
      ++others;
  }
  return reads >= 2 && reads * kMostViewsPerRead >= loop.indexing && others * 10 <= reads;
}

RoundKind kind_of_rounds(const Trace& trace, const CallsOfLoop& loop,
                         const std::unordered_set<std::uint32_t>& reading) {
  // A round has kLongestBody calls between two that index, so at most twice as many of those.
  constexpr std::uint64_t kMostIndexing = 2 * kLongestBody;
  std::uint64_t cells = 0, products = 0, others = 0, reads = 0;
  for (std::size_t at = loop.first; at <= loop.end; ++at) {
    const std::string_view op = trace.name(loop.ops[at]);
    cells += is_recurrent_cell(op) ? 1 : 0;
    products += is_layer_operator(op) ? 1 : 0;
    others += only_moves(op) ? 0 : 1;
    reads += reading.contains(raw(loop.ops[at])) ? 1 : 0;
  }
  const auto are_in_rounds = [&](std::uint64_t calls) {
    return calls * kMostIndexing >= loop.indexing && calls >= 2;
  };
  if (are_in_rounds(cells)) return RoundKind::kAreRecurrentCells;
  if (changes_ranges_in_place(trace, loop.ops, loop.first, loop.end))
    return RoundKind::kChangeInPlace;
  if (only_reads(trace, loop, reading)) return RoundKind::kOnlyRead;
  if (!are_in_rounds(others)) return RoundKind::kOnlyMove;
  if (are_in_rounds(reads)) return RoundKind::kWait;
  return are_in_rounds(products) ? RoundKind::kHaveProducts : RoundKind::kUnknown;
}

// Do most calls from `first` to `last` have the name of the one a round before? Where no index is recorded, only that tells a loop
// from lines that take elements of a tensor, as f[3, -1] = f[3, -2] does.
bool are_equal_rounds(const Trace& trace, const std::vector<SliceId>& ops, std::size_t first,
                      std::size_t last) {
  constexpr std::size_t kFewestRounds = 4, kLongestRound = 64;
  const std::size_t calls = last - first + 1;
  const auto name_at = [&](std::size_t at) { return trace.slices().name[raw(ops[first + at])]; };
  for (std::size_t size = 1; size <= kLongestRound && size * kFewestRounds <= calls; ++size) {
    std::size_t equal = 0;
    for (std::size_t at = size; at < calls; ++at) equal += name_at(at) == name_at(at - size);
    if (equal * 10 >= (calls - size) * 8) return true;
  }
  return false;
}

// What the program itself called on one thread in one step, in order.
void find_loops(const Trace& trace, const std::vector<SliceId>& ops,
                const std::unordered_set<std::uint32_t>& reading, FoundIndexing& found) {
  std::map<Key, IndexChain> open;
  const auto close = [&](const Key& key, const IndexChain& chain) {
    // The same few places again and again are columns, as in box[:, 0] and box[:, 2].
    if (chain.calls < kLeastCalls ||
        (chain.has_concrete &&
         (chain.moves * 2 < chain.calls || chain.places.size() < kLeastCalls)) ||
        (!chain.has_concrete && !are_equal_rounds(trace, ops, chain.first, chain.last)))
      return;
    // The last turn of the loop is as long as the others.
    const std::size_t body = (chain.last - chain.first) / (chain.calls - 1);
    std::size_t end = std::min(chain.last + std::max<std::size_t>(body, 1) - 1, ops.size() - 1);
    const SliceId first = ops[chain.first];
    const RoundKind rounds = kind_of_rounds(trace, {ops, chain.first, end, chain.calls}, reading);
    // The last round ends with its read.
    if (rounds == RoundKind::kOnlyRead && !reads_value(trace.name(ops[end])) &&
        end + 1 < ops.size() && reads_value(trace.name(ops[end + 1])))
      ++end;
    std::vector<Window>& windows = found.windows[raw(trace.slices().track[raw(first)])];
    if (keeps_rounds(rounds))
      for (std::size_t at = chain.first; at <= end; ++at) {
        if (!is_indexing(trace.name(ops[at]))) continue;
        windows.push_back({trace.start_ns(ops[at]), trace.end_ns(ops[at])});
        found.indexing.insert(raw(ops[at]));
      }
    else
      windows.push_back({trace.start_ns(first), trace.end_ns(ops[end])});
    const std::size_t second = std::min(chain.first + std::max<std::size_t>(body, 1), end + 1);
    for (std::size_t at = second; at <= end; ++at)
      if (!keeps_rounds(rounds) || is_indexing(trace.name(ops[at])))
        found.later_calls.push_back(ops[at]);
    Loops& loops = found.by_key[key];
    loops.rounds = std::max(loops.rounds, rounds);
    if (rounds == RoundKind::kOnlyRead)
      for (std::size_t at = chain.first; at <= end; ++at)
        if (reading.contains(raw(ops[at])) && found.reads.insert(raw(ops[at])).second)
          ++loops.reads;
    loops.calls += chain.calls;
    const std::string_view next = end + 1 < ops.size() ? trace.name(ops[end + 1]) : "";
    loops.are_joined = body == 1 && (next == "aten::stack" || next == "aten::cat");
    if (loops.loops++ == 0) loops.first = first;
  };
  for (std::size_t at = 0; at < ops.size(); ++at) {
    if (!is_indexing(trace.name(ops[at]))) continue;
    const auto args = trace.slice_args(ops[at]);
    const auto dims = args.text(ArgKey::kInputDims), concrete = args.text(ArgKey::kConcreteInputs);
    const Key key{raw(trace.slices().name[raw(ops[at])]), dims ? raw(*dims) : ~std::uint32_t{0}};
    IndexChain& chain = open[key];
    if (chain.calls > 0 && at - chain.last > kLongestBody + 1) {
      close(key, chain);
      chain = {};
    }
    if (chain.calls++ == 0) chain.first = at;
    if (concrete && chain.has_concrete && raw(*concrete) != chain.concrete) ++chain.moves;
    if (concrete) {
      chain.concrete = raw(*concrete);
      chain.places.insert(chain.concrete);
    }
    chain.has_concrete = concrete.has_value();
    chain.last = at;
  }
  for (const auto& [key, chain] : open) close(key, chain);
}

FoundIndexing loops_of(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& steps = facts.steps.steps;
  FoundIndexing found;
  const std::unordered_set<std::uint32_t> reading = operators_that_read(facts);
  std::vector<SliceId> ops;
  std::pair<std::uint32_t, std::size_t> place{~std::uint32_t{0}, 0};  // thread and step of ops
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp) continue;
    const SliceId around = facts.nesting.parent[i];
    if (around != kNone<SliceId> && trace.kind(around) == CategoryKind::kCpuOp) continue;
    const auto after = std::upper_bound(
        facts.selection.steady.begin(), facts.selection.steady.end(), trace.start_ns(id),
        [&](std::int64_t time, std::size_t step) { return time < steps[step].cpu_start_ns; });
    if (after == facts.selection.steady.begin() ||
        trace.start_ns(id) >= steps[*(after - 1)].cpu_end_ns)
      continue;
    const std::pair here{raw(trace.slices().track[i]), *(after - 1)};
    if (here != place) {
      find_loops(trace, ops, reading, found);
      ops.clear();
      place = here;
    }
    ops.push_back(id);
  }
  find_loops(trace, ops, reading, found);
  // One view of all has one backward part, too.
  for (const std::uint32_t each : with_backward_nodes(facts, found.indexing)) {
    if (found.indexing.contains(each)) continue;
    const SliceId node{each};
    found.windows[raw(trace.slices().track[each])].push_back(
        {trace.start_ns(node), trace.end_ns(node)});
    found.later_calls.push_back(node);
  }
  return found;
}

// Disjoint and in order.
void join(std::vector<Window>& windows) {
  sort_rows(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  std::vector<Window> joined;
  for (const Window& window : windows) {
    if (!joined.empty() && window.start_ns <= joined.back().end_ns)
      joined.back().end_ns = std::max(joined.back().end_ns, window.end_ns);
    else
      joined.push_back(window);
  }
  windows = std::move(joined);
}

struct PythonIndexing {
  std::vector<std::pair<Key, Loops>> ranked;
  std::uint64_t calls = 0;
  std::uint64_t pieces = 0;
  std::int64_t waiting_ns = 0;
  std::int64_t latency_ns = 0;  // idle while launches were on their way
  std::int64_t small_ns = 0;
  std::int64_t after_reads_ns = 0;  // part of waiting_ns: after reads of rounds that only read
  std::vector<SliceId> spared;      // empty: some of the loop's GPU work is long, and stays
  RoundKind rounds() const { return ranked.front().second.rounds; }
  bool joins_slices() const { return ranked.front().second.are_joined; }
};

void keep_each_call_once(std::vector<SliceId>& calls) {
  sort_rows(calls.begin(), calls.end(), [](SliceId a, SliceId b) { return raw(a) < raw(b); });
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
}

std::optional<PythonIndexing> measure_python_indexing(const Facts& facts) {
  const Trace& trace = *facts.trace;
  FoundIndexing found = loops_of(facts);
  if (found.by_key.empty()) return std::nullopt;
  for (auto& [thread, windows] : found.windows) join(windows);

  const auto& waits = host_late_stretches(facts);
  const std::vector<Window> batches = batch_wait_windows(facts);
  std::int64_t waiting_ns = 0, after_reads_ns = 0, all_ns = 0, in_loader_ns = 0;
  for (const auto& [thread, windows] : found.windows) {
    std::vector<HostStretch> of_thread;
    for (const HostStretch& wait : waits)
      if (raw(wait.thread) == thread) of_thread.push_back(wait);
    const std::vector<HostStretch> parts = parts_within(of_thread, windows);
    for (const HostStretch& part : parts) {
      const SliceId reader =
          part.blame == kNone<SliceId> ? kNone<SliceId> : outermost_operator_of(facts, part.blame);
      if (reader != kNone<SliceId> && found.reads.contains(raw(reader)))
        after_reads_ns += part.end_ns - part.start_ns;
      waiting_ns += part.end_ns - part.start_ns;
      all_ns += part.end_ns - part.start_ns;
      for (const Window& batch : batches)
        in_loader_ns += std::max<std::int64_t>(
            0, std::min(part.end_ns, batch.end_ns) - std::max(part.start_ns, batch.start_ns));
    }
    // One call over all rows does not spare what the loop does without operators, such as opening files.
    waiting_ns -= quiet_code(facts, parts).time_ns;
  }
  // Rows of a batch that the DataLoader takes one by one: dataloader-wait says so, with the same time.
  if (in_loader_ns * 10 >= all_ns * 9 && all_ns > 0) return std::nullopt;
  std::int64_t latency_ns = 0;
  for (const auto& [thread, windows] : found.windows)
    for (const Window& window : windows) {
      const IdleTimes idle = idle_within_steady(facts, window);
      latency_ns += idle[static_cast<std::size_t>(analysis::IdleCause::kLaunchLatency)] +
                    idle[static_cast<std::size_t>(analysis::IdleCause::kBetweenQueued)];
    }
  // Small pieces become one; the work of a long kernel stays.
  IntervalUnion small;
  std::uint64_t pieces = 0;
  std::int64_t long_ns = 0;
  for (const DeviceWork* work : steady_work(facts)) {
    const SliceId launch = facts.links.launch_of[raw(work->slice)];
    if (launch == kNone<SliceId>) continue;
    const auto windows = found.windows.find(raw(trace.slices().track[raw(launch)]));
    if (windows == found.windows.end() || !inside(windows->second, trace.start_ns(launch)))
      continue;
    ++pieces;
    if (work->end_ns - work->start_ns < analysis::kTinyKernelNs)
      small.add(work->start_ns, work->end_ns);
    else
      long_ns += work->end_ns - work->start_ns;
  }
  small.finish();
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (share_of(waiting_ns, wall_ns) < 0.05) return std::nullopt;
  std::vector<std::pair<Key, Loops>> ranked(found.by_key.begin(), found.by_key.end());
  sort_rows(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.second.calls != b.second.calls ? a.second.calls > b.second.calls
                                            : raw(a.second.first) < raw(b.second.first);
  });
  std::uint64_t calls = 0;
  for (const auto& [key, loops] : ranked) calls += loops.calls;
  // Long rounds without GPU work are a loop over tensors of the CPU: what it takes is the work on them.
  constexpr std::int64_t kLongRoundNs = 200'000;
  if (pieces == 0 && waiting_ns > kLongRoundNs * static_cast<std::int64_t>(calls))
    return std::nullopt;
  if (share_of(long_ns, wall_ns) >= kLeastLongWork) found.later_calls.clear();
  keep_each_call_once(found.later_calls);
  return PythonIndexing{.ranked = std::move(ranked),
                        .calls = calls,
                        .pieces = pieces,
                        .waiting_ns = waiting_ns,
                        .latency_ns = latency_ns,
                        .small_ns = small.length_ns(),
                        .after_reads_ns = after_reads_ns,
                        .spared = std::move(found.later_calls)};
}

// What to do, by what is known of the rounds.
void tell_rounds(const PythonIndexing& measured, Finding& finding) {
  constexpr char kViewsOnce[] =
      "take all views in one call, before the loop: x.unbind(dim); its backward part joins the "
      "gradients once, where that of each select fills a tensor of the whole size";
  switch (measured.rounds()) {
    case RoundKind::kOnlyRead:
      finding.try_next = {
          "read all values in one copy before the loop, values = x.tolist(), and index the list: "
          "that needs one wait, and no call for an element"};
      finding.action = say("Read all in one copy before the loop: values = x.tolist()");
      return;
    case RoundKind::kOnlyMove:
      finding.action =
          say("Take all rows at once: table[indices], x.unbind(), torch.stack or a batched "
              "operator");
      return;
    case RoundKind::kUnknown:
      finding.action =
          say("If no round needs the one before it: all rows at once (table[indices], "
              "torch.stack, a batched operator)");
      return;
    case RoundKind::kHaveProducts:
      finding.try_next = {kViewsOnce,
                          "the products of a round are not counted: if no round needs the one "
                          "before it, one product takes all rows"};
      finding.action = say("Take all slices in one call before the loop: x.unbind(dim)");
      return;
    case RoundKind::kWait:
      finding.try_next = {kViewsOnce,
                          "each round reads a value or a size from the GPU, which may decide on "
                          "the next: compute what all rounds need before the loop, and read it in "
                          "one copy; what waits in a round is not counted here"};
      finding.action = say("Take all slices or columns in one call: x.unbind(dim)");
      return;
    case RoundKind::kChangeInPlace:
      finding.try_next = {
          "later rounds read what earlier ones wrote in place, so no call takes all rows at once: "
          "compile a round (torch.compile), or capture the loop in a CUDA graph",
          "take views once, before the loop: x.unbind()"};
      finding.action =
          say("Rounds depend on each other: torch.compile a round, or a CUDA graph of the loop");
      return;
    case RoundKind::kAreRecurrentCells:
      finding.try_next = {kViewsOnce,
                          "a cell needs the state of the one before it: where all inputs are known "
                          "ahead, nn.LSTM, nn.GRU or nn.RNN takes the whole sequence"};
      finding.action =
          say("Take all inputs in one call before the loop: x.unbind(dim); or the whole layer "
              "(nn.LSTM, nn.GRU)");
      return;
  }
}

Finding tell_python_indexing(const Facts& facts, const PythonIndexing& measured) {
  const Trace& trace = *facts.trace;
  const auto& [ranked, calls, pieces, waiting_ns, latency_ns, small_ns, after_reads_ns, spared] =
      measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  const std::int64_t at_stake_ns = waiting_ns + latency_ns + small_ns;
  Finding finding;
  finding.verdict =
      say(facts,
          "A Python loop indexes tensors piece by piece: {} calls [per step] of {} and similar "
          "operators, each at another index, launch {} pieces of GPU work, and the GPU waits {} "
          "[per step] ({}) for them.",
          {count(calls / steps), name(trace.text(StringId{ranked.front().first.first})),
           count(pieces / steps), ns(facts.per_step(waiting_ns)), ratio(waiting_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(at_stake_ns);
  finding.at_stake_ratio = share_of(at_stake_ns, wall_ns);
  finding.waiting_ns = facts.per_step(waiting_ns + latency_ns);
  finding.spared_calls = spared;
  finding.arithmetic.push_back(
      say(facts,
          keeps_rounds(measured.rounds())
              ? "one call instead of those that index, and of their backward part, saves: waiting "
                "{} + launches on their way {} + work in pieces shorter than 10 us {} = at most {} "
                "[per step]"
              : "one call over the whole tensor instead of the loop saves: waiting {} + launches "
                "on their way {} + work in pieces shorter than 10 us {} = at most {} [per step]",
          {ns(facts.per_step(waiting_ns)), ns(facts.per_step(latency_ns)),
           ns(facts.per_step(small_ns)), ns(facts.per_step(at_stake_ns))}));
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    const Loops& loops = ranked[i].second;
    Sentence line = say(facts, "{} x{} in {} [loop|loops]",
                        {name(trace.name(loops.first)), count(loops.calls), count(loops.loops)});
    if (const auto dims = trace.slice_args(loops.first).text(ArgKey::kInputDims)) {
      line.pattern += ", of {}";
      line.values.push_back(name(trace.text(*dims)));
    }
    add_line(facts, loops.first, line);
    finding.evidence.push_back({loops.first, std::move(line)});
  }
  finding.try_next = {
      "index with all rows at once: table[indices], x.unbind() once, torch.stack or a batched "
      "operator instead of the loop",
      "use one fused operator (nn.LSTM, nn.GRU), torch.compile or a CUDA graph where each "
      "iteration needs the result of the one before"};
  finding.confidence = facts.confidence();
  finding.sample_count = calls;
  finding.sample_noun = "call";
  finding.brief =
      say(facts, "A Python loop calls {} {} times [per step]",
          {name(trace.text(StringId{ranked.front().first.first})), count(calls / steps)});
  if (const Loops& loops = ranked.front().second; loops.rounds == RoundKind::kOnlyRead) {
    finding.brief = say(
        facts,
        "A Python loop reads {} values one by one [per step] (aten::item), with {} calls of {}",
        {count(loops.reads / steps), count(loops.calls / steps), name(trace.name(loops.first))});
    finding.explains.push_back({"host-sync", facts.per_step(after_reads_ns)});
  }
  tell_rounds(measured, finding);
  if (!keeps_rounds(measured.rounds()) && measured.joins_slices() &&
      trace.name(ranked.front().second.first) == "aten::slice")
    finding.action =
        say("If they are windows at equal steps: x.unfold(dim, size, step) is one view of all");
  return finding;
}

}  // namespace

extern constinit const Rule python_indexing_rule = {
    .id = "python-indexing",
    .question = "does a Python loop index tensors piece by piece?",
    .meant_by = "python",
    .order = 130,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kMarkedSteps},
    .run = measure_and_tell<measure_python_indexing, tell_python_indexing>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules
