#include "lanescope/explain/loop_remedies.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/operator_advice.h"
#include "lanescope/explain/rules/uncompiled_code.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

constexpr std::string_view kAccumulate =
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";

// Calls that take longer have work of their own: one call for all would not be shorter.
constexpr std::int64_t kLongestBatchedNs = 500'000;
// More Python between two calls than this is work of its own, which fewer calls would not spare.
constexpr std::int64_t kLongestCodeBetweenNs = 50'000;
constexpr std::uint64_t kMostCallsOfARound = 24, kFewestRounds = 8;
// A loop of fewer rounds that runs again and again, such as over the samples of a batch in each layer.
constexpr std::uint64_t kFewestRoundsOfMany = 4, kManyRounds = 24;

bool all_of_cell(const Owner& owner, bool (*holds)(std::string_view)) {
  return std::all_of(owner.cell.begin(), owner.cell.end(),
                     [&](const std::string& each) { return holds(each); });
}

bool is_node(std::string_view op) { return op.find("Backward") != std::string_view::npos; }
// torch.tensor() calls detach_, which has no namespace in traces.
bool is_aten(std::string_view op) {
  return (op.starts_with("aten::") || op == "detach_" || op == "detach") && !is_node(op);
}

bool has_many_rounds(const Facts& facts, const Owner& owner) {
  const std::uint64_t rounds = rounds_of(owner);
  return rounds >= kFewestRounds || (!owner.has_layers && rounds >= kFewestRoundsOfMany &&
                                     a_step(facts, owner.rounds) >= kManyRounds);
}

bool is_in_cell(const Owner& owner, std::string_view op) {
  return std::find(owner.cell.begin(), owner.cell.end(), op) != owner.cell.end();
}

bool has_cells(const Owner& owner) {
  return std::any_of(owner.cell.begin(), owner.cell.end(),
                     [](const std::string& op) { return rules::is_recurrent_cell(op); });
}

// Compiled code and other regions of their own do not join.
bool is_loop_of_calls(const Facts& facts, const Owner& owner, std::uint64_t most_calls) {
  return owner.kind == OwnerKind::kLoop && owner.loops > 0 && facts.steps.marked &&
         owner.cell_size <= most_calls && has_many_rounds(facts, owner) &&
         is_cpu_time(mechanism_of(owner)) && all_of_cell(owner, is_aten);
}
bool is_short_loop(const Facts& facts, const Owner& owner) {
  return is_loop_of_calls(facts, owner, kMostCallsOfARound);
}

// Stacks were recorded, and its longest call is in no nn.Module: it is no layer, each of which has weights of its own.
bool is_outside_modules(const Facts& facts, const Owner& owner) {
  const SliceId call = cpu_side(facts, owner.example);
  return call != kNone<SliceId> && has_python_frames(*facts.trace) &&
         module_class_around(frames_around(facts), call).empty();
}

// May the program call this loop's rounds at once? Nodes of the backward pass are not its calls.
bool could_be_batched(const Facts& facts, const Owner& owner) {
  if (owner.has_backward || has_cells(owner)) return false;
  const bool works_on_parts =
      takes_parts(facts, owner) && is_loop_of_calls(facts, owner, kManyCallsOfARound);
  if (!works_on_parts && (!is_short_loop(facts, owner) || owner.has_large_products)) return false;
  if (mechanism_of(owner) == Mechanism::kCode &&
      (!owner.frame.empty() || mean(owner.code_ns, owner.work.calls) > kLongestCodeBetweenNs))
    return false;
  // Few and long rounds are more likely the layers of a model.
  return a_step(facts, owner.work.calls) >= rounds_of(owner) &&
         mean(owner.cpu_ns(), owner.work.calls) <= kLongestBatchedNs;
}

// What does all rounds of an operator at once; empty: not known.
struct WholeCall {
  std::string_view op;  // begins so
  std::string_view call;
};
constexpr WholeCall kWholeCalls[] = {
    {"aten::linalg_", "torch.linalg takes a batch of matrices"},
    {"aten::fft_", "torch.fft takes a batch"},
    {"aten::upsample_", "F.interpolate takes a batch of one size"},
    {"aten::embedding", "one lookup of all indices"},
    {"aten::index_select", "one lookup of all indices"},
    {"aten::scaled_dot_product_attention", "pad, with a mask, or use nested tensors"},
    {"aten::sort", "dim= sorts all rows"},
    {"aten::topk", "dim= takes all rows"},
    {"aten::softmax", "dim= takes all rows"},
    {"aten::cumsum", "dim= takes all rows"},
    {"aten::argmax", "dim= takes all rows"},
    {"aten::cdist", "torch.cdist takes a batch"},
    {"aten::bincount", "add row * n to the values of each row"},
    {"aten::histc", "add row * n to the values of each row"},
    {"aten::mm", "torch.bmm of stacked matrices"},
    {"aten::matmul", "torch.matmul of stacked tensors"},
    {"aten::dot", "(a * b).sum(-1) of stacked tensors"},
    {"aten::cat", "one torch.cat of all parts"},
    {"aten::randn", "draw all at once"},
    {"aten::rand", "draw all at once"},
};

