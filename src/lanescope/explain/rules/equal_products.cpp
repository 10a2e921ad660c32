// Matrix products of one shape, called in a loop, that one batched product could replace.
//
// Equal calls alone are no proof: the layers of a network and the steps of an RNN need each other's
// results. A product counts if the trace shows that it needs no earlier result: both of its matrices were
// just picked by an index, or come from unbind; or products follow each other directly, and the output
// has another shape than the input. Without recorded shapes two calls of aten::select directly
// before each product are a hint, and the finding says so.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::IntervalUnion;
using analysis::Window;

namespace {

constexpr std::size_t kMostOpsInTurn = 12;
constexpr std::uint64_t kLeastProducts = 8;

bool picks_by_index(std::string_view op) {
  return op == "aten::select" || op == "aten::slice" || op == "aten::narrow" || op == "aten::index";
}

bool is_view_only(std::string_view op) { return is_view(op) || picks_by_index(op); }

using Shape = std::vector<std::int64_t>;

// [[64, 256], [256, 256], []] as shapes; anything but a list of numbers becomes an empty shape.
std::vector<Shape> shapes_in(std::string_view json) {
  std::vector<Shape> shapes;
  int depth = 0;
  std::int64_t number = -1;
  const auto finish_number = [&] {
    if (number >= 0 && depth >= 2 && !shapes.empty()) shapes.back().push_back(number);
    number = -1;
  };
  for (const char c : json) {
    if (c >= '0' && c <= '9') {
      number =
          std::min<std::int64_t>((number < 0 ? 0 : number) * 10 + (c - '0'), 1'000'000'000'000);
      continue;
    }
    finish_number();
    if (c == '[' && ++depth == 2) shapes.emplace_back();
    if (c == ']') --depth;
  }
  return shapes;
}

// The shapes that a call multiplies: [m, k] and [k, n]. The recorded weight of aten::linear is
// transposed; the first input of addmm is the matrix that it adds.
struct Operands {
  Shape left, right;
  std::int64_t inner() const { return left.empty() ? 0 : left.back(); }
};

std::optional<Operands> operands_of(const Trace& trace, SliceId op) {
  const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
  if (!dims) return std::nullopt;
  const auto shapes = shapes_in(trace.text(*dims));
  const std::size_t first = trace.name(op) == "aten::addmm" ? 1 : 0;
  if (shapes.size() < first + 2 || shapes[first].empty() || shapes[first + 1].empty())
    return std::nullopt;
  return Operands{shapes[first], shapes[first + 1]};
}

// The output cannot be the next call's input.
bool is_no_chain(const Trace& trace, SliceId op, const Operands& both) {
  if (both.left.size() < 2 || both.right.size() < 2) return false;
  const bool is_linear = trace.name(op) == "aten::linear";
  const std::int64_t columns = is_linear ? both.right[0] : both.right.back();
  return columns != both.inner();
}

// A piece that an index picked from a larger tensor.
struct Picked {
  Shape shape;
  std::uint32_t concrete = 0;  // arguments, with the index
};

std::optional<Picked> picked_by(const Trace& trace, SliceId op) {
  const auto args = trace.slice_args(op);
  const auto dims = args.text(ArgKey::kInputDims), concrete = args.text(ArgKey::kConcreteInputs);
  if (trace.name(op) != "aten::select" || !dims || !concrete) return std::nullopt;
  const auto shapes = shapes_in(trace.text(*dims));
  if (shapes.empty() || shapes[0].empty()) return std::nullopt;
  // ["", "0", "5"]: the dimension, then the index.
  const std::string_view text = trace.text(*concrete);
  const std::size_t comma = text.find(',');
  if (comma == text.npos) return std::nullopt;
  const std::size_t digit = text.find_first_of("0123456789", comma);
  if (digit == text.npos || text[digit - 1] == '-') return std::nullopt;
  const auto dim = static_cast<std::size_t>(text[digit] - '0');
  if (dim >= shapes[0].size()) return std::nullopt;
  Shape rest = shapes[0];
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(dim));
  return Picked{std::move(rest), raw(*concrete)};
}

enum class Proof : std::uint8_t { kNone, kHint, kShown };

// One product and what the program called for it since the one before.
struct ProductTurn {
  std::size_t first = 0, at = 0;  // places in the sequence: of its first view, of the product
  Proof proof = Proof::kNone;
  bool follows = false;  // only views since the product before
  std::uint32_t index = 0;
};

bool is_flipped(const Shape& a, const Shape& b) {
  return a == b || (a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0]);
}

// Both operands were picked, each by a call of its own.
bool both_picked(const std::vector<Picked>& picks, const Operands& both) {
  for (std::size_t i = 0; i < picks.size(); ++i)
    for (std::size_t k = 0; k < picks.size(); ++k)
      if (i != k && picks[i].shape == both.left && is_flipped(picks[k].shape, both.right))
        return true;
  return false;
}

