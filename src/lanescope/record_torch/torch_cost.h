// The cost of what torch does because our callbacks are there, measured once in each process. Recordings
// with a budget add it to the cost that the callbacks measure themselves (record/cost_meter.h).
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Takes a millisecond or two.
#pragma once
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>

#include "lanescope/record/cost_meter.h"
#include "lanescope/record/operator_lengths.h"
#include "lanescope/record/tick_clock.h"
#include "lanescope/record/unseen_cost.h"
#include "lanescope/record_torch/torch_shortcuts.h"

namespace lanescope::record_torch {

struct TorchCost {
  record::CostScale scale;
  // Additional ticks of a call for a node of a backward pass. Before and after each node, torch gives the
  // thread another list of callbacks and sorts the list by scope, unless torch_shortcuts.h avoids that. It also makes the
  // node's texts.
  std::uint64_t of_node = 0;
  std::uint64_t of_paused_node = 0;  // the same while torch has only our callback for ranges
  std::uint64_t of_inputs = 0;       // additional ticks of an operator's begin with inputs
};
inline TorchCost torch_cost;  // written before the first callback that measures is added

// Whether to record the ranges of the lite interpreter and the static runtime.
inline std::atomic<bool> are_runtimes_wanted{true};

// The scopes for which torch calls our callbacks. Around each node of a backward pass, torch sorts the
// callbacks again by each of these scopes (without torch_shortcuts.h), which takes some 330 instructions. Three other scopes exist
// only in a torch that was built to trace which of its features are used.
inline std::unordered_set<at::RecordScope> scopes_of_programs() {
  std::unordered_set<at::RecordScope> scopes{
      at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
      at::RecordScope::TORCHSCRIPT_FUNCTION, at::RecordScope::USER_SCOPE};
  if (are_runtimes_wanted.load(std::memory_order_relaxed))
    scopes.insert({at::RecordScope::LITE_INTERPRETER, at::RecordScope::STATIC_RUNTIME_OP,
                   at::RecordScope::STATIC_RUNTIME_MODEL});
  return scopes;
}

// The shortest of five batches of `work`, in ticks.
template <typename Work>
std::uint64_t shortest_batch(const Work& work) {
  constexpr int kBatches = 5;
  std::uint64_t shortest = ~std::uint64_t{0};
  for (int batch = 0; batch < kBatches; ++batch) {
    const std::uint64_t begin = record::ticks();
    work();
    shortest = std::min(shortest, record::ticks() - begin);
  }
  return shortest;
}

// Measures the ticks that torch needs around an empty callback, and counts half of them for begin and
// half for end. Does the same for the two calls of a node of a backward pass. Measures nothing if another
// tool has callbacks, because torch then does that work anyway. `with_shortcuts`: torch keeps a thread's callbacks
// where they stay the same.
inline void measure_callbacks(std::uint64_t unseen_of_paused_node, bool with_shortcuts,
                              TorchCost* found) {
  if (at::hasCallbacks()) return;
  constexpr std::uint64_t kCalls = 200;
  const auto operators = [] {
    for (std::uint64_t call = 0; call < kCalls; ++call) {
      at::RecordFunction function(at::RecordScope::FUNCTION);
      if (function.isActive()) function.before("lanescope measures torch");
    }
  };
  const auto nodes = [set =
                          with_shortcuts ? &set_thread_callbacks : &at::set_record_function_tls_] {
    const at::RecordFunctionTLS list = at::get_record_function_tls_();
    for (std::uint64_t change = 0; change < 2 * kCalls; ++change) set(list);
  };
  const std::uint64_t bare_operators = shortest_batch(operators),
                      bare_nodes = shortest_batch(nodes);
  at::RecordFunctionCallback empty(
      [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; },
      [](const at::RecordFunction&, at::ObserverContext*) {});
  const auto handle = at::addGlobalCallback(empty.scopes(scopes_of_programs()));
  const std::uint64_t with_operators = shortest_batch(operators),
                      with_nodes = shortest_batch(nodes);
  at::removeCallback(handle);
  const auto half_of_one = [](std::uint64_t with, std::uint64_t without) {
    return with > without ? (with - without) / kCalls / 2 : 0;
  };
  const std::uint64_t around_call = half_of_one(with_operators, bare_operators);
  found->scale.unseen[kLanescopeOperators] += around_call;
  found->scale.unseen[kLanescopeRanges] += around_call;
  found->of_node += half_of_one(with_nodes, bare_nodes);
  const auto for_ranges = at::addGlobalCallback(empty.scopes({at::RecordScope::USER_SCOPE}));
  found->of_paused_node =
      2 * half_of_one(shortest_batch(nodes), bare_nodes) + unseen_of_paused_node;
  at::removeCallback(for_ranges);
}

// Works once per process, while none of our callbacks is there. Only one thread at a time may call it.
inline void measure_torch_cost(record::OperatorLengths* lengths, bool with_shortcuts) {
  static bool done = false;
  if (std::exchange(done, true)) return;
  constexpr std::uint64_t kSpinNs = 100'000;
  constexpr std::uint64_t kLongestOverSpin = 10;  // 1 ms is long for an operator
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t begin = record::ticks();
  while (std::chrono::steady_clock::now() - start < std::chrono::nanoseconds(kSpinNs)) {
  }
  const std::uint64_t spun = record::ticks() - begin;
  const auto in_ticks = [spun](std::uint64_t ns) { return ns * spun / kSpinNs; };
  lengths->set_longest(spun * kLongestOverSpin);
  torch_cost.of_node = in_ticks(record::kUnseenNodeNs);
  torch_cost.of_inputs = in_ticks(record::kUnseenInputsNs);
  torch_cost.scale = lanescope_cost_scale;  // set before a source starts to measure
  measure_callbacks(in_ticks(record::kUnseenPausedNodeNs), with_shortcuts, &torch_cost);
}

}  // namespace lanescope::record_torch
