#include "lanescope/explain/rules/batch_advice.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/names/kernel_name.h"

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
  const auto& works = steady_work(facts);
  return std::any_of(works.begin(), works.end(), [&](const analysis::DeviceWork* work) {
    if (facts.trace->kind(work->slice) != CategoryKind::kKernel) return false;
    const std::string kind = names::parse_kernel_name(facts.trace->name(work->slice)).kind;
    return kind == "gemm" || kind == "convolution" || kind == "attention";
  });
}

bool make_works_on_batch(const Facts& facts) {
  const Trace& trace = *facts.trace;
  bool has_operators = false, has_products = false, solves = false;
  std::vector<bool> seen(trace.strings().size(), false);  // each name is looked at once
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const CategoryKind kind = trace.kind(id);
    if (kind != CategoryKind::kCpuOp && kind != CategoryKind::kUserAnnotation) continue;
    const std::uint32_t label = raw(trace.slices().name[i]);
    if (label >= seen.size() || seen[label]) continue;
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

}  // namespace

bool works_on_batch(const Facts& facts) { return made_once<make_works_on_batch>(facts); }

}  // namespace lanescope::explain::rules
