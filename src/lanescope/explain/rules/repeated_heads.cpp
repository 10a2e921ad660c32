// Keys and values of grouped-query attention that are copied once for each head of the query.
//
// Problem: expand() repeats heads without a copy. The reshape() after it has no such view: it writes every copy to memory, and
// attention reads all of them. Idea: two such copies in a row, right before attention. Example:
// `unsqueeze expand reshape, unsqueeze expand reshape, scaled_dot_product_attention` in each layer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/calls_with_work.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastRepeatedShare = 0.03;  // of a steady step
// Views before an expand() that indexing makes; calls between the copies and attention; between a product and its softmax.
constexpr std::size_t kMostViewsBefore = 5, kMostBeforeAttention = 6, kMostUntilSoftmax = 8;

// Where expand() repeats: by recorded shapes, or unknown.
enum class RepeatedDim : std::uint8_t { kUnknown, kHeads, kOther };

struct HeadCopy {
  SliceId copy{};
  RepeatedDim dim = RepeatedDim::kUnknown;
};

// By what attention runs.
enum class HeadsTaker : std::uint8_t {
  kGroupedKernel,  // a kernel that takes fewer heads of keys and values: flash, cuDNN
  kOtherKernel,
  kProducts,  // attention that the program writes out
};

struct RepeatedHeads {
  std::unordered_set<std::uint32_t> copies;
  SliceId first = kNone<SliceId>;
  std::uint64_t attentions = 0, with_grouped_kernel = 0, written_out = 0, known = 0;
  Savings work;
};

bool has_inside(const Facts& facts, SliceId op, std::string_view part) {
  return any_inside(facts, op,
                    [part](std::string_view inner) { return inner.find(part) != inner.npos; });
}

bool may_copy(std::string_view op) {
  constexpr std::array<std::string_view, 4> kCopying = {"aten::reshape", "aten::contiguous",
                                                        "aten::clone", "aten::flatten"};
  return std::find(kCopying.begin(), kCopying.end(), op) != kCopying.end();
}

// expand() makes one dimension of size 1 larger. [batch, heads, 1, ...] and [batch, words, heads, 1, ...] repeat heads;
// [batch, 1, ...] repeats samples, as for the beams of a search.
RepeatedDim repeated_dim(const Trace& trace, SliceId expand, SliceId copy) {
  const auto small = operator_inputs(trace, expand).tensor(0);
  const auto large = operator_inputs(trace, copy).tensor(0);
  if (!small || !large) return RepeatedDim::kUnknown;
  if (small->rank() != 5 || large->rank() != 5) return RepeatedDim::kOther;
  std::size_t grown = 0, at = 0;
  for (std::size_t k = 0; k < small->rank(); ++k) {
    if (small->dims[k] == large->dims[k]) continue;
    if (small->dims[k] != 1) return RepeatedDim::kOther;
    ++grown;
    at = k;
  }
  return grown == 1 && (at == 2 || at == 3) ? RepeatedDim::kHeads : RepeatedDim::kOther;
}

// The copy right after the expand() at `at`, which follows an unsqueeze(). Nothing: there is none.
std::optional<HeadCopy> head_copy_at(const Facts& facts, const CallSequence& calls,
                                     std::size_t at) {
  const Trace& trace = *facts.trace;
  if (trace.name(calls[at]) != "aten::expand" || at == 0 || at + 1 >= calls.size())
    return std::nullopt;
  const SliceId copy = calls[at + 1];
  if (!may_copy(trace.name(copy)) || !has_inside(facts, copy, "aten::copy_")) return std::nullopt;
  for (std::size_t back = 1; back <= std::min(at, kMostViewsBefore); ++back) {
    const std::string_view op = trace.name(calls[at - back]);
    if (op == "aten::unsqueeze") return HeadCopy{copy, repeated_dim(trace, calls[at], copy)};
    if (op != "aten::slice" && op != "aten::alias") break;
  }
  return std::nullopt;
}

bool follows_softmax(const Trace& trace, const CallSequence& calls, std::size_t product) {
  for (std::size_t i = product + 1; i < calls.size() && i <= product + kMostUntilSoftmax; ++i)
    if (trace.name(calls[i]).find("softmax") != std::string_view::npos) return true;
  return false;
}

// The attention right after the copies. Nothing: something else takes them.
std::optional<HeadsTaker> attention_after(const Facts& facts, const CallSequence& calls,
                                          std::size_t from) {
  const Trace& trace = *facts.trace;
  for (std::size_t i = from; i < calls.size() && i < from + kMostBeforeAttention; ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (op == "aten::scaled_dot_product_attention")
      return has_inside(facts, calls[i], "flash_attention") ||
                     has_inside(facts, calls[i], "cudnn_attention")
                 ? HeadsTaker::kGroupedKernel
                 : HeadsTaker::kOtherKernel;
    if ((op == "aten::matmul" || op == "aten::bmm" || op == "aten::baddbmm") &&
        follows_softmax(trace, calls, i))
      return HeadsTaker::kProducts;
    if (!is_view(op) && op != "aten::contiguous") return std::nullopt;
  }
  return std::nullopt;
}

