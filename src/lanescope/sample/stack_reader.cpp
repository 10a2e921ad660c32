#include "lanescope/sample/stack_reader.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "lanescope/sample/code_table.h"

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostChunkBytes = 64 << 10;  // of a thread's frames that one read copies
constexpr std::size_t kChunkBytes = 16 << 10;      // a chunk of CPython's, where its top is unknown
constexpr std::size_t kBlockBytes = 4096;          // read below a frame that is in no copy
constexpr std::size_t kMostSteps = 4 * StackReader::kMostFrames;
constexpr std::uint32_t kTrustedSamples = 64;  // an unchanged stack is checked again after so many
constexpr int kMostTries = 3;                  // of a stack that is torn
constexpr std::uint64_t kTagBits = 3;          // of a reference in a frame, from 3.14 on

struct RawFrame {
  std::uint64_t code = 0, instruction = 0;
  bool operator==(const RawFrame&) const = default;
};

// A thread of the interpreter, and what was read of it last.
struct Thread {
  std::uint64_t state = 0;  // address
  std::uint64_t next = 0, pthread = 0, id = 0, frame = 0;
  std::vector<unsigned char> state_bytes, frames;
  std::uint64_t frames_at = 0;  // where `frames` was copied from
  std::size_t frames_size = 0;  // 0: nothing was copied
  std::vector<RawFrame> raw, raw_before;
  bool is_cut = false, is_whole = false, was_good = false;
  std::uint32_t trusted = 0;  // samples since the code objects were checked
  SampledStack stack;
};

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

struct StackReader::Impl {
  ProcessMemory& memory;
  PythonLayout layout;
  std::uint64_t interpreter;
  CodeTable codes;
  Counts counts;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<SampledStack> stacks;
  std::vector<MemoryPiece> pieces;
  std::vector<unsigned char> heads;
  std::vector<std::uint64_t> to_check;
  std::unordered_map<std::uint64_t, std::uint64_t> id_of_pthread;
  std::size_t tid_offset = 0;
  std::vector<unsigned char> block;
  std::uint64_t block_at = 0;
  std::size_t block_size = 0;

  Impl(ProcessMemory& process, const PythonLayout& offsets, std::uint64_t address,
       std::uint64_t code_type)
      : memory(process),
        layout(offsets),
        interpreter(address),
        codes(process, layout, code_type),
        block(kBlockBytes) {
    if (layout.native_id == kNoOffset) tid_offset = find_tid_offset();
  }

  // ---- threads

  void take_state(Thread& thread) {
    const unsigned char* bytes = thread.state_bytes.data();
    thread.next = word_at<std::uint64_t>(bytes, layout.thread_next);
    const auto pthread = word_at<std::uint64_t>(bytes, layout.pthread);
    if (layout.native_id != kNoOffset)
      thread.id = word_at<std::uint64_t>(bytes, layout.native_id);
    else if (pthread != thread.pthread || thread.id == 0)
      thread.id = id_of(pthread);
    thread.pthread = pthread;
    thread.frame = word_at<std::uint64_t>(bytes, layout.frame);
  }
  std::uint64_t id_of(std::uint64_t pthread) {
    std::uint32_t id = 0;
    if (tid_offset == 0 || !memory.read(pthread + tid_offset, &id, sizeof id)) return 0;
    return id;
  }

  std::unique_ptr<Thread> make_thread(std::uint64_t state) const {
    auto made = std::make_unique<Thread>();
    made->state = state;
    made->state_bytes.resize(layout.thread_bytes());
    return made;
  }

