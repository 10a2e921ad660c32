// Where the time of a step goes: its largest owners, kernels, and kinds of GPU work.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

// What takes most of a step, at most three, largest first: the owners (owners.h). In traces without
// the launch calls of the GPU work: kernels by readable name. Empty: nothing takes a twentieth of
// the step.
struct TimeTaker {
  Sentence what;
  std::int64_t per_step_ns = 0;
  double ratio = 0;                  // of a step's wall
  SliceId example = kNone<SliceId>;  // an event of it; kNone: none
  bool is_whole_step = false;        // the step, or what is left of it: nothing that has a name
  Sentence name = {};                // of an owner: what a finding on it would name
  const Owner* owner = nullptr;      // the first of those that are added up; null: no owner
  double ratio_of_gpu_time = 0;      // of all GPU work of a step, summed; of kernels
};
std::vector<TimeTaker> largest_time_takers(const Facts& facts);
// Kernels by readable name with where they come from, as above. Empty: no GPU.
std::vector<TimeTaker> largest_kernels(const Facts& facts);

// GPU work of steady steps by what its names say that it does, most time first, and its share of all GPU work, summed: those
// with a twentieth or more, at most four. docs/definitions/explain.md#kinds-of-gpu-work
struct KindOfWork {
  std::string words;  // "matrix products"
  double ratio = 0;
  // "most in aten::einsum and ToCopyBackward0"; empty: no operator has enough of it.
  Sentence sources = {};
};
std::vector<KindOfWork> kinds_of_gpu_work(const Facts& facts);

}  // namespace lanescope::explain
