#include "lanescope/explain/rules/operator_results.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace lanescope::explain::rules {
namespace {

using analysis::element_count;
using analysis::Sizes;
using analysis::sizes_of;

// Names without "aten::" and the "_" of operators in place.
const std::unordered_map<std::string_view, ResultKind>& kinds_by_name() {
  static const std::unordered_map<std::string_view, ResultKind> kKinds = {
      {"arange", ResultKind::kSeries},
      {"eye", ResultKind::kSeries},
      {"linspace", ResultKind::kSeries},
      {"logspace", ResultKind::kSeries},
      {"tril_indices", ResultKind::kSeries},
      {"triu_indices", ResultKind::kSeries},
      {"full", ResultKind::kFill},
      {"ones", ResultKind::kFill},
      {"zeros", ResultKind::kFill},
      {"full_like", ResultKind::kFillLike},
      {"ones_like", ResultKind::kFillLike},
      {"zeros_like", ResultKind::kFillLike},
      {"cumsum", ResultKind::kShape},
      {"tril", ResultKind::kShape},
      {"triu", ResultKind::kShape},
      {"abs", ResultKind::kElementwise},
      {"add", ResultKind::kElementwise},
      {"bitwise_and", ResultKind::kElementwise},
      {"bitwise_not", ResultKind::kElementwise},
      {"bitwise_or", ResultKind::kElementwise},
      {"clamp", ResultKind::kElementwise},
      {"clone", ResultKind::kElementwise},
      {"contiguous", ResultKind::kElementwise},
      {"cos", ResultKind::kElementwise},
      {"div", ResultKind::kElementwise},
      {"eq", ResultKind::kElementwise},
      {"exp", ResultKind::kElementwise},
      {"exp2", ResultKind::kElementwise},
      {"floor", ResultKind::kElementwise},
      {"floor_divide", ResultKind::kElementwise},
      {"ge", ResultKind::kElementwise},
      {"gt", ResultKind::kElementwise},
      {"le", ResultKind::kElementwise},
      {"log", ResultKind::kElementwise},
      {"logical_and", ResultKind::kElementwise},
      {"logical_not", ResultKind::kElementwise},
      {"logical_or", ResultKind::kElementwise},
      {"lt", ResultKind::kElementwise},
      {"masked_fill", ResultKind::kElementwise},
      {"maximum", ResultKind::kElementwise},
      {"minimum", ResultKind::kElementwise},
      {"mul", ResultKind::kElementwise},
      {"ne", ResultKind::kElementwise},
      {"neg", ResultKind::kElementwise},
      {"pow", ResultKind::kElementwise},
      {"reciprocal", ResultKind::kElementwise},
      {"remainder", ResultKind::kElementwise},
      {"rsqrt", ResultKind::kElementwise},
      {"rsub", ResultKind::kElementwise},
      {"sin", ResultKind::kElementwise},
      {"sqrt", ResultKind::kElementwise},
      {"sub", ResultKind::kElementwise},
      {"to", ResultKind::kElementwise},
      {"where", ResultKind::kElementwise},
      {"expand", ResultKind::kView},
      {"flatten", ResultKind::kView},
      {"permute", ResultKind::kView},
      {"reshape", ResultKind::kView},
      {"select", ResultKind::kView},
      {"slice", ResultKind::kView},
      {"squeeze", ResultKind::kView},
      {"t", ResultKind::kView},
      {"transpose", ResultKind::kView},
      {"unsqueeze", ResultKind::kView},
      {"view", ResultKind::kView},
      {"cat", ResultKind::kJoin},
      {"stack", ResultKind::kJoin},
      {"outer", ResultKind::kOuter},
      {"repeat", ResultKind::kRepeat},
  };
  return kKinds;
}

std::optional<Sizes> broadcast_all(const std::vector<Sizes>& shapes) {
  std::optional<Sizes> result = Sizes{};
  for (const Sizes& shape : shapes)
    if (result) result = analysis::broadcast(*result, shape);
  return result;
}

// "[256, 1]" of the last of these operators inside a call.
std::optional<Sizes> size_inside(
    const Trace& trace, SliceId op,
    std::initializer_list<std::pair<std::string_view, std::size_t>> ops) {
  std::optional<Sizes> found;
  const TrackId track = trace.slices().track[raw(op)];
  for (std::uint32_t i = raw(op) + 1;
       i < trace.slices().size() && trace.slices().track[i] == track &&
       trace.start_ns(SliceId{i}) < trace.end_ns(op);
       ++i) {
    for (const auto& [name, index] : ops) {
      if (trace.name(SliceId{i}) != name) continue;
      const auto inputs = taken_tensors(trace, SliceId{i});
      auto sizes = inputs ? inputs->list(index) : std::nullopt;
      if (sizes && (!found || element_count(*sizes) >= element_count(*found)))
        found = std::move(sizes);
    }
  }
  return found;
}

std::optional<Sizes> joined_size(const TakenTensors& inputs, bool is_stack) {
  const auto dim = inputs.number(1);
  if (inputs.tensors.empty() || !dim) return std::nullopt;
  Sizes size = inputs.tensors.front();
  if (is_stack) {
    const auto rank = static_cast<std::int64_t>(size.size()) + 1;
    const std::int64_t at = *dim < 0 ? *dim + rank : *dim;
    if (at < 0 || at >= rank) return std::nullopt;
    size.insert(size.begin() + at, static_cast<std::int64_t>(inputs.tensors.size()));
    return size;
  }
  const auto rank = static_cast<std::int64_t>(size.size());
  const std::int64_t at = *dim < 0 ? *dim + rank : *dim;
  if (at < 0 || at >= rank) return std::nullopt;
  for (std::size_t i = 1; i < inputs.tensors.size(); ++i) {
    if (inputs.tensors[i].size() != size.size()) return std::nullopt;
    std::int64_t& sum = size[static_cast<std::size_t>(at)];
    if (__builtin_add_overflow(sum, inputs.tensors[i][static_cast<std::size_t>(at)], &sum))
      return std::nullopt;
  }
  return size;
}

std::optional<Sizes> repeated_size(const TakenTensors& inputs) {
  const auto times = inputs.list(1);
  if (inputs.tensors.size() != 1 || !times || times->size() < inputs.tensors[0].size())
    return std::nullopt;
  Sizes size = *times;
  const Sizes& from = inputs.tensors[0];
  for (std::size_t k = 0; k < from.size(); ++k) {
    std::int64_t& product = size[size.size() - from.size() + k];
    if (__builtin_mul_overflow(product, from[k], &product)) return std::nullopt;
  }
  return size;
}

std::optional<Sizes> viewed_size(const Trace& trace, SliceId op, const TakenTensors& inputs) {
  if (auto size = size_inside(trace, op, {{"aten::as_strided", 1}, {"aten::view", 1}})) return size;
  auto size = inputs.list(1);
  if (size && !inputs.tensors.empty() && element_count(*size) == element_count(inputs.tensors[0]))
    return size;
  return std::nullopt;
}

}  // namespace

