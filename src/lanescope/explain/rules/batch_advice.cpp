#include "lanescope/explain/rules/batch_advice.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/memory_common.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/step_state.h"

namespace lanescope::explain::rules {
namespace {

// Layers take rows, pictures or words, as many as a batch has.
bool is_layer_of_model(std::string_view op) {
  static constexpr std::string_view kLayers[] = {
      "aten::linear",     "aten::addmm",      "aten::conv",       "aten::_convolution",
      "aten::embedding",  "aten::lstm",       "aten::gru",        "aten::rnn_",
      "aten::layer_norm", "aten::batch_norm", "aten::group_norm", "aten::rms_norm",
      "aten::scaled_dot", "aten::cross_entr", "aten::nll_loss",   "aten::cudnn_conv"};
  return op.find("attention") != op.npos || op.find("layer_norm") != op.npos ||
         op.find("batch_norm") != op.npos ||
         std::any_of(std::begin(kLayers), std::end(kLayers),
                     [&](std::string_view layer) { return op.starts_with(layer); });
}

// A node of autograd of such a layer, or of a product; compiled code.
bool is_trained(std::string_view op) {
  return op.starts_with(kEvaluateNode) &&
         (op.find("mmBackward") != op.npos || op.find("MmBackward") != op.npos ||
          op.find("Convolution") != op.npos || op.find("CompiledFunction") != op.npos);
}

bool is_bare_product(std::string_view op) {
  return op == "aten::mm" || op == "aten::bmm" || op == "aten::matmul" || op == "aten::baddbmm" ||
         op == "aten::einsum";
}

bool is_solving(std::string_view op) {
  return op.starts_with("aten::linalg_") || op.starts_with("aten::_linalg_") ||
         op.starts_with("aten::cholesky") || op.starts_with("aten::triangular_solve") ||
         op.starts_with("aten::lu_");
}

// linalg_vector_norm and linalg_norm only add up.
bool is_norm_of_linalg(std::string_view op) {
  return op.starts_with("aten::linalg_") && op.find("norm") != op.npos;
}

bool has_kernels_of_layers(const Facts& facts) {
  if (!facts.main_device) return false;
  const KernelNames names(facts);
  const auto& works = steady_work(facts);
  return std::any_of(works.begin(), works.end(), [&](const analysis::DeviceWork* work) {
    if (facts.trace->kind(work->slice) != CategoryKind::kKernel) return false;
    const std::string& kind = names.of(work->slice).kind;
    return kind == "gemm" || kind == "convolution" || kind == "attention";
  });
}

bool make_works_on_batch(const Facts& facts) {
  const Trace& trace = *facts.trace;
  bool has_operators = false, has_products = false, solves = false;
  std::vector<bool> seen(trace.strings().size(), false);  // each name is looked at once
  const std::vector<analysis::Window> windows = facts.steady_cpu_windows();
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const CategoryKind kind = trace.kind(id);
    if (kind != CategoryKind::kCpuOp && kind != CategoryKind::kUserAnnotation) continue;
    const std::uint32_t label = raw(trace.slices().name[i]);
    if (label >= seen.size() || seen[label]) continue;
    if (!windows.empty() && !inside(windows, trace.start_ns(id))) continue;
    seen[label] = true;
    const std::string_view op = trace.name(id);
    if (op.starts_with("enumerate(DataLoader)")) return true;
    if (kind != CategoryKind::kCpuOp) continue;
    if (is_layer_of_model(op) || is_trained(op)) return true;
    has_operators = has_operators || op.starts_with("aten::");
    has_products = has_products || is_bare_product(op);
    solves = solves || (is_solving(op) && !is_norm_of_linalg(op));
  }
  return has_operators ? has_products && !solves : has_kernels_of_layers(facts);
}

constexpr std::int64_t kManyRows = 4096, kManyPictures = 64;

// The outermost aten operator around this one on its thread: aten::linear has the batch that its aten::addmm does not show.
SliceId outermost_aten(const Facts& facts, SliceId op) {
  SliceId found = kNone<SliceId>;
  for (; op != kNone<SliceId>; op = facts.nesting.parent[raw(op)])
    if (facts.trace->kind(op) == CategoryKind::kCpuOp &&
        facts.trace->name(op).starts_with("aten::"))
      found = op;
  return found;
}

// The first operand of a product, stored by columns: x^T of the gradient of a weight, x^T dY.
bool is_transposed(const analysis::Tensor& tensor) {
  return tensor.rank() == 2 && tensor.strides && tensor.dims[0] > 1 && tensor.dims[1] > 1 &&
         (*tensor.strides)[0] == 1 && (*tensor.strides)[1] > 1;
}

bool makes_is_memory_nearly_full(const Facts& facts) {
  const MemoryUse use = use_of_memory(facts);
  return use.is_known() && share_of(use.most_bytes, use.device_bytes) > 0.9;
}

bool makes_trains_in_steps(const Facts& facts) {
  const auto windows = facts.steady_cpu_windows();
  return trains(facts, &windows);
}

}  // namespace

bool works_on_batch(const Facts& facts) { return made_once<make_works_on_batch>(facts); }

bool is_memory_nearly_full(const Facts& facts) {
  return made_once<makes_is_memory_nearly_full>(facts);
}

bool batch_could_grow(const Facts& facts, std::int64_t samples) {
  return samples > 0 && works_on_batch(facts) && !is_memory_nearly_full(facts) &&
         (samples > 1 || made_once<makes_trains_in_steps>(facts));
}

bool batch_could_grow(const Facts& facts, SliceId op) {
  constexpr std::size_t kMostInputs = 4;
  op = outermost_aten(facts, op);
  if (op == kNone<SliceId>) return false;
  const analysis::TensorArguments inputs = operator_inputs(*facts.trace, op);
  for (std::size_t k = 0; k < kMostInputs; ++k) {
    const auto tensor = inputs.tensor(k);
    if (!tensor || tensor->rank() < 2) continue;
    if (is_transposed(*tensor) && ancestor_named(facts, op, kEvaluateNode) != kNone<SliceId>)
      return false;
    const bool is_picture = tensor->rank() >= 4;
    std::int64_t rows = 1;
    for (std::size_t i = 0; i < (is_picture ? 1 : tensor->rank() - 1); ++i) {
      if (tensor->dims[i] <= 0 || tensor->dims[i] >= kManyRows) return false;
      rows *= tensor->dims[i];
      if (rows >= kManyRows) return false;
    }
    return rows < (is_picture ? kManyPictures : kManyRows) &&
           batch_could_grow(facts, tensor->dims[0]);
  }
  return false;
}

}  // namespace lanescope::explain::rules
