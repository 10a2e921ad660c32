// Matrix products process a whole buffer of zeros, although only few of its rows were filled. Example: a mixture-of-experts layer with
// many unused slots.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastEmptyRowsShare = 0.05;
constexpr double kMostFilled = 0.4;  // a buffer with twice the needed rows is usual
constexpr std::int64_t kLeastRows = 64;
constexpr std::size_t kNearCalls = 4;  // the zeros are made at most so many calls earlier

// A tensor as a list of rows: the number of rows, and the elements of each row.
struct RowList {
  std::int64_t count = 0, width = 0;
  bool operator==(const RowList&) const = default;
};
std::optional<RowList> rows_in(const Sizes& dims) {
  if (dims.size() < 2 || dims.back() <= 0) return std::nullopt;
  const double rows = analysis::element_count(dims) / static_cast<double>(dims.back());
  if (rows > 1e12) return std::nullopt;  // damaged
  return RowList{static_cast<std::int64_t>(rows), dims.back()};
}

// A call that writes rows into a buffer, and how many rows it writes.
struct Written {
  RowList buffer;
  std::int64_t rows = 0;
};
std::optional<Written> written_by(const Trace& trace, SliceId op) {
  constexpr std::array<std::string_view, 5> kWriters = {"aten::index_copy_", "aten::index_copy",
                                                        "aten::index_add_", "aten::index_put_",
                                                        "aten::scatter_"};
  if (std::find(kWriters.begin(), kWriters.end(), trace.name(op)) == kWriters.end())
    return std::nullopt;
  const auto shapes = input_shapes(trace, op);
  if (shapes.size() < 2) return std::nullopt;
  const auto buffer = rows_in(shapes.front()), source = rows_in(shapes.back());
  if (!buffer || !source || buffer->width != source->width || shapes.front().size() != 2)
    return std::nullopt;
  return Written{*buffer, source->count};
}

// True: a call shortly before `at` made zeros of the size of `buffer`.
bool is_of_zeros(const Trace& trace, const CallSequence& calls, std::size_t at,
                 const RowList& buffer) {
  const Sizes wanted = {buffer.count, buffer.width};
  for (std::size_t back = 1; back <= kNearCalls && back <= at; ++back) {
    const SliceId op = calls[at - back];
    const std::string_view label = trace.name(op);
    const auto inputs = operator_inputs(trace, op);
    if (label == "aten::zeros" && inputs.list(0, 2) == wanted) return true;
    if (label == "aten::new_zeros" && inputs.list(1, 2) == wanted) return true;
    if (label != "aten::zeros_like" && label != "aten::zero_") continue;
    const auto shapes = first_input_shapes(trace, op);
    if (shapes.size() == 1 && shapes[0] == wanted) return true;
  }
  return false;
}

struct FilledBuffer {
  RowList buffer;
  std::int64_t filled = 0;
  std::vector<SliceId> calls;        // calls that process all rows of the buffer
  SliceId product = kNone<SliceId>;  // the first matrix product in `calls`
};

std::optional<FilledBuffer> buffer_at(const Trace& trace, const CallSequence& calls,
                                      std::size_t at) {
  const auto first = written_by(trace, calls[at]);
  if (!first || first->buffer.count < kLeastRows || !is_of_zeros(trace, calls, at, first->buffer))
    return std::nullopt;
  FilledBuffer found;
  found.buffer = first->buffer;
  for (std::size_t i = at; i < calls.size(); ++i) {
    if (const auto more = written_by(trace, calls[i]); more && more->buffer == found.buffer) {
      if (found.product == kNone<SliceId>) found.filled += more->rows;
      continue;
    }
    const auto shapes = first_input_shapes(trace, calls[i]);
    const auto rows = shapes.size() == 1 ? rows_in(shapes[0]) : std::nullopt;
    if (!rows || rows->count != found.buffer.count) {
      if (found.product == kNone<SliceId> && i < at + kNearCalls) continue;
      break;
    }
    if (is_view(trace.name(calls[i]))) continue;
    if (found.product == kNone<SliceId>) {
      if (!is_product(trace.name(calls[i]))) continue;
      if (rows->width != found.buffer.width) return std::nullopt;  // reads another tensor
      found.product = calls[i];
    }
    found.calls.push_back(calls[i]);
    if (trace.name(calls[i]) == "aten::index_select" || trace.name(calls[i]) == "aten::gather" ||
        trace.name(calls[i]) == "aten::index")
      break;  // later calls process only the picked rows
  }
  if (found.product == kNone<SliceId> ||
      static_cast<double>(found.filled) > kMostFilled * static_cast<double>(found.buffer.count))
    return std::nullopt;
  return found;
}

