// The events around each piece of the critical path, as one tree; for owners.cpp.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/explain/call_containers.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/step_path.h"
#include "lanescope/explain/unit_loops.h"

namespace lanescope::explain {

// The call that launched GPU work; of other slices the slice itself. kNone: not known.
SliceId cpu_side(const Facts& facts, SliceId slice);

struct CallNode {
  std::uint32_t parent = 0;  // node 0 is the step and its own parent
  OwnerKind kind = OwnerKind::kStep;
  std::string name, next_name;  // as Owner
  std::int64_t total_ns = 0;    // with all below it
  std::array<std::int64_t, simulate::kPathKindCount> time_ns{};
  SliceId example = kNone<SliceId>;
  std::int64_t longest_ns = -1;
  std::uint64_t waits = 0;  // calls in which the CPU may wait for the GPU, with all below it
  // kLoop
  std::uint64_t rounds = 0, loops = 0, cell_size = 0;
  std::uint64_t fewest_rounds = 0, most_rounds = 0;  // of a loop
  std::vector<std::string> cell;
  SizeChange sizes;
  bool has_large_products = false;
  bool has_layers = false;      // a product, norm or convolution, or a node of autograd
  bool has_backward = false;    // as Owner
  bool repeats_graph = false;   // as Owner
  bool adds_gradients = false;  // as Owner
  std::size_t backward_passes = 0;
};

class CallTree {
 public:
  // Borrows both.
  CallTree(const Facts& facts, const StepPath& path);
  CallTree(const CallTree&) = delete;
  CallTree& operator=(const CallTree&) = delete;

  const std::vector<CallNode>& nodes() const { return nodes_; }  // parents before children
  // The node of each piece of the path.
  const std::vector<std::uint32_t>& node_of_piece() const { return node_of_piece_; }
  // True: in this piece the thread is outside of operators and calls.
  bool is_code(std::size_t piece) const { return is_code_[piece]; }
  // Operators and calls outside of operators that the program made in the steady steps.
  const std::vector<SliceId>& units() const { return units_.units(); }
  // The node of the operator or call that a CPU slice or GPU work belongs to; 0: none.
  std::uint32_t node_of(SliceId slice);
  bool has_stacks() const { return has_frames_; }

 private:
  void find_outermost();
  void make_leaf(const UnitSequence& sequence, std::size_t unit);
  std::uint32_t loop_node(std::uint32_t loop, std::uint32_t parent);
  std::uint32_t container_node(SliceId container, std::uint32_t parent);
  std::uint32_t containers_node(SliceId slice);
  std::uint32_t child(std::uint32_t parent, OwnerKind kind, const std::string& key,
                      std::string_view label);
  void count_waits();
  std::string neighbour_name(SliceId unit, const simulate::PathPiece& piece);
  bool comes_after_backward(TrackId track, SliceId last, std::int64_t time_ns) const;
  std::uint32_t node_of_code(const simulate::PathPiece& piece);
  std::uint32_t node_without_loop(SliceId unit);
  void add(std::uint32_t node, const simulate::PathPiece& piece);

  const Facts& facts_;
  const Trace& trace_;
  TrackId thread_;
  bool has_frames_ = false;
  const analysis::SliceNesting& nesting_;
  std::vector<SliceId> outermost_;  // by slice
  CallContainers containers_;
  UnitLoops units_;
  std::vector<std::uint32_t> node_of_loop_;  // by loop of units_; 0: not made yet
  std::unordered_map<std::uint32_t, std::uint32_t> node_of_container_;  // by raw SliceId
  std::vector<std::uint32_t> leaf_of_;                                  // by unit; 0: not made yet
  std::map<std::tuple<std::uint32_t, OwnerKind, std::string>, std::uint32_t> children_;
  std::vector<CallNode> nodes_;
  std::vector<std::uint32_t> node_of_piece_;
  std::vector<bool> is_code_;  // by piece
};

}  // namespace lanescope::explain
