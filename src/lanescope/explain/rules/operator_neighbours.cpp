#include "lanescope/explain/rules/operator_neighbours.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/near_calls.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

// Around the operator, which does not count itself.
bool is_inside(const Facts& facts, SliceId op, std::string_view begins) {
  return ancestor_named(facts, facts.nesting.parent[raw(op)], begins) != kNone<SliceId>;
}

}  // namespace

bool is_outside_parametrization(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  for (std::uint32_t i = raw(op); i-- > trace.track(op).first_slice;) {
    const SliceId frame{i};
    if (trace.kind(frame) == CategoryKind::kPythonFunction &&
        trace.end_ns(frame) >= trace.end_ns(op) &&
        trace.name(frame).find("nn/utils/parametrize.py(") != std::string_view::npos)
      return false;
  }
  return true;
}

namespace {

bool make_is_in_training(const Facts& facts) { return trains(facts); }

}  // namespace

bool is_in_training(const Facts& facts, SliceId) { return made_once<make_is_in_training>(facts); }

bool joins_few_or_large(const Facts& facts, SliceId op) {
  constexpr std::uint64_t kMostKernelsOfFew = 2;
  const Trace& trace = *facts.trace;
  std::uint64_t kernels = 0;
  for (std::uint32_t i = raw(op) + 1; i < trace.slices().size(); ++i) {
    const SliceId call{i};
    if (trace.slices().track[i] != trace.slices().track[raw(op)] ||
        trace.start_ns(call) >= trace.end_ns(op))
      break;
    for (const SliceId work : facts.links.launched_by(call)) {
      if (trace.name(work).find("CatArrayBatchedCopy") == std::string_view::npos) continue;
      if (trace.dur_ns(work) >= analysis::kTinyKernelNs) return true;
      ++kernels;
    }
  }
  return kernels <= kMostKernelsOfFew;
}

bool is_in_optimizer(const Facts& facts, SliceId op) { return is_in_optimizer_step(facts, op); }

bool is_outside_optimizer(const Facts& facts, SliceId op) { return !is_in_optimizer(facts, op); }

// SparseAddmmBackward0, MmBackward0, ...: a node of autograd for a product of matrices.
bool is_outside_backward_of_product(const Facts& facts, SliceId op) {
  return ancestor_where(facts, op, [](std::string_view name) {
           return name.ends_with("mmBackward0") || name.ends_with("MmBackward0");
         }) == kNone<SliceId>;
}

bool has_gpu_work(const Facts& facts, SliceId) { return facts.main_device.has_value(); }

bool is_outside_quantile(const Facts& facts, SliceId op) {
  return !is_inside(facts, op, "aten::quantile") && !is_inside(facts, op, "aten::nanquantile");
}

bool is_no_later_state(const Facts& facts, SliceId op) {
  if (is_outside_optimizer(facts, op)) return true;
  const std::size_t step = steady_step_at(facts, facts.trace->start_ns(op));
  return step == 0 || step == ~std::size_t{0};
}

bool repeats_by_counts(const Facts& facts, SliceId op) {
  return is_inside(facts, op, "aten::repeat_interleave") ||
         any_inside(facts, op, [](std::string_view name) { return name == "aten::index_select"; });
}

bool follows_no_repeating_lookup(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto rows = operator_inputs(trace, op).tensor(0);
  bool repeats = false;
  if (!rows || rows->rank() < 2) return true;
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = trace.name(before);
    const auto table = operator_inputs(trace, before).tensor(0);
    repeats =
        (name == "aten::index" || name == "aten::index_select" || name == "aten::embedding") &&
        table && table->rank() == 2 && table->dim(0) == rows->dim(0) &&
        4 * table->elements() <= rows->elements();
    return false;
  });
  return !repeats;
}

