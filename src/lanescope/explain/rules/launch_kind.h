// What the launches of a step are for, which decides what makes them fewer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

// Half of the pieces of GPU work or more are launched by an optimizer, or after the last node of the step's backward pass:
// they are for parameters, and a larger batch neither spares nor enlarges them. O(work x depth).
bool are_for_parameters(const Facts& facts);

// More than half of the launches are an optimizer's, which is no part of the model that torch.compile would get. O(work x depth).
bool are_mostly_the_optimizers(const Facts& facts);

// Half of the pieces of GPU work or more are launched by loops whose rounds each take a part of a tensor, or by their backward
// passes: with a larger batch there may be more rounds.
bool are_of_parts(const Facts& facts);

// An operator, not of copies or single values, in which the CPU waits for the GPU in each step:
// no CUDA graph can hold it.
struct OperatorThatWaits {
  std::string op;            // empty: none
  std::uint64_t pieces = 0;  // of GPU work that it launches, in the steady steps
  SliceId longest = kNone<SliceId>;
};
const OperatorThatWaits& operator_that_waits(const Facts& facts);

// Operators in the middle of steps in which the CPU waits for the GPU. A CUDA graph of the step holds none.
struct WaitsInside {
  std::uint64_t per_step = 0;
  std::string op;  // that waits most often; empty: none waits
  // So many that they, and not the launches, are what to change first.
  bool are_many() const { return per_step >= 4; }
  // Pieces of GPU work in the steady steps, without the optimizer's: all, those of each step's longest part without a wait, and those of its
  // two longest parts. Values that a wait copies to the CPU do not count.
  std::uint64_t pieces = 0, in_longest = 0, in_two_longest = 0;
  std::uint64_t all_pieces = 0;  // with the optimizer's
  bool has_optimizer = false;
  std::uint64_t waits = 0, in_optimizer = 0;  // of the steady steps; of these, the optimizer's own
  std::string optimizer;                      // one with such waits: "LBFGS"
  // The model launches half of the work or more.
  bool is_mostly_model() const { return pieces > 0 && pieces * 2 >= all_pieces; }
  // The waits lie around the forward and the backward pass, or in the optimizer: each of the one or two parts can be captured.
  bool may_stay() const { return is_mostly_model() && in_two_longest * 10 >= pieces * 9; }
  // More than half of the pieces lie in these two parts, of which one has 100 pieces or more: they can be captured as they are, while the
  // code with the waits stays outside.
  bool may_leave_out() const {
    return !may_stay() && !may_stay_between_rounds() && is_mostly_model() && rounds > 0 &&
           in_two_longest * 2 > pieces;
  }
  std::uint64_t parts() const { return in_longest * 10 >= in_two_longest * 9 ? 1 : 2; }
  // Parts of 100 pieces or more: their pieces in all steps; of the last step, which part comes most often (ties: the longer) and how
  // many different ones there are. Parts are equal if they have the same names in the same order.
  std::uint64_t in_large = 0, round_pieces = 0, rounds = 0, kinds = 0;
  // At most three different parts, which repeat, hold four fifths of the pieces: each can be captured once.
  bool may_stay_between_rounds() const {
    return !may_stay() && is_mostly_model() && rounds >= 2 && kinds <= 3 &&
           in_large * 5 >= all_pieces * 4;
  }
  // From the first to the last launch of each step's two longest parts, and of those of 100 pieces or more. In order
  // of time, disjoint.
  std::vector<analysis::Window> parts_windows;
};
// Counted are operators, and calls outside of operators, between the first and the last launch of a step. Only for marked steps. O(slices).
const WaitsInside& waits_inside(const Facts& facts);
// What to do about launches where waits prevent one CUDA graph of the step: capture the parts between them if one or two of these
// hold nine tenths of the work or a few long ones repeat, else remove the waits first.
Sentence graph_beside_waits(const Facts& facts, const WaitsInside& waits);
// True: most launches are those of torch.optim.LBFGS for its history, in which it waits, and graph_beside_waits() says so.
bool advises_smaller_history(const Facts& facts, const Sentence& action);
// True: `action` is that advice, to capture parts. Then only launches in `WaitsInside::parts_windows` become cheaper.
bool advises_parts_between_waits(const Facts& facts, const Sentence& action);

// FSDP runs Python around each layer that it shards, in the forward and in the backward pass: neither a CUDA graph of the step
// nor one compiled function can hold that.
bool runs_sharding_hooks(const Facts& facts);

// TorchScript runs in steady steps, as far as its backward pass shows: torch.compile leaves its modules as they are.
bool runs_torch_script(const Facts& facts);

// What to do about launches in general.
struct LaunchAdvice {
  Sentence action;
  bool is_cuda_graph = false;  // it replays one
};

// torch.compile with CUDA graphs, or a larger batch.
LaunchAdvice graph_advice(const Facts& facts);

// Sets what a finding on launches in general says to do: `usual`, or what fits better, and then its brief as well, where
// a loop over rows has most of the work. A CUDA graph is not advised where an operator waits in each step, many do, a cache grows by
// torch.cat, FSDP runs its hooks or TorchScript runs.
void advise_about_launches(const Facts& facts, LaunchAdvice usual, Finding& finding);

}  // namespace lanescope::explain::rules
