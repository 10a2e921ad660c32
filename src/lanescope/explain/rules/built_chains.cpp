// A trace does not show which tensor a copy sends. Idea: follow what a thread calls before the copy. If the first operator that does
// anything makes a tensor out of numbers, and all others compute, on the CPU and without a long pause, then what they make is what is
// copied. Operators that read data (an index, an item, a copy of anything else) end such a chain. Example: arange, mul, cos, sin, to, to.
#include "lanescope/explain/rules/built_chains.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

using analysis::WorkClass;

namespace {

// The longest Python time between two operators. With a profiler, torch.ones(n).to() took 35 to 78 us.
constexpr std::int64_t kLongestPauseNs = 150'000;

template <std::size_t size>
bool is_listed(const std::array<std::string_view, size>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// Numbers that are others each time.
bool makes_random(std::string_view op) {
  static constexpr std::array<std::string_view, 9> kRandom = {
      "aten::rand",    "aten::randn",    "aten::randint", "aten::randperm",  "aten::rand_like",
      "aten::normal_", "aten::uniform_", "aten::random_", "aten::bernoulli_"};
  return is_listed(kRandom, op) || op == "aten::randn_like" || op == "aten::randint_like";
}

bool makes_tensor(std::string_view op) { return is_factory(op) || makes_random(op); }

// A table of numbers that differ from each other, rather than one to be filled later.
bool makes_table(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kTables = {
      "aten::arange",       "aten::linspace", "aten::eye", "aten::tril_indices",
      "aten::triu_indices", "aten::triu",     "aten::tril"};
  return is_listed(kTables, op);
}

// Computes with tensors that it is given. Left out is what may read data: indices, copies, values.
bool computes(std::string_view op) {
  if (op.ends_with('_') && !op.ends_with("__")) op.remove_suffix(1);
  static constexpr std::array<std::string_view, 48> kOps = {
      "aten::to",          "aten::_to_copy",    "aten::type_as",     "aten::contiguous",
      "aten::clone",       "aten::repeat",      "aten::triu",        "aten::tril",
      "aten::cos",         "aten::sin",         "aten::tan",         "aten::exp",
      "aten::log",         "aten::sqrt",        "aten::rsqrt",       "aten::pow",
      "aten::reciprocal",  "aten::neg",         "aten::abs",         "aten::square",
      "aten::add",         "aten::sub",         "aten::rsub",        "aten::mul",
      "aten::div",         "aten::floor",       "aten::ceil",        "aten::round",
      "aten::fmod",        "aten::remainder",   "aten::clamp",       "aten::outer",
      "aten::ger",         "aten::cumsum",      "aten::cumprod",     "aten::flip",
      "aten::masked_fill", "aten::logical_not", "aten::bitwise_not", "aten::eq",
      "aten::ne",          "aten::lt",          "aten::le",          "aten::gt",
      "aten::ge",          "aten::fill",        "aten::zero",        "aten::floor_divide"};
  return is_listed(kOps, op) || makes_random(op) || op == "aten::normal" || op == "aten::uniform" ||
         op == "aten::random" || op == "aten::bernoulli";
}

// One number everywhere: a tensor that is filled later.
bool fills(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kFills = {
      "aten::zeros",     "aten::ones",      "aten::full",         "aten::zeros_like",
      "aten::ones_like", "aten::full_like", "aten::scalar_tensor"};
  return is_listed(kFills, op);
}

bool joins(std::string_view op) {
  return op == "aten::cat" || op == "aten::stack" || op == "aten::meshgrid";
}

// Two tensors of more than one element, as far as shapes are recorded.
bool takes_two_tensors(const Trace& trace, SliceId op) {
  const analysis::TensorArguments inputs = operator_inputs(trace, op);
  const auto first = inputs.tensor(0), second = inputs.tensor(1);
  return first && second && first->elements() > 1 && second->elements() > 1;
}

struct Move {
  std::int64_t bytes = 0, end_ns = 0;  // of its copies on the GPU
};
using Moves = std::map<std::uint32_t, Move>;  // by the operator

// The program's own operators that copy to the GPU and do nothing else.
Moves moves_to_gpu(const Facts& facts) {
  const Trace& trace = *facts.trace;
  Moves moves;
  for (const auto& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCopy ||
        trace.name(work.slice).find("HtoD") == std::string_view::npos)
      continue;
    const SliceId op = outermost_operator_of(facts, work.slice);
    if (op == kNone<SliceId> || (trace.name(op) != "aten::to" && trace.name(op) != "aten::copy_" &&
                                 trace.name(op) != "aten::_to_copy"))
      continue;
    Move& move = moves[raw(op)];
    move.bytes = analysis::add_bytes(
        move.bytes, trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0));
    move.end_ns = std::max(move.end_ns, work.end_ns);
  }
  return moves;
}

// The program's own operators with a call of the GPU's runtime in them.
std::unordered_set<std::uint32_t> calling_operators(const Facts& facts) {
  std::unordered_set<std::uint32_t> found;
  for (std::uint32_t i = 0; i < facts.trace->slices().size(); ++i)
    if (is_api_call(facts.trace->kind(SliceId{i})))
      if (const SliceId op = outermost_operator_of(facts, SliceId{i}); op != kNone<SliceId>)
        found.insert(raw(op));
  return found;
}

