// Python collects garbage while the steps run, by samples of Python stacks.
#include <optional>

#include "lanescope/explain/rules/python_lock.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastGarbageCollectionShare = 0.03;  // of the samples in the steady steps

Measurement<SampledLock> measure_garbage_collection(const Facts& facts) {
  return measure_lock(facts, &SampledLock::collecting, kLeastGarbageCollectionShare);
}

Finding tell_garbage_collection(const Facts& facts, const SampledLock& found) {
  Finding finding = lock_finding(facts, found, found.collecting);
  finding.verdict =
      say("Python collected garbage in about {} of the steady time ({} of {} samples).",
          lock_share(found, found.collecting));
  finding.brief = say("Python collects garbage for about {} of the time",
                      {lock_share(found, found.collecting).front()});
  finding.try_next = {
      "collect at chosen places: gc.freeze() once all is built, gc.disable() in the loop, "
      "gc.collect() every some hundred steps; make fewer objects that refer to each other"};
  return finding;
}

}  // namespace

extern constinit const Rule garbage_collection_rule = {
    .id = "garbage-collection",
    .question = "does Python collect garbage during the steps?",
    .meant_by = "garbage collection collector gc",
    .order = 836,
    .needs = {kLockSamples},
    .run = measure_and_tell<measure_garbage_collection, tell_garbage_collection>,
};

}  // namespace lanescope::explain::rules
