// Which operators may have made or written a tensor of some size. If none may, the steps only read it.
//
// Problem: a trace tells what operators take, not what they make, nor which tensor it is. Idea: whoever makes a tensor writes
// all of it, which takes the GPU a least time, and the results of many operators follow from what they take. So an operator
// may have made a tensor unless its result is known to be of another size, or it worked too shortly to write it. Example:
// [3072, 3072] float32 is 38 MB, which takes 3.8 us at 10 TB/s.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

class TensorMakers {
 public:
  explicit TensorMakers(const Facts& facts);

  // False: this outermost operator certainly neither makes nor writes a tensor of so many elements.
  bool may_make(SliceId op, double elements, double bytes) const;
  // Outermost operators of the whole recording.
  const std::vector<SliceId>& operators() const { return operators_; }
  // True: GPU work outside of operators, such as that of a CUDA graph, took long enough to write so many bytes.
  bool may_be_made_outside(double bytes) const;
  // How long the main device works for the operator; without a device, the operator's time on the CPU.
  std::int64_t work_ns(SliceId op) const;

 private:
  const Facts& facts_;
  std::vector<SliceId> operators_;
  std::unordered_map<std::uint32_t, std::int64_t> work_ns_;
  std::int64_t longest_outside_ns_ = 0;
};

}  // namespace lanescope::explain::rules