  // The known threads, all in one read. False: the list has changed.
  bool read_known_threads() {
    std::uint64_t head = 0;
    pieces.assign(1, {interpreter + layout.threads_head, &head, sizeof head});
    for (const auto& thread : threads)
      pieces.push_back({thread->state, thread->state_bytes.data(), thread->state_bytes.size()});
    memory.read(pieces);
    if (threads.empty() || !pieces[0].ok || head != threads[0]->state) return false;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      if (!pieces[i + 1].ok) return false;
      take_state(*threads[i]);
      const std::uint64_t expected = i + 1 < threads.size() ? threads[i + 1]->state : 0;
      if (threads[i]->next != expected) return false;
    }
    return true;
  }

  // Follows the list from its head.
  bool walk_threads() {
    std::unordered_map<std::uint64_t, std::unique_ptr<Thread>> known;
    for (auto& thread : threads) known.emplace(thread->state, std::move(thread));
    threads.clear();
    std::uint64_t state = 0;
    if (!memory.read(interpreter + layout.threads_head, &state, sizeof state)) return false;
    while (state != 0) {
      if (threads.size() == kMostThreads) {
        ++counts.lost_threads;
        break;
      }
      if (!is_plausible(state)) return false;
      const auto before = known.find(state);
      auto thread =
          before != known.end() && before->second ? std::move(before->second) : make_thread(state);
      thread->id = 0;
      if (!memory.read(state, thread->state_bytes.data(), thread->state_bytes.size())) return false;
      take_state(*thread);
      state = thread->next;
      threads.push_back(std::move(thread));
    }
    return true;
  }

  bool read_threads() {
    if (read_known_threads()) return true;
    for (int tries = 0; tries < kMostTries; ++tries)
      if (walk_threads()) return true;
    threads.clear();
    return false;
  }

  // From 3.11 to 3.12 a thread's state has a pointer to a pointer to its frame.
  void follow_cframes() {
    if (layout.cframe_frame == kNoOffset) return;
    pieces.clear();
    for (const auto& thread : threads)
      pieces.push_back({thread->frame + layout.cframe_frame, &thread->frame, sizeof thread->frame});
    memory.read(pieces);
    for (std::size_t i = 0; i < threads.size(); ++i)
      if (!pieces[i].ok) threads[i]->frame = 0;
  }

  // ---- frames

  void prepare_copy(Thread& thread) {
    thread.frames_size = 0;
    if (layout.chunk == kNoOffset || thread.frame == 0) return;
    const unsigned char* bytes = thread.state_bytes.data();
    const auto chunk = word_at<std::uint64_t>(bytes, layout.chunk);
    const auto top = word_at<std::uint64_t>(bytes, layout.chunk_top);
    if (!is_plausible(chunk)) return;
    const bool has_top = top > chunk && top - chunk <= kMostChunkBytes;
    const std::size_t size = has_top ? top - chunk : kChunkBytes;
    if (thread.frames.size() < size) thread.frames.resize(size);
    thread.frames_at = chunk;
    pieces.push_back({chunk, thread.frames.data(), size});
  }

  void copy_frames() {
    pieces.clear();
    std::vector<Thread*>& owners = copy_owners;
    owners.clear();
    for (const auto& thread : threads) {
      const std::size_t before = pieces.size();
      prepare_copy(*thread);
      if (pieces.size() != before) owners.push_back(thread.get());
    }
    memory.read(pieces);
    for (std::size_t i = 0; i < owners.size(); ++i)
      owners[i]->frames_size = pieces[i].ok ? pieces[i].size : 0;
  }
  std::vector<Thread*> copy_owners;

  // The bytes of a frame: from the thread's copy, or from a read of its own; null: not readable.
  const unsigned char* frame_bytes(const Thread& thread, std::uint64_t frame) {
    const auto in = [&](std::uint64_t at, std::size_t size) {
      return frame >= at && frame - at < size && size - (frame - at) >= layout.frame_bytes;
    };
    if (in(thread.frames_at, thread.frames_size))
      return thread.frames.data() + (frame - thread.frames_at);
    if (in(block_at, block_size)) return block.data() + (frame - block_at);
    // Callers lie below in the same memory.
    block_size = 0;
    if (layout.chunk != kNoOffset) {
      block_at = frame + layout.frame_bytes - kBlockBytes;
      if (memory.read(block_at, block.data(), kBlockBytes)) {
        block_size = kBlockBytes;
        return block.data() + (kBlockBytes - layout.frame_bytes);
      }
    }
    block_at = frame;
    if (!memory.read(frame, block.data(), layout.frame_bytes)) return nullptr;
    block_size = layout.frame_bytes;
    return block.data();
  }

  bool is_of_generator(const unsigned char* frame) const {
    return layout.frame_generator != kNoOffset
               ? word_at<std::uint64_t>(frame, layout.frame_generator) != 0
               : frame[layout.frame_owner] == kOwnedByGenerator;
  }

  // Follows the frames outwards. False: something in them cannot be.
  bool walk(Thread& thread) {
    thread.raw.clear();
    thread.is_cut = false;
    block_size = 0;
    std::uint64_t frame = thread.frame;
    for (std::size_t steps = 0; frame != 0; ++steps) {
      if (thread.raw.size() == kMostFrames) {
        thread.is_cut = true;
        return true;
      }
      const unsigned char* bytes =
          is_plausible(frame) && steps < kMostSteps ? frame_bytes(thread, frame) : nullptr;
      if (!bytes) return false;
      const bool is_foreign = layout.frame_owner != kNoOffset &&
                              bytes[layout.frame_owner] >= layout.first_foreign_owner;
      if (!is_foreign) {
        auto code = word_at<std::uint64_t>(bytes, layout.frame_code);
        if (layout.version >= 0x030e) code &= ~kTagBits;
        if (!is_plausible(code)) return false;
        const auto instruction = layout.code_bytecode == kNoOffset
                                     ? word_at<std::uint32_t>(bytes, layout.frame_instruction)
                                     : word_at<std::uint64_t>(bytes, layout.frame_instruction);
        thread.raw.push_back({code, instruction});
      }
      frame = word_at<std::uint64_t>(bytes, layout.frame_previous);
      // It was suspended meanwhile, and its callers are not known.
      if (frame == 0 && is_of_generator(bytes)) return false;
    }
    return true;
  }

  // Reads the thread again, alone.
  bool read_again(Thread& thread) {
    if (!memory.read(thread.state, thread.state_bytes.data(), thread.state_bytes.size()))
      return false;
    take_state(thread);
    if (layout.cframe_frame != kNoOffset &&
        !memory.read(thread.frame + layout.cframe_frame, &thread.frame, sizeof thread.frame))
      return false;
    pieces.clear();
    prepare_copy(thread);
    memory.read(pieces);
    thread.frames_size = !pieces.empty() && pieces[0].ok ? pieces[0].size : 0;
    return walk(thread);
  }

  // ---- code objects

  void want_check(const Thread& thread) {
    for (const RawFrame& frame : thread.raw) to_check.push_back(frame.code);
  }

  // Copies the heads of `to_check` in one read; those that are what is known, or can be read, are
  // left, sorted.
  void check_codes() {
    std::sort(to_check.begin(), to_check.end());
    to_check.erase(std::unique(to_check.begin(), to_check.end()), to_check.end());
    const std::size_t size = layout.code_bytes();
    heads.resize(to_check.size() * size);
    pieces.clear();
    for (std::size_t i = 0; i < to_check.size(); ++i)
      pieces.push_back({to_check[i], heads.data() + i * size, size});
    memory.read(pieces);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < to_check.size(); ++i)
      if (pieces[i].ok && codes.know(to_check[i], codes.head_of(heads.data() + i * size)))
        to_check[kept++] = to_check[i];
    to_check.resize(kept);
  }

  bool resolve(Thread& thread) {
    SampledStack& stack = thread.stack;
    stack.frames.clear();
    stack.thread = thread.id;
    stack.state = thread.state;
    stack.is_cut = thread.is_cut;
    for (const RawFrame& raw : thread.raw) {
      SampledFrame frame;
      bool skip = false;
      if (!std::binary_search(to_check.begin(), to_check.end(), raw.code) ||
          !codes.frame_at(raw.code, raw.instruction, &frame, &skip))
        return false;
      if (!skip) stack.frames.push_back(frame);
    }
    return true;
  }

  bool is_unchanged(const Thread& thread) const {
    return thread.was_good && thread.trusted < kTrustedSamples && thread.raw == thread.raw_before &&
           thread.stack.thread == thread.id && thread.stack.is_cut == thread.is_cut;
  }

  // The stack of a thread whose frames have been walked.
  void finish(Thread& thread) {
    thread.was_good = thread.is_whole && resolve(thread);
    for (int tries = 1; !thread.was_good && tries < kMostTries; ++tries) {
      if (!read_again(thread)) continue;
      to_check.clear();
      want_check(thread);
      check_codes();
      thread.was_good = resolve(thread);
    }
    thread.trusted = 0;
    std::swap(thread.raw_before, thread.raw);
    if (!thread.was_good) ++counts.torn;
  }

  void forget_when_full() {
    const std::uint32_t before = codes.generation();
    codes.keep_bounded();
    if (codes.generation() != before)
      for (const auto& thread : threads) thread->was_good = false;
  }

  const std::vector<SampledStack>& run(std::uint64_t skip) {
    stacks.clear();
    forget_when_full();
    if (!read_threads()) {
      ++counts.lost_samples;
      return stacks;
    }
    follow_cframes();
    copy_frames();
    to_check.clear();
    for (const auto& thread : threads) {
      thread->is_whole = walk(*thread);
      if (thread->is_whole && !is_unchanged(*thread)) want_check(*thread);
    }
    std::vector<Thread*>& changed = changed_threads;
    changed.clear();
    if (!to_check.empty()) check_codes();
    for (const auto& thread : threads) {
      if (thread->is_whole && is_unchanged(*thread))
        ++thread->trusted;
      else
        changed.push_back(thread.get());
    }
    // Whole ones first: reading one again replaces `to_check`.
    std::stable_partition(changed.begin(), changed.end(), [&](Thread* thread) {
      return thread->is_whole &&
             std::all_of(thread->raw.begin(), thread->raw.end(), [&](const RawFrame& raw) {
               return std::binary_search(to_check.begin(), to_check.end(), raw.code);
             });
    });
    for (Thread* thread : changed) finish(*thread);
    for (const auto& thread : threads)
      if (thread->was_good && thread->id != skip) stacks.push_back(thread->stack);
    return stacks;
  }
  std::vector<Thread*> changed_threads;
};

StackReader::StackReader(ProcessMemory& memory, const PythonLayout& layout,
                         std::uint64_t interpreter, std::uint64_t code_type)
    : impl_(std::make_unique<Impl>(memory, layout, interpreter, code_type)) {}
StackReader::~StackReader() = default;

const std::vector<SampledStack>& StackReader::sample(std::uint64_t skip) {
  return impl_->run(skip);
}
const SampledFunction& StackReader::function(std::uint32_t number) const {
  return impl_->codes.function(number);
}
std::uint32_t StackReader::generation() const { return impl_->codes.generation(); }
const StackReader::Counts& StackReader::counts() const { return impl_->counts; }

std::uint64_t first_interpreter(ProcessMemory& memory, const PythonLayout& layout,
                                std::uint64_t runtime) {
  std::uint64_t head = 0;
  const bool ok = memory.read(runtime + layout.interpreters_head, &head, sizeof head);
  return ok && is_plausible(head) ? head : 0;
}

}  // namespace lanescope::sample
