#include "lanescope/explain/rules/constant_results.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

using analysis::Sizes;

constexpr std::size_t kMostCalls = 256;

enum class Kind : std::uint8_t {
  kOther,
  kSeries,       // makes elements that differ, out of numbers
  kFill,         // makes equal elements, out of numbers
  kFillLike,     // the same, of a tensor's shape
  kShape,        // turns equal elements into a pattern, such as the upper triangle
  kElementwise,  // and copies
  kView,
  kJoin,
  kOuter,
  kRepeat,
};

struct Row {
  std::string_view name;  // without "aten::" and the "_" of operators in place
  Kind kind;
};

constexpr std::array kRows = {
    Row{"arange", Kind::kSeries},
    Row{"eye", Kind::kSeries},
    Row{"linspace", Kind::kSeries},
    Row{"logspace", Kind::kSeries},
    Row{"tril_indices", Kind::kSeries},
    Row{"triu_indices", Kind::kSeries},
    Row{"full", Kind::kFill},
    Row{"ones", Kind::kFill},
    Row{"zeros", Kind::kFill},
    Row{"full_like", Kind::kFillLike},
    Row{"ones_like", Kind::kFillLike},
    Row{"zeros_like", Kind::kFillLike},
    Row{"cumsum", Kind::kShape},
    Row{"tril", Kind::kShape},
    Row{"triu", Kind::kShape},
    Row{"abs", Kind::kElementwise},
    Row{"add", Kind::kElementwise},
    Row{"bitwise_and", Kind::kElementwise},
    Row{"bitwise_not", Kind::kElementwise},
    Row{"bitwise_or", Kind::kElementwise},
    Row{"clamp", Kind::kElementwise},
    Row{"clone", Kind::kElementwise},
    Row{"contiguous", Kind::kElementwise},
    Row{"cos", Kind::kElementwise},
    Row{"div", Kind::kElementwise},
    Row{"eq", Kind::kElementwise},
    Row{"exp", Kind::kElementwise},
    Row{"exp2", Kind::kElementwise},
    Row{"floor", Kind::kElementwise},
    Row{"floor_divide", Kind::kElementwise},
    Row{"ge", Kind::kElementwise},
    Row{"gt", Kind::kElementwise},
    Row{"le", Kind::kElementwise},
    Row{"log", Kind::kElementwise},
    Row{"logical_and", Kind::kElementwise},
    Row{"logical_not", Kind::kElementwise},
    Row{"logical_or", Kind::kElementwise},
    Row{"lt", Kind::kElementwise},
    Row{"masked_fill", Kind::kElementwise},
    Row{"maximum", Kind::kElementwise},
    Row{"minimum", Kind::kElementwise},
    Row{"mul", Kind::kElementwise},
    Row{"ne", Kind::kElementwise},
    Row{"neg", Kind::kElementwise},
    Row{"pow", Kind::kElementwise},
    Row{"reciprocal", Kind::kElementwise},
    Row{"remainder", Kind::kElementwise},
    Row{"rsqrt", Kind::kElementwise},
    Row{"rsub", Kind::kElementwise},
    Row{"sin", Kind::kElementwise},
    Row{"sqrt", Kind::kElementwise},
    Row{"sub", Kind::kElementwise},
    Row{"to", Kind::kElementwise},
    Row{"where", Kind::kElementwise},
    Row{"expand", Kind::kView},
    Row{"flatten", Kind::kView},
    Row{"permute", Kind::kView},
    Row{"reshape", Kind::kView},
    Row{"select", Kind::kView},
    Row{"slice", Kind::kView},
    Row{"squeeze", Kind::kView},
    Row{"t", Kind::kView},
    Row{"transpose", Kind::kView},
    Row{"unsqueeze", Kind::kView},
    Row{"view", Kind::kView},
    Row{"cat", Kind::kJoin},
    Row{"stack", Kind::kJoin},
    Row{"outer", Kind::kOuter},
    Row{"repeat", Kind::kRepeat},
};

