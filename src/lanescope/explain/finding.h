// What a rule says: a verdict with its numbers, the slices that prove it and what to try.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/ids.h"

namespace lanescope::explain {

// What the page shows when a reader clicks a number: a kind of time.
namespace shows {
inline constexpr char kStep[] = "step";    // a step of usual length
inline constexpr char kBusy[] = "busy";    // all work of the device
inline constexpr char kIdle[] = "idle";    // its gaps
inline constexpr char kMoves[] = "moves";  // communication and copies
inline constexpr char kCompute[] = "compute";
inline constexpr char kCommunication[] = "communication";
inline constexpr char kCopies[] = "copy";
inline constexpr char kOperators[] = "operator";
}  // namespace shows

// finding.cpp contains the constructors, assignments and destructors of Value, Sentence and Finding.
// Inlined into the sentences of all rules, they would take a tenth of the rules' compile time.

// A number or a text inside a sentence. The kind gives the unit; `report` formats the number.
struct Value {
  Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  enum class Kind : std::uint8_t { kNs, kCount, kRatio, kFactor, kBytes, kText, kName, kKernel };
  Kind kind = Kind::kCount;
  std::int64_t integer = 0;  // kNs, kCount, kBytes
  double real = 0;           // kRatio: 0..1; kFactor: how many times
  std::string text = {};     // kText: our own words; kName, kKernel: untrusted text of the trace
  // What the page shows when a reader clicks this number of the headline: one of the names in `shows`,
  // or the id of a rule, for that rule's evidence. If this is empty and `slice` is kNone: nothing.
  const char* shows = "";
  SliceId slice = kNone<SliceId>;  // the event that the number is about
};
Value ns(std::int64_t value);
Value count(std::uint64_t value);
Value ratio(std::int64_t part, std::int64_t whole);  // 0 if whole is 0
Value factor(std::int64_t value, std::int64_t of);
Value bytes(std::int64_t value);
Value text(std::string value);
Value name(std::string_view value);    // without addresses of objects (" at 0x7f...")
Value kernel(std::string_view value);  // the name of a kernel, shown in its short form
Value linked(Value value, const char* shows);
Value linked(Value value, SliceId slice);

// Whether a sentence begins with what bounds the step. A replay without the profiler may name another limit (predicted_gains.h).
enum class LimitWords : std::uint8_t { kNone, kCpuBound, kNoSingle, kOther };

// Each {} of the pattern is the place of one value; they have the same order.
struct Sentence {
  Sentence();
  Sentence(std::string_view text, std::vector<Value> numbers);
  Sentence(const Sentence& other);
  Sentence(Sentence&& other) noexcept;
  Sentence& operator=(const Sentence& other);
  Sentence& operator=(Sentence&& other) noexcept;
  ~Sentence();
  std::string pattern;
  std::vector<Value> values;
  LimitWords limit = LimitWords::kNone;
  std::uint32_t limit_size =
      0;  // length of the words of the limit, which are the pattern's begin and contain no {}
};
Sentence say(std::string_view pattern, std::initializer_list<Value> values = {});
Sentence say(std::string_view pattern, std::vector<Value> values);
// Adds `more` at the end of `to`, without a space.
void append(Sentence& to, const Sentence& more);
// Replaces the words of the limit by `words`. Does nothing if the sentence has no such words.
void replace_limit(Sentence& sentence, const Sentence& words);

struct Evidence {
  SliceId slice = kNone<SliceId>;  // the event that proves it; kNone: only the sentence
  Sentence text;
};

enum class FindingKind : std::uint8_t {
  kBound,   // what limits the step: the headline
  kEnds,    // what will end the program, such as memory that grows
  kCost,    // time that a change of the program may give back
  kWhere,   // where the time is, without saying that it is too much
  kMemory,  // what holds or loses memory; no time
  kOnce,    // happened once and is no part of a usual step
  kNormal,  // looks like a problem but is not
  kTrust,   // about the recording: it is incomplete, or shows what the program did not cause
};
const char* finding_kind_name(FindingKind kind);  // "bound", "cost", ...

// How sure the verdict is, from the number of samples (steps, calls) that it is made from.
enum class Confidence : std::uint8_t { kLow, kMedium, kHigh };
const char* confidence_name(Confidence confidence);

// The part of another rule's time at stake that this finding explains more exactly. Example: copies
// of pageable memory explain a part of the exposed copies.
struct Explained {
  const char* rule = "";
  std::int64_t at_stake_ns = 0;
};

// What a fix gains by replay of the step without the profiler (predicted_gains.h).
struct Gain {
  enum class State : std::uint8_t {
    kNone,       // no replay models this fix exactly, or the trace cannot be replayed
    kUnsure,     // it depends too much on what recording cost
    kPredicted,  // `gain_ns`, which may be 0
  } state = State::kNone;
  std::int64_t gain_ns = 0;   // per step, at most what is at stake
  std::int64_t most_ns = -1;  // if not predicted: what the replays gained at most; -1: unknown
  // kUnsure, of a fix that makes kernels faster and leaves their number: half of the difference between the replays' gains. Such a
  // fix gains only what the CPU leaves, so gain_ns with this error says more than most_ns. 0: gain_ns says nothing.
  std::int64_t spread_ns = 0;
  std::string then_bound_by = {};  // "GPU": what limits the step after the fix
};

struct Finding {
  Finding();
  Finding(const Finding& other);
  Finding(Finding&& other) noexcept;
  Finding& operator=(const Finding& other);
  Finding& operator=(Finding&& other) noexcept;
  ~Finding();
  std::string rule;  // set by run_rules()
  FindingKind kind = FindingKind::kCost;
  Sentence verdict;
  // An upper bound for how much shorter a step could become, in nanoseconds per step (kOnce, kTrust:
  // in total). At most the length of a union of intervals, so no time counts twice.
  // The times of several findings overlap: do not add them.
  std::int64_t at_stake_ns = 0;
  double at_stake_ratio = 0;  // share of a step's wall
  // The part of at_stake_ns in which the GPU waits for the CPU, if the finding is also about GPU work.
  std::int64_t waiting_ns = 0;
  // If at_stake_ns counts only the kernels on the critical path (rate_finding()): what the fix saves of the GPU's time, in
  // nanoseconds per step. A replay makes the kernels faster by as much. 0: at_stake_ns.
  std::int64_t gpu_saved_ns = 0;
  // CPU calls that the fix makes unnecessary. A replay removes them instead of following Rule::fix,
  // with all that they contain, wait for and launch. In any order. Empty: the single calls are unknown.
  std::vector<SliceId> spared_calls;
  // The same for code without operators that the fix makes unnecessary: windows of one thread, disjoint and in order. The time
  // at stake is the time that the GPU waits for this code. With `spared_calls`: the code around these calls, which goes with them.
  TrackId spared_thread = kNone<TrackId>;
  std::vector<analysis::Window> spared_windows;
  // Calls that wait for a copy to the GPU. A fix that removes waits (Fix::kRemoveSync) ends these waits, too.
  std::vector<SliceId> spared_waits;
  // GPU work per step that also goes with a fix of the CPU's time, such as copies of what the CPU computed.
  std::int64_t gone_work_ns = 0;
  // For a fix that removes waits: the time per step in which the waiting operators run while the GPU is idle or only copies. If
  // no replay predicts the gain, the upper limit from the replays is raised to this time.
  std::int64_t own_cost_ns = 0;
  // The GPU's idle time directly after such waits, per step; -1: the fix is another.
  std::int64_t idle_after_waits_ns = -1;
  // Disjoint windows of one thread, in order, whose whole time this finding is about. On the first screen, it replaces findings whose
  // first event lies in them.
  TrackId told_thread = kNone<TrackId>;
  std::vector<analysis::Window> told_windows;
  // True: the fix gains an unknown part of what is at stake, so that is shown as an upper limit. See Rule::fix_is_bound.
  bool gain_is_bound = false;
  // The fix saves at most this share of any step, as half of it where one of two equal parts goes.
  double most_ratio = 1;
  std::vector<Sentence> arithmetic;
  std::vector<Evidence> evidence;
  // GPU work that all of its time is made of, in order of time; empty: unknown. A place with half of it or less is not given.
  std::vector<SliceId> all_work;
  std::vector<std::string> try_next;
  bool names_cause = false;  // although its rule usually names none (Rule::names_no_cause)
  // For the first screen, one line each. `brief`: what is wrong; if empty, the screen shows `verdict`.
  // `action`: what to change; if empty, the screen shows the first of `try_next`.
  Sentence brief, action;
  Sentence
      once;  // kOnce: one line for the first screen, which is shown if no suggestion is about it (happened_once.h)
  Confidence confidence = Confidence::kMedium;
  std::uint64_t sample_count = 0;
  std::string sample_noun;  // what a sample is; empty: a steady step, and the runner sets the word
  std::vector<Explained> explains;
  bool is_about_all_work = false;  // its place is where most of the GPU work is launched
  Gain gain;                       // kCost: set by predict_gains()
  bool leads = false;  // kOnce, longer than all other steps together: sorted before kCost
};

}  // namespace lanescope::explain
