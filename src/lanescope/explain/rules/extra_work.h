// What slow steps hold that the others do not: a checkpoint, an evaluation, one call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

enum class ExtraWorkKind : std::uint8_t {
  kNone,    // nothing that is half of the additional time
  kSave,    // torch.save, as a Python frame shows
  kCopies,  // many tensors go to the CPU, and then code without events runs: a checkpoint looks so
  kRange,   // a range or a function of the program that the others do not have
  kMoreWork,  // the same operators, but with more kernels and no further backward pass: an evaluation looks so
};

struct ExtraWork {
  ExtraWorkKind kind = ExtraWorkKind::kNone;
  // Per slow step, beyond the mean of the others.
  std::int64_t time_ns = 0;
  std::uint64_t times = 0;   // copies, kernels (without a GPU: operators), or calls of the function
  std::int64_t bytes = 0;    // copied
  std::int64_t code_ns = 0;  // kCopies: of code without events
  SliceId example = kNone<SliceId>;
  std::string
      frame;  // kSave, kRange: "train.py(31): save_checkpoint", the program's own function, or the range
  explicit operator bool() const { return kind != ExtraWorkKind::kNone; }
};

// `slow` and `usual` are indices of Steps::steps, at least one each. `excess_ns`: how much longer a slow step is.
// O(n log n).
ExtraWork find_extra_work(const Facts& facts, const std::vector<std::size_t>& slow,
                          const std::vector<std::size_t>& usual, std::int64_t excess_ns);

// Does this other step hold at least half as much of the same work?
bool holds_extra_work(const Facts& facts, const ExtraWork& work, std::size_t step);

// "745 tensors (1.02 GB) go to the CPU, then code without events runs". Not for kNone.
Sentence words_of(const Facts& facts, const ExtraWork& work);
// What to do about it, in one line, and in full.
Sentence remedy_of(const ExtraWork& work);
std::vector<std::string> ways_out_of(const ExtraWork& work);

// What the long step of Facts::selection holds. Made once for these Facts.
const ExtraWork& extra_work_of_long_step(const Facts& facts);

}  // namespace lanescope::explain::rules
