#include "lanescope/explain/rules/layer_neighbours.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/near_calls.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_neighbours.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

// What the operator makes for each position, [batch, positions, classes]; empty: its inputs were not recorded.
analysis::Sizes made_for_positions(const Trace& trace, SliceId op) {
  const TensorArguments inputs = operator_inputs(trace, op);
  const auto rows = inputs.tensor(0), weight = inputs.tensor(1);
  if (!rows || rows->rank() < 2) return {};
  analysis::Sizes made = rows->dims;
  const bool is_linear = trace.name(op) == "aten::linear";
  if (!is_linear && trace.name(op) != "aten::matmul") return made;
  if (!weight || weight->rank() != 2) return {};
  made.back() = weight->dims[is_linear ? 0 : 1];
  return made;
}

// Works on each position alone, as far as it goes along no other dimension than that of the classes.
bool works_on_each_position(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "aten::to",     "aten::_to_copy", "aten::log_softmax", "aten::softmax",
      "aten::detach", "aten::div",      "aten::div_",        "aten::mul",
      "aten::mul_",   "aten::tanh",     "aten::sigmoid",     "aten::alias"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// A linear layer or a product shortly before it made as many classes.
bool follows_head(const Facts& facts, SliceId op, const analysis::Sizes& made) {
  constexpr int kFurthestHead = 6;
  const Trace& trace = *facts.trace;
  bool found = false;
  int looked = 0;
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = trace.name(before);
    found = (name == "aten::linear" || name == "aten::matmul") &&
            made_for_positions(trace, before) == made;
    return !found && ++looked < kFurthestHead;
  });
  return found;
}

// Of how many positions an operator takes how many. `dim`: which dimension of the tensor these are.
struct TakenPositions {
  std::size_t dim = 0;
  double taken = 0, of = 0;
};

// x[rows, positions] with two lists of equal length, or x[rows]. A mask does not show how many it takes.
std::optional<TakenPositions> indexed_positions(const Trace& trace, SliceId op,
                                                const analysis::Sizes& made) {
  const auto inputs = taken_tensors(trace, op);
  if (!inputs || inputs->tensors.size() < 2 || inputs->tensors[0] != made) return std::nullopt;
  const std::size_t lists = inputs->tensors.size() - 1;
  if (lists >= made.size()) return std::nullopt;  // one of each class, too
  double of = 1;
  for (std::size_t k = 0; k < lists; ++k) {
    if (inputs->tensors[k + 1].size() != 1 || inputs->tensors[k + 1] != inputs->tensors[1])
      return std::nullopt;
    of *= static_cast<double>(made[k]);
  }
  return TakenPositions{0, analysis::element_count(inputs->tensors[1]), of};
}

// Nothing: along the classes, or by an operator that is not known to take some.
std::optional<TakenPositions> taken_positions(const Trace& trace, SliceId op,
                                              const analysis::Sizes& made) {
  const std::string_view name = trace.name(op);
  if (name == "aten::index") return indexed_positions(trace, op, made);
  if (name != "aten::select" && name != "aten::slice" && name != "aten::narrow" &&
      name != "aten::index_select")
    return std::nullopt;
  const TensorArguments inputs = operator_inputs(trace, op);
  const auto dim = inputs.value(1);
  if (!dim || !dim->integer) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(made.size());
  const std::int64_t at = *dim->integer < 0 ? *dim->integer + rank : *dim->integer;
  if (at < 0 || at >= rank - 1) return std::nullopt;
  const auto place = static_cast<std::size_t>(at);
  const auto size = static_cast<double>(made[place]);
  if (name == "aten::narrow") {
    const auto length = inputs.value(3);
    if (!length || !length->integer) return std::nullopt;
    return TakenPositions{place, static_cast<double>(*length->integer), size};
  }
  const auto taken = taken_of(name, inputs, 0);
  if (!taken) return std::nullopt;
  return TakenPositions{place, size * taken->elements / analysis::element_count(made), size};
}

}  // namespace

