#include "lanescope/explain/rules/growing_buffers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/operator_inputs.h"

namespace lanescope::explain::rules {
namespace {

// A long tensor and a piece that differ only in the dimension that grows.
struct Join {
  std::string shape;  // of the long one: "[1, 8, *, 64]"
  std::int64_t length = 0, piece = 0;
};

// From "Input Dims" of aten::cat: [[[1, 8, 17, 64], [1, 8, 1, 64]], []].
std::optional<Join> parse_join(std::string_view dims_json) {
  const auto dims = parse_json(dims_json);
  if (!dims || !dims->is_array() || dims->items.empty()) return std::nullopt;
  const auto& tensors = dims->items.front().items;
  if (tensors.size() != 2 || !tensors[0].is_array() || tensors[0].items.empty() ||
      tensors[0].items.size() != tensors[1].items.size())
    return std::nullopt;
  Join join;
  bool grows = false;
  for (std::size_t i = 0; i < tensors[0].items.size(); ++i) {
    const auto length = tensors[0].items[i].integer, piece = tensors[1].items[i].integer;
    if (!length || !piece || *length <= 0 || *piece <= 0) return std::nullopt;
    join.shape += i == 0 ? "[" : ", ";
    if (*length > *piece && !grows) {
      grows = true;
      join.length = *length;
      join.piece = *piece;
      join.shape += '*';
    } else if (*length != *piece) {
      return std::nullopt;
    } else {
      join.shape += std::to_string(*length);
    }
  }
  join.shape += ']';
  return grows ? std::optional(join) : std::nullopt;
}

}  // namespace

std::map<std::string, GrowingBuffer> buffers_by_shape(const Trace& trace,
                                                      const std::vector<SliceId>& calls) {
  std::unordered_map<std::uint32_t, std::optional<Join>> parsed;  // by the text's id
  std::map<std::string, GrowingBuffer> buffers;
  for (const SliceId call : calls) {
    const auto text = trace.slice_args(call).text(ArgKey::kInputDims);
    if (!text) continue;
    const auto [found, is_new] = parsed.try_emplace(raw(*text));
    if (is_new) found->second = parse_join(trace.text(*text));
    if (!found->second) continue;
    const Join& join = *found->second;
    GrowingBuffer& buffer = buffers[join.shape];
    if (buffer.calls.empty()) buffer.first = buffer.last = join.length;
    if (join.length == buffer.last + buffer.piece && join.length != buffer.last)
      ++buffer.growths;
    else if (join.length != buffer.last)
      ++buffer.other_changes;
    buffer.last = join.length;
    buffer.longest = std::max(buffer.longest, join.length);
    buffer.piece = join.piece;
    buffer.calls.push_back(call);
  }
  return buffers;
}

namespace {

// A list of words is a matrix that grows. What a model reads again, such as keys and values, has three dimensions or more.
constexpr std::ptrdiff_t kFewestCommas = 2;

// One query at a time attends to a word more in each round, as where a model reads the filled part of a buffer: four lengths in a
// row or more.
bool attends_to_more_words(const Facts& facts) {
  constexpr std::int64_t kFewestLengths = 4;
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::set<std::int64_t> lengths;
  for (const SliceId id : slices_named(facts, "aten::scaled_dot_product_attention")) {
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id))) continue;
    const analysis::TensorArguments inputs = operator_inputs(trace, id);
    const auto query = inputs.tensor(0), keys = inputs.tensor(1);
    if (query && keys && query->rank() == 4 && keys->rank() == 4 && query->dims[2] == 1)
      lengths.insert(keys->dims[2]);
  }
  std::int64_t in_a_row = 0, last = -1;
  for (const std::int64_t length : lengths) {
    in_a_row = length == last + 1 ? in_a_row + 1 : 1;
    last = length;
    if (in_a_row >= kFewestLengths) return true;
  }
  return false;
}

bool make_has_growing_buffer(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::vector<SliceId> calls;
  for (const SliceId id : slices_named(facts, "aten::cat"))
    if (trace.kind(id) == CategoryKind::kCpuOp && inside(windows, trace.start_ns(id)))
      calls.push_back(id);
  sort_rows(calls.begin(), calls.end(),
            [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  const auto buffers = buffers_by_shape(trace, calls);
  if (attends_to_more_words(facts)) return true;
  return std::any_of(buffers.begin(), buffers.end(), [](const auto& each) {
    return each.second.grows() &&
           std::count(each.first.begin(), each.first.end(), ',') >= kFewestCommas;
  });
}

}  // namespace

bool has_growing_buffer(const Facts& facts) { return made_once<make_has_growing_buffer>(facts); }

namespace {

// Each round looks up a word, attends and chooses the next one, and no shapes are recorded: the keys of earlier words may be one
// more in each round, and the trace does not show it.
bool make_chooses_words_without_shapes(const Facts& facts) {
  constexpr std::uint64_t kFewestWords = 4;
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::uint64_t lookups = 0, choices = 0, attentions = 0;
  enum class Call : std::uint8_t { kUnknown, kOther, kLookup, kChoice, kAttention, kNode };
  std::vector<Call> calls(trace.strings().size(), Call::kUnknown);  // by name
  const auto kind_of = [](std::string_view op) {
    return op == "aten::embedding"                             ? Call::kLookup
           : op == "aten::argmax" || op == "aten::multinomial" ? Call::kChoice
           : op == "aten::scaled_dot_product_attention"        ? Call::kAttention
           : op.starts_with(kEvaluateNode)                     ? Call::kNode
                                                               : Call::kOther;
  };
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    const std::uint32_t label = raw(trace.slices().name[i]);
    if (trace.kind(id) != CategoryKind::kCpuOp || label >= calls.size()) continue;
    Call& call = calls[label];
    if (call == Call::kUnknown) call = kind_of(trace.name(id));
    if (call == Call::kOther || !inside(windows, trace.start_ns(id))) continue;
    if (call == Call::kNode || trace.slice_args(id).has(ArgKey::kInputDims)) return false;
    lookups += call == Call::kLookup ? 1 : 0;
    choices += call == Call::kChoice ? 1 : 0;
    attentions += call == Call::kAttention ? 1 : 0;
  }
  return choices >= kFewestWords && lookups >= choices && attentions >= choices;
}

}  // namespace

bool chooses_words_without_shapes(const Facts& facts) {
  return made_once<make_chooses_words_without_shapes>(facts);
}

}  // namespace lanescope::explain::rules
