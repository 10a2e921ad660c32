#include "lanescope/sample/gil_reader.h"

#include <cstring>

#include "lanescope/sample/stack_reader.h"

namespace lanescope::sample {
namespace {

// _gil_runtime_state from `last_holder` on, the same from 3.9 to 3.15 on 64-bit Linux.
struct Gil {
  std::uint64_t last_holder;
  std::int32_t locked;  // -1: not made yet
  std::int32_t padding;
  std::uint64_t switches;
  unsigned char condition[48];  // glibc's pthread_cond_t on which threads wait
};
static_assert(offsetof(Gil, condition) == 24 && sizeof(Gil) == 72);

}  // namespace

GilReader::GilReader(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t runtime,
                     std::uint64_t interpreter, std::optional<std::size_t> waiter_count)
    : memory_(memory),
      gil_((layout.gil_in_runtime ? runtime : interpreter) + layout.gil_holder),
      collecting_(interpreter + layout.gc_collecting),
      waiter_count_(waiter_count) {}

std::optional<GilState> GilReader::read() {
  Gil gil{};
  std::int32_t collecting = 0;
  MemoryPiece pieces[] = {{gil_, &gil, sizeof gil}, {collecting_, &collecting, sizeof collecting}};
  memory_.read(pieces);
  if (!pieces[0].ok || !pieces[1].ok) return std::nullopt;
  GilState state;
  if (waiter_count_ && *waiter_count_ + 4 <= sizeof gil.condition) {
    std::uint32_t word = 0;
    std::memcpy(&word, gil.condition + *waiter_count_, sizeof word);
    state.waiting = word >> 3;
  }
  if (gil.locked < 0 || gil.locked > 1 || collecting < 0 || collecting > 1 ||
      state.waiting.value_or(0) > StackReader::kMostThreads)
    return std::nullopt;
  if (gil.locked == 1) state.holder = gil.last_holder;
  state.is_collecting = collecting == 1;
  return state;
}

}  // namespace lanescope::sample
