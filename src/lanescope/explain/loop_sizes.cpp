#include "lanescope/explain/loop_sizes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/rules/operator_inputs.h"

namespace lanescope::explain {
namespace {

using analysis::Sizes;

constexpr std::uint32_t kFewestSizedRounds = 8;
constexpr double kManyRows = 8;

std::optional<Sizes> first_shape(const Trace& trace, SliceId call) {
  const auto tensor = rules::operator_inputs(trace, call).tensor(0);
  return tensor ? std::optional(tensor->dims) : std::nullopt;
}

// The one dimension in which these differ, of each; empty: none, or more than one.
std::vector<std::int64_t> changing_sizes(const std::vector<Sizes>& shapes) {
  std::optional<std::size_t> at;
  for (const Sizes& shape : shapes) {
    if (shape.size() != shapes.front().size()) return {};
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] == shapes.front()[k]) continue;
      if (at && *at != k) return {};
      at = k;
    }
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; at && i < shapes.size(); ++i) sizes.push_back(shapes[i][*at]);
  return sizes;
}

bool is_even_growth(const std::vector<std::int64_t>& sizes) {
  const std::int64_t by = sizes[1] - sizes[0];
  for (std::size_t i = 1; i < sizes.size(); ++i)
    if (sizes[i] - sizes[i - 1] != by) return false;
  return by > 0;
}

bool is_falling(const std::vector<std::int64_t>& sizes) {
  return std::is_sorted(sizes.rbegin(), sizes.rend()) && sizes.back() * 2 <= sizes.front();
}

}  // namespace

bool is_layer_operator(std::string_view op) {
  static constexpr std::array<std::string_view, 11> kProducts = {
      "aten::linear",     "aten::matmul",     "aten::mm",        "aten::addmm",
      "aten::bmm",        "aten::conv1d",     "aten::conv2d",    "aten::conv3d",
      "aten::layer_norm", "aten::batch_norm", "aten::group_norm"};
  return std::find(kProducts.begin(), kProducts.end(), op) != kProducts.end();
}

SizeChange size_change(const Trace& trace, std::span<const SliceId> calls, std::uint32_t rounds,
                       std::uint32_t round_size) {
  if (rounds < kFewestSizedRounds || calls.size() < std::size_t{rounds} * round_size) return {};
  const auto call = [&](std::uint32_t round, std::uint32_t place) {
    return calls[std::size_t{round} * round_size + place];
  };
  // Products before others, since they hold the work; then what takes most of the CPU's time.
  std::optional<std::uint32_t> longest;
  std::pair<bool, std::int64_t> best{false, -1};
  for (std::uint32_t place = 0; place < round_size; ++place) {
    const std::string_view op = trace.name(call(0, place));
    // What only joins or cuts tensors changes with the others.
    if (!op.starts_with("aten::") || op == "aten::cat" || op == "aten::select" ||
        op == "aten::slice" || op == "aten::copy_")
      continue;
    const auto own = trace.slice_args(call(0, place)).text(ArgKey::kInputDims);
    bool changes = false;
    std::int64_t time_ns = 0;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      changes = changes || trace.slice_args(call(round, place)).text(ArgKey::kInputDims) != own;
      time_ns += trace.dur_ns(call(round, place));
    }
    const std::pair rank{is_layer_operator(op) && !op.ends_with("_norm"), time_ns};
    if (!own || !changes || rank <= best) continue;
    longest = place;
    best = rank;
  }
  if (!longest) return {};
  std::vector<Sizes> shapes;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    auto shape = first_shape(trace, call(round, *longest));
    if (!shape) return {};
    shapes.push_back(*std::move(shape));
  }
  const std::vector<std::int64_t> sizes = changing_sizes(shapes);
  if (sizes.empty()) return {};
  // Equal chunks, and what is left in the last one.
  if (std::all_of(sizes.begin(), sizes.end() - 1,
                  [&](std::int64_t size) { return size == sizes.front(); }))
    return {};
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  const bool grows = is_even_growth(sizes);
  if (!grows && *most * 5 < *least * 6) return {};  // parts of one tensor
  return {std::string(trace.name(call(0, *longest))), *least, *most, grows, is_falling(sizes)};
}

bool is_large_product(const Trace& trace, SliceId call) {
  const std::string_view op = trace.name(call);
  if (!is_layer_operator(op)) return false;
  if (op.starts_with("aten::conv")) return true;
  const auto shape = first_shape(trace, call);
  if (!shape) return true;  // without recorded shapes: more likely a layer than one sample
  if (shape->size() < 2) return false;
  double rows = 1;
  for (std::size_t k = 0; k + 1 < shape->size(); ++k) rows *= static_cast<double>((*shape)[k]);
  return rows >= kManyRows;
}

}  // namespace lanescope::explain
