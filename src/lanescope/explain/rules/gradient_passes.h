// How many backward passes of the steady steps add to the gradients of parameters, and how many only return gradients.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// A pass is a row of nodes of autograd between two calls of the program. Two calls of torch.autograd.grad() without an operator
// between them are two passes where the second begins at a node as new as the first one did.
struct GradientPasses {
  std::uint64_t adding = 0;                        // with a node AccumulateGrad: backward()
  std::uint64_t inner = 0;                         // without: torch.autograd.grad()
  std::vector<std::vector<SliceId>> inner_passes;  // the nodes of each of `inner`
  // Of `inner`: the program called a product or convolution since the pass before, so it is a loss of its own.
  std::uint64_t of_new_forward = 0;
  // Of `inner`: begins at the same node as an earlier one. The same output is differentiated for another input.
  std::uint64_t of_same_output = 0;
  // A quarter of the passes could be parts of others: torch.autograd.grad(u, (x, y)).
  bool can_be_joined() const { return of_same_output > 0 && of_same_output * 4 >= inner; }
  // A penalty on gradients has one inner pass for each backward(); steps of tasks, as in meta learning, have many, each after its
  // own forward pass. Derivatives of one output by its inputs have one forward pass for all.
  bool are_of_tasks() const { return adding > 0 && of_new_forward >= 3 * adding; }
  // Of `inner`: a node AccumulateGrad runs and adds nothing, as torch.autograd.grad() runs it for a parameter.
  std::uint64_t returning = 0;
  // The program uses most gradients by themselves, as gradient surgery does: losses that are added up have only the sum of them.
  bool mostly_return() const { return returning > 0 && returning * 2 >= inner + adding; }
};

// The nodes that these runs of nodes made: operators that carry a number there have their gradients recorded (the operator that a
// node runs has that node's own). Empty where no node is named "...BackwardBackward", which tells the thread that numbered them.
class NodesMadeIn {
 public:
  NodesMadeIn(const Facts& facts, const std::vector<SliceId>& runs);
  bool contains(const Trace& trace, SliceId run) const;

 private:
  std::set<std::int64_t> numbers_, threads_;
};

// What to do where they can be joined.
Sentence remedy_of_same_output();

// Counted once for these Facts. O(slices x depth).
const GradientPasses& count_gradient_passes(const Facts& facts);

}  // namespace lanescope::explain::rules
