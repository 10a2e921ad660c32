// The numbers of a steady step that a budget can limit, and the evidence for each.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

enum class MeasureUnit : std::uint8_t { kTime, kCount, kBytes };

struct Measure {
  const char* key;  // "idle", as docs/formats/budget.md and a budget file write it
  MeasureUnit unit;
  bool has_share;       // can be limited in percent of the wall
  bool per_step;        // a sum over the steady steps divided by their number
  const char* meaning;  // "nothing runs on any stream of the device"
};

std::span<const Measure> all_measures();
const Measure* find_measure(std::string_view key);  // null: no such key

// The measured value is total / divisor, in ns, count or bytes.
struct MeasuredValue {
  std::int64_t total = 0, divisor = 1;
  double real() const { return static_cast<double>(total) / static_cast<double>(divisor); }
};
struct Unmeasured {
  std::string missing;  // what the trace lacks, and how to record it
};
using Measured = std::variant<MeasuredValue, Unmeasured>;

// Numbers are those of docs/definitions/budgets.md. O(n) at most. Any thread.
Measured compute_measure(const Facts& facts, const Measure& measure);

// The largest parts of the number, at most four: evidence for a broken limit.
std::vector<Evidence> measure_evidence(const Facts& facts, const Measure& measure);

// True: this instant is an allocation or a free of the main device's memory.
bool is_device_memory(const Facts& facts, std::uint32_t instant);

// The idle cause with that key; nothing: no idle cause has it.
std::optional<analysis::IdleCause> find_idle_cause(std::string_view key);

// Calls in which the CPU may wait for the device. They began in the steady steps, and not after the
// last launch.
std::vector<SliceId> find_host_waits(const Facts& facts);

}  // namespace lanescope::explain