Kind kind_of(std::string_view op) {
  if (!op.starts_with("aten::")) return Kind::kOther;
  op.remove_prefix(6);
  if (op.ends_with("_") && op.size() > 1) op.remove_suffix(1);
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& each) { return each.name == op; });
  return row == kRows.end() ? Kind::kOther : row->kind;
}

std::optional<Sizes> sizes_of(const JsonValue& value) {
  if (!value.is_array()) return std::nullopt;
  Sizes sizes;
  for (const JsonValue& item : value.items) {
    if (!item.integer || *item.integer < 0) return std::nullopt;
    sizes.push_back(*item.integer);
  }
  return sizes;
}

double elements(const Sizes& sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

// The tensors that a call takes.
struct Inputs {
  std::vector<Sizes> tensors;
  bool is_list = false;      // of tensors: cat, stack
  bool has_counter = false;  // a whole number of no dimension
  JsonValue concrete;

  std::optional<Sizes> list(std::size_t index) const {
    if (index >= concrete.items.size()) return std::nullopt;
    return sizes_of(parse_json(concrete.items[index].text).value_or(JsonValue{}));
  }
  std::optional<std::int64_t> number(std::size_t index) const {
    if (index >= concrete.items.size()) return std::nullopt;
    return parse_json(concrete.items[index].text).value_or(JsonValue{}).integer;
  }
};

// Nothing: not recorded, or of a form that is not known.
std::optional<Inputs> inputs_of(const Trace& trace, SliceId op) {
  const ArgsView args = trace.slice_args(op);
  const auto dims = args.text(ArgKey::kInputDims), types = args.text(ArgKey::kInputType),
             concrete = args.text(ArgKey::kConcreteInputs);
  if (!dims || !types || !concrete) return std::nullopt;
  const JsonValue shapes = parse_json(trace.text(*dims)).value_or(JsonValue{});
  const JsonValue names = parse_json(trace.text(*types)).value_or(JsonValue{});
  if (shapes.items.size() != names.items.size()) return std::nullopt;
  Inputs inputs;
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

std::optional<Sizes> broadcast(const std::vector<Sizes>& shapes) {
  Sizes result;
  for (const Sizes& shape : shapes) {
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    for (std::size_t k = 0; k < shape.size(); ++k) {
      std::int64_t& size = result[result.size() - shape.size() + k];
      if (size == 1)
        size = shape[k];
      else if (shape[k] != 1 && shape[k] != size)
        return std::nullopt;
    }
  }
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
      const auto inputs = inputs_of(trace, SliceId{i});
      auto sizes = inputs ? inputs->list(index) : std::nullopt;
      if (sizes && (!found || elements(*sizes) >= elements(*found))) found = std::move(sizes);
    }
  }
  return found;
}

std::optional<Sizes> joined_size(const Inputs& inputs, bool is_stack) {
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
    size[static_cast<std::size_t>(at)] += inputs.tensors[i][static_cast<std::size_t>(at)];
  }
  return size;
}

std::optional<Sizes> repeated_size(const Inputs& inputs) {
  const auto times = inputs.list(1);
  if (inputs.tensors.size() != 1 || !times || times->size() < inputs.tensors[0].size())
    return std::nullopt;
  Sizes size = *times;
  const Sizes& from = inputs.tensors[0];
  for (std::size_t k = 0; k < from.size(); ++k) size[size.size() - from.size() + k] *= from[k];
  return size;
}

std::optional<Sizes> viewed_size(const Trace& trace, SliceId op, const Inputs& inputs) {
  if (auto size = size_inside(trace, op, {{"aten::as_strided", 1}, {"aten::view", 1}})) return size;
  auto size = inputs.list(1);
  if (size && !inputs.tensors.empty() && elements(*size) == elements(inputs.tensors[0]))
    return size;
  return std::nullopt;
}

