// Decides what a recording leaves out so that it costs no more than its budget.
//
// Problem: the cost of an operator's record depends on the program (shapes, depth of the
// stack, length of the operators), so no fixed choice keeps a budget. Idea: the callbacks
// measure their cost, and ten times a second the recorder gives the sum to update(). When the
// last second cost more than the budget, the most expensive detail goes: input shapes, then
// stacks, then short operators (their record costs more than the budget's share of their
// time). When nothing more can go, operators are recorded in parts: a balance counts what the
// recording spent beyond its budget, and no operator is recorded until that is paid back. A
// detail comes back when, by its last measured cost per call, it would fit with a margin for
// ten seconds. docs/decisions/cost_budget.md. Cost of update(): under 1 us. No clock, no
// thread, no lock in here.
//
// Example: budget 1 %, cost 3 % with shapes, 2 % without, at 100 ns a call. After 1 s the shapes
// go, after one more second operators under 20 us (two calls each). If that still costs 2 %,
// operators are recorded for 5 s out of 10.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace lanescope::record {

// Each level costs less than the one before and also leaves out what that one leaves out. One
// exception: the recorded parts of the last level include short operators, because some programs
// have no others.
enum class Thinning : std::uint8_t {
  kNothing,
  kInputs,
  kStacks,
  kShortOperators,
  kOperatorsInParts
};
inline constexpr std::size_t kThinnings = 5;

// Sums since the process began, over all threads. `calls` are the calls of the callback.
struct CostSum {
  std::int64_t cost_ns = 0;
  std::uint64_t calls = 0;
  std::uint64_t left_out = 0;  // short operators
};

class CostBudget {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kLongSpan = kSecond;       // the share over this time counts
  static constexpr std::int64_t kShortSpan = kSecond / 5;  // this much is enough when far above
                                                           // the budget
  static constexpr double kFarAboveFactor = 4;             // times the budget
  static constexpr double kMargin = 0.6;                   // record more again below this part of
                                                           // the budget
  static constexpr std::int64_t kCalmTime = 10 * kSecond;  // that low for this long
  static constexpr std::int64_t kBurst = 5 * kSecond;      // most budget saved up or spent ahead
  static constexpr std::int64_t kMaxOwed = 20 * kSecond;   // most budget owed; limits a pause
  static constexpr std::int64_t kLeastShort = 1'000, kMostShort = 1'000'000;  // limits of
                                                                              // short_ns()
  static constexpr std::size_t kMostPeriods = 100, kMostPauses = 500;         // in the list

  struct Pause {
    std::int64_t from_ns = 0;
    std::optional<std::int64_t> to_ns = {};  // nothing: still going on
  };
  // A time with one thinning, and the share that led to it. Times are as `wall_ns` below.
  struct Period {
    std::int64_t from_ns = 0;
    std::optional<std::int64_t> to_ns = {};
    Thinning thinning = Thinning::kNothing;
    double share_ratio = 0;
    std::int64_t short_ns = 0;   // with kShortOperators: shorter ones were left out
    std::int64_t paused_ns = 0;  // finished pauses
    std::uint64_t pause_count = 0;
    std::vector<Pause> pauses = {};  // the first kMostPauses of the recording
  };
  struct Change {
    Thinning before = Thinning::kNothing, after = Thinning::kNothing;  // equal: only a pause
    double share_ratio = 0;
  };

  // `has_inputs`, `has_stacks`: details that are recorded and could be left out.
  CostBudget(double ratio, bool has_inputs, bool has_stacks)
      : ratio_(ratio), has_inputs_(has_inputs), has_stacks_(has_stacks) {}

  // A window opens or closes; the time between windows does not count. `now_ns` is a steady clock,
  // `wall_ns` nanoseconds since 1970.
  void open(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  void close(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  // Between open and close, and right after open. The caller applies the change.
  std::optional<Change> update(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);

  double ratio() const { return ratio_; }
  Thinning thinning() const { return thinning_; }
  bool is_paused() const { return paused_; }
  std::int64_t short_ns() const { return short_ns_; }  // with kShortOperators: see Period
  const std::vector<Period>& periods() const { return periods_; }
  std::int64_t cost_ns() const { return cost_ns_; }      // in open windows
  std::int64_t window_ns() const { return window_ns_; }  // total time of open windows
  double share() const {
    return window_ns_ > 0 ? static_cast<double>(cost_ns_) / static_cast<double>(window_ns_) : 0;
  }
  // Counts changes of periods and pauses. After a change, write the list again.
  std::uint64_t version() const { return version_; }
  std::string thinned_json() const;  // the trace's entry lanescope_thinned; at most 40 KiB
  std::string cost_json() const;     // lanescope_cost

 private:
  // Sums over open windows, one after the other: a schedule's short windows count as one time.
  struct CostSample {
    std::int64_t window_ns, cost_ns;
    std::uint64_t calls;
  };
  struct Rate {
    double share = 0, calls_per_ns = 0, ns_per_call = 0;
    std::int64_t span_ns = 0;
  };
  void account(std::int64_t now_ns, CostSum sum);
  std::optional<Rate> rate() const;
  bool fits(const Rate& rate) const;
  std::optional<Thinning> next() const;
  std::optional<Thinning> previous() const;
  void restart_samples();
  void change_thinning(Thinning thinning, const Rate& rate, std::int64_t wall_ns);
  void pause(bool on, std::int64_t wall_ns);

  const double ratio_;
  const bool has_inputs_, has_stacks_;
  Thinning thinning_ = Thinning::kNothing;
  bool paused_ = false;
  std::int64_t short_ns_ = 0;
  std::deque<CostSample> samples_;  // of the last second, since the last change
  std::optional<std::int64_t> calm_since_ns_;
  std::array<double, kThinnings> ns_per_call_{};  // as last measured; 0: not yet
  double owed_ns_ = 0;                            // spent beyond the budget; below 0: saved
  std::int64_t cost_ns_ = 0, window_ns_ = 0;
  std::uint64_t calls_ = 0, left_out_ = 0;
  struct {
    std::int64_t now_ns = 0;
    CostSum sum;
  } last_;
  std::vector<Period> periods_;
  std::size_t listed_pauses_ = 0;
  std::int64_t pause_began_ns_ = 0;  // wall
  bool pause_is_listed_ = false;
  std::uint64_t version_ = 0;
};

// "input shapes", "stacks", "operators": what is missing. Nothing is missing: "".
const char* thinned_word(Thinning thinning);

}  // namespace lanescope::record
