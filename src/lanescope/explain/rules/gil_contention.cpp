// Another thread holds Python's lock while threads wait for it, by samples of Python stacks.
#include <optional>

#include "lanescope/explain/rules/python_lock.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastGilContentionShare = 0.1;  // of the samples in the steady steps

Measurement<SampledLock> measure_gil_contention(const Facts& facts) {
  return measure_lock(facts, &SampledLock::others_held, kLeastGilContentionShare);
}

Finding tell_gil_contention(const Facts& facts, const SampledLock& found) {
  Finding finding = lock_finding(facts, found, found.others_held);
  finding.verdict =
      say(facts.main_device
              ? "Another thread than the one that launches held Python's lock (GIL), while threads "
                "waited for it, in about {} of the steady time ({} of {} samples)."
              : "Another thread than the one that runs the steps held Python's lock (GIL), while "
                "threads waited for it, in about {} of the steady time ({} of {} samples).",
          lock_share(found, found.others_held));
  finding.brief = say("Threads wait for Python's lock (GIL) about {} of the time",
                      {lock_share(found, found.others_held).front()});
  finding.try_next = {
      "move that thread's work into a process of its own (DataLoader workers, multiprocessing), or "
      "into code that releases the lock"};
  return finding;
}

}  // namespace

extern constinit const Rule gil_contention_rule = {
    .id = "gil-contention",
    .question = "do threads wait for Python's lock (GIL)?",
    .meant_by = "gil lock contention interpreter threads wait",
    .order = 838,
    .needs = {kLockSamples},
    .run = measure_and_tell<measure_gil_contention, tell_gil_contention>,
};

}  // namespace lanescope::explain::rules
