// Rounds of a loop that do the same work on inputs that no round before them made: members of an ensemble, drafted tokens,
// samples one by one. One call over all rounds would do.
//
// Problem: layers of a model are equal rounds, too, and each needs the one before it. The trace does not show which tensor
// is which. Idea: the first product of a round takes a tensor of a size that no call of a round makes, so it comes from
// outside. Example: 16 x (linear [256, 24] -> 200, linear 200 -> 200, linear 200 -> 18): nothing in a round makes 256 x 24
// numbers. Modules in recorded stacks say whether the rounds use the same weights.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/analysis/repeats.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/call_symbols.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/python_frame.h"

namespace lanescope::explain::rules {

using analysis::Repeat;
using analysis::Window;

namespace {

constexpr double kLeastRoundsShare = 0.1;
constexpr std::uint32_t kFewestEqualRounds = 4;
constexpr std::size_t kFewestProducts = 2;  // of a round: one alone is the matter of equal-products
// Products of so few rows take the time of reading their weights, however few rows they are.
constexpr double kFewRows = 64;

enum class Weights : std::uint8_t { kUnknown, kSame, kOwn };

bool is_norm(std::string_view op) { return op.ends_with("_norm"); }
bool is_matrix_product(std::string_view op) { return is_layer_operator(op) && !is_norm(op); }

// What the next round does may depend on a value: tokens that are drawn or chosen, conditions.
bool chooses_a_value(std::string_view op) {
  static constexpr std::string_view kChoosing[] = {
      "aten::argmax",  "aten::multinomial", "aten::topk",    "aten::sort",        "aten::item",
      "aten::nonzero", "aten::is_nonzero",  "aten::argsort", "aten::exponential_"};
  return std::find(std::begin(kChoosing), std::end(kChoosing), op) != std::end(kChoosing) ||
         op.ends_with("_cell");  // of a recurrent network
}

// Rounds of equal calls in one step.
struct EqualRounds {
  const CallSequence* calls = nullptr;
  std::size_t first = 0, size = 0, rounds = 0;
  Weights weights = Weights::kUnknown;
  double rows = 0;  // of the first product's input
  SliceId call(std::size_t round, std::size_t place) const {
    return (*calls)[first + round * size + place];
  }
};

// Shapes of products only: a cache that grows leaves the rounds what they are.
std::vector<std::uint32_t> round_symbols(const Trace& trace, const CallSequence& calls) {
  return call_symbols(trace, calls, [](std::string_view op) { return is_matrix_product(op); });
}

Weights weights_of(const Trace& trace, const EqualRounds& found) {
  std::size_t same = 0, other = 0;
  for (std::size_t place = 0; place < found.size; ++place) {
    if (!is_matrix_product(trace.name(found.call(0, place)))) continue;
    std::set<std::string_view> modules;
    for (std::size_t round = 0; round < found.rounds; ++round)
      modules.insert(rules::module_around(trace, found.call(round, place)));
    if (modules.contains({})) return Weights::kUnknown;
    same += modules.size() == 1 ? 1 : 0;
    other += modules.size() == found.rounds ? 1 : 0;
    if (same > 0 && other > 0) return Weights::kUnknown;
  }
  return same > 0 ? Weights::kSame : other > 0 ? Weights::kOwn : Weights::kUnknown;
}

std::optional<analysis::Sizes> first_size(const Trace& trace, SliceId call) {
  const auto tensor = operator_inputs(trace, call).tensor(0);
  return tensor ? std::optional(tensor->dims) : std::nullopt;
}

// No call of a round makes or takes a tensor as large as its first product takes, so that one comes from outside. Sets
// the rows.
bool begins_from_outside(const Trace& trace, EqualRounds& found) {
  std::size_t place = 0;
  while (place < found.size && !is_layer_operator(trace.name(found.call(0, place)))) ++place;
  if (place == found.size) return false;
  const auto taken = first_size(trace, found.call(0, place));
  if (!taken || taken->size() < 2) return false;
  const double elements = analysis::element_count(*taken);
  found.rows = elements / static_cast<double>(std::max<std::int64_t>(1, taken->back()));
  // Indices of a table are numbers that no product makes. Layers may have tables of their own.
  bool looks_up = false;
  for (std::size_t before = 0; before < place; ++before)
    looks_up = looks_up || (found.weights == Weights::kSame &&
                            trace.name(found.call(0, before)) == "aten::embedding");
  bool knows_result = false;
  for (std::size_t i = place; i < found.size; ++i) {
    const SliceId call = found.call(0, i);
    const auto made = made_size(trace.name(call), operator_inputs(trace, call));
    const auto its = first_size(trace, call);
    const bool is_last = i + 1 == found.size;
    if (is_matrix_product(trace.name(call))) knows_result = made.has_value();
    if (i > place && its && !is_matrix_product(trace.name(call))) knows_result = true;
    if (looks_up && !is_last) continue;
    if (made && analysis::element_count(*made) == elements) return false;
    if (i > place && its && analysis::element_count(*its) == elements) return false;
  }
  return knows_result;
}

bool is_of_equal_rounds(const Trace& trace, EqualRounds& found) {
  std::size_t products = 0;
  for (std::size_t place = 0; place < found.size; ++place) {
    const std::string_view op = trace.name(found.call(0, place));
    if (chooses_a_value(op) || op.starts_with(kEvaluateNode)) return false;
    products += is_matrix_product(op) ? 1 : 0;
  }
  if (products < kFewestProducts) return false;
  found.weights = weights_of(trace, found);
  return begins_from_outside(trace, found);
}

// When a node of autograd begins, sorted: rounds with a backward pass each are micro batches, which another rule tells.
std::vector<std::int64_t> node_starts(const Facts& facts) {
  std::vector<std::int64_t> starts;
  for (const SliceId id : backward_nodes(facts)) starts.push_back(facts.trace->start_ns(id));
  std::sort(starts.begin(), starts.end());
  return starts;
}

struct EqualRoundsOfSteps {
  std::uint64_t loops = 0, rounds = 0, calls = 0;  // calls: of one round of the longest
  std::size_t longest = 0;                         // rounds
  Weights weights = Weights::kUnknown;
  double rows = 0;
  std::int64_t waiting_ns = 0,
               reading_ns = 0;  // reading: products of few rows, in all rounds but one
  SliceId first = kNone<SliceId>, last = kNone<SliceId>, product = kNone<SliceId>;
};

void add_rounds(const Trace& trace, const EqualRounds& each, EqualRoundsOfSteps& found) {
  ++found.loops;
  found.rounds += each.rounds;
  if (each.rounds * each.size <= found.longest * found.calls) return;
  found.longest = each.rounds;
  found.calls = each.size;
  found.weights = each.weights;
  found.rows = each.rows;
  found.first = each.call(0, 0);
  found.last = each.call(each.rounds - 1, each.size - 1);
  for (std::size_t place = each.size; place-- > 0;)
    if (is_matrix_product(trace.name(each.call(0, place)))) found.product = each.call(0, place);
}

std::optional<EqualRoundsOfSteps> measure_equal_rounds(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const std::vector<CallSequence>& sequences = call_sequences(facts);
  const std::vector<std::int64_t> nodes = node_starts(facts);
  EqualRoundsOfSteps found;
  std::vector<Window> later;  // all rounds but the first
  std::unordered_set<std::uint32_t> later_calls, read_again;
  for (const CallSequence& calls : sequences) {
    const std::vector<Repeat> repeats = analysis::find_repeats(round_symbols(trace, calls));
    // Outer loops come after those inside them.
    std::vector<bool> taken(repeats.size(), false);
    for (std::size_t r = repeats.size(); r-- > 0;) {
      const Repeat& repeat = repeats[r];
      if (repeat.parent != Repeat::kNoRepeat && taken[repeat.parent]) {
        taken[r] = true;
        continue;
      }
      EqualRounds each{&calls, repeat.first, repeat.round_size(), repeat.rounds};
      if (repeat.rounds < kFewestEqualRounds || !is_of_equal_rounds(trace, each)) continue;
      const Window whole{trace.start_ns(each.call(0, 0)),
                         trace.end_ns(each.call(each.rounds - 1, each.size - 1))};
      const auto node = std::lower_bound(nodes.begin(), nodes.end(), whole.start_ns);
      if (node != nodes.end() && *node < whole.end_ns) continue;
      taken[r] = true;
      add_rounds(trace, each, found);
      later.push_back({trace.start_ns(each.call(1, 0)), whole.end_ns});
      for (std::size_t round = 1; round < each.rounds; ++round)
        for (std::size_t place = 0; place < each.size; ++place) {
          const SliceId call = each.call(round, place);
          later_calls.insert(raw(call));
          if (each.rows <= kFewRows && each.weights == Weights::kSame &&
              is_matrix_product(trace.name(call)))
            read_again.insert(raw(call));
        }
    }
  }
  if (found.loops == 0) return std::nullopt;
  for (const std::uint32_t node : with_backward_nodes(facts, later_calls))
    if (!later_calls.contains(node))
      later.push_back({trace.start_ns(SliceId{node}), trace.end_ns(SliceId{node})});
  found.waiting_ns =
      lost_in(facts, steady_parts(facts, joined(std::move(later)))).waiting_for_cpu_ns;
  std::vector<const analysis::DeviceWork*> reading;
  for (const analysis::DeviceWork* work : steady_work(facts))
    if (const SliceId op = outermost_operator_of(facts, work->slice);
        op != kNone<SliceId> && read_again.contains(raw(op)))
      reading.push_back(work);
  found.reading_ns = union_ns(reading);
  if (share_of(found.waiting_ns + found.reading_ns, facts.steady_wall_ns()) < kLeastRoundsShare)
    return std::nullopt;
  return found;
}

// The innermost function of the program that all rounds run in.
Sentence loop_place(const Facts& facts, const EqualRoundsOfSteps& found) {
  const Trace& trace = *facts.trace;
  for (std::uint32_t i = raw(found.first); i-- > trace.track(found.first).first_slice;) {
    const SliceId frame{i};
    if (trace.kind(frame) != CategoryKind::kPythonFunction ||
        trace.end_ns(frame) < trace.end_ns(found.last))
      continue;
    const names::PythonFrame* const read = facts.frames.find(trace.slices().name[i]);
    if (!read || !read->is_of_program()) continue;
    return say(", in {}", {name(function_first(short_line(trace.name(frame))))});
  }
  return {};
}

Sentence rounds_brief(const Facts& facts, const EqualRoundsOfSteps& found) {
  const char* pattern =
      found.weights == Weights::kSame ? "One model runs {} times in a row, {} calls each, on "
                                        "inputs that exist before the first run"
      : found.weights == Weights::kOwn
          ? "{} equal modules with weights of their own run one after the other, {} calls each"
          : "{} equal rounds of {} calls run one after the other, and none takes what another made";
  Sentence brief = say(pattern, {count(found.longest), count(found.calls)});
  append(brief, loop_place(facts, found));
  return brief;
}

Finding tell_equal_rounds(const Facts& facts, const EqualRoundsOfSteps& found) {
  const std::int64_t cost_ns = found.waiting_ns + found.reading_ns;
  Finding finding;
  finding.brief = rounds_brief(facts, found);
  finding.verdict = finding.brief;
  append(finding.verdict,
         say(facts, ": in all rounds but one the GPU waits {} [per step] for the CPU",
             {ns(facts.per_step(found.waiting_ns))}));
  if (found.reading_ns > 0)
    append(
        finding.verdict,
        say(facts, ", and products of {} rows read the same weights again for {}",
            {count(static_cast<std::uint64_t>(found.rows)), ns(facts.per_step(found.reading_ns))}));
  finding.verdict.pattern += ".";
  finding.at_stake_ns = facts.per_step(cost_ns);
  finding.at_stake_ratio = share_of(cost_ns, facts.steady_wall_ns());
  finding.waiting_ns = facts.per_step(found.waiting_ns);
  finding.arithmetic.push_back(
      say("no call of a round makes as many numbers as its first product takes: these come from "
          "outside of the loop, or from a table by indices that no round makes"));
  finding.arithmetic.push_back(
      say("counted: the GPU's waits for the CPU in all rounds but the first, with the backward "
          "passes of their calls; and products of 64 rows or fewer with the same weights"));
  finding.evidence.push_back(called_at(facts, found.product, say("the first product of a round")));
  if (found.weights == Weights::kSame) {
    finding.try_next = {
        "put all inputs into one batch (torch.cat, torch.stack), or all tokens into one sequence "
        "with a causal mask, and call the model once",
        "if a round needs what the one before it made after all: a CUDA graph, or torch.compile"};
    finding.action =
        say("Call it once on all inputs: as one batch, or as one sequence with a causal mask");
  } else if (found.weights == Weights::kOwn) {
    finding.try_next = {
        "stack the weights of the members (torch.func.stack_module_state) and call them with "
        "torch.func.vmap: one batched product for each layer",
        "write the layer over a dimension of members yourself: torch.baddbmm(bias, x, weight)"};
    finding.action = say(
        "Stack their weights (torch.func.stack_module_state) and call all with torch.func.vmap");
  } else {
    finding.try_next = {
        "one set of weights: put all inputs into one batch (torch.cat, torch.stack)",
        "weights of their own: stack them (torch.func.stack_module_state), and torch.func.vmap or "
        "torch.bmm"};
    finding.action =
        say("One call over all: a batch of the inputs, or torch.func.vmap over stacked weights");
  }
  finding.confidence = facts.confidence();
  finding.sample_count = found.rounds;
  finding.sample_noun = "round";
  const std::int64_t waiting_ns = finding.waiting_ns;
  finding.explains = {{"looped-calls", waiting_ns},
                      {"equal-products", waiting_ns},
                      {"tiny-kernels", waiting_ns},
                      {"same-calls-twice", waiting_ns}};
  return finding;
}

}  // namespace

extern constinit const Rule equal_rounds_rule = {
    .id = "equal-rounds",
    .question = "do equal rounds run one after the other, though none needs another's result?",
    .meant_by = "ensemble members passes loop batch vmap draft",
    .order = 124,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kMarkedSteps},
    .run = measure_and_tell<measure_equal_rounds, tell_equal_rounds>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