class ChainFinder {
 public:
  explicit ChainFinder(const Facts& facts)
      : facts_(facts), moves_(moves_to_gpu(facts)), calling_(calling_operators(facts)) {}

  bool has_moves() const { return !moves_.empty(); }

  void add(const CallSequence& calls) {
    state_ = State::kNothing;
    SliceId before = kNone<SliceId>;
    for (const SliceId op : calls) {
      if (before != kNone<SliceId> && is_pause(before, op)) state_ = State::kNothing;
      add_call(op);
      before = op;
    }
  }

  std::vector<BuiltChain> take() { return std::move(chains_); }

 private:
  enum class State : std::uint8_t {
    kNothing,  // only views since the last pause or call of the runtime
    kMakes,    // a tensor was made, and only computed with
    kMadeNow,  // the same, after other operators: it counts if it is copied at once
    kCopied,   // the last chain's tensor was copied
    kOther     // operators of which the result may hold anything
  };

  bool is_pause(SliceId before, SliceId op) const {
    const Trace& trace = *facts_.trace;
    return trace.start_ns(op) - trace.end_ns(before) >
           std::max(kLongestPauseNs, trace.dur_ns(before) / 10);
  }

  // A view, or a cast that has nothing to do: nothing inside.
  bool does_nothing(SliceId op) const {
    static constexpr std::array<std::string_view, 8> kOps = {
        "aten::detach", "aten::chunk",  "aten::split",       "aten::split_with_sizes",
        "aten::unbind", "aten::narrow", "aten::result_type", "aten::lift_fresh"};
    const Trace& trace = *facts_.trace;
    const std::string_view label = trace.name(op);
    if (is_view(label) || is_listed(kOps, label)) return true;
    if (label != "aten::to" && label != "aten::contiguous") return false;
    return raw(op) + 1 >= trace.slices().size() || facts_.nesting.parent[raw(op) + 1] != op;
  }

  void add_call(SliceId op) {
    const std::string_view label = facts_.trace->name(op);
    if (const auto move = moves_.find(raw(op)); move != moves_.end())
      add_copy(op, move->second);
    else if (calling_.contains(raw(op)))
      state_ = State::kNothing;
    else if (does_nothing(op))
      return;
    else if (makes_tensor(label) &&
             ancestor_named(facts_, op, "enumerate(DataLoader)") == kNone<SliceId>)
      add_maker(op);
    else if (state_ == State::kMakes && stays_pure(op))
      note_maker(op);
    else
      state_ = State::kOther;
  }

  bool stays_pure(SliceId op) const {
    const std::string_view label = facts_.trace->name(op);
    if (joins(label)) return open_.is_table;
    // mask[a:b, a:b] = torch.triu(...): what was just computed. Into a tensor that was just filled, data may be copied.
    if (const std::string_view last = facts_.trace->name(open_.makers.back());
        label == "aten::copy_")
      return !fills(last) && last != "aten::copy_";
    // x + data: only one tensor was made here.
    return computes(label) && (open_.makers.size() > 1 || !takes_two_tensors(*facts_.trace, op));
  }

  void note_maker(SliceId op) {
    const std::string_view label = facts_.trace->name(op);
    open_.makers.push_back(op);
    open_.is_table = open_.is_table || makes_table(label);
    open_.is_random = open_.is_random || makes_random(label);
  }

  void add_maker(SliceId op) {
    if (state_ != State::kMakes) {
      open_ = {};
      state_ =
          state_ == State::kOther || state_ == State::kMadeNow ? State::kMadeNow : State::kMakes;
    }
    note_maker(op);
  }

  void add_copy(SliceId op, const Move& move) {
    const bool makes = state_ == State::kMakes || state_ == State::kMadeNow;
    // Several results of one chain: of one size, and no more than operators that made something.
    const bool is_next = state_ == State::kCopied &&
                         chains_.back().copies.size() < chains_.back().makers.size() &&
                         move.bytes == last_bytes_;
    if (makes) chains_.push_back(std::move(open_));
    open_ = {};
    state_ = makes || is_next ? State::kCopied : State::kNothing;
    if (!makes && !is_next) return;
    BuiltChain& chain = chains_.back();
    chain.copies.push_back(op);
    chain.bytes = analysis::add_bytes(chain.bytes, move.bytes);
    chain.end_ns = std::max({chain.end_ns, facts_.trace->end_ns(op), move.end_ns});
    last_bytes_ = move.bytes;
  }

  const Facts& facts_;
  const Moves moves_;
  const std::unordered_set<std::uint32_t> calling_;
  State state_ = State::kNothing;
  BuiltChain open_;
  std::int64_t last_bytes_ = 0;
  std::vector<BuiltChain> chains_;
};

std::vector<BuiltChain> find_built_chains(const Facts& facts) {
  ChainFinder finder(facts);
  if (finder.has_moves())
    for (const CallSequence& calls : call_sequences(facts)) finder.add(calls);
  return finder.take();
}

}  // namespace

const std::vector<BuiltChain>& built_chains(const Facts& facts) {
  return made_once<find_built_chains>(facts);
}

}  // namespace lanescope::explain::rules