bool follows_no_expand(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto rows = operator_inputs(trace, op).tensor(0);
  if (!rows || rows->rank() < 2) return true;
  bool repeats = false;
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = trace.name(before);
    // What turns the expanded tensor into rows, which copies it.
    if (name == "aten::flatten" || name == "aten::reshape" || name == "aten::contiguous" ||
        name == "aten::view")
      return true;
    const auto table = operator_inputs(trace, before).tensor(0);
    repeats = name == "aten::expand" && table && table->rank() >= 2 &&
              table->dim(0) == rows->dim(0) && 8 * table->elements() <= rows->elements();
    return false;
  });
  return !repeats;
}

bool multiplies_sparse(const Facts& facts, SliceId op) {
  return any_inside(facts, op, [](std::string_view name) {
    return name.find("sparse") != std::string_view::npos || name == "aten::_nnz" ||
           name == "aten::crow_indices";
  });
}

bool follows_no_kron(const Facts& facts, SliceId op) {
  bool is_kron = false;
  each_before(facts, op, [&](SliceId before) {
    is_kron = facts.trace->name(before) == "aten::kron";
    return false;
  });
  return !is_kron;
}

bool follows_no_one_hot(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto added = operator_inputs(trace, op).tensor(0);
  bool is_one_hot = false;
  if (!added || added->rank() == 0) return true;
  const analysis::Sizes indices(added->dims.begin(), added->dims.end() - 1);
  each_before(facts, op, [&](SliceId before) {
    if (trace.name(before) == "aten::one_hot")
      if (const auto index = operator_inputs(trace, before).tensor(0))
        is_one_hot = index->dims == indices;
    return !is_one_hot;
  });
  return !is_one_hot;
}

bool follows_no_diagonal(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  bool has_diagonal = false;
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = trace.name(before);
    if (name != "aten::diag" && name != "aten::diag_embed") return false;
    const auto diagonal = operator_inputs(trace, before).tensor(0);
    if (!diagonal || diagonal->rank() != 1) return false;
    const analysis::Sizes matrix{diagonal->dims[0], diagonal->dims[0]};
    const TensorArguments inputs = operator_inputs(trace, op);
    for (const std::size_t side : {0, 1})
      if (const auto input = inputs.tensor(side); input && input->dims == matrix)
        has_diagonal = true;
    return false;
  });
  return !has_diagonal;
}

bool is_no_detour(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const SliceId next = next_call(facts, op);
  if (next == kNone<SliceId> || trace.name(next) != trace.name(op)) return true;
  const TensorArguments first = operator_inputs(trace, op), second = operator_inputs(trace, next);
  const auto a = first.tensor(0), b = first.tensor(1), made = second.tensor(0),
             x = second.tensor(1);
  if (!a || !b || !made || !x || a->rank() != 2 || b->rank() != 2 || x->rank() != 2) return true;
  const analysis::Sizes result{a->dims[0], b->dims[1]};
  if (made->dims != result || x->dims[0] != result[1]) return true;
  const auto size = [](std::int64_t value) { return static_cast<double>(value); };
  const double m = size(a->dims[0]), j = size(a->dims[1]), k = size(b->dims[1]),
               n = size(x->dims[1]);
  return m * j * k + m * k * n < 2 * (j * k * n + m * j * n);
}

bool has_other_target(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto target = operator_inputs(trace, op).tensor(1);
  bool is_scattered = false;
  if (!target || target->rank() != 2) return true;
  each_before(facts, op, [&](SliceId before) {
    if (trace.name(before) != "aten::scatter_" && trace.name(before) != "aten::scatter")
      return true;
    const TensorArguments inputs = operator_inputs(trace, before);
    const auto into = inputs.tensor(0), index = inputs.tensor(2);
    is_scattered = into && index && into->dims == target->dims && index->rank() == 2 &&
                   index->dims[0] == target->dims[0] && index->dims[1] == 1;
    return !is_scattered;
  });
  return !is_scattered;
}

