// Decides what a recording leaves out so that it costs no more than its budget.
//
// Problem: the cost of an operator's record depends on the program (shapes, depth of the stack,
// length of the operators), so no fixed choice keeps a budget. Idea: the callbacks measure their
// cost, and a thousand times a second the recorder gives the sum to update(). A balance holds what
// was spent beyond the budget since the start, or saved. When the last second cost more than the
// budget, or the balance is far above zero, the most expensive detail goes: input shapes, then
// stacks, then short operators (their record costs more than the budget's share of their time).
// When the balance reaches its limit, operators pause. When nothing more can go, they are recorded
// in parts: none until the debt is paid and some budget is saved, then until that is spent. If
// ranges of the program alone are too much, they are recorded in parts, too. A detail comes back
// when, by its last measured cost per call, it would fit with a margin for one second, later ten.
// If allocations alone are too much, their records end for good. The GPU is recorded in parts that are
// saved for before (gpu_parts.h); if it is not (schedules, rings) and alone is too much, the recording
// ends. docs/decisions/cost_budget.md.
// Cost of update(): under 1 us. No clock, no thread, no lock in here.
//
// The promise: the cost since the start is never more than the budget of that time, debt_limit_ns() and what one time between
// two updates costs, together. Added to that: kLeastAhead when a program's own ranges become too much in a pause of its
// operators; kLeastAhead or kLeastDebt when its allocations become too much; kGpuDebt when a GPU is recorded, but not in
// parts.
//
// Example: budget 1 %, cost 30 % with shapes, 20 % without, at 100 ns per call. 4 ms after the start
// 1 ms was spent beyond the budget, and the shapes go; 3 ms later operators under 20 us (two calls
// each). If the rest still costs 10 %, the debt is 2.5 ms after 10 ms more, and operators pause for
// 0.6 s: the first pause also pays 2.5 ms for what callbacks do not see of the start.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/record/gpu_parts.h"

namespace lanescope::record {

// Each level costs less than the one before and also leaves out what that one leaves out. One
// exception: the recorded parts of the last level include short operators, because some programs
// have no others.
enum class Thinning : std::uint8_t {
  kNothing,
  kInputs,
  kStacks,
  kShortOperators,
  kOperatorsInParts,
  kRangesInParts  // operators and ranges of the program
};
inline constexpr std::size_t kThinnings = 6;

// Sums since the process began, over all threads.
struct CostSum {
  std::int64_t cost_ns = 0;  // of operators and Python frames
  std::uint64_t calls = 0;   // of the callback for operators
  std::int64_t ranges_ns = 0, memory_ns = 0, gpu_calls_ns = 0;
  std::uint64_t left_out = 0, left_out_ranges = 0;  // short operators; ranges of the program
  std::int64_t gpu_moves_ns = 0;                    // attaching and detaching CUPTI
  std::int64_t gpu_credit_ns = 0;  // of gpu_calls_ns: paid by CostBudget::kGpuCredit or a part

  std::int64_t total_ns() const {
    return cost_ns + ranges_ns + memory_ns + gpu_calls_ns + gpu_moves_ns;
  }
  // What operators and ranges have to make room for.
  std::int64_t judged_ns() const { return total_ns() - gpu_moves_ns - gpu_credit_ns; }
  CostSum since(const CostSum& before) const;
  void add(const CostSum& more);
};

class CostBudget {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kLongSpan = kSecond;         // the share over this time counts
  static constexpr std::int64_t kShortSpan = kSecond / 500;  // less is not judged
  // A level is left at once when it spent the budget of this much time beyond its own: less at the
  // start of a recording, so that a short one keeps its budget, too.
  static constexpr std::int64_t kMostAhead = kSecond, kLeastAhead = kSecond / 5;
  // The unit of debt: the budget of this much time, but not less than one measured call that was
  // interrupted can seem to cost.
  static constexpr std::int64_t kDebtTime = kSecond / 10, kLeastDebt = 1'000'000;
  static constexpr double kFirstDebt = 1;      // above so many units the next level begins, ...
  static constexpr double kDebtOfLevel = 0.5;  // ... if the level itself added so many
  static constexpr double kMostDebt = 2.5;     // and above so many, operators pause
  // Ranges that in a pause of operators take more than this part of the budget for this long pause,
  // too: else nothing would be left for operators. Long enough for one interrupted call to be less.
  static constexpr double kMostRanges = 0.5;
  static constexpr std::int64_t kRangesSpan = kSecond / 5;
  static constexpr double kRangesDebt = 2;  // ... or more than the budget, and so many units
  // A part of the GPU ends when it takes so much beyond the budget in a pause of operators: more than
  // an interrupted call can seem to cost.
  static constexpr std::int64_t kGpuBeyond = 1'500'000;
  // Without parts: it ends when it has cost the budget of kGpuDebt more than its share. The first kGpuCredit leave operators and ranges their budget: a
  // program that soon ends is whole until then.
  static constexpr std::int64_t kGpuDebt = 8 * kSecond, kGpuCredit = 10 * kSecond;
  // What callbacks do not see of the start: new names, untouched pages, the first calls after a pause.
  // The first pause pays for it, too.
  static constexpr std::int64_t kUnseenStart = 2'500'000;
  static constexpr double kMargin = 0.6;  // record more again below this part of the budget, ...
  // ... that low for this long. Twice as long after each time.
  static constexpr std::int64_t kLeastCalm = kSecond, kMostCalm = 10 * kSecond;
  static constexpr std::int64_t kMostSaved = 5 * kSecond;  // most budget saved up
  static constexpr std::int64_t kMostBurst = 4 * kSecond;  // most budget for a part, ...
  static constexpr std::int64_t kTimePerBurst = 10;        // ... and a tenth of the time so far
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
    bool is_next_level = false;   // though `before` is greater: it was only a pause before `after`
    bool ends_memory = false;     // only that: the level stays
    bool ends_recording = false;  // of this window, or of this part of it: the GPU costs too much
    bool begins_gpu = false;      // if CUPTI can come: gpu_began() or gpu_failed() follows
  };