ResultKind result_kind(std::string_view op) {
  if (!op.starts_with("aten::")) return ResultKind::kOther;
  op.remove_prefix(6);
  if (op.ends_with("_") && op.size() > 1) op.remove_suffix(1);
  const auto row = kinds_by_name().find(op);
  return row == kinds_by_name().end() ? ResultKind::kOther : row->second;
}

std::optional<Sizes> TakenTensors::list(std::size_t index) const {
  if (index >= concrete.items.size()) return std::nullopt;
  return sizes_of(parse_json(concrete.items[index].text).value_or(JsonValue{}));
}

std::optional<std::int64_t> TakenTensors::number(std::size_t index) const {
  if (index >= concrete.items.size()) return std::nullopt;
  return parse_json(concrete.items[index].text).value_or(JsonValue{}).integer;
}

std::optional<TakenTensors> taken_tensors(const Trace& trace, SliceId op) {
  const ArgsView args = trace.slice_args(op);
  const auto dims = args.text(ArgKey::kInputDims), types = args.text(ArgKey::kInputType),
             concrete = args.text(ArgKey::kConcreteInputs);
  if (!dims || !types || !concrete) return std::nullopt;
  const JsonValue shapes = parse_json(trace.text(*dims)).value_or(JsonValue{});
  const JsonValue names = parse_json(trace.text(*types)).value_or(JsonValue{});
  if (shapes.items.size() != names.items.size()) return std::nullopt;
  TakenTensors inputs;
  inputs.concrete = parse_json(trace.text(*concrete)).value_or(JsonValue{});
  for (std::size_t i = 0; i < names.items.size(); ++i) {
    const std::string& type = names.items[i].text;
    if (type == "TensorList") {
      inputs.is_list = true;
      for (const JsonValue& each : shapes.items[i].items) {
        auto sizes = sizes_of(each);
        if (!sizes) return std::nullopt;
        inputs.tensors.push_back(std::move(*sizes));
      }
      continue;
    }
    if (!analysis::find_type(type)) continue;  // numbers, lists of them, nothing
    auto sizes = sizes_of(shapes.items[i]);
    if (!sizes) return std::nullopt;
    // Numbers of Python come as doubles and whole numbers without a dimension.
    if (sizes->empty() && type == "double") continue;
    if (sizes->empty() && (type == "long int" || type == "bool"))
      inputs.has_counter = inputs.has_counter || type == "long int";
    else
      inputs.tensors.push_back(std::move(*sizes));
  }
  return inputs;
}

std::optional<Sizes> result_size(const Trace& trace, SliceId op, ResultKind kind,
                                 const TakenTensors& inputs) {
  switch (kind) {
    case ResultKind::kSeries:
    case ResultKind::kFill:
      return size_inside(trace, op,
                         {{"aten::resize_", 1}, {"aten::empty", 0}, {"aten::empty_strided", 0}});
    case ResultKind::kFillLike:
    case ResultKind::kShape:
      return inputs.tensors.empty() ? std::nullopt : std::optional(inputs.tensors.front());
    case ResultKind::kElementwise:
      return broadcast_all(inputs.tensors);
    case ResultKind::kView:
      return viewed_size(trace, op, inputs);
    case ResultKind::kJoin:
      return joined_size(inputs, trace.name(op) == "aten::stack");
    case ResultKind::kOuter:
      if (inputs.tensors.size() != 2 || inputs.tensors[0].size() != 1 ||
          inputs.tensors[1].size() != 1)
        return std::nullopt;
      return Sizes{inputs.tensors[0][0], inputs.tensors[1][0]};
    case ResultKind::kRepeat:
      return repeated_size(inputs);
    case ResultKind::kOther:
      break;
  }
  return std::nullopt;
}

}  // namespace lanescope::explain::rules