bool has_other_grid(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto grid = operator_inputs(trace, op).tensor(1);
  bool is_affine = false;
  if (!grid || grid->rank() != 4) return true;
  each_before(facts, op, [&](SliceId before) {
    if (trace.name(before) != "aten::affine_grid_generator") return true;
    const auto size = operator_inputs(trace, before).list(1, grid->rank());
    is_affine = size && (*size)[0] == grid->dims[0] && (*size)[2] == grid->dims[1] &&
                (*size)[3] == grid->dims[2];
    return !is_affine;
  });
  return !is_affine;
}

namespace {

// Multiplies each of these rows by a number of its own: [rows, width] x [rows, 1].
bool scales_rows(std::string_view name, const TensorArguments& inputs,
                 const analysis::Sizes& rows) {
  if (name != "aten::mul" && name != "aten::mul_") return false;
  const analysis::Sizes numbers{rows[0], 1};
  const auto is_of = [&](std::size_t index, const analysis::Sizes& dims) {
    const auto* tensor = inputs.tensor(index);
    return tensor && tensor->dims == dims;
  };
  return (is_of(0, rows) && is_of(1, numbers)) || (is_of(0, numbers) && is_of(1, rows));
}

// Its node of the backward pass adds up rows: the gradient of the numbers.
bool has_gradient_of_numbers(const Facts& facts, SliceId scale) {
  for (const AutogradPair& pair : autograd_pairs(facts))
    if (pair.forward == scale)
      for (const SliceId node : pair.nodes)
        if (any_inside(facts, node, [](std::string_view name) { return name == "aten::sum"; }))
          return true;
  return false;
}

}  // namespace

std::vector<SliceId> lookup_before(const Facts& facts, SliceId op) {
  constexpr double kFewestLookupRows = 1 << 14;
  const Trace& trace = *facts.trace;
  const auto rows = operator_inputs(trace, op).tensor(3);
  SliceId scale = kNone<SliceId>, lookup = kNone<SliceId>;
  if (!rows || rows->rank() != 2 || static_cast<double>(rows->dims[0]) < kFewestLookupRows)
    return {};
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = trace.name(before);
    if (is_factory(name) || is_view(name) || name == "aten::zero_" || name == "aten::zeros_like")
      return true;
    const TensorArguments inputs = operator_inputs(trace, before);
    if (scale == kNone<SliceId> && scales_rows(name, inputs, rows->dims)) {
      scale = before;
      return true;
    }
    const auto table = inputs.tensor(0), index = inputs.tensor(2);
    if ((name == "aten::index" || name == "aten::index_select") && table && table->rank() == 2 &&
        table->dims[1] == rows->dims[1] &&
        (!index || index->elements() == static_cast<double>(rows->dims[0])))
      lookup = before;
    return false;
  });
  if (lookup == kNone<SliceId>) return {};
  if (scale == kNone<SliceId>) return {lookup};
  return has_gradient_of_numbers(facts, scale) ? std::vector<SliceId>{}
                                               : std::vector<SliceId>{lookup, scale};
}

bool follows_no_lookup(const Facts& facts, SliceId op) { return lookup_before(facts, op).empty(); }

bool turns_by_angles(const Facts& facts, SliceId op) {
  bool has_cos = false, has_sin = false;
  each_before(facts, op, [&](SliceId before) {
    const std::string_view name = facts.trace->name(before);
    has_cos = has_cos || name == "aten::cos";
    has_sin = has_sin || name == "aten::sin";
    return !has_cos || !has_sin;
  });
  return has_cos && has_sin;
}

bool has_grid_of_its_own(const Facts& facts, SliceId op) {
  return has_other_grid(facts, op) || turns_by_angles(facts, op);
}

namespace {

// The shape of the distances of all rows of two tensors; nothing: not recorded.
std::optional<analysis::Sizes> distances_of(const Facts& facts, SliceId op) {
  const TensorArguments inputs = operator_inputs(*facts.trace, op);
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b || a->rank() < 2 || a->rank() != b->rank()) return std::nullopt;
  analysis::Sizes made = a->dims;
  made.back() = b->dim(1);
  return made;
}