  // `has_inputs`, `has_stacks`, `has_memory`: what is recorded and could be left out.
  CostBudget(double ratio, bool has_inputs, bool has_stacks, bool has_memory = false,
             bool gpu_in_parts = false)
      : ratio_(ratio),
        has_inputs_(has_inputs),
        has_stacks_(has_stacks),
        has_memory_(has_memory),
        gpu_credit_ns_(gpu_in_parts ? 0 : ratio * static_cast<double>(kGpuCredit)),
        gpu_(ratio, debt_limit_ns(), gpu_in_parts) {}

  // A window opens or closes; the time between windows does not count. `now_ns` is a steady clock,
  // `wall_ns` nanoseconds since 1970.
  void open(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  void close(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  // Between open and close, and right after open. The caller applies the change.
  std::optional<Change> update(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  // CUPTI has come; `sum` has what that cost. Everything is recorded again.
  void gpu_began(std::int64_t now_ns, std::int64_t wall_ns, CostSum sum);
  void gpu_failed() { gpu_.fail(); }
  const GpuParts& gpu() const { return gpu_; }

  double ratio() const { return ratio_; }
  // The most that is spent beyond the budget before operators pause: the budget of 0.25 s, at least
  // 2.5 ms.
  double debt_limit_ns() const { return kMostDebt * debt_unit_ns(); }
  Thinning thinning() const { return thinning_; }
  bool is_paused() const { return paused_; }
  std::int64_t short_ns() const { return short_ns_; }  // with kShortOperators: see Period
  const std::vector<Period>& periods() const { return periods_; }
  // Since when allocations and frees are left out, as `wall_ns`. Until then all of them are there.
  std::optional<std::int64_t> memory_end_ns() const { return memory_end_ns_; }
  bool has_left_out_anything() const { return !periods_.empty() || memory_end_ns_ || end_ns_; }
  // Since when nothing is recorded, as `wall_ns`; of the newest window for which that holds.
  std::optional<std::int64_t> end_ns() const { return end_ns_; }
  const CostSum& spent() const { return spent_; }        // in open windows
  std::int64_t window_ns() const { return window_ns_; }  // total time of open windows
  double share() const { return share_of(spent_.total_ns()); }
  double share_of(std::int64_t ns) const {
    return window_ns_ > 0 ? static_cast<double>(ns) / static_cast<double>(window_ns_) : 0;
  }
  // Counts changes of periods and pauses. After a change, write the list again.
  std::uint64_t version() const { return version_; }
  std::string thinned_json() const;  // the trace's entry lanescope_thinned; at most 40 KiB
  std::string cost_json() const;     // lanescope_cost

 private:
  // Sums over open windows, one after the other: a schedule's short windows count as one time.
  struct CostSample {
    std::int64_t window_ns;
    CostSum spent;
  };
  struct Rate {
    double share = 0, kept_share = 0;  // kept: of all but operators and Python frames
    double ranges_share = 0, gpu_share = 0;
    double calls_per_ns = 0, ns_per_call = 0;
    std::int64_t span_ns = 0;
  };
  void account(std::int64_t now_ns, CostSum sum);
  std::optional<Rate> rate() const;
  bool fits(const Rate& rate) const;
  bool is_too_much(const Rate& rate) const;
  bool is_in_debt(const Rate& rate) const;
  bool has_too_many_ranges(const Rate& rate) const;
  bool has_too_many_allocations() const;
  bool has_too_much_gpu(const std::optional<Rate>& rate) const;
  double debt_unit_ns() const;
  double burst_ns() const;
  std::optional<Change> update_in_pause(const std::optional<Rate>& rate, Change change,
                                        std::int64_t wall_ns);
  std::optional<Thinning> next() const;
  std::optional<Thinning> previous() const;
  void restart_samples();
  void change_thinning(Thinning thinning, const Rate& rate, std::int64_t wall_ns);
  void pause(bool on, std::int64_t wall_ns);

  const double ratio_;
  const bool has_inputs_, has_stacks_, has_memory_;
  Thinning thinning_ = Thinning::kNothing;
  bool paused_ = false;
  bool start_is_paid_ = false;
  bool closed_in_pause_ = false;  // the next window begins with a pause
  // The debt grew too fast for the next level to begin: it begins after the pause.
  struct NextLevel {
    Thinning thinning;
    Rate rate;  // of the level before
  };
  std::optional<NextLevel> after_pause_;
  std::int64_t short_ns_ = 0;
  std::deque<CostSample> samples_;  // of the last second, since the last change
  std::optional<std::int64_t> calm_since_ns_;
  std::int64_t calm_time_ns_ = kLeastCalm;
  std::array<double, kThinnings> ns_per_call_{};  // as last measured; 0: not yet
  double owed_ns_ = 0;                            // spent beyond the budget; below 0: saved
  double most_saved_ns_ = ratio_ * static_cast<double>(kMostSaved);  // or a part of the GPU
  double owed_for_memory_ns_ = 0;  // the same, as if allocations had all of the budget
  std::optional<std::int64_t> memory_end_ns_;
  double memory_share_ = 0;     // at its end
  double owed_for_gpu_ns_ = 0;  // as owed_for_memory_ns_
  double gpu_credit_ns_;
  GpuParts gpu_;
  std::optional<std::int64_t> end_ns_;
  double end_share_ = 0;  // of the GPU
  bool window_ended_ = false;
  CostSum spent_;
  std::int64_t window_ns_ = 0;
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