std::optional<Sizes> result_size(const Trace& trace, SliceId op, Kind kind, const Inputs& inputs) {
  switch (kind) {
    case Kind::kSeries:
    case Kind::kFill:
      return size_inside(trace, op,
                         {{"aten::resize_", 1}, {"aten::empty", 0}, {"aten::empty_strided", 0}});
    case Kind::kFillLike:
    case Kind::kShape:
      return inputs.tensors.empty() ? std::nullopt : std::optional(inputs.tensors.front());
    case Kind::kElementwise:
      return broadcast(inputs.tensors);
    case Kind::kView:
      return viewed_size(trace, op, inputs);
    case Kind::kJoin:
      return joined_size(inputs, trace.name(op) == "aten::stack");
    case Kind::kOuter:
      if (inputs.tensors.size() != 2 || inputs.tensors[0].size() != 1 ||
          inputs.tensors[1].size() != 1)
        return std::nullopt;
      return Sizes{inputs.tensors[0][0], inputs.tensors[1][0]};
    case Kind::kRepeat:
      return repeated_size(inputs);
    case Kind::kOther:
      break;
  }
  return std::nullopt;
}

class RunFinder {
 public:
  explicit RunFinder(const Facts& facts) : facts_(facts), trace_(*facts.trace) {}

  void add(SliceId op, std::size_t step) {
    const Kind kind = kind_of(trace_.name(op));
    if (kind == Kind::kOther) return close();
    const auto inputs = inputs_of(trace_, op);
    if (!inputs) return close();
    const bool is_source = kind == Kind::kSeries || kind == Kind::kFill || kind == Kind::kFillLike;
    if (is_source && kind != Kind::kFillLike && !inputs->tensors.empty()) return close();
    if (!is_source && (run_.calls.empty() || !are_made_here(*inputs))) return close();
    auto size = result_size(trace_, op, kind, *inputs);
    if (!size) return close();
    if (run_.calls.size() == kMostCalls) close();
    run_.step = step;
    run_.calls.push_back(op);
    run_.has_counter = run_.has_counter || inputs->has_counter;
    is_worth_keeping_ = is_worth_keeping_ || kind == Kind::kSeries || kind == Kind::kShape;
    made_.push_back({std::move(*size), kind == Kind::kFill || kind == Kind::kFillLike});
    const ArgsView args = trace_.slice_args(op);
    run_.symbol.push_back(raw(trace_.slices().name[raw(op)]));
    for (const ArgKey key : {ArgKey::kInputDims, ArgKey::kInputType, ArgKey::kConcreteInputs})
      run_.symbol.push_back(raw(args.text(key).value_or(kNone<StringId>)));
  }

  void close() {
    if (is_worth_keeping_) runs_.push_back(std::move(run_));
    run_ = {};
    made_.clear();
    is_worth_keeping_ = false;
  }

  std::vector<ConstantRun> runs() { return std::move(runs_); }

 private:
  struct Made {
    Sizes size;
    bool is_fill;
  };
  // Two tensors of one shape must be two that were made here: else one of them may be the
  // program's. Filled ones do not count then, since a program keeps its state in them.
  bool are_made_here(const Inputs& inputs) const {
    if (inputs.tensors.empty()) return false;
    for (const Sizes& wanted : inputs.tensors) {
      const auto taken = std::count(inputs.tensors.begin(), inputs.tensors.end(), wanted);
      const auto made = std::count_if(made_.begin(), made_.end(), [&](const Made& each) {
        return each.size == wanted && (taken == 1 || !each.is_fill);
      });
      if (made == 0 || (made < taken && !inputs.is_list)) return false;
    }
    return true;
  }

  const Facts& facts_;
  const Trace& trace_;
  ConstantRun run_;
  std::vector<Made> made_;
  bool is_worth_keeping_ = false;
  std::vector<ConstantRun> runs_;
};

}  // namespace

std::vector<ConstantRun> constant_runs(const Facts& facts) {
  RunFinder finder(facts);
  for (const CallSequence& sequence : call_sequences(facts)) {
    for (const SliceId op : sequence)
      finder.add(op, steady_step_at(facts, facts.trace->start_ns(op)));
    finder.close();
  }
  return finder.runs();
}

}  // namespace lanescope::explain::rules
