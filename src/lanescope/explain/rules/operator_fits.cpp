#include "lanescope/explain/rules/operator_fits.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

// Libraries have fast kernels for small factors; cuFFT has them up to 127.
bool has_large_prime_factor(std::int64_t length) {
  if (length < 256) return false;
  for (std::int64_t factor = 2; factor <= 127; ++factor)
    while (length % factor == 0) length /= factor;
  return length > 1;
}

// The dimension that an operator goes along: its neighbours are 32 bytes apart or more.
bool is_along_far_elements(const analysis::Tensor* tensor, const std::optional<JsonValue>& dim) {
  if (!tensor || tensor->rank() < 2 || !tensor->strides || !dim || !dim->integer) return false;
  const auto rank = static_cast<std::int64_t>(tensor->rank());
  const std::int64_t at = *dim->integer < 0 ? *dim->integer + rank : *dim->integer;
  if (at < 0 || at >= rank || tensor->dims[static_cast<std::size_t>(at)] < 16) return false;
  return (*tensor->strides)[static_cast<std::size_t>(at)] >= 32 / tensor->type->size_bytes;
}

// A dimension of 256 elements or more that is not the last, however the tensor lies in memory.
bool is_along_many_not_last(const analysis::Tensor* tensor, const std::optional<JsonValue>& dim) {
  if (!tensor || tensor->rank() < 3 || !dim || !dim->integer) return false;
  const auto rank = static_cast<std::int64_t>(tensor->rank());
  const std::int64_t at = *dim->integer < 0 ? *dim->integer + rank : *dim->integer;
  return at >= 0 && at < rank - 1 && tensor->dims[static_cast<std::size_t>(at)] >= 256;
}

}  // namespace

bool is_small_matrix(const TensorArguments& inputs) {
  const auto matrix = inputs.tensor(0);
  return matrix && matrix->rank() == 2 && matrix->elements() <= 512.0 * 512.0;
}

bool has_many_classes(const TensorArguments& inputs) {
  const auto classes = inputs.value(1);
  return !classes || !classes->integer || *classes->integer < 0 || *classes->integer > 64;
}

bool adds_into_few_rows(const TensorArguments& inputs) {
  const auto into = inputs.tensor(0), index = inputs.tensor(2);
  const auto dim = inputs.value(1);
  if (!into || !index || !dim || !dim->integer) return false;
  const auto rank = static_cast<std::int64_t>(into->rank());
  const std::int64_t at = *dim->integer < 0 ? *dim->integer + rank : *dim->integer;
  if (at < 0 || at >= rank) return false;
  const std::int64_t rows = into->dims[static_cast<std::size_t>(at)];
  // From 32 rows on, adding is quicker than the product (measured on an H200, 200,000 rows of 64 numbers).
  return rows > 0 && rows <= 16 && index->elements() >= 256 * static_cast<double>(rows);
}

bool reads_narrow_rows(const TensorArguments& inputs) {
  const auto table = inputs.tensor(0);
  if (!table || table->rank() < 2 || table->dims.front() < 1) return false;
  const double row_bytes = table->elements() / static_cast<double>(table->dims.front()) *
                           static_cast<double>(table->type->size_bytes);
  return row_bytes >= 16 && row_bytes <= 64;
}

bool reads_spread_rows(const TensorArguments& inputs) {
  const auto table = inputs.tensor(0);
  return table && table->rank() >= 2 && table->strides && table->dim(0) >= 16 &&
         table->strides->back() >= 32 / table->type->size_bytes;
}

bool reduces_across_rows(const TensorArguments& inputs) {
  return is_along_far_elements(inputs.tensor(0), inputs.value(1));
}

bool reduces_across_rows_of_batches(const TensorArguments& inputs) {
  const auto tensor = inputs.tensor(0);
  return tensor && tensor->rank() >= 3 && reduces_across_rows(inputs);
}

bool goes_back_across_rows(const TensorArguments& inputs) {
  return is_along_far_elements(inputs.tensor(1), inputs.value(2));
}

bool goes_along_inner_classes(const TensorArguments& inputs) {
  return is_along_many_not_last(inputs.tensor(0), inputs.value(1));
}

bool goes_back_along_inner_classes(const TensorArguments& inputs) {
  return is_along_many_not_last(inputs.tensor(1), inputs.value(2));
}

bool transforms_large_prime(const TensorArguments& inputs) {
  const auto input = inputs.tensor(0);
  for (std::size_t count = 1; input && count <= 3; ++count)
    if (const auto dims = inputs.list(1, count))
      return std::any_of(dims->begin(), dims->end(), [&](std::int64_t dim) {
        const auto rank = static_cast<std::int64_t>(input->rank());
        const std::int64_t at = dim < 0 ? dim + rank : dim;
        return at >= 0 && at < rank &&
               has_large_prime_factor(input->dims[static_cast<std::size_t>(at)]);
      });
  return false;
}

bool returns_large_prime(const TensorArguments& inputs) {
  const auto length = inputs.value(3);
  return length && length->integer && has_large_prime_factor(*length->integer);
}

bool compares_all_pairs(const TensorArguments& inputs) {
  const auto left = inputs.tensor(0), right = inputs.tensor(1);
  if (!left || !right) return false;
  const auto all = analysis::broadcast(left->dims, right->dims);
  return all && analysis::element_count(*all) >= 8 * std::max(left->elements(), right->elements());
}

bool has_unequal_sizes_or_none(const TensorArguments& inputs) {
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  return !a || !b || a->dims != b->dims;
}