// Does the next call read the distances, by one of these operators, and does no later one take a tensor of their shape?
bool only_next_reads(const Facts& facts, SliceId op, std::initializer_list<std::string_view> by) {
  constexpr int kFurthestReader = 16;  // operators
  const Trace& trace = *facts.trace;
  const auto made = distances_of(facts, op);
  SliceId next = next_call(facts, op);
  if (!made || next == kNone<SliceId> ||
      std::find(by.begin(), by.end(), trace.name(next)) == by.end())
    return false;
  const auto read = operator_inputs(trace, next).tensor(0);
  if (!read || read->dims != *made) return false;
  for (int i = 0; i < kFurthestReader; ++i) {
    next = next_call(facts, next);
    if (next == kNone<SliceId> || trace.name(next) == trace.name(op)) break;
    const TensorArguments inputs = operator_inputs(trace, next);
    // What follows takes the one-hot matrix, which has that shape as well.
    const auto index = inputs.tensor(0);
    if (trace.name(next) == "aten::one_hot" && index &&
        index->elements() == static_cast<double>(made->front()))
      break;
    for (std::size_t k = 0; k < 3; ++k)
      if (const auto taken = inputs.tensor(k); taken && taken->dims == *made) return false;
  }
  return true;
}

}  // namespace

bool is_not_only_nearest(const Facts& facts, SliceId op) {
  const auto power = operator_inputs(*facts.trace, op).number(2);
  return !power || *power != 2 || !only_next_reads(facts, op, {"aten::argmin"});
}

bool is_read_whole(const Facts& facts, SliceId op) {
  return !only_next_reads(facts, op, {"aten::diagonal", "aten::diag", "aten::trace"});
}

bool is_not_added_up(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const SliceId next = next_call(facts, op);
  if (next == kNone<SliceId> ||
      (trace.name(next) != "aten::sum" && trace.name(next) != "aten::mean"))
    return true;
  const auto table = operator_inputs(trace, op).tensor(0),
             index = operator_inputs(trace, op).tensor(1);
  const TensorArguments sum = operator_inputs(trace, next);
  const auto rows = sum.tensor(0);
  if (!table || !index || !rows || index->rank() < 2) return true;
  analysis::Sizes made = index->dims;
  made.push_back(table->dim(0));
  const std::vector<double> over = sum.numbers(1);
  // Over the words of a bag, which are the last dimension of the index.
  const auto words = static_cast<double>(made.size()) - 2;
  return rows->dims != made || over.size() != 1 || (over[0] != words && over[0] != -2);
}

bool is_not_only_ranked(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto scores = operator_inputs(trace, op).tensor(0);
  SliceId next = next_call(facts, op);
  if (!scores || next == kNone<SliceId> || trace.name(next) != "aten::argmax") return true;
  for (int i = 0; i < 16; ++i) {
    next = next_call(facts, next);
    if (next == kNone<SliceId> || trace.name(next) == trace.name(op)) break;
    const TensorArguments inputs = operator_inputs(trace, next);
    for (std::size_t k = 0; k < 3; ++k)
      if (const auto taken = inputs.tensor(k); taken && taken->dims == scores->dims) return true;
  }
  return false;
}

bool is_not_only_gathered(const Facts& facts, SliceId op) {
  constexpr int kFurthestGather = 16;
  constexpr double kLeastClasses = 1 << 20;  // of all rows
  const Trace& trace = *facts.trace;
  const auto scores = operator_inputs(trace, op).tensor(0);
  if (!scores || scores->elements() < kLeastClasses) return true;
  bool is_gathered = false;
  SliceId next = op;
  for (int i = 0; i < kFurthestGather; ++i) {
    next = next_call(facts, next);
    if (next == kNone<SliceId> || trace.name(next) == trace.name(op)) break;
    const TensorArguments inputs = operator_inputs(trace, next);
    for (std::size_t k = 0; k < 3; ++k) {
      const auto taken = inputs.tensor(k);
      if (!taken || taken->dims != scores->dims) continue;
      const auto index = inputs.tensor(2);
      if (k != 0 || trace.name(next) != "aten::gather" || !index ||
          index->elements() * 8 > scores->elements())
        return true;
      is_gathered = true;
    }
  }
  return !is_gathered;
}