// Tensors that unbind split earlier in the step: the shapes of their pieces.
struct Unbound {
  std::vector<Shape> pieces;
  bool has_both(const Operands& both) const {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      for (std::size_t k = 0; k < pieces.size(); ++k)
        if (i != k && pieces[i] == both.left && is_flipped(pieces[k], both.right)) return true;
    return false;
  }
};

void add_unbound(const Trace& trace, SliceId op, Unbound& unbound) {
  const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
  if (!dims) return;
  auto shapes = shapes_in(trace.text(*dims));
  if (shapes.empty() || shapes[0].size() < 2) return;
  shapes[0].erase(shapes[0].begin());
  unbound.pieces.push_back(std::move(shapes[0]));
}

// x[i] @ w[i]. A layer's weight and bias would come before aten::linear or aten::addmm.
bool has_two_picks_before(const Trace& trace, const CallSequence& ops, std::size_t from,
                          std::size_t at) {
  const std::string_view name = trace.name(ops[at]);
  return at >= from + 2 && name != "aten::linear" && name != "aten::addmm" &&
         trace.name(ops[at - 1]) == "aten::select" && trace.name(ops[at - 2]) == "aten::select";
}

ProductTurn turn_of(const Trace& trace, const CallSequence& ops, std::size_t from, std::size_t at,
                    const Unbound& unbound) {
  ProductTurn turn{.first = at, .at = at, .follows = true};
  std::vector<Picked> picks;
  for (std::size_t i = from; i < at; ++i) {
    const std::string_view name = trace.name(ops[i]);
    turn.follows &= is_view_only(name);
    if (!picks_by_index(name) || at - i > kMostOpsInTurn) continue;
    turn.first = std::min(turn.first, i);
    if (auto picked = picked_by(trace, ops[i])) {
      turn.index = picked->concrete;
      picks.push_back(std::move(*picked));
    }
  }
  const auto both = operands_of(trace, ops[at]);
  if (!both)
    turn.proof = has_two_picks_before(trace, ops, from, at) ? Proof::kHint : Proof::kNone;
  else if (both_picked(picks, *both) || unbound.has_both(*both))
    turn.proof = Proof::kShown;
  else if (turn.follows && from > 0 && is_no_chain(trace, ops[at], *both))
    turn.proof = Proof::kShown;
  return turn;
}

struct ProductLoop {
  std::uint64_t products = 0;
  Window window;
  SliceId first = kNone<SliceId>;
  bool is_shown = true;
  bool indexes = false;
};

struct ProductKey {
  std::uint32_t name, dims;
  auto operator<=>(const ProductKey&) const = default;
};

ProductKey key_of(const Trace& trace, SliceId op) {
  const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
  return {raw(trace.slices().name[raw(op)]), dims ? raw(*dims) : ~std::uint32_t{0}};
}

struct OpenLoop {
  std::vector<ProductTurn> turns;
};

void close_loop(const Trace& trace, const CallSequence& ops, const OpenLoop& open,
                std::vector<ProductLoop>& loops) {
  const auto& turns = open.turns;
  if (turns.size() < kLeastProducts) return;
  // The last turn is as long as the others.
  const std::size_t body = (turns.back().at - turns.front().at) / (turns.size() - 1);
  const std::size_t end =
      std::min(turns.back().first + std::max<std::size_t>(body, 1) - 1, ops.size() - 1);
  ProductLoop loop;
  loop.products = turns.size();
  loop.first = ops[turns.front().at];
  loop.window = {trace.start_ns(ops[turns.front().first]),
                 trace.end_ns(ops[std::max(end, turns.back().at)])};
  std::size_t moves = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    loop.is_shown &= turns[i].proof == Proof::kShown;
    loop.indexes |= turns[i].first < turns[i].at;
    if (i > 0 && turns[i].index != turns[i - 1].index) ++moves;
  }
  // If the index does not change, this is no loop over a tensor.
  if (turns.front().index != 0 && moves * 2 < turns.size()) return;
  loops.push_back(loop);
}

void find_product_loops(const Trace& trace, const CallSequence& ops,
                        std::vector<ProductLoop>& loops) {
  std::map<ProductKey, OpenLoop> open;
  Unbound unbound;
  std::size_t after_last = 0;  // the place after the last product
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const std::string_view name = trace.name(ops[at]);
    if (name == "aten::unbind") add_unbound(trace, ops[at], unbound);
    if (!is_product(name)) continue;
    const ProductTurn turn = turn_of(trace, ops, after_last, at, unbound);
    after_last = at + 1;
    OpenLoop& loop = open[key_of(trace, ops[at])];
    if (!loop.turns.empty() && at - loop.turns.back().at > kMostOpsInTurn) {
      close_loop(trace, ops, loop, loops);
      loop.turns.clear();
    }
    if (turn.proof == Proof::kNone) continue;
    loop.turns.push_back(turn);
  }
  for (const auto& [key, loop] : open) close_loop(trace, ops, loop, loops);
}