bool is_in_repeat_kv(const Facts& facts, SliceId call) {
  std::string line = python_line(facts, call);
  return line.find("repeat_kv") != line.npos;
}

void find_repeated(const Facts& facts, const CallSequence& calls, RepeatedHeads& found) {
  const Trace& trace = *facts.trace;
  std::optional<HeadCopy> last;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto copy = head_copy_at(facts, calls, i);
    if (!copy) {
      if (!is_view(trace.name(calls[i])) && !(last && calls[i] == last->copy)) last.reset();
      continue;
    }
    if (!last || copy->dim == RepeatedDim::kOther || last->dim == RepeatedDim::kOther) {
      last = copy;
      continue;
    }
    const auto taker = attention_after(facts, calls, i + 2);
    if (taker) {
      if (found.first == kNone<SliceId>) found.first = last->copy;
      ++found.attentions;
      found.with_grouped_kernel += *taker == HeadsTaker::kGroupedKernel ? 1 : 0;
      found.written_out += *taker == HeadsTaker::kProducts ? 1 : 0;
      found.known += copy->dim == RepeatedDim::kHeads || is_in_repeat_kv(facts, copy->copy) ? 1 : 0;
      found.copies.insert({raw(last->copy), raw(copy->copy)});
    }
    last = copy;
  }
}

std::optional<RepeatedHeads> measure_repeated_heads(const Facts& facts) {
  RepeatedHeads found;
  for (const CallSequence& calls : call_sequences(facts)) find_repeated(facts, calls, found);
  if (found.copies.empty()) return std::nullopt;
  found.work = work_in_calls(facts, with_backward_nodes(facts, found.copies));
  if (wall_share(facts, found.work.saved_ns()) < kLeastRepeatedShare) return std::nullopt;
  return found;
}

const char* repeated_action(const RepeatedHeads& found) {
  const bool is_known = found.known * 2 > found.attentions;
  if (found.with_grouped_kernel * 2 > found.attentions)
    return is_known ? "Pass them unrepeated: scaled_dot_product_attention(enable_gqa=True), torch "
                      "2.5 or later"
                    : "If they repeat heads: pass them as they are, with "
                      "scaled_dot_product_attention(enable_gqa=True)";
  return is_known ? "Repeat no heads: make the query's heads of one group rows, "
                    "q.reshape(batch, kv_heads, group * length, dim)"
                  : "If they repeat heads: make the query's heads of one group rows instead, "
                    "q.reshape(batch, kv_heads, group * length, dim)";
}

Finding tell_repeated_heads(const Facts& facts, const RepeatedHeads& found) {
  const Trace& trace = *facts.trace;
  const std::uint64_t copies = std::max<std::uint64_t>(1, found.copies.size() / step_count(facts));
  const std::int64_t time_ns = found.work.saved_ns();
  Finding finding;
  finding.verdict =
      say(facts,
          "Keys and values are repeated before attention: {} [copy|copies] after {}, by {}, take "
          "{} [per step] ({}).",
          {count(copies), name("aten::expand"), name(trace.name(found.first)),
           ns(facts.per_step(time_ns)), ratio(time_ns, facts.steady_wall_ns())});
  rate_finding(facts, found.work, finding);
  finding.arithmetic.push_back(
      say("counted: the GPU's work for two copies in a row, each of unsqueeze() and expand(), that "
          "only views follow until attention, with their backward parts"));
  finding.evidence.push_back(called_at(facts, found.first, say("the first of these copies")));
  finding.try_next = {repeated_action(found)};
  if (found.written_out * 2 > found.attentions)
    finding.try_next.push_back(
        "or scaled_dot_product_attention(enable_gqa=True) instead of two products");
  finding.try_next.push_back(
      "if the keys and values are a cache that is longer than what is filled: slice it first");
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof", "layout-copies"})
    finding.explains.push_back({covered, facts.per_step(time_ns)});
  finding.brief =
      say(facts, "{} and {} copy keys and values before attention, {} [time|times] [per step]",
          {name("aten::expand"), name(trace.name(found.first)), count(copies)});
  finding.action = say(repeated_action(found));
  return finding;
}

}  // namespace

extern constinit const Rule repeated_heads_rule = {
    .id = "repeated-heads",
    .question = "are keys and values copied for each head of attention?",
    .meant_by = "gqa repeat_kv grouped query attention expand",
    .order = 598,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_repeated_heads, tell_repeated_heads>,
};

}  // namespace lanescope::explain::rules
