// The parsed names of GPU work.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "lanescope/explain/facts.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::explain::rules {

// Each different name is parsed once for these Facts and their copies. Borrows the Facts. Any thread.
class KernelNames {
 public:
  explicit KernelNames(const Facts& facts);
  // `work`: a kernel, copy or memset. Stays as long as the Facts.
  const names::KernelName& of(SliceId work) const;

 private:
  using Parsed = std::unordered_map<std::uint32_t, names::KernelName>;  // by raw StringId
  static Parsed parse(const Facts& facts);

  const Trace& trace_;
  const Parsed& parsed_;
};

}  // namespace lanescope::explain::rules
