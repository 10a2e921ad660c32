// What encloses the operators and calls of a program: Python lines, modules, ranges. For call_tree.cpp and unit_loops.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/frame_table.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/explain/owners.h"
#include "lanescope/model/trace.h"

namespace lanescope::explain {

// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
bool is_loader(std::string_view label);

// Rows of the CPU that only enclose what the program called.
bool is_container(std::string_view op);

// One thread. Borrows all three; the nesting has Python frames if the trace has any.
class CallContainers {
 public:
  CallContainers(const Trace& trace, const analysis::SliceNesting& nesting,
                 const analysis::FrameTable& frames)
      : trace_(trace), nesting_(nesting), frames_(frames) {}

  // kLine, kModule or kRange; kStep: the slice is no container.
  OwnerKind kind(SliceId slice);
  std::string label(SliceId slice, OwnerKind kind) const;
  // The containers around a slice, outermost first; the slice itself, too, if it is one.
  std::vector<SliceId> around(SliceId slice);

 private:
  OwnerKind find_kind(SliceId slice) const;

  const Trace& trace_;
  const analysis::SliceNesting& nesting_;
  const analysis::FrameTable& frames_;
  std::map<std::pair<std::uint32_t, CategoryKind>, OwnerKind> kinds_;  // by name
};

}  // namespace lanescope::explain