bool is_not_only_traced(const Facts& facts, SliceId op) {
  constexpr int kFurthestReader = 16;  // operators
  const Trace& trace = *facts.trace;
  SliceId next = next_call(facts, op);
  if (next == kNone<SliceId> ||
      (trace.name(next) != "aten::trace" && trace.name(next) != "aten::diagonal" &&
       trace.name(next) != "aten::diag"))
    return true;
  const TensorArguments factors = operator_inputs(trace, op);
  const auto a = factors.tensor(0), b = factors.tensor(1);
  if (!a || !b || a->rank() != 2 || b->rank() != 2) return true;
  const analysis::Sizes made{a->dims[0], b->dims[1]};
  const auto read = operator_inputs(trace, next).tensor(0);
  if (made[0] != made[1] || !read || read->dims != made) return true;
  // A factor of that shape may be what a later call takes.
  if (a->dims == made || b->dims == made) return false;
  for (int i = 0; i < kFurthestReader; ++i) {
    next = next_call(facts, next);
    if (next == kNone<SliceId> || trace.name(next) == trace.name(op)) break;
    const TensorArguments inputs = operator_inputs(trace, next);
    for (std::size_t k = 0; k < 3; ++k)
      if (const auto taken = inputs.tensor(k); taken && taken->dims == made) return true;
  }
  return false;
}

