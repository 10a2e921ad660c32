// Decides which slow steps get a dump, and which dump makes room for a worse one. Defined in
// docs/definitions/recording.md#slow-step.
//
// Problem: few dumps are allowed, and the first slow steps are often the mildest: a delay of 3 ms
// must not keep out one of 100 ms. Idea: a step is as bad as its time above the median. A worse
// step replaces the mildest dump. A step soon after a dump replaces that dump if it is much worse.
// If it is a little worse, it waits until the next dump is due; the ring keeps it until then.
// If it is milder, it gets no dump.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lanescope/profiler/step_clock.h"

namespace lanescope {

struct DumpedStep {
  std::int64_t number = 0;
  SlowStep slow;
  std::int64_t ended_ns = 0;
  std::uint64_t dump = 0;  // the recorder's number of its dump; 0: none yet
  std::int64_t excess_ns() const { return slow.duration_ns - slow.median_ns; }
};

struct SlowDumpRequest {
  DumpedStep step;
  std::optional<DumpedStep> replaced;  // the dump that this one replaces
  bool waited = false;                 // the step ended before the current one
  bool is_last_place = false;          // from now on, each new dump replaces another one
};

// One thread at a time. Cost of a slow step: compares up to `most` numbers.
class SlowDumps {
 public:
  // A step this many times as bad as the last dumped one does not wait.
  static constexpr std::int64_t kMuchWorseFactor = 2;
  SlowDumps(std::uint32_t most, std::int64_t kept_ns) : most_(most), kept_ns_(kept_ns) {}

  // A step ended at `now_ns`; `slow`: it was slow. Returns what to dump now; the caller then
  // reports the dump's number with dumped().
  std::optional<SlowDumpRequest> ended(std::int64_t now_ns, std::int64_t number,
                                       const std::optional<SlowStep>& slow) {
    if (most_ == 0) return std::nullopt;
    if (slow) {
      const DumpedStep step{number, *slow, now_ns};
      if (dumps_.empty() || now_ns - last_ns_ >= kept_ns_) {
        if (!waiting_ || step.excess_ns() >= waiting_->excess_ns()) waiting_.reset();
        if (!waiting_) return place(step, false);
      } else if (step.excess_ns() >= kMuchWorseFactor * dumps_[last_].excess_ns()) {
        waiting_.reset();  // the ring still holds it
        return put(last_, step, false);
      } else if (step.excess_ns() >
                 (waiting_ ? waiting_->excess_ns() : dumps_[last_].excess_ns())) {
        waiting_ = step;
      }
    }
    // An eighth of the kept time early: before the ring overwrites the beginning of a step that ended soon
    // after the last dump.
    if (!waiting_ || now_ns - last_ns_ < kept_ns_ - kept_ns_ / 8) return std::nullopt;
    const DumpedStep step = *waiting_;
    waiting_.reset();
    return place(step, step.ended_ns != now_ns);
  }
  // Reports the dump that ended() asked for last.
  void dumped(std::int64_t now_ns, std::uint64_t dump) {
    last_ns_ = now_ns;
    dumps_[last_].dump = dump;
  }

 private:
  std::optional<SlowDumpRequest> place(const DumpedStep& step, bool waited) {
    if (dumps_.size() < most_) {
      dumps_.push_back(step);
      last_ = dumps_.size() - 1;
      return SlowDumpRequest{step, std::nullopt, waited, dumps_.size() == most_};
    }
    std::size_t mildest = 0;
    for (std::size_t i = 1; i < dumps_.size(); ++i)
      if (dumps_[i].excess_ns() < dumps_[mildest].excess_ns()) mildest = i;
    if (step.excess_ns() <= dumps_[mildest].excess_ns()) return std::nullopt;
    return put(mildest, step, waited);
  }
  SlowDumpRequest put(std::size_t place, const DumpedStep& step, bool waited) {
    SlowDumpRequest order{step, dumps_[place], waited, false};
    dumps_[place] = step;
    last_ = place;
    return order;
  }

  const std::uint32_t most_;
  const std::int64_t kept_ns_;
  std::vector<DumpedStep> dumps_;
  std::size_t last_ = 0;  // index of the newest in `dumps_`
  std::int64_t last_ns_ = 0;
  std::optional<DumpedStep> waiting_;  // worse than the last dumped step; has no dump yet
};

}  // namespace lanescope
