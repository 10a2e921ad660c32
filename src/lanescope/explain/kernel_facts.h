// Facts for the rules about single kernels: names, the work of operators, how the grid fills the
// GPU. Computed when the first rule needs them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/launch_shape.h"
#include "lanescope/analysis/roofline.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::explain {

// A compute kernel of the steady steps.
struct KernelCall {
  SliceId slice{};
  std::int64_t start_ns = 0, end_ns = 0;
  const names::KernelName* name = nullptr;
  analysis::MatrixUnits matrix_units = analysis::MatrixUnits::kUnknown;
  SliceId op = kNone<SliceId>;                   // the innermost operator around its launch
  const analysis::RooflineCall* call = nullptr;  // its modelled operator; null: none
  const analysis::OperatorWork* work = nullptr;  // the work of that operator
  // Other work ran on the GPU at the same time for less than a tenth of its time.
  bool is_alone = true;
  std::int64_t dur_ns() const { return end_ns - start_ns; }
  bool is_gemm() const;  // by the operator, else by the kernel's name
  bool is_convolution() const;
  bool is_attention() const;
  // Short name of the inputs' type, from the operator or the kernel's name; may be empty.
  std::string_view input_type() const;
};

// Facts about the kernels of the main device. Borrows the trace.
struct KernelFacts {
  analysis::Roofline roofline;
  std::vector<KernelCall> kernels;  // by start
  std::optional<analysis::LaunchShape> shape(const Trace& trace, const KernelCall& kernel) const;
};

// Computed once per Facts, by the first call; any thread. Needs a main device. O(n log n).
const KernelFacts& kernel_facts(const Facts& facts);

// True: it is the longest kernel of a compute-bound call of 1 GFLOP or more, ran alone, and reached
// less than 40 % of the peak. Needs the GPU's peak rates.
bool is_large_and_slow(const KernelCall& kernel);

// True: at least half of the matmuls' time belongs to operators with known shapes, or there are no
// matmuls. CUDA graphs and compiled code hide shapes.
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
  const analysis::IntervalUnion& wall() const { return wall_; }
  // Sum of the savings, at most time_ns().
  std::int64_t saved_ns() const { return saved_ns_ < time_ns() ? saved_ns_ : time_ns(); }

 private:
  analysis::IntervalUnion wall_;
  std::uint64_t calls_ = 0;
  std::int64_t saved_ns_ = 0, longest_ns_ = -1;
  SliceId longest_ = kNone<SliceId>;
};

// True: compute is at least 30 % of the steady wall.
bool kernels_matter(const Facts& facts);
// True: shorter kernels make a shorter step: kernels_matter(), and it is not host-bound.
bool kernels_decide(const Facts& facts);
// The share of the steady wall, 0 to 1.
double wall_share(const Facts& facts, std::int64_t time_ns);
// The time for which these kernels are the critical path of the steady steps, if those are host-bound; else 0.
std::int64_t on_path_ns(const Facts& facts, const Savings& savings);
// That of a finding only this time counts.
Sentence only_on_path(const Facts& facts, std::int64_t path_ns);
// Sets time at stake, confidence and number of calls. In a host-bound step, only the time for which these kernels are the critical
// path counts. If that is less than a tenth of the steps, the finding becomes a kWhere instead of a cost and says why.
void rate_finding(const Facts& facts, const Savings& savings, Finding& finding);
// "the longest of them, launched by aten::mm".
Evidence longest_of(const Facts& facts, SliceId slice);
// The operator with that name around a launch, at most eight levels up; kNone: none.
SliceId find_around(const Facts& facts, SliceId op, std::string_view name);

}  // namespace lanescope::explain
