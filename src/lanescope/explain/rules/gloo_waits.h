// The GPU waits while Gloo or MPI run collectives on the CPU.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain::rules {

struct GlooWaits {
  std::string library;       // "Gloo"; empty: the steady steps have no such collective
  std::uint64_t count = 0;   // that begin in steady steps
  std::int64_t time_ns = 0;  // of these, united, while the main device is in steady steps
  // Of it, the GPU is idle, and no thread but those of the collectives is in an operator or a call.
  std::int64_t waiting_ns = 0;
  IdleTimes
      waiting_by_cause{};  // the same time by the cause that its gaps have, which is none of the program's
  // Of it, in collectives that begin before the last forward pass of their step: no_sync() removes these.
  std::int64_t early_waiting_ns = 0;
  std::uint64_t forwards = 0;  // ranges `DistributedDataParallel.forward` in steady steps
  SliceId longest = kNone<SliceId>;
  // How often a step sends its gradients: once for each micro batch. 0: unknown, or once.
  std::uint64_t sends_per_step(const Facts& facts) const;
};

// Needs a main device. Made once for these Facts. O(n log n).
const GlooWaits& gloo_waits(const Facts& facts);

// A copy that such a collective makes of the tensors it sends, or of what it received: it is communication.
bool is_copy_of_host_collective(const Facts& facts, SliceId work);

// A tenth of the steady steps or more.
bool gloo_waits_matter(const Facts& facts);

// Of the steady steps, where it matters; else 0. All of it is communication: the wall and what bounds a step count it as that.
std::int64_t waiting_for_gloo_ns(const Facts& facts);
// Idle time of the steady steps by cause, and the part in which the GPU waits for the CPU, both without that time.
IdleTimes idle_without_gloo(const Facts& facts);
// Of idle times by cause, those that Facts::waiting_for_cpu_ns() adds up.
std::int64_t waiting_for_cpu_in(const Facts& facts, const IdleTimes& idle);
std::int64_t waiting_for_cpu_without_gloo_ns(const Facts& facts);

// "Communication-bound: of the 119 ms a step took, the GPU was idle for 37.8 ms (32 %) while Gloo ran collectives on the CPU."
// Empty pattern: communication is not what bounds a step, or not on the CPU.
Sentence gloo_headline(const Facts& facts);

// "The GPU is idle for 36.1 ms of it while Gloo runs collectives on the CPU." Empty pattern: it is less than a tenth of a step.
Sentence gloo_waits_note(const Facts& facts);

}  // namespace lanescope::explain::rules