struct EmptyRows {
  std::uint64_t buffers = 0;
  std::unordered_set<std::uint32_t> calls;
  std::int64_t rows = 0, filled = 0;  // of the first buffer
  double empty_share = 0;             // sum over all buffers
  SliceId product = kNone<SliceId>;
  std::int64_t whole_ns = 0, cost_ns = 0;
};

std::optional<EmptyRows> measure_empty_rows(const Facts& facts) {
  EmptyRows found;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto buffer = buffer_at(*facts.trace, calls, i);
      if (!buffer || found.calls.contains(raw(buffer->product))) continue;
      if (found.buffers++ == 0) {
        found.rows = buffer->buffer.count;
        found.filled = buffer->filled;
        found.product = buffer->product;
      }
      found.empty_share +=
          1 - static_cast<double>(buffer->filled) / static_cast<double>(buffer->buffer.count);
      for (const SliceId call : buffer->calls) found.calls.insert(raw(call));
    }
  if (found.buffers == 0 || found.buffers < facts.selection.steady.size()) return std::nullopt;
  found.whole_ns = cost_of_calls(facts, with_backward_nodes(facts, found.calls));
  found.cost_ns = static_cast<std::int64_t>(static_cast<double>(found.whole_ns) *
                                            found.empty_share / static_cast<double>(found.buffers));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastEmptyRowsShare) return std::nullopt;
  return found;
}

Finding tell_empty_rows(const Facts& facts, const EmptyRows& found) {
  const Value rows = count(static_cast<std::uint64_t>(found.rows)),
              filled = count(static_cast<std::uint64_t>(found.filled));
  const Value product = name(facts.trace->name(found.product));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} and what follows it work on {} rows, of which at most {} are filled; the others are "
          "zeros. With their backward pass they take {} [per step] ({}).",
          {product, rows, filled, ns(facts.per_step(found.whole_ns)),
           ratio(found.whole_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("counted: rows that are written into zeros made for them, and then a product over all "
          "rows; the calls on that many rows up to the one that picks rows, and their nodes of "
          "the backward pass, times the share of the rows that stay zero"));
  finding.evidence.push_back(called_at(facts, found.product, say("the first product over them")));
  finding.try_next = {
      "make room for the fullest part only (a smaller capacity), or drop the padding: sort the "
      "rows by part, and use a grouped GEMM (torch._grouped_mm)",
      "if parts are uneven in other steps, the room may be needed there"};
  for (const char* covered : {"hotspot-kernel", "slow-gemm", "slow-backward"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say(facts, "{} works on {} rows, of which {} are filled: the others are zeros",
                      {product, rows, filled});
  finding.action = say("Make room for fewer (a smaller capacity), or use a grouped GEMM");
  return finding;
}

}  // namespace

extern constinit const Rule empty_rows_rule = {
    .id = "empty-rows",
    .question = "do products work on rows that nothing fills?",
    .meant_by = "capacity experts moe padding zeros rows buffer",
    .order = 467,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_empty_rows, tell_empty_rows>,
};

}  // namespace lanescope::explain::rules
