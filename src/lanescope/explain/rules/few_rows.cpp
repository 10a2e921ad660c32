#include "lanescope/explain/rules/few_rows.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/phase_work.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::int64_t kRowsOfFew = 8;

// Rows of a product with a matrix of weights. Nothing: another operator, or its shapes are not recorded.
std::optional<std::int64_t> rows_of_product(const Trace& trace, SliceId op) {
  const std::string_view label = trace.name(op);
  const bool adds = label == "aten::addmm";
  if (!adds && label != "aten::linear" && label != "aten::mm" && label != "aten::matmul" &&
      label != "aten::mv")
    return std::nullopt;
  const auto inputs = operator_inputs(trace, op);
  const auto left = inputs.tensor(adds ? 1 : 0), right = inputs.tensor(adds ? 2 : 1);
  if (label == "aten::mv" && left) return 1;
  if (!left || !right || left->rank() == 0 || right->rank() != 2) return std::nullopt;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < left->rank(); ++i) {
    if (left->dims[i] < 0 || left->dims[i] > kRowsOfFew) return kRowsOfFew + 1;
    rows *= left->dims[i];
  }
  return rows;
}

bool multiplies_batches(std::string_view op) { return op == "aten::bmm" || op == "aten::baddbmm"; }

bool has_few_rows(const Facts& facts, SliceId kernel, const names::KernelName& label) {
  for (SliceId op = facts.links.op_of[raw(kernel)]; op != kNone<SliceId>;
       op = facts.nesting.parent[raw(op)]) {
    // Products of each sample's own matrices, as in attention, read more with more samples.
    if (multiplies_batches(facts.trace->name(op))) return false;
    if (const auto rows = rows_of_product(*facts.trace, op)) return *rows <= kRowsOfFew;
  }
  return facts.trace->name(kernel).find("gemv") != std::string_view::npos ||
         (label.tile && label.tile->n <= kRowsOfFew);
}

}  // namespace

bool products_have_few_rows(const Facts& facts) {
  const auto windows = facts.steady_cpu_windows();
  if (trains(facts, &windows)) return false;
  const KernelNames names(facts);
  std::int64_t few_ns = 0, products_ns = 0, all_ns = 0;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    const std::int64_t time_ns = work->end_ns - work->start_ns;
    all_ns += time_ns;
    if (facts.trace->kind(work->slice) != CategoryKind::kKernel) continue;
    const names::KernelName& label = names.of(work->slice);
    if (label.kind != "gemm") continue;
    products_ns += time_ns;
    if (has_few_rows(facts, work->slice, label)) few_ns += time_ns;
  }
  return products_ns * 3 >= all_ns && products_ns > 0 && few_ns * 10 >= products_ns * 9;
}

}  // namespace lanescope::explain::rules