bool is_read_at_many_positions(const Facts& facts, SliceId op) {
  constexpr int kFurthestReader = 32;
  constexpr double kFewOf = 4;
  constexpr double kLeastMade = 1 << 20;
  const Trace& trace = *facts.trace;
  analysis::Sizes made = made_for_positions(trace, op);
  if (made.size() < 2 || analysis::element_count(made) < kLeastMade) return true;
  const std::string_view name = trace.name(op);
  if (name != "aten::linear" && name != "aten::matmul" && !follows_head(facts, op, made))
    return true;
  bool is_cut = false;
  SliceId next = op;
  for (int i = 0; i < kFurthestReader; ++i) {
    next = next_call(facts, next);
    if (next == kNone<SliceId>) break;
    const std::string_view reader = trace.name(next);
    const TensorArguments inputs = operator_inputs(trace, next);
    bool takes_it = false;
    for (std::size_t k = 0; k < 3 && !takes_it; ++k) {
      const auto taken = inputs.tensor(k);
      takes_it = taken && taken->dims == made;
    }
    if (!takes_it) continue;
    if (is_cut) return true;
    if (works_on_each_position(reader)) continue;
    const auto positions = taken_positions(trace, next, made);
    if (!positions) return true;
    if (positions->taken >= positions->of) {  // such as the only row of a batch
      if (reader == "aten::select")
        made.erase(made.begin() + static_cast<std::ptrdiff_t>(positions->dim));
      if (made.size() < 2) return true;
      continue;
    }
    if (positions->taken * kFewOf > positions->of) return true;
    is_cut = true;
  }
  return !is_cut;
}

bool takes_contiguous_input(const Facts& facts, SliceId op) {
  constexpr int kFurthestSum = 6;
  const Trace& trace = *facts.trace;
  if (copies_nothing_inside(facts, op)) return true;
  // Its input is a sum: a tensor that keeps a strided layout from layer to layer. A scale and a shift that a small layer makes (SiLU,
  // linear, chunk) may be computed in between. Other views right before it make another tensor strided each time.
  bool is_sum = false, has_chunk = false, has_silu = false;
  int looked = 0;
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = trace.name(before);
    is_sum = name == "aten::add" || name == "aten::add_";
    if (name == "aten::silu") has_silu = true;
    if (name == "aten::chunk" || name == "aten::linear") has_chunk = true;
    const bool goes_on = name == "aten::silu" || name == "aten::chunk" || name == "aten::linear" ||
                         name == "aten::unsqueeze" || name == "aten::dropout";
    return goes_on && ++looked < kFurthestSum;
  });
  return !is_sum || (has_chunk && !has_silu);
}

bool is_other_than_affine_float_norm(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(op);
  bool is_affine = false, is_float = false;
  for (std::uint32_t i = raw(op) + 1;
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < trace.end_ns(op);
       ++i) {
    const std::string_view name = trace.name(SliceId{i});
    if (name == "aten::mean" || name == "aten::_to_copy") return true;
    is_affine = is_affine || name == "aten::repeat";
    for (const SliceId work : facts.links.launched_by(SliceId{i})) {
      const std::string_view kernel = trace.name(work);
      is_float = is_float || (kernel.find("bn_fw_tr") != std::string_view::npos &&
                              kernel.find("<float") != std::string_view::npos);
    }
  }
  return !is_affine || !is_float;
}

namespace {

// Kernels that only fixed statistics have: torch's own, cuDNN's, MIOpen's.
bool has_fixed_statistics(const Facts& facts, SliceId norm) {
  static constexpr std::string_view kOfFixed[] = {"batch_norm_calc_invstd", "bn_fw_inf",
                                                  "BatchNormFwdInfer"};
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(norm);
  for (std::uint32_t i = raw(norm) + 1;
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < trace.end_ns(norm);
       ++i)
    for (const SliceId work : facts.links.launched_by(SliceId{i}))
      for (const std::string_view kernel : kOfFixed)
        if (trace.name(work).find(kernel) != std::string_view::npos) return true;
  return false;
}

SliceId layer_before(const Facts& facts, SliceId op) {
  SliceId layer = kNone<SliceId>;
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = facts.trace->name(before);
    if (name.starts_with("aten::conv") || name == "aten::linear") layer = before;
    return false;
  });
  return layer;
}

}  // namespace

bool cannot_be_folded(const Facts& facts, SliceId op) {
  if (is_in_training(facts, op)) return true;
  const SliceId layer = layer_before(facts, op);
  if (layer == kNone<SliceId> || !has_fixed_statistics(facts, op)) return true;
  // A convolution without a bias would get one, and cuDNN adds a bias in a pass of its own, too.
  return facts.trace->name(layer) != "aten::linear" &&
         !any_inside(facts, layer, [](std::string_view name) { return name == "aten::add_"; });
}

bool cannot_join_activation(const Facts& facts, SliceId op) {
  if (is_in_training(facts, op) || layer_before(facts, op) == kNone<SliceId>) return true;
  const SliceId next = next_call(facts, op);
  return next == kNone<SliceId> || !works_on_each_element(facts.trace->name(next)) ||
         !has_fixed_statistics(facts, op);
}

}  // namespace lanescope::explain::rules