std::string_view whole_call(const Owner& owner) {
  std::string_view op;
  if (owner.cell_size == 1 && !owner.cell.empty())
    op = owner.cell.front();
  else if (!owner.parts.empty() && owner.parts.front().time_ns * 5 >= owner.total_ns * 2)
    op = owner.parts.front().name;
  for (const WholeCall& each : kWholeCalls)
    if (op.starts_with(each.op)) return each.call;
  return {};
}

Sentence batch_text(const Facts& facts, const Owner& owner) {
  const std::uint64_t calls = a_step(facts, owner.work.calls);
  // Each layer of an nn.Sequential takes what the one before it made.
  if (owner.around_kind == OwnerKind::kModule && !owner.around.empty() &&
      owner.around.back() == "Sequential")
    return rules::find_uncompiled_code(facts)
               ? say("Each layer needs the one before it: use a CUDA graph")
               : say("Each layer needs the one before it: torch.compile them, or use a CUDA graph");
  Sentence text =
      say(is_in_cell(owner, "aten::slice") && owner.cell_size > kMostCallsOfARound
              ? "If no round needs the one before it: pass the whole tensor instead of slices"
              : "If no round needs the one before it: batch all rounds");
  if (const std::string_view call = whole_call(owner); !call.empty())
    append(text, say(" ({})", {explain::text(std::string(call))}));
  append(text, say(facts, ", {} [call|calls] instead of {}",
                   {count(calls / rounds_of(owner)), count(calls)}));
  // Without a GPU there is nothing to launch at once, and no graph holds waits.
  if (facts.main_device && owner.work.waits < owner.rounds)
    append(text, rules::find_uncompiled_code(facts)
                     ? say("; else use a CUDA graph")
                     : say("; else torch.compile its body, or use a CUDA graph"));
  return text;
}

// "aten::add_" and "AddBackward0": one begins with the other.
bool is_node_of(std::string_view node, std::string_view op) {
  if (op.starts_with("aten::")) op.remove_prefix(6);
  std::string letters;
  for (const char c : op.starts_with("conv") ? std::string_view("convolution") : op)
    if (c != '_') letters += c;
  return node.size() > letters.size() &&
         std::equal(letters.begin(), letters.end(), node.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) ==
                  std::tolower(static_cast<unsigned char>(b));
         });
}

// torch._foreach_* that does for a list what this operator does for one tensor; empty: there is none.
std::string_view foreach_call(std::string_view op) {
  struct Foreach {
    std::string_view op, call;
  };
  constexpr Foreach kCalls[] = {
      {"aten::mul_", "_foreach_mul_"},         {"aten::add_", "_foreach_add_"},
      {"aten::sub_", "_foreach_sub_"},         {"aten::div_", "_foreach_div_"},
      {"aten::lerp_", "_foreach_lerp_"},       {"aten::copy_", "_foreach_copy_"},
      {"aten::addcmul_", "_foreach_addcmul_"}, {"aten::addcdiv_", "_foreach_addcdiv_"},
      {"aten::zero_", "_foreach_zero_"}};
  for (const Foreach& each : kCalls)
    if (each.op == op) return each.call;
  return {};
}

// Each round changes tensors in place, by calls that lists have, too. Empty: it calls others. Views and detach do not count.
std::vector<std::string_view> foreach_calls(const Owner& owner) {
  std::vector<std::string_view> calls;
  for (const std::string& op : owner.cell) {
    if (op == "aten::detach" || op == "detach" || op == "aten::alias") continue;
    const std::string_view call = foreach_call(op);
    if (call.empty()) return {};
    if (std::find(calls.begin(), calls.end(), call) == calls.end()) calls.push_back(call);
  }
  return calls;
}

// How many rounds it has for each parameter, as running averages of several rates have; 0: another number of rounds, or rounds that
// do more than change tensors in place.
std::uint64_t rounds_for_each_parameter(const Owner& owner, std::uint64_t gradients) {
  constexpr std::uint64_t kFewestParameters = 8, kMostTimes = 8;
  const std::uint64_t rounds = rounds_of(owner);
  if (gradients < kFewestParameters || rounds % gradients != 0 || rounds / gradients > kMostTimes ||
      foreach_calls(owner).empty())
    return 0;
  return rounds / gradients;
}

