// The parsed names of kernels.
#pragma once
#include <memory>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::explain::rules {

// Parses each distinct kernel name once.
class KernelNames {
 public:
  explicit KernelNames(const Trace& trace) : trace_(trace) {}
  const names::KernelName& of(SliceId kernel);

 private:
  const Trace& trace_;
  std::vector<std::unique_ptr<names::KernelName>> by_string_;
};

}  // namespace lanescope::explain::rules
