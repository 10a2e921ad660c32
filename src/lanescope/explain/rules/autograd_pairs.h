// Which forward operator each node of autograd belongs to, and what both took.
// docs/definitions/explain.md#backward-against-forward
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

inline constexpr char kEvaluateNode[] = "autograd::engine::evaluate_function: ";

// "MmBackward0" of "autograd::engine::evaluate_function: MmBackward0". Another name stays as it is.
std::string_view without_evaluate(std::string_view label);

// True: the node, with kEvaluateNode before its name or without, adds to the gradient of a parameter.
bool is_accumulating_node(std::string_view label);

// A forward operator, and the first run of each node that it made.
struct AutogradPair {
  SliceId forward{};
  std::vector<SliceId> nodes;
  // GPU work that was launched in them, added up, without collectives. Without a device: the times
  // of the operators.
  std::int64_t forward_ns = 0, backward_ns = 0;
};

// The pairs of the steady steps, in order of the nodes. Sequence number and name make a pair:
// AddmmBackward0 belongs to the aten::addmm with the same number. Empty: the trace has no sequence
// numbers. Left out are AccumulateGrad, nodes inside nodes, and nodes in which operators are
// recorded for a later backward pass (checkpoints, second derivatives). O(n log n).
const std::vector<AutogradPair>& autograd_pairs(const Facts& facts);

// The forward operator of a node of autograd, as in autograd_pairs(); kNone: it is in no pair. Finds it in O(1).
SliceId forward_of_node(const Facts& facts, SliceId node);

// Forward operators whose nodes record operators for a later backward pass (second derivatives, checkpoints), in order of their
// numbers. These are in no pair. A trace without sequence numbers has none.
const std::vector<SliceId>& forward_of_recording_nodes(const Facts& facts);

// What a node CopySlices shows of the write that made it: an activation wrote into a view of a tensor.
struct ActivationWrite {
  const char* activation = nullptr;  // "leaky ReLU"; null: something else was written
  std::optional<bool>
      is_of_part;               // of the tensor behind the view; nothing: the trace has no shapes
  std::vector<SliceId> copies;  // the calls in the node without the activation's own
};
// `node`: with kEvaluateNode before its name.
ActivationWrite write_of_activation(const Facts& facts, SliceId node);

// The nodes that autograd's engine ran, in steady steps or not: operators with kEvaluateNode before their name, in order of id. Made
// once for these Facts.
const std::vector<SliceId>& backward_nodes(const Facts& facts);

// Calls by the numbers of their slices, and the nodes of the backward pass that these made. As autograd_pairs().
std::unordered_set<std::uint32_t> with_backward_nodes(const Facts& facts,
                                                      std::unordered_set<std::uint32_t> calls);

}  // namespace lanescope::explain::rules
