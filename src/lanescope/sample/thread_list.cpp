#include "lanescope/sample/thread_list.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lanescope/sample/code_table.h"

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostChunkBytes = 64 << 10;  // of a thread's frames that one read copies
constexpr std::size_t kChunkBytes = 16 << 10;      // a chunk of CPython's, where its top is unknown
constexpr std::size_t kChunkSizeAt = 8;            // in a chunk
constexpr std::size_t kSpareBytes = 512;           // for calls that were not there the last time
constexpr std::size_t kPageBytes = 4096;
constexpr int kMostWalks = 3;

// Where glibc keeps a thread's id, from the pthread_t that Python knows before 3.11.
std::size_t find_tid_offset() {
  const auto self = static_cast<std::uint64_t>(pthread_self());
  const auto tid = static_cast<std::uint32_t>(gettid());
  std::array<std::uint32_t, 512> words{};
  RunningProcess own(getpid());
  if (!own.read(self, words.data(), sizeof words)) return 0;
  // The first words are pointers; an id is well after them.
  for (std::size_t i = 16; i < words.size(); ++i)
    if (words[i] == tid) return i * sizeof words[0];
  return 0;
}

}  // namespace

ThreadList::ThreadList(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t interpreter)
    : memory_(memory), layout_(layout), interpreter_(interpreter) {
  if (layout.native_id == kNoOffset) tid_offset_ = find_tid_offset();
}

void ThreadList::take_state(Thread& thread) {
  const unsigned char* bytes = thread.state_bytes.data();
  thread.next = word_at<std::uint64_t>(bytes, layout_.thread_next);
  const auto pthread = word_at<std::uint64_t>(bytes, layout_.pthread);
  if (layout_.native_id != kNoOffset)
    thread.id = word_at<std::uint64_t>(bytes, layout_.native_id);
  else if (pthread != thread.pthread || thread.id == 0)
    thread.id = id_of(pthread);
  thread.pthread = pthread;
}

std::uint64_t ThreadList::id_of(std::uint64_t pthread) {
  std::uint32_t id = 0;
  if (tid_offset_ == 0 || !memory_.read(pthread + tid_offset_, &id, sizeof id)) return 0;
  return id;
}

// The thread's memory for frames and how much of it is in use; 0: it has none that can be copied.
std::uint64_t ThreadList::chunk_of(const Thread& thread, std::size_t* used) const {
  if (layout_.chunk == kNoOffset) return 0;
  const unsigned char* bytes = thread.state_bytes.data();
  const auto chunk = word_at<std::uint64_t>(bytes, layout_.chunk);
  const auto top = word_at<std::uint64_t>(bytes, layout_.chunk_top);
  if (!is_plausible(chunk)) return 0;
  *used = top > chunk && top - chunk <= kMostChunkBytes ? top - chunk : kChunkBytes;
  return chunk;
}

// Pieces after that of the state; take_guesses() takes them in the same order.
void ThreadList::add_guesses(Thread& thread) {
  if (layout_.cframe_frame != kNoOffset && thread.cframe != 0)
    pieces_.push_back({thread.cframe + layout_.cframe_frame, &thread.frame, sizeof thread.frame});
  if (thread.frames_worth != 0) {
    if (thread.frames.size() < thread.frames_worth) thread.frames.resize(thread.frames_worth);
    pieces_.push_back({thread.frames_at, thread.frames.data(), thread.frames_worth});
  }
  if (thread.code != 0) {
    thread.code_head.resize(layout_.code_bytes());
    pieces_.push_back({thread.code, thread.code_head.data(), thread.code_head.size()});
  }
}

// Notes what has to be read again.
void ThreadList::take_guesses(Thread& thread, const MemoryPiece*& piece) {
  const auto root = word_at<std::uint64_t>(thread.state_bytes.data(), layout_.frame);
  if (layout_.cframe_frame == kNoOffset) {
    thread.frame = root;
  } else {
    const bool was_read = thread.cframe != 0 && (piece++)->ok;
    if (root == 0)
      thread.frame = 0;
    else if (!was_read || thread.cframe != root)
      moved_frame_.push_back(&thread);
    thread.cframe = root;
  }
  const std::size_t worth = thread.frames_worth;
  const bool was_copied = worth != 0 && (piece++)->ok;
  thread.has_code_head = thread.code != 0 && (piece++)->ok;
  std::size_t used = 0;
  const std::uint64_t chunk = chunk_of(thread, &used);
  const bool is_guessed = was_copied && chunk == thread.frames_at && used <= worth;
  thread.frames_size = is_guessed ? worth : 0;
  thread.frames_at = chunk;
  if (chunk == 0)
    thread.frames_worth = 0;
  else if (!is_guessed)
    moved_chunk_.push_back(&thread);
}

