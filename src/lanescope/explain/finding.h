// What a rule says: a verdict with its numbers, the slices that prove it and what to try.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/ids.h"

namespace lanescope::explain {

// A number or a text inside a sentence. Units are in the kind; `report` writes them.
struct Value {
  enum class Kind : std::uint8_t { kNs, kCount, kRatio, kFactor, kBytes, kText, kName, kKernel };
  Kind kind = Kind::kCount;
  std::int64_t integer = 0;  // kNs, kCount, kBytes
  double real = 0;           // kRatio: 0..1; kFactor: how many times
  std::string text;          // kText is ours; kName, kKernel: of the trace, whatever it holds
};
Value ns(std::int64_t value);
Value count(std::uint64_t value);
Value ratio(std::int64_t part, std::int64_t whole);  // 0 of nothing
Value factor(std::int64_t value, std::int64_t of);
Value bytes(std::int64_t value);
Value text(std::string value);
Value name(std::string_view value);
Value kernel(std::string_view value);  // a kernel's, which readers like to see in its short form

// Each {} of the pattern is the next value.
struct Sentence {
  std::string pattern;
  std::vector<Value> values;
};
Sentence say(std::string pattern, std::vector<Value> values = {});
// `more` behind `to`, as it is.
void append(Sentence& to, const Sentence& more);

struct Evidence {
  SliceId slice = kNone<SliceId>;  // where to look; kNone: the sentence stands for itself
  Sentence text;
};

enum class FindingKind : std::uint8_t {
  kBound,   // what limits the step: the headline
  kEnds,    // what ends the program sooner or later, however fast it is
  kCost,    // time that a change of the program may give back
  kWhere,   // where the time is, not that it is too much
  kMemory,  // what holds or loses memory; no time
  kOnce,    // happened once and is no part of a usual step
  kNormal,  // looks alarming and is not
  kTrust,   // the recording itself: what it holds that the program did not do
};
const char* finding_kind_name(FindingKind kind);  // "bound", "cost", ...

// From how many samples (steps, calls) the verdict is drawn.
enum class Confidence : std::uint8_t { kLow, kMedium, kHigh };
const char* confidence_name(Confidence confidence);

// A part of another rule's time at stake that this finding tells more exactly: of the exposed
// copies those of pageable memory, of the slow matmuls those of unaligned sizes.
struct Explained {
  const char* rule = "";
  std::int64_t at_stake_ns = 0;
};

struct Finding {
  std::string rule;  // set by the runner
  FindingKind kind = FindingKind::kCost;
  Sentence verdict;
  // Nanoseconds per step that the device's wall could shrink by at most (kOnce, kTrust: in all, not
  // per step): a union of intervals or a smaller bound. Findings overlap: never add them up.
  std::int64_t at_stake_ns = 0;
  double at_stake_ratio = 0;  // of a step's wall
  std::vector<Sentence> arithmetic;
  std::vector<Evidence> evidence;
  std::vector<std::string> try_next;
  // For the first screen, one line each: what is wrong (empty: `verdict`) and the one change to
  // make (empty: the first of `try_next`).
  Sentence brief, action;
  Confidence confidence = Confidence::kMedium;
  std::uint64_t sample_count = 0;
  std::string sample_noun = "step";
  std::vector<Explained> explains;
  bool leads = false;  // kOnce, longer than all other steps together: comes before kCost
};

}  // namespace lanescope::explain