struct EqualProducts {
  std::uint64_t products = 0, loops = 0, pieces = 0;
  std::int64_t waiting_ns = 0, small_ns = 0;
  SliceId first = kNone<SliceId>;
  bool is_shown = true, indexes = false;
};

std::optional<EqualProducts> measure_equal_products(const Facts& facts) {
  const Trace& trace = *facts.trace;
  EqualProducts found;
  std::map<std::uint32_t, std::vector<Window>> windows;  // by thread
  for (const CallSequence& ops : call_sequences(facts)) {
    std::vector<ProductLoop> loops;
    find_product_loops(trace, ops, loops);
    for (const ProductLoop& loop : loops) {
      if (found.loops++ == 0) found.first = loop.first;
      found.products += loop.products;
      found.is_shown &= loop.is_shown;
      found.indexes |= loop.indexes;
      windows[raw(trace.slices().track[raw(loop.first)])].push_back(loop.window);
    }
  }
  if (found.loops == 0) return std::nullopt;
  std::vector<Window> all;
  for (auto& [thread, of_thread] : windows) {
    of_thread = joined(std::move(of_thread));
    all.insert(all.end(), of_thread.begin(), of_thread.end());
  }
  found.waiting_ns = lost_in(facts, steady_parts(facts, joined(all))).waiting_for_cpu_ns;
  IntervalUnion small;
  for (const DeviceWork* work : steady_work(facts)) {
    const SliceId launch = facts.links.launch_of[raw(work->slice)];
    if (launch == kNone<SliceId>) continue;
    const auto of_thread = windows.find(raw(trace.slices().track[raw(launch)]));
    if (of_thread == windows.end() || !inside(of_thread->second, trace.start_ns(launch))) continue;
    ++found.pieces;
    if (work->end_ns - work->start_ns < analysis::kTinyKernelNs)
      small.add(work->start_ns, work->end_ns);
  }
  small.finish();
  found.small_ns = small.length_ns();
  if (share_of(found.waiting_ns, facts.wall.partition.wall_ns) < 0.05) return std::nullopt;
  return found;
}

Finding tell_equal_products(const Facts& facts, const EqualProducts& found) {
  const Trace& trace = *facts.trace;
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  const std::int64_t total_ns = found.waiting_ns + found.small_ns;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  const std::string_view product = trace.name(found.first);
  Finding finding;
  finding.verdict = say(
      facts,
      "{} small matrix products of equal shape [in {} steps] are called one by one ({}): with what "
      "is around them they launch {} [piece|pieces] of GPU work, and the GPU waits {} [per step] "
      "({}) for the loop.",
      {count(found.products), count(steps), name(product), count(a_step(facts, found.pieces)),
       ns(facts.per_step(found.waiting_ns)), ratio(found.waiting_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(total_ns);
  finding.at_stake_ratio = share_of(total_ns, wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "one batched product instead of the loop saves at most: waiting {} + work in pieces of "
          "less than 10 us {} = {} [per step]",
          {ns(facts.per_step(found.waiting_ns)), ns(facts.per_step(found.small_ns)),
           ns(facts.per_step(total_ns))}));
  finding.arithmetic.push_back(
      found.is_shown
          ? say("no product needs the result of the one before it, as the shapes and indices show")
          : say("whether a product needs the result of the one before it, the trace does not show: "
                "shapes were not recorded (record_shapes=True)"));
  Sentence line = say("the first of them");
  const auto dims = trace.slice_args(found.first).text(ArgKey::kInputDims);
  if (dims) {
    line.pattern += ", with inputs {}";
    line.values.push_back(name(trace.text(*dims)));
  }
  add_line(facts, found.first, line);
  finding.evidence.push_back({found.first, std::move(line)});
  finding.try_next = {
      "stack the matrices and call torch.bmm (or torch.einsum, torch.baddbmm) once for all of them",
      "modules with equal layers: torch.func.stack_module_state and torch.vmap, or a grouped "
      "matmul where sizes differ"};
  finding.confidence = found.is_shown ? facts.confidence() : Confidence::kLow;
  finding.sample_count = found.products;
  finding.sample_noun = "product";
  if (found.indexes) finding.explains.push_back({"python-indexing", facts.per_step(total_ns)});
  finding.explains.push_back({"graph-opportunity", facts.per_step(found.waiting_ns)});
  finding.brief = say(facts, "{} equal small matrix products [in {} steps] run one by one",
                      {count(found.products), count(steps)});
  finding.action = found.is_shown
                       ? say("Stack the matrices and call torch.bmm once for all of them")
                       : say("If none needs another's result: stack them and call torch.bmm once");
  return finding;
}

}  // namespace

extern constinit const Rule equal_products_rule = {
    .id = "equal-products",
    .question = "are equal small matrix products called one by one in a loop?",
    .meant_by = "bmm loop experts",
    .order = 615,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_equal_products, tell_equal_products>,
};

}  // namespace lanescope::explain::rules
