// What the rules about single kernels share: names read, operators' work, how the grid fills the
// GPU. Made when a rule first asks.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/kernel_name.h"
#include "lanescope/analysis/launch_shape.h"
#include "lanescope/analysis/roofline.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

// A compute kernel of the steady steps.
struct KernelCall {
  SliceId slice{};
  std::int64_t start_ns = 0, end_ns = 0;
  const analysis::KernelName* name = nullptr;
  analysis::MatrixUnits matrix_units = analysis::MatrixUnits::kUnknown;
  SliceId op = kNone<SliceId>;                   // the innermost operator around its launch
  const analysis::RooflineCall* call = nullptr;  // its modelled operator; null: none
  const analysis::OperatorWork* work = nullptr;  // that one's work
  // Other work of the GPU ran beside it for less than a tenth of its time.
  bool is_alone = true;
  std::int64_t dur_ns() const { return end_ns - start_ns; }
  bool is_gemm() const;  // by its operator, or by its name
  bool is_convolution() const;
  bool is_attention() const;
  // Short name of the inputs' type, by the operator or the name; may be empty.
  std::string_view input_type() const;
};

// Borrows the Facts' trace; of the main device.
struct KernelFacts {
  analysis::Roofline roofline;
  std::vector<KernelCall> kernels;                                // by start
  std::unordered_map<std::uint32_t, analysis::KernelName> names;  // by raw StringId
  std::optional<analysis::LaunchShape> shape(const Trace& trace, const KernelCall& kernel) const;
};

// Made once a Facts, by whoever asks first; any thread. Needs a main device. O(n log n).
const KernelFacts& kernel_facts(const Facts& facts);

// The longest kernel of a compute-bound call of 1 GFLOP or more that ran alone and reached less
// than 40 % of the peak. Needs the peaks of the GPU.
bool is_large_and_slow(const KernelCall& kernel);

// Half of the matmuls' time or more belongs to operators whose shapes are known: graphs and
// compiled code hide them. Without matmuls: true.
bool gemms_are_known(const KernelFacts& kernels);

// GPU work that a change would make shorter.
class Savings {
 public:
  void add(SliceId slice, std::int64_t start_ns, std::int64_t end_ns, std::int64_t saved_ns);
  void add(const KernelCall& kernel, std::int64_t saved_ns) {
    add(kernel.slice, kernel.start_ns, kernel.end_ns, saved_ns);
  }
  void finish() { wall_.finish(); }
  std::uint64_t calls() const { return calls_; }
  SliceId longest() const { return longest_; }
  std::int64_t time_ns() const { return wall_.length_ns(); }  // union, after finish()
  // Sum of what each could save, at most the union.
  std::int64_t saved_ns() const { return saved_ns_ < time_ns() ? saved_ns_ : time_ns(); }

 private:
  analysis::IntervalUnion wall_;
  std::uint64_t calls_ = 0;
  std::int64_t saved_ns_ = 0, longest_ns_ = -1;
  SliceId longest_ = kNone<SliceId>;
};

// Kernels are worth a word: compute is 30 % of the steady wall or more.
bool kernels_matter(const Facts& facts);
// And a shorter kernel makes a shorter step: the step is not host-bound besides.
bool kernels_decide(const Facts& facts);
// Part of the steady wall.
double wall_share(const Facts& facts, std::int64_t time_ns);
// Time at stake, confidence and number of calls. In a host-bound step a cost becomes a kWhere, and
// says why.
void rate_finding(const Facts& facts, const Savings& savings, Finding& finding);
// "the longest of them, launched by aten::mm".
Evidence longest_of(const Facts& facts, SliceId slice);
// Is there an operator of that name among the ones around a launch, at most eight levels up? The
// one found, or kNone.
SliceId find_around(const Facts& facts, SliceId op, std::string_view name);

}  // namespace lanescope::explain