namespace {

constexpr std::int64_t kFirstPlace = 2;  // of [batch, channels, rows, columns]

// Along rows or columns, leaving places out. `dim` and `step`: which arguments they are.
bool leaves_places_out(const TensorArguments& inputs, std::size_t rank, std::size_t dim,
                       std::size_t step) {
  const auto along = inputs.value(dim), by = inputs.value(step);
  if (!along || !along->integer || !by || !by->integer) return false;
  const std::int64_t at =
      *along->integer < 0 ? *along->integer + static_cast<std::int64_t>(rank) : *along->integer;
  return at >= kFirstPlace && *by->integer >= 2;
}

// True: an operator that may follow a convolution, and before which a slice with a step could run as well.
bool is_activation_or_scale(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "aten::relu",  "aten::relu_",   "aten::silu",       "aten::silu_",       "aten::gelu",
      "aten::tanh",  "aten::add",     "aten::add_",       "aten::mul",         "aten::mul_",
      "aten::relu6", "aten::sigmoid", "aten::leaky_relu", "aten::leaky_relu_", "aten::hardtanh_"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

bool is_not_sliced_in_steps(const Facts& facts, SliceId op) {
  constexpr int kFurthestUser = 12;
  constexpr std::size_t kMostInputs = 3;
  const Trace& trace = *facts.trace;
  const TensorArguments call = operator_inputs(trace, op);
  const auto pictures = call.tensor(0), weight = call.tensor(1);
  if (!pictures || !weight || pictures->rank() != weight->rank() || weight->rank() < 3) return true;
  analysis::Sizes made;  // as the next operator takes it
  bool is_sliced = false;
  SliceId next = op;
  for (int i = 0; i < kFurthestUser; ++i) {
    next = next_call(facts, next);
    if (next == kNone<SliceId>) break;
    const std::string_view name = trace.name(next);
    const TensorArguments inputs = operator_inputs(trace, next);
    const auto first = inputs.tensor(0);
    if (made.empty()) {
      if (!first || first->rank() != weight->rank() || first->dims[0] != pictures->dims[0] ||
          first->dims[1] != weight->dims[0])
        return true;
      made = first->dims;
    }
    bool takes_all = false;
    for (std::size_t k = 0; k < kMostInputs && !takes_all; ++k) {
      const auto taken = inputs.tensor(k);
      takes_all = taken && taken->dims == made;
    }
    if (is_sliced && takes_all) return true;
    if (!is_sliced) {
      if (!takes_all) return true;
      is_sliced = name == "aten::slice" && leaves_places_out(inputs, made.size(), 1, 4);
      if (!is_sliced && !is_activation_or_scale(name)) return true;
    } else if (name == trace.name(op)) {
      break;
    }
  }
  return !is_sliced;
}

bool has_whole_gradient(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto gradient = operator_inputs(trace, op).tensor(0);
  if (!gradient) return true;
  const std::uint32_t first = trace.track(op).first_slice;
  for (std::uint32_t i = raw(op); i > first && raw(op) - i < kFurthestCall; --i) {
    const SliceId before{i - 1};
    if (trace.kind(before) != CategoryKind::kCpuOp) continue;
    const std::string_view name = trace.name(before);
    if (name == trace.name(op)) return true;
    const bool is_sum = name == "aten::add" || name == "aten::add_";
    if (!is_sum && name != "aten::slice_backward") continue;
    const TensorArguments inputs = operator_inputs(trace, before);
    if (is_sum) {  // of gradients: the slice is not all that used the result
      const auto one = inputs.tensor(0);
      if (one && one->dims == gradient->dims) return true;
      continue;
    }
    const auto size = inputs.list(1, gradient->rank());
    if (size && *size == gradient->dims) return !leaves_places_out(inputs, gradient->rank(), 2, 5);
  }
  return true;
}

bool copies_nothing_inside(const Facts& facts, SliceId op) {
  return !any_inside(facts, op, [](std::string_view name) {
    return name == "aten::clone" || name == "aten::copy_";
  });
}

bool is_no_backward_of_numbers(const Facts& facts, SliceId op) {
  return !is_inside(facts, op, "IndexBackward0") ||
         any_inside(facts, op, [](std::string_view inner) { return inner == "aten::nonzero"; });
}

bool is_in_backward_node(const Facts& facts, SliceId op) {
  return is_inside(facts, op, kEvaluateNode);
}

namespace {

// Only torch.use_deterministic_algorithms(True) fills memory that aten::empty has just made.
bool make_fills_new_memory(const Facts& facts) {
  constexpr std::uint64_t kFewestMade = 8;
  const Trace& trace = *facts.trace;
  std::uint64_t made = 0, filled = 0;
  for (const SliceId op : slices_named(facts, "aten::empty")) {
    if (trace.kind(op) != CategoryKind::kCpuOp) continue;
    ++made;
    const Track& track = trace.track(op);
    const std::uint32_t next = raw(op) + 1;
    filled += next < track.first_slice + track.slice_count &&
                      trace.start_ns(SliceId{next}) < trace.end_ns(op) &&
                      trace.name(SliceId{next}) == "aten::fill_"
                  ? 1
                  : 0;
  }
  return made >= kFewestMade && filled * 10 >= made * 9;
}

}  // namespace

bool is_no_deterministic_interpolation(const Facts& facts, SliceId op) {
  return !is_inside(facts, op, "UnsafeIndexBackward0") || !made_once<make_fills_new_memory>(facts);
}

namespace {

// Calls in the steady steps, by the number of the name.
using CallsOfNames = std::unordered_map<std::uint32_t, std::size_t>;

CallsOfNames count_calls_of_names(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  CallsOfNames found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp &&
        inside(windows, trace.start_ns(SliceId{i})))
      ++found[raw(trace.slices().name[i])];
  return found;
}

bool runs_less_often(const Facts& facts, SliceId op, std::size_t times) {
  const CallsOfNames& calls = made_once<count_calls_of_names>(facts);
  const auto found = calls.find(raw(facts.trace->slices().name[raw(op)]));
  return found == calls.end() ||
         found->second < times * std::max<std::size_t>(1, facts.selection.steady.size());
}

bool find_host_bound(const Facts& facts) {
  return facts.main_device && find_bound(facts) == Bound::kHost;
}

}  // namespace

bool is_called_rarely(const Facts& facts, SliceId op) { return runs_less_often(facts, op, 16); }

bool is_host_bound_step(const Facts& facts, SliceId) { return made_once<find_host_bound>(facts); }

bool is_rare_or_not_host_bound(const Facts& facts, SliceId op) {
  return runs_less_often(facts, op, 8) || !is_host_bound_step(facts, op);
}

namespace {

// How many elements of a dimension of this size a slice takes. aten::slice(input, dim, start, end, step).
std::int64_t sliced_count(const TensorArguments& inputs, std::int64_t size) {
  const auto number = [&](std::size_t at, std::int64_t otherwise) {
    const auto value = inputs.value(at);
    return value && value->integer ? *value->integer : otherwise;
  };
  const auto place = [&](std::int64_t index) {
    return std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
  };
  const std::int64_t from = place(number(2, 0)), to = place(number(3, size));
  return to <= from ? 0 : (to - from) / std::max<std::int64_t>(1, number(4, 1));
}

// Does this call read at most a quarter of what was sorted? Where the trace lacks what it cuts out: yes.
bool takes_few_of(const Trace& trace, SliceId op, const analysis::Tensor& sorted) {
  constexpr std::int64_t kFewOf = 4;
  const std::string_view name = trace.name(op);
  if (name == "aten::select") return sorted.rank() > 0;
  if (name == "aten::split" || name == "aten::index") return true;
  const TensorArguments inputs = operator_inputs(trace, op);
  if (name == "aten::slice") {
    const auto dim = inputs.value(1);
    if (!dim || !dim->integer || sorted.rank() == 0) return true;
    const auto rank = static_cast<std::int64_t>(sorted.rank());
    const std::int64_t at = *dim->integer < 0 ? *dim->integer + rank : *dim->integer;
    if (at < 0 || at >= rank) return true;
    const std::int64_t size = sorted.dims[static_cast<std::size_t>(at)];
    return sliced_count(inputs, size) <= size / kFewOf;
  }
  if (name == "aten::narrow") {
    const auto length = inputs.value(3);
    return !length || !length->integer || sorted.rank() == 0 ||
           *length->integer <= sorted.dims.back() / kFewOf;
  }
  return false;
}

}  // namespace

bool is_used_whole(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const auto sorted = operator_inputs(trace, op).tensor(0);
  if (!sorted) return false;
  // An overload may call another one of the same name.
  while (facts.nesting.parent[raw(op)] != kNone<SliceId> &&
         trace.name(facts.nesting.parent[raw(op)]) == trace.name(op))
    op = facts.nesting.parent[raw(op)];
  SliceId next = op;
  constexpr int kFurthestUse = 16;  // operators
  for (int i = 0; i < kFurthestUse; ++i) {
    next = next_call(facts, next);
    if (next == kNone<SliceId> || trace.name(next) == trace.name(op)) break;
    if (trace.name(next) == "aten::detach") continue;
    const TensorArguments inputs = operator_inputs(trace, next);
    for (std::size_t k = 0; k < 3; ++k)
      // Later calls may take what was sorted, which has the same shape.
      if (const auto taken = inputs.tensor(k); taken && taken->dims == sorted->dims)
        return !takes_few_of(trace, next, *sorted);
  }
  return true;
}

bool runs_without_onednn(const Facts& facts, SliceId) {
  return facts.main_device ||
         facts.trace->strings().find("aten::mkldnn_convolution") == kNone<StringId>;
}

}  // namespace lanescope::explain::rules
