// Calls as symbols, of which analysis/repeats.h finds loops: equal symbols, equal calls.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

// A symbol for each call, from 0 on: by its name, and by its recorded input shapes where `counts_shapes(name)` is true.
// O(calls log calls).
template <class CountsShapes>
std::vector<std::uint32_t> call_symbols(const Trace& trace, const CallSequence& calls,
                                        CountsShapes counts_shapes) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> symbols;
  symbols.reserve(calls.size());
  for (const SliceId op : calls) {
    const auto dims = counts_shapes(trace.name(op)) ? trace.slice_args(op).text(ArgKey::kInputDims)
                                                    : std::nullopt;
    const std::pair key{raw(trace.slices().name[raw(op)]), dims ? raw(*dims) : ~std::uint32_t{0}};
    symbols.push_back(
        numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return symbols;
}

}  // namespace lanescope::explain::rules
