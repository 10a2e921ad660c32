#include "lanescope/analysis/indexed_work.h"

#include <algorithm>
#include <cmath>

namespace lanescope::analysis {
namespace {

using MaybeWork = std::optional<OperatorWork>;

OperatorWork indexing(double bytes, const Tensor& of) {
  OperatorWork work;
  work.kind = OperatorKind::kIndexing;
  work.bytes = bytes;
  work.type = of.type->name;
  return work;
}

// [table, dim, index]: rows of the table. A row that is wanted twice may come from the cache.
MaybeWork index_select(const TensorArguments& inputs) {
  const auto table = inputs.tensor(0), index = inputs.tensor(2);
  const auto dim = inputs.value(1);
  if (!table || !index || !dim || !dim->integer || table->rank() == 0) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(table->rank());
  const std::int64_t at = *dim->integer < 0 ? *dim->integer + rank : *dim->integer;
  if (at < 0 || at >= rank) return std::nullopt;
  const auto rows =
      static_cast<double>(std::max<std::int64_t>(1, table->dims[static_cast<std::size_t>(at)]));
  const double out = table->dense_bytes() / rows * index->elements();
  return indexing(std::min(table->stored_bytes(), out) + index->stored_bytes() + out, *table);
}

// [table, dim, index]: one element of the table for each of the index.
MaybeWork gather(const TensorArguments& inputs) {
  const auto table = inputs.tensor(0), index = inputs.tensor(2);
  if (!table || !index) return std::nullopt;
  const double out = index->elements() * static_cast<double>(table->type->size_bytes);
  return indexing(std::min(table->stored_bytes(), out) + index->stored_bytes() + out, *table);
}

// [into, dim, index, source]: what is added or written is read once. What it is written into may
// stay in the cache; without a trailing _ it is copied first, by aten::copy_.
MaybeWork scatter(const TensorArguments& inputs) {
  const auto index = inputs.tensor(2), source = inputs.tensor(3);
  if (!index || !source) return std::nullopt;
  return indexing(index->stored_bytes() + source->stored_bytes(), *source);
}

// [input, output size or nothing, ..., scales]: images of [batch, channels, height, width] or the
// like, made larger or smaller.
MaybeWork resample(const TensorArguments& inputs, std::size_t scales_at) {
  const auto input = inputs.tensor(0);
  if (!input || input->rank() < 3) return std::nullopt;
  const std::size_t space = input->rank() - 2;
  double out = static_cast<double>(input->dims[0]) * static_cast<double>(input->dims[1]);
  const auto sizes = inputs.list(1, space);
  const auto scales = inputs.numbers(scales_at);
  if (!sizes && scales.size() != space) return std::nullopt;
  for (std::size_t i = 0; i < space; ++i) {
    const double size = sizes ? static_cast<double>((*sizes)[i])
                              : std::floor(static_cast<double>(input->dims[2 + i]) * scales[i]);
    if (!(size > 0 && size < 1e9)) return std::nullopt;
    out *= size;
  }
  return indexing(input->stored_bytes() + out * static_cast<double>(input->type->size_bytes),
                  *input);
}

struct IndexedRow {
  std::string_view name;
  MaybeWork (*work)(const TensorArguments&);
};
constexpr IndexedRow kRows[] = {
    {"index_select", index_select},
    {"gather", gather},
    {"index_add_", scatter},
    {"index_add", scatter},
    {"scatter_add_", scatter},
    {"scatter_add", scatter},
    {"index_copy_", scatter},
    {"upsample_nearest1d", [](const TensorArguments& inputs) { return resample(inputs, 2); }},
    {"upsample_nearest2d", [](const TensorArguments& inputs) { return resample(inputs, 2); }},
    {"upsample_nearest3d", [](const TensorArguments& inputs) { return resample(inputs, 2); }},
    {"upsample_linear1d", [](const TensorArguments& inputs) { return resample(inputs, 3); }},
    {"upsample_bilinear2d", [](const TensorArguments& inputs) { return resample(inputs, 3); }},
    {"upsample_bicubic2d", [](const TensorArguments& inputs) { return resample(inputs, 3); }},
    {"upsample_trilinear3d", [](const TensorArguments& inputs) { return resample(inputs, 3); }},
};

const IndexedRow* find_row(std::string_view op) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const IndexedRow& each) { return each.name == op; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

bool has_indexed_work(std::string_view op) { return find_row(op) != nullptr; }

std::optional<OperatorWork> compute_indexed_work(std::string_view op,
                                                 const TensorArguments& inputs) {
  const IndexedRow* row = find_row(op);
  return row ? row->work(inputs) : std::nullopt;
}

}  // namespace lanescope::analysis