// What was not where it was the last time. False: the pointer to a frame could not be read.
bool ThreadList::read_rest() {
  if (moved_frame_.empty() && moved_chunk_.empty()) return true;
  pieces_.clear();
  for (Thread* thread : moved_frame_)
    pieces_.push_back(
        {thread->cframe + layout_.cframe_frame, &thread->frame, sizeof thread->frame});
  for (Thread* thread : moved_chunk_) {
    std::size_t used = 0;
    chunk_of(*thread, &used);
    if (thread->frames.size() < used) thread->frames.resize(used);
    pieces_.push_back({thread->frames_at, thread->frames.data(), used});
  }
  memory_.read(pieces_);
  bool is_whole = true;
  for (std::size_t i = 0; i < moved_frame_.size(); ++i)
    if (!pieces_[i].ok) {
      moved_frame_[i]->frame = moved_frame_[i]->cframe = 0;
      is_whole = false;
    }
  for (std::size_t i = 0; i < moved_chunk_.size(); ++i) {
    const MemoryPiece& piece = pieces_[moved_frame_.size() + i];
    Thread& thread = *moved_chunk_[i];
    thread.frames_size = piece.ok ? piece.size : 0;
    thread.frames_worth = 0;
    if (!piece.ok || piece.size < kChunkSizeAt + 8) continue;
    // Whole pages, but not beyond the chunk.
    const auto whole = word_at<std::uint64_t>(thread.frames.data(), kChunkSizeAt);
    const std::size_t wanted =
        (piece.size + kSpareBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    thread.frames_worth =
        std::max(piece.size, std::min({wanted, static_cast<std::size_t>(whole), kMostChunkBytes}));
  }
  return is_whole;
}

// The known threads. False: the list has changed.
bool ThreadList::read_known(std::span<MemoryPiece> read_first) {
  std::uint64_t head = 0;
  pieces_.assign(read_first.begin(), read_first.end());
  pieces_.push_back({interpreter_ + layout_.threads_head, &head, sizeof head});
  for (const auto& thread : threads_) {
    pieces_.push_back({thread->state, thread->state_bytes.data(), thread->state_bytes.size()});
    add_guesses(*thread);
  }
  memory_.read(pieces_);
  std::copy_n(pieces_.begin(), read_first.size(), read_first.begin());
  const MemoryPiece* piece = &pieces_[read_first.size()];
  if (threads_.empty() || !(piece++)->ok || head != threads_[0]->state) return false;
  moved_frame_.clear();
  moved_chunk_.clear();
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = *threads_[i];
    if (!(piece++)->ok) return false;
    take_state(thread);
    const std::uint64_t expected = i + 1 < threads_.size() ? threads_[i + 1]->state : 0;
    if (thread.next != expected) return false;
    take_guesses(thread, piece);
  }
  read_rest();
  return true;
}

// Follows the list from its head.
bool ThreadList::walk() {
  std::unordered_map<std::uint64_t, std::unique_ptr<Thread>> known;
  for (auto& thread : threads_) known.emplace(thread->state, std::move(thread));
  threads_.clear();
  moved_frame_.clear();
  moved_chunk_.clear();
  std::uint64_t state = 0;
  if (!memory_.read(interpreter_ + layout_.threads_head, &state, sizeof state)) return false;
  while (state != 0) {
    if (threads_.size() == StackReader::kMostThreads) {
      ++left_out_;
      break;
    }
    if (!is_plausible(state)) return false;
    const auto before = known.find(state);
    std::unique_ptr<Thread> thread;
    if (before != known.end()) thread = std::move(before->second);
    if (!thread) {
      thread = std::make_unique<Thread>();
      thread->state = state;
      thread->state_bytes.resize(layout_.thread_bytes());
    }
    thread->id = 0;
    if (!memory_.read(state, thread->state_bytes.data(), thread->state_bytes.size())) return false;
    take_state(*thread);
    thread->cframe = thread->code = thread->frames_worth = 0;
    const MemoryPiece* none = nullptr;
    take_guesses(*thread, none);
    state = thread->next;
    threads_.push_back(std::move(thread));
  }
  read_rest();
  return true;
}

bool ThreadList::read(std::span<MemoryPiece> read_first) {
  if (read_known(read_first)) return true;
  for (int tries = 0; tries < kMostWalks; ++tries)
    if (walk()) return true;
  threads_.clear();
  return false;
}

bool ThreadList::read_again(Thread& thread) {
  if (!memory_.read(thread.state, thread.state_bytes.data(), thread.state_bytes.size()))
    return false;
  take_state(thread);
  moved_frame_.clear();
  moved_chunk_.clear();
  thread.cframe = thread.code = thread.frames_worth = 0;
  const MemoryPiece* none = nullptr;
  take_guesses(thread, none);
  return read_rest();
}

}  // namespace lanescope::sample