Sentence foreach_text(const Owner& owner, std::uint64_t times) {
  const std::vector<std::string_view> calls = foreach_calls(owner);
  Sentence text = times == 1 ? say("As many rounds as parameters: call ")
                             : say("{} times as many rounds as parameters: call ", {count(times)});
  const bool is_average =
      calls.size() == 2 && is_in_cell(owner, "aten::mul_") && is_in_cell(owner, "aten::add_");
  for (std::size_t i = 0; i < calls.size(); ++i)
    append(text, say(i == 0                 ? "torch.{}"
                     : i + 1 < calls.size() ? ", torch.{}"
                                            : " and torch.{}",
                     {explain::text(std::string(calls[i]))}));
  append(text, say(" once on lists of all"));
  if (is_average) append(text, say(" (averages: torch._foreach_lerp_)"));
  return text;
}

// A loop that may have a round for each parameter.
bool is_short_loop_without_layers(const Facts& facts, const Owner& owner) {
  return !owner.has_layers && !owner.has_backward && is_short_loop(facts, owner);
}

}  // namespace

bool takes_parts(const Facts& facts, const Owner& owner) {
  return owner.kind == OwnerKind::kLoop && takes_part_of_tensor(owner) &&
         (!owner.has_layers || has_cells(owner) || is_outside_modules(facts, owner));
}

std::uint64_t rounds_of(const Owner& owner) {
  return owner.rounds / std::max<std::uint64_t>(1, owner.loops);
}

std::uint64_t gradients_of_a_step(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::uint64_t found = 0;
  for (const SliceId id : slices_named(facts, kAccumulate))
    if (trace.kind(id) == CategoryKind::kCpuOp && inside(windows, trace.start_ns(id))) ++found;
  return (found + step_count(facts) / 2) / step_count(facts);
}

bool is_over_parameters(const Facts& facts, const Owner& owner, std::uint64_t gradients) {
  if (!is_short_loop_without_layers(facts, owner)) return false;
  const std::uint64_t rounds = rounds_of(owner), loops = a_step(facts, owner.loops);
  const auto fits = [&](std::uint64_t parameters) {
    return rounds == parameters || rounds + 1 == parameters;
  };
  return fits(gradients) || (loops > 1 && gradients % loops == 0 && fits(gradients / loops));
}

const Owner* backward_of_loop(const Owners& owners, const Owner& owner) {
  if (owner.kind != OwnerKind::kLoop) return nullptr;
  for (const Owner& other : owners.owners) {
    const std::uint64_t more = std::max(rounds_of(other), rounds_of(owner));
    if (other.kind != OwnerKind::kLoop || more - std::min(rounds_of(other), rounds_of(owner)) > 1)
      continue;
    const bool is_its_backward =
        std::all_of(other.cell.begin(), other.cell.end(), [&](const std::string& node) {
          return is_node(node) && std::any_of(owner.cell.begin(), owner.cell.end(),
                                              [&](const auto& op) { return is_node_of(node, op); });
        });
    if (is_its_backward && !other.cell.empty()) return &other;
  }
  return nullptr;
}

Sentence remedy_of_loop(const Facts& facts, const Owner& owner) {
  if (Sentence remedy = remedy_of_rounds(facts, owner); !remedy.pattern.empty()) return remedy;
  // Asked first, because the gradients are counted in all of the trace.
  const std::uint64_t gradients = facts.main_device && is_short_loop_without_layers(facts, owner)
                                      ? gradients_of_a_step(facts)
                                      : 0;
  if (const std::uint64_t times = rounds_for_each_parameter(owner, gradients); times > 0)
    return foreach_text(owner, times);
  if (gradients > 0 && is_over_parameters(facts, owner, gradients)) {
    const Owners* owners = step_owners(facts);
    return owners && backward_of_loop(*owners, owner)
               ? say("As many rounds as parameters: for a penalty on weights use the optimizer's "
                     "weight_decay, else torch._foreach_* on the list of all")
               : say("As many rounds as parameters: call torch._foreach_* once on the list of all "
                     "of them");
  }
  if (mechanism_of(owner) == Mechanism::kCode)
    if (Sentence remedy = remedy_of_frame(facts, owner); !remedy.pattern.empty()) return remedy;
  return could_be_batched(facts, owner) ? batch_text(facts, owner) : Sentence{};
}

}  // namespace lanescope::explain
