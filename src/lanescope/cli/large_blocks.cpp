// The operator new of the `lanescope` command: large blocks come from base/spill_memory.h, so that a
// trace larger than memory opens. Only here: a library that is part of somebody's program leaves
// that program's memory alone.
#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "lanescope/base/memory_watch.h"
#include "lanescope/base/spill_memory.h"

namespace {

using lanescope::MemoryWatch;
using lanescope::SpillMemory;

// As with malloc, a block that is given or taken back leaves errno as it was.
class KeptErrno {
 public:
  KeptErrno() : kept_(errno) {}
  ~KeptErrno() { errno = kept_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int kept_;
};

void* from_spill_memory(std::size_t bytes) {
  const KeptErrno kept;
  return SpillMemory::of_process().allocate(bytes);
}

void* from_malloc(std::size_t bytes) {
  void* const block = std::malloc(bytes == 0 ? 1 : bytes);
  // What malloc gives is a little more than what was asked for.
  if (block && bytes >= SpillMemory::kLeastSpilled / 2)
    if (const std::size_t given = ::malloc_usable_size(block);
        given >= SpillMemory::kLeastSpilled) {
      const KeptErrno kept;
      SpillMemory::of_process().count_malloc(given);
    }
  return block;
}

// Bytes that this thread has taken since it looked at the memory of the process.
thread_local constinit std::uint64_t taken_since_look = 0;

void look(const MemoryWatch& watch, std::size_t bytes) {
  taken_since_look += bytes;
  if (taken_since_look < watch.step_bytes()) return;
  taken_since_look = 0;  // before it throws: what follows an error needs a little
  const KeptErrno kept;
  watch.expect_room();
}

// No block of SpillMemory begins elsewhere. malloc's blocks nearly never begin there.
bool begins_a_page(const void* block) {
  return reinterpret_cast<std::uintptr_t>(block) % 4096 == 0;
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (const MemoryWatch* const watch = MemoryWatch::of_process()) look(*watch, bytes);
  if (bytes >= SpillMemory::kLeastSpilled)
    if (void* const block = from_spill_memory(bytes)) return block;
  for (;;) {
    if (void* const block = from_malloc(bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) lanescope::throw_no_memory(bytes);
    handler();
  }
}

void operator delete(void* block) noexcept {
  if (!block) return;
  const KeptErrno kept;
  // Before it is made there is no block to give back. It frees small ones while it is being made.
  if (SpillMemory* const spill = SpillMemory::of_process_if_made()) {
    if (begins_a_page(block) && spill->release(block)) return;
    if (const std::size_t given = ::malloc_usable_size(block); given >= SpillMemory::kLeastSpilled)
      spill->forget_malloc(given);
  }
  std::free(block);
}

// Nearly all calls know the size, and most blocks are small: those are not counted.
void operator delete(void* block, std::size_t bytes) noexcept {
  if (bytes < SpillMemory::kLeastSpilled / 2)
    std::free(block);
  else
    ::operator delete(block);
}
