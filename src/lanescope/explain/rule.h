// One diagnosis as its file in rules/ declares it: what it answers, what it needs of a trace, how
// the runner treats what it finds, and the function that looks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

struct Quiet {};  // looked: no issue, or below the threshold
struct NotChecked {
  std::string missing;  // what the trace lacks, and how to record it
};
using Outcome = std::variant<Quiet, Finding, NotChecked>;

// What a trace must hold before a rule can look. rules/needs.h has those of several rules.
struct Need {
  bool (*is_met)(const Facts& facts);
  const char* missing;  // as NotChecked::missing
};

// Checked in this order: a later need may rely on an earlier one.
class Needs {
 public:
  constexpr Needs() = default;
  constexpr Needs(std::initializer_list<Need> needs) {
    for (const Need& need : needs) needs_.at(count_++) = need;
  }
  // The first need that the trace does not meet; null: it meets all.
  const Need* first_unmet(const Facts& facts) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (!needs_[i].is_met(facts)) return &needs_[i];
    return nullptr;
  }

 private:
  std::array<Need, 4> needs_{};
  std::size_t count_ = 0;
};

// What a fix changes in a replay (predicted_gains.h). If a finding is about some kernels, copies or
// calls, all of that kind become faster, together by what the finding has at stake.
enum class Fix : std::uint8_t {
  kNone,  // no replay can follow it: memory, one-time work, load between ranks
  kGpu,
  kCpu,
  kCalls,  // calls that no longer run: neither their GPU work nor what the GPU waits for them
  kCommunication,
  kLoader,
  kRemoveSync,
  kCudaGraph,
  kPin,
  kOverlapCopies,
};

struct Rule {
  const char* id;             // "host-sync": --question takes it, docs/rules/<id>.md explains it
  const char* question;       // "does the program wait for the GPU in the middle of a step?"
  const char* meant_by = "";  // words with which users ask for it: "leak oom"; rules_for_question()
  int order;                  // its place in --list and among findings of equal stake

  // Checked in this order, before `run`: an unmet need makes it NotChecked, a false `only_if` Quiet.
  Needs needs{};
  bool (*only_if)(const Facts& facts) = nullptr;  // does this trace have what the rule is about?
  Needs then_needs{};

  Outcome (*run)(const Facts& facts) = nullptr;

  bool bounds_step = false;      // it may name what bounds a step: the headline asks it
  bool is_cpu_headline = false;  // the headline asks it where there is no GPU work
  // May hold for a file whose end is missing, because whole threads or steps may be there.
  bool survives_cut = true;
  // Says what a row, a call or a kernel is, not what is wrong: it runs only on request, by its id or
  // by a question.
  bool only_on_request = false;
  // Where the GPU is idle, whatever the reason: as general as what bounds the step.
  bool is_general = false;
  // Says where time is lost and not why. On the first screen, a finding that names a cause comes before it.
  bool names_no_cause = false;
  // Its time includes the gap at the edge of the recording, so its share is of the whole wall.
  bool counts_edge_gap = false;
  bool is_about_long_step = false;     // of Facts::long_step, as all that explain a part of it
  bool is_about_single_steps = false;  // "why is the last step slow?" means it
  // Fires when a program got worse, whatever the program is, so --write-budget forbids it.
  bool is_regression = false;
  bool warns_of_loss = false;  // a warning on the first screen: numbers are of a part of what ran
  // What a replay changes to predict what the rule's fix gains.
  Fix fix = Fix::kNone;
  // A replay of `fix` removes all that is at stake, but a real fix leaves a part that the trace does not show: the replay gives
  // an upper limit of the gain, not a prediction.
  bool fix_is_bound = false;
  // The fix makes kernels faster and leaves their number: the CPU is as long busy with them as without.
  bool keeps_kernels = false;
  // Its time at stake is the GPU's waiting for the CPU, not the GPU's work.
  bool stake_is_waiting = false;
  // If another finding on the first screen advises this fix, that fix removes the same time. The
  // first screen then shows only that finding.
  Fix same_time_as = Fix::kNone;
  // Another finding that explains this share of its time, or more, replaces it.
  double covered_from = 0.9;
};

// Makes a rule's `run` from its `measure` and `tell`. `measure(facts)` returns the numbers, or
// nothing if there is no issue; a Measurement<Numbers> can also say what the trace lacks beyond the
// rule's needs. `tell(facts, numbers)` puts them into words and decides nothing.
template <class Numbers>
using Measurement = std::variant<Quiet, Numbers, NotChecked>;

template <auto measure, auto tell>
Outcome measure_and_tell(const Facts& facts) {
  auto measured = measure(facts);
  if constexpr (requires { measured.has_value(); }) {
    if (!measured) return Quiet{};
    return tell(facts, *measured);
  } else {
    if (auto* missing = std::get_if<NotChecked>(&measured)) return std::move(*missing);
    if (std::holds_alternative<Quiet>(measured)) return Quiet{};
    return tell(facts, std::get<1>(measured));
  }
}

// Every rule, by Rule::order.
std::span<const Rule* const> all_rules();
const Rule* find_rule(std::string_view id);  // null: no rule has it

}  // namespace lanescope::explain
