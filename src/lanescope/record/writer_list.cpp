#include "lanescope/record/writer_list.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>

#include <chrono>
#include <thread>

#include "lanescope/record/process_state.h"

namespace lanescope::record {
namespace {

void copy_name(char (&to)[64], const char* from) { snprintf(to, sizeof to, "%s", from); }

void name_this_thread(spool::ThreadSlot* slot) {
  char name[64] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  copy_name(slot->name, name);
}

spool::ChunkHeader* chunk_of(LanescopeWriter* writer) {
  return reinterpret_cast<spool::ChunkHeader*>(reinterpret_cast<std::byte*>(writer->first) -
                                               spool::kChunkHeaderBytes);
}

void detach_chunk(LanescopeWriter* writer, ChunkPool& pool) {
  if (writer->first) pool.add_full(chunk_of(writer));
  writer->first = nullptr;
  writer->count = writer->capacity = 0;
  writer->used = nullptr;
  writer->slot = nullptr;
  writer->owner = nullptr;
  ++writer->sequence;  // tokens of that chunk no longer match
}

// Gives this thread a slot in the spool. False: there is no room.
bool enter_spool(LanescopeWriter* writer, Spool* spool) {
  std::uint32_t number = 0;
  spool::ThreadSlot* slot = spool->new_thread(&number);
  if (!slot) return false;
  slot->os_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  slot->torch_tid = writer->torch_tid;
  slot->has_torch_tid = writer->has_torch_tid;
  name_this_thread(slot);
  writer->slot = slot;
  writer->thread_number = number;
  writer->owner = spool;
  writer->chunks = 0;
  return true;
}

}  // namespace

void ThreadCosts::add(const LanescopeCost& cost) {
  for (std::size_t kind = 0; kind < ticks.size(); ++kind)
    ticks[kind] += cost.ticks[kind].load(std::memory_order_relaxed);
  calls += cost.calls.load(std::memory_order_relaxed);
  left_out += cost.left_out.load(std::memory_order_relaxed);
  left_out_ranges += cost.left_out_ranges.load(std::memory_order_relaxed);
}

void WriterList::add(LanescopeWriter* writer) {
  const MutexLock lock(mutex_);
  writers_.push_back(writer);
}

void WriterList::remove(LanescopeWriter* writer) {
  const MutexLock lock(mutex_);
  std::erase(writers_, writer);
  ended_cost_.add(writer->cost);
  Spool* const spool = spool_.load(std::memory_order_acquire);
  if (!spool || writer->owner != spool) return;
  if (writer->slot) name_this_thread(writer->slot);
  detach_chunk(writer, spool->pool());
}

bool WriterList::next_chunk(LanescopeWriter* writer) noexcept {
  Spool* const spool = spool_.load(std::memory_order_acquire);
  if (!spool) return false;
  if (writer->owner != spool) {
    if (getpid() != pid_)
      return false;  // a child whose fork ran no handlers: the chunks are not mapped here
    if (!enter_spool(writer, spool)) return false;
  }
  spool::ChunkHeader* chunk = spool->take_for_thread(writer->chunks);
  if (!chunk) return false;
  ++writer->chunks;
  if (writer->first) spool->pool().add_full(chunk_of(writer));
  SpoolFile::claim(chunk, spool::ChunkKind::kRecords, writer->thread_number, ++writer->sequence);
  writer->first = reinterpret_cast<spool::Record*>(reinterpret_cast<std::byte*>(chunk) +
                                                   spool::kChunkHeaderBytes);
  writer->count = 0;
  writer->capacity = chunk->place != 0 ? spool::kRecordsPerSmallChunk : spool::kRecordsPerChunk;
  writer->used = &chunk->used;
  return true;
}

bool WriterList::close() {
  const MutexLock lock(mutex_);
  const bool all_outside = wait_for_writers();
  Spool* const spool = spool_.load(std::memory_order_acquire);
  spool_.store(nullptr, std::memory_order_release);
  for (LanescopeWriter* writer : writers_) {
    if (writer->owner != spool) continue;
    if (writer->busy.load(std::memory_order_acquire) == 0) detach_chunk(writer, spool->pool());
  }
  return all_outside;
}

bool WriterList::wait_until_outside() {
  const MutexLock lock(mutex_);
  return wait_for_writers();
}

bool WriterList::wait_for_writers() {
  constexpr auto kPause = std::chrono::microseconds(50);
  constexpr int kTries = 20'000;  // a second
  fence_all_threads();
  bool all_outside = true;
  for (LanescopeWriter* writer : writers_) {
    if (writer == lanescope_thread_writer) continue;
    for (int tries = 0; writer->busy.load(std::memory_order_acquire) != 0; ++tries) {
      if (tries == kTries) {
        all_outside = false;
        break;
      }
      std::this_thread::sleep_for(kPause);
    }
  }
  return all_outside;
}

void WriterList::name_threads() {
  const MutexLock lock(mutex_);
  for (const LanescopeWriter* writer : writers_) {
    if (!writer->slot) continue;
    char path[64], name[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", writer->slot->os_tid);
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t got = read(file, name, sizeof name - 1);
    ::close(file);
    if (got <= 1) continue;
    name[got - 1] = 0;  // the newline
    copy_name(writer->slot->name, name);
  }
}

ThreadCosts WriterList::cost() {
  const MutexLock lock(mutex_);
  ThreadCosts sum = ended_cost_;
  for (const LanescopeWriter* writer : writers_) sum.add(writer->cost);
  return sum;
}

}  // namespace lanescope::record
