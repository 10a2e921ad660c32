// When a recording with a budget records the GPU.
//
// Problem: CUPTI has no cheap mode. Attaching it costs 12 ms, each launch 1 to 6 us while it is
// attached, and detaching it 6 ms, however little it records. Idea: save first, then spend. CUPTI is
// attached when the recording has saved the budget of a whole part: attaching, detaching and some time
// between. It stays for as long as the program's launches fit into the budget, without end if there
// are few. When the savings are spent, it is detached. Then nothing is recorded until a part of twice
// the size is saved. The trace is the longest part. docs/decisions/cost_budget.md.
//
// Only numbers: the caller (CostBudget) says what was spent, and does what is decided. No lock.
//
// Example, budget 1 %: until the first part operators may take 0.25 %. A part needs 18 ms to attach and
// detach, 4.5 ms in reserve and 10 ms to spend: saved after 4.3 s if operators take all of their share. A
// program whose launches cost 8.5 % spends them in about 0.2 s. The second part has 20 ms to spend.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lanescope::record {

class GpuParts {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  // What attaching and detaching CUPTI costs a thread that launches all the time, rounded up: measured
  // as 9.8 to 11.5 ms and 4.1 to 5.9 ms, docs/measurements/gpu.md. The recorder's own thread, which
  // waits for it, takes longer.
  static constexpr std::int64_t kAttachNs = 12'000'000, kDetachNs = 6'000'000;
  // How much more may be spent than was saved before that is noticed.
  static constexpr std::int64_t kOverrunNs = 2'000'000;
  // What the first part has to spend: the budget of this time, but at least kLeastPart. Each part has
  // twice as much as the one before; the one after kDoublings is the last of its window.
  static constexpr std::int64_t kFirstPart = kSecond, kLeastPart = 10'000'000;
  static constexpr int kDoublings = 5;
  // Until the first part operators have this part of the budget; the rest is saved.
  static constexpr double kShareBefore = 0.25;
  static constexpr std::size_t kMostListed = 100;

  enum class State : std::uint8_t {
    kOff,      // the GPU is not wanted in parts
    kWaiting,  // before the first part of a window: the CPU alone is recorded
    kOn,
    kResting,  // between two parts: nothing is recorded
    kOver      // after the last part: nothing is recorded
  };
  struct Part {
    std::int64_t from_ns = 0;                // since 1970
    std::optional<std::int64_t> to_ns = {};  // nothing: not ended yet
  };

  // `debt_ns`: how far operators may exceed their budget (CostBudget::debt_limit_ns).
  GpuParts(double ratio, double debt_ns, bool wanted)
      : ratio_(ratio), debt_ns_(debt_ns), state_(wanted ? State::kWaiting : State::kOff) {}

  State state() const { return state_; }
  bool is_wanted() const { return state_ != State::kOff; }
  // What operators and ranges may take now: a ratio of the time.
  double operators_ratio() const {
    return state_ == State::kWaiting ? kShareBefore * ratio_ : ratio_;
  }
  void add(std::int64_t time_ns, std::int64_t cost_ns);
  // A whole part is paid for.
  bool can_begin() const {
    return (state_ == State::kWaiting || state_ == State::kResting) && saved_ns_ >= needed_ns();
  }
  // When the next part begins if operators take all of their share until then: from now on, ns.
  std::int64_t wait_ns() const;
  // CUPTI is attached, and add() got kAttachNs. Returns what the part may spend, ns, at least 0.
  double begin(std::int64_t wall_ns);
  // CUPTI cannot be attached.
  void fail() { state_ = State::kOff; }
  // The part has spent its savings.
  void end(std::int64_t wall_ns);
  // The next window waits for a part of its own.
  void close_window(std::int64_t wall_ns);

  const std::vector<Part>& parts() const { return parts_; }  // the first kMostListed
  // The trace's entry lanescope_gpu_parts.
  std::string json(std::int64_t recording_from_ns) const;

 private:
  double part_ns() const;
  double reserve_ns() const { return debt_ns_ + static_cast<double>(kDetachNs + kOverrunNs); }
  double needed_ns() const { return static_cast<double>(kAttachNs) + reserve_ns() + part_ns(); }

  double ratio_, debt_ns_;
  State state_;
  double saved_ns_ = 0;  // below 0: spent beyond the budget
  int begun_ = 0;
  std::vector<Part> parts_;
};

}  // namespace lanescope::record