bool fills_more_rows_than_are_met(const TensorArguments& inputs) {
  const auto indices = inputs.tensor(1);
  const auto rows = inputs.value(2);
  return !indices || !rows || !rows->integer ||
         static_cast<double>(*rows->integer) > indices->elements();
}

bool lacks_output_size(const TensorArguments& inputs) {
  const auto length = inputs.value(3);
  return inputs.tensor(1) && (!length || !length->integer);
}

bool has_large_filter_per_channel(const TensorArguments& inputs) {
  const auto weight = inputs.tensor(1);
  const auto groups = inputs.value(6);
  if (!weight || weight->rank() != 4 || !groups || !groups->integer) return false;
  return weight->dims[1] == 1 && *groups->integer == weight->dims[0] && weight->dim(0) >= 9 &&
         weight->dim(1) >= 9;
}

bool has_long_filter(const TensorArguments& inputs) {
  const auto weight = inputs.tensor(1);
  const auto stride = inputs.list(3, 1);
  return weight && weight->rank() == 3 && weight->dim(0) >= 256 && stride && stride->front() == 1;
}

bool takes_real_numbers(const TensorArguments& inputs) {
  const auto input = inputs.tensor(0);
  return input && input->type->is_floating && !input->type->torch.starts_with("c10::complex");
}

bool makes_one_grid(const TensorArguments& inputs) {
  const auto matrices = inputs.tensor(0);
  return matrices && matrices->rank() == 3 && matrices->dims[0] == 1;
}

bool samples_one_image(const TensorArguments& inputs) {
  const auto images = inputs.tensor(0), grid = inputs.tensor(1);
  return images && grid && images->rank() == 4 && grid->rank() == 4 && images->dims[0] == 1;
}

bool repeats_matrices(const TensorArguments& inputs) {
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b || a->rank() < 3 || b->rank() < 3) return false;
  const auto batch = [](const analysis::Tensor& tensor) {
    return analysis::Sizes(tensor.dims.begin(), tensor.dims.end() - 2);
  };
  const auto all = analysis::broadcast(batch(*a), batch(*b));
  if (!all) return false;
  const double fewer =
      std::min(analysis::element_count(batch(*a)), analysis::element_count(batch(*b)));
  return fewer > 1 && analysis::element_count(*all) >= 8 * fewer;
}

bool repeats_one_weight(const TensorArguments& inputs) {
  constexpr std::int64_t kLeastTimes = 64, kFewRows = 8;
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b || a->rank() != 3 || b->rank() != 3 || !a->strides || !b->strides) return false;
  const auto is_repeated = [](const analysis::Tensor& tensor) {
    return tensor.dims[0] >= kLeastTimes && tensor.strides->front() == 0;
  };
  return (is_repeated(*b) && a->dims[1] <= kFewRows) || (is_repeated(*a) && b->dims[2] <= kFewRows);
}

bool makes_gradient_of_images(const TensorArguments& inputs) {
  const auto images = inputs.tensor(1), weight = inputs.tensor(2);
  const std::vector<bool> made = inputs.flags(10);
  return images && weight && weight->rank() >= 4 && weight->dims[1] <= 4 &&
         images->rank() == weight->rank() && images->dims[1] <= 4 && made.size() >= 2 && made[0] &&
         made[1];
}

bool takes_float32(const TensorArguments& inputs) {
  const auto tensor = inputs.tensor(0);
  return tensor && tensor->rank() == 4 && tensor->type->torch == "float";
}

bool multiplies_by_square(const TensorArguments& inputs) {
  const auto square = inputs.tensor(0), rows = inputs.tensor(1);
  return square && rows && square->rank() == 2 && rows->rank() == 2 &&
         square->dims[0] == square->dims[1] && square->dims[0] >= 4096 &&
         rows->dims[0] == square->dims[0] && rows->dims[1] >= 32 &&
         rows->dims[1] * 8 <= square->dims[0];
}

bool adds_up_whole_numbers(const TensorArguments& inputs) {
  const auto tensor = inputs.tensor(0);
  return tensor && tensor->rank() >= 3 && tensor->type->torch == "long int";
}

bool is_not_double(const TensorArguments& inputs) {
  const auto tensor = inputs.tensor(0);
  return !tensor || tensor->type->torch != "double";
}

// Measured on an H200: 1.5 million and 100,000 rows of 1 to 256 numbers into 100,000 and 2,000 (docs/rules/costly-operator.md).
bool adds_up_few_numbers(const TensorArguments& inputs) {
  constexpr double kNarrow = 16, kFew = 12.8e6;
  const auto table = inputs.tensor(0), values = inputs.tensor(2);
  if (!table || table->rank() == 0 || table->dims[0] <= 0) return true;
  if (table->elements() <= kNarrow * static_cast<double>(table->dims[0])) return true;
  return values && values->elements() <= kFew;
}

bool adds_up_few_rows(const TensorArguments& inputs) {
  const auto table = inputs.tensor(0), values = inputs.tensor(2);
  return table && values && table->rank() > 0 && values->rank() >= table->rank() &&
         std::equal(table->dims.begin() + 1, table->dims.end(),
                    values->dims.end() - static_cast<std::ptrdiff_t>(table->rank()) + 1) &&
         adds_up_few_numbers(inputs);
}

bool lacks_inputs(const TensorArguments& inputs) { return !inputs.tensor(0); }

bool has_any_inputs(const TensorArguments&) { return true; }

}  // namespace lanescope::explain::rules
