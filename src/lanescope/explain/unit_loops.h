// The operators and calls that a program makes, thread by thread, and the loops among them. For call_tree.cpp.
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

// Fewer rounds are more likely calls written one after the other than a loop.
inline constexpr std::uint64_t kFewestLoopRounds = 4;

// Units (operators and calls outside of operators) of one thread in order.
struct UnitSequence {
  std::vector<SliceId> units;
  std::vector<std::uint32_t> loop_of;  // by unit: the innermost; Repeat::kNoRepeat
};

struct UnitLoop {
  std::uint32_t parent = analysis::Repeat::kNoRepeat;
  std::uint32_t thread = 0, first_unit = 0;  // of its sequence
  SliceId first{}, last{};                   // units
  std::uint64_t rounds = 0;
  std::vector<SliceId> cell;  // units of the first round
  std::size_t depth = 0;      // containers outside of it
  SizeChange sizes;
  // For a loop on autograd's thread: the loop whose rounds each start one of its rounds. For that loop: the one on autograd's
  // thread.
  std::uint32_t started_by = analysis::Repeat::kNoRepeat;
  std::uint32_t backward = analysis::Repeat::kNoRepeat;
};

// One thread. Borrows both.
class UnitLoops {
 public:
  UnitLoops(const Facts& facts, CallContainers& containers)
      : facts_(facts), trace_(*facts.trace), containers_(containers) {}

  // In the steady steps. `outermost`: by slice, the unit around it or itself; kNone: none.
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
  // Whether the nodes of one graph keep their numbers from the first round to the second. A few of each round may be new, such
  // as those of the row it takes.
  bool repeats_graph(const UnitLoop& backward) const;

 private:
  void fold(std::uint32_t thread, UnitSequence& sequence, std::size_t first, std::size_t end);
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
