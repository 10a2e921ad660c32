// Finds the loops of a program: runs of equal operators and calls on one thread. Used by call_tree.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/analysis/repeats.h"
#include "lanescope/explain/call_containers.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/loop_sizes.h"

namespace lanescope::explain {

// With fewer rounds, the program more likely wrote the calls one after the other.
inline constexpr std::uint64_t kFewestLoopRounds = 4;

// The units of one thread in order. A unit is an operator that the program calls, or an API call outside of operators.
struct UnitSequence {
  std::vector<SliceId> units;
  std::vector<std::uint32_t> loop_of;  // by unit: the innermost; Repeat::kNoRepeat
};

struct UnitLoop {
  std::uint32_t parent = analysis::Repeat::kNoRepeat;
  std::uint32_t thread = 0, first_unit = 0;  // of its sequence
  SliceId first{}, last{};                   // units
  std::uint64_t rounds = 0;
  std::vector<SliceId> cell;  // the units of the first round
  std::size_t depth = 0;      // how many containers it is in
  SizeChange sizes;
  // Set where each round of one loop starts a round of another loop on autograd's thread. started_by: of the loop on autograd's
  // thread. backward: of the loop that starts it.
  std::uint32_t started_by = analysis::Repeat::kNoRepeat;
  std::uint32_t backward = analysis::Repeat::kNoRepeat;
};

// One thread. Borrows both.
class UnitLoops {
 public:
  UnitLoops(const Facts& facts, CallContainers& containers)
      : facts_(facts), trace_(*facts.trace), containers_(containers) {}

  // Finds the loops of the steady steps. `outermost`: for each slice, the unit that contains it or is it; kNone: none.
  void find(const std::vector<SliceId>& outermost);

  const std::map<std::uint32_t, UnitSequence>& sequences() const {
    return sequences_;
  }  // by thread
  const std::vector<UnitLoop>& loops() const { return loops_; }
  const std::vector<SliceId>& units() const { return units_; }  // of all threads, in order of id

  // An operator's name; for a call, the name of the kernel that it launched.
  const std::string& name(SliceId unit);
  std::uint32_t symbol(SliceId unit) const;  // equal for units with equal names
  bool is_backward(SliceId unit) const;      // a node of autograd
  bool is_of_autograd(const UnitSequence& sequence) const;
  // True: its rounds add gradients to parameters, as backward() does and torch.autograd.grad() does not.
  bool adds_gradients(const UnitLoop& backward) const;
  // How often a round of `loop` goes from the program's own calls to those of autograd: a micro batch once, a task with inner
  // gradients several times.
  std::size_t backward_passes(const UnitLoop& loop, const UnitLoop& backward) const;
  // True: the first and the second round run the same nodes of autograd, by their sequence numbers. A few nodes of each round
  // may be new, such as those that select its row.
  bool repeats_graph(const UnitLoop& backward) const;

 private:
  void fold(std::uint32_t thread, UnitSequence& sequence, std::size_t first, std::size_t end);
  void cut_to_container(UnitSequence& sequence, std::uint32_t index);
  std::vector<std::int64_t> round_starts(const UnitLoop& loop) const;
  bool starts_rounds_of(const UnitLoop& loop, const UnitLoop& backward) const;
  void find_backward_rounds();
  bool is_graph(SliceId call) const;

  const Facts& facts_;
  const Trace& trace_;
  CallContainers& containers_;
  std::vector<SliceId> units_;
  std::map<std::uint32_t, UnitSequence> sequences_;
  std::vector<UnitLoop> loops_;
  std::unordered_map<std::uint32_t, std::string> names_;  // by symbol
};

}  // namespace lanescope::explain
