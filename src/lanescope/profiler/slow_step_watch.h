// Watches the steps of a flight recorder, and makes a dump when a step is slow. Defined in
// docs/definitions/recording.md#slow-step.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/profiler/slow_dumps.h"
#include "lanescope/profiler/step_clock.h"
#include "lanescope/record/recorder.h"

namespace lanescope {

// One thread at a time.
class SlowStepWatch {
 public:
  struct Limits {
    double factor = 0;  // a slow step takes more than so many times the median; above 1
    std::uint32_t most_dumps = 0;
    std::int64_t kept_ns = 0;  // how much time the recording keeps
  };
  // The first step begins now.
  explicit SlowStepWatch(const Limits& limits);
  // The step with that number ends now, and the next one begins.
  void step_ended(std::int64_t number, record::Recorder& recorder);

 private:
  std::string reason(const SlowDumpRequest& order, std::int64_t now) const;

  Limits limits_;
  StepClock clock_;
  SlowDumps dumps_;
  std::int64_t step_began_ns_;  // steady clock
};

}  // namespace lanescope
