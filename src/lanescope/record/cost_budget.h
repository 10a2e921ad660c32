// Decides what a recording leaves out so that it costs no more than its budget.
//
// Problem: what an operator's record costs depends on the program (shapes, depth of the stack, how
// short the operators are), so no choice made beforehand keeps a promise. Idea: whoever records
// measures its cost, and ten times a second somebody shows the sum here. When the cost of the last
// second is above the budget, the dearest detail that is still recorded goes: input shapes, then
// stacks. When nothing more can go, operators are recorded in parts: a balance counts what the
// recording spent beyond its budget, and while it is paid back no operator is recorded. A detail
// comes back when it would fit with a margin for ten seconds, by what a call cost with it.
// docs/decisions/cost_budget.md. Cost of a look: under 1 us. No clock, no thread, no lock in here.
//
// Example: budget 1 %, cost 3 % with shapes, 2 % without. After 1 s the shapes go, after another
// one operators are recorded in parts: for 5 s out of 10.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace lanescope::record {

// Each leaves out more than the one before.
enum class Thinning : std::uint8_t { kNothing, kInputs, kStacks, kOperatorsInParts };
inline constexpr std::size_t kThinnings = 4;

// Sums since the process began, over all threads. `calls` are the calls of the callback.
struct CostSum {
  std::int64_t cost_ns = 0;
  std::uint64_t calls = 0;
};

class CostBudget {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kLongLook = kSecond;       // a share over it counts
  static constexpr std::int64_t kShortLook = kSecond / 5;  // enough when it is far above
  static constexpr double kFarAbove = 4;                   // times the budget
  static constexpr double kMargin = 0.6;                   // of the budget, to record more again
  static constexpr std::int64_t kCalm = 10 * kSecond;      // for so long
  static constexpr std::int64_t kBurst = 5 * kSecond;  // of budget: saved or spent ahead at most
  static constexpr std::int64_t kMostOwed = 20 * kSecond;              // of budget: bounds a pause
  static constexpr std::size_t kMostPeriods = 100, kMostPauses = 500;  // that the list names

  struct Pause {
    std::int64_t from_ns = 0;
    std::optional<std::int64_t> to_ns = {};  // nothing: it goes on
  };
  // A time of one thinning, with the share that led to it. Times are of the `wall_ns` below.
  struct Period {
    std::int64_t from_ns = 0;
    std::optional<std::int64_t> to_ns = {};
    Thinning thinning = Thinning::kNothing;
    double share_ratio = 0;
    std::int64_t paused_ns = 0;  // finished pauses
    std::uint64_t pause_count = 0;
    std::vector<Pause> pauses = {};  // the first kMostPauses of the recording
  };
  struct Change {
    Thinning before = Thinning::kNothing, after = Thinning::kNothing;  // equal: only a pause
    double share_ratio = 0;
  };

  // `has_inputs`, `has_stacks`: what is recorded and could go.
  CostBudget(double ratio, bool has_inputs, bool has_stacks)
      : ratio_(ratio), has_inputs_(has_inputs), has_stacks_(has_stacks) {}

  // A window opens or closes; the time between windows does not count. `now_ns` is a steady clock,
  // `wall_ns` nanoseconds since 1970.
  void open(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  void close(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  // Between open and close, and right after open. A change is to be carried out by the caller.
  std::optional<Change> look(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);

  double ratio() const { return ratio_; }
  Thinning thinning() const { return thinning_; }
  bool is_paused() const { return paused_; }
  const std::vector<Period>& periods() const { return periods_; }
  std::int64_t cost_ns() const { return cost_ns_; }      // while windows were open
  std::int64_t window_ns() const { return window_ns_; }  // that they were open
  double share() const {
    return window_ns_ > 0 ? static_cast<double>(cost_ns_) / static_cast<double>(window_ns_) : 0;
  }
  // Counts changes of periods and pauses: the list is to be written again.
  std::uint64_t version() const { return version_; }
  std::string thinned_json() const;  // the trace's entry lanescope_thinned; at most 40 KiB
  std::string cost_json() const;     // lanescope_cost

 private:
  // Sums over the time that windows were open: a schedule's short windows are one time.
  struct Look {
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
  void look_anew();
  void go_to(Thinning thinning, double share, std::int64_t wall_ns);
  void pause(bool on, std::int64_t wall_ns);

  const double ratio_;
  const bool has_inputs_, has_stacks_;
  Thinning thinning_ = Thinning::kNothing;
  bool paused_ = false;
  std::deque<Look> looks_;  // of the last second, since the last change
  std::optional<std::int64_t> calm_since_ns_;
  std::array<double, kThinnings> ns_per_call_{};  // as last measured; 0: not yet
  double owed_ns_ = 0;                            // spent beyond the budget; below 0: saved
  std::int64_t cost_ns_ = 0, window_ns_ = 0;
  std::uint64_t calls_ = 0;
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
