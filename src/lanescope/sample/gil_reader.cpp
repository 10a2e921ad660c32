#include "lanescope/sample/gil_reader.h"

#include <cstring>

#include "lanescope/sample/stack_reader.h"

namespace lanescope::sample {

GilReader::GilReader(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t runtime,
                     std::uint64_t interpreter, std::optional<std::size_t> waiter_count)
    : memory_(memory),
      waiter_count_(waiter_count),
      pieces_{{{(layout.gil_in_runtime ? runtime : interpreter) + layout.gil_holder, &gil_,
                sizeof gil_},
               {interpreter + layout.gc_collecting, &collecting_, sizeof collecting_}}} {
  static_assert(offsetof(Gil, condition) == 24 && sizeof(Gil) == 72);
}

std::optional<GilState> GilReader::read() {
  memory_.read(pieces_);
  return state();
}

std::optional<GilState> GilReader::state() const {
  if (!pieces_[0].ok || !pieces_[1].ok) return std::nullopt;
  GilState state;
  if (waiter_count_ && *waiter_count_ + 4 <= sizeof gil_.condition) {
    std::uint32_t word = 0;
    std::memcpy(&word, gil_.condition + *waiter_count_, sizeof word);
    state.waiting = word >> 3;
  }
  if (gil_.locked < 0 || gil_.locked > 1 || collecting_ < 0 || collecting_ > 1 ||
      state.waiting.value_or(0) > StackReader::kMostThreads)
    return std::nullopt;
  if (gil_.locked == 1) state.holder = gil_.last_holder;
  state.is_collecting = collecting_ == 1;
  return state;
}

}  // namespace lanescope::sample
