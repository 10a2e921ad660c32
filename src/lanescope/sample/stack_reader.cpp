#include "lanescope/sample/stack_reader.h"

#include <algorithm>

#include "lanescope/sample/code_table.h"
#include "lanescope/sample/thread_list.h"

namespace lanescope::sample {
namespace {

constexpr std::size_t kBlockBytes = 4096;  // read below a frame that is in no copy
constexpr std::size_t kMostSteps = 4 * StackReader::kMostFrames;
constexpr std::uint32_t kTrustedSamples = 64;  // an unchanged frame is checked again after so many
constexpr int kMostTries = 3;                  // of a stack that is torn
constexpr std::uint64_t kTagBits = 3;          // of a reference in a frame, from 3.14 on

// Frames, from the outermost one on, that are as they were in a sample whose code objects were known.
std::size_t unchanged_frames(const Thread& thread) {
  if (!thread.was_good || thread.trusted >= kTrustedSamples) return 0;
  const auto end = std::mismatch(thread.raw.rbegin(), thread.raw.rend(), thread.raw_before.rbegin(),
                                 thread.raw_before.rend());
  return static_cast<std::size_t>(end.first - thread.raw.rbegin());
}

}  // namespace

struct StackReader::Impl {
  ProcessMemory& memory;
  PythonLayout layout;
  CodeTable codes;
  ThreadList list;
  Counts counts;
  std::vector<SampledStack> stacks;
  std::vector<MemoryPiece> pieces;
  std::vector<unsigned char> heads;
  std::vector<std::uint64_t> to_check;
  std::vector<Thread*> changed;
  std::vector<unsigned char> block;
  std::uint64_t block_at = 0;
  std::size_t block_size = 0;

  Impl(ProcessMemory& process, const PythonLayout& offsets, std::uint64_t interpreter,
       std::uint64_t code_type)
      : memory(process),
        layout(offsets),
        codes(process, layout, code_type),
        list(process, layout, interpreter),
        block(kBlockBytes) {}

  // ---- frames

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

  // ---- code objects

  // Those of its frames that are not as they were.
  void want_check(Thread& thread) {
    thread.known_frames = unchanged_frames(thread);
    const std::size_t count = thread.raw.size() - thread.known_frames;
    // The head of the innermost one was copied together with the frames, if it was the same before.
    thread.is_code_known = count != 0 && thread.has_code_head &&
                           thread.code == thread.raw.front().code &&
                           codes.know(thread.code, codes.head_of(thread.code_head.data()));
    for (std::size_t i = 0; i < count; ++i)
      if (!is_known(thread, i)) to_check.push_back(thread.raw[i].code);
  }
  static bool is_known(const Thread& thread, std::size_t i) {
    return i + thread.known_frames >= thread.raw.size() ||
           (thread.is_code_known && thread.raw[i].code == thread.code);
  }
  bool is_checked(const Thread& thread, std::size_t i) const {
    return is_known(thread, i) ||
           std::binary_search(to_check.begin(), to_check.end(), thread.raw[i].code);
  }
  bool is_all_checked(const Thread& thread) const {
    for (std::size_t i = 0; i < thread.raw.size(); ++i)
      if (!is_checked(thread, i)) return false;
    return true;
  }

  // Copies the heads of `to_check` in one read; those that are what is known, or can be read, are
  // left, sorted.
  void check_codes() {
    if (to_check.empty()) return;
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
    for (std::size_t i = 0; i < thread.raw.size(); ++i) {
      SampledFrame frame;
      bool skip = false;
      if (!is_checked(thread, i) ||
          !codes.frame_at(thread.raw[i].code, thread.raw[i].instruction, &frame, &skip))
        return false;
      if (!skip) stack.frames.push_back(frame);
    }
    return true;
  }

  static bool is_unchanged(const Thread& thread) {
    return thread.was_good && thread.known_frames == thread.raw.size() &&
           thread.raw.size() == thread.raw_before.size() && thread.stack.thread == thread.id &&
           thread.stack.is_cut == thread.is_cut;
  }

  // The stack of a thread whose frames have been walked.
  void finish(Thread& thread) {
    bool is_new = thread.known_frames == 0;
    thread.was_good = thread.is_whole && resolve(thread);
    for (int tries = 1; !thread.was_good && tries < kMostTries; ++tries) {
      if (!list.read_again(thread) || !walk(thread)) continue;
      to_check.clear();
      want_check(thread);  // all of them: it was not good
      check_codes();
      thread.was_good = resolve(thread);
      is_new = true;
    }
    thread.trusted = is_new ? 0 : thread.trusted + 1;
    // A thread that moves is likely to be in this function in the next sample, too.
    thread.code = thread.was_good && !thread.raw.empty() ? thread.raw.front().code : 0;
    std::swap(thread.raw_before, thread.raw);
    if (!thread.was_good) ++counts.torn;
  }

  void forget_when_full() {
    const std::uint32_t before = codes.generation();
    codes.keep_bounded();
    if (codes.generation() != before)
      for (const auto& thread : list.threads()) thread->was_good = false;
  }

  const std::vector<SampledStack>& run(std::uint64_t skip, std::span<MemoryPiece> read_first) {
    stacks.clear();
    forget_when_full();
    const bool is_read = list.read(read_first);
    counts.lost_threads = list.left_out();
    if (!is_read) {
      ++counts.lost_samples;
      return stacks;
    }
    to_check.clear();
    changed.clear();
    for (const auto& thread : list.threads()) {
      thread->known_frames = 0;
      thread->is_whole = walk(*thread);
      if (thread->is_whole) want_check(*thread);
      if (thread->is_whole && is_unchanged(*thread)) {
        ++thread->trusted;
        thread->code = 0;
      } else {
        changed.push_back(thread.get());
      }
    }
    check_codes();
    // Whole ones first: reading one again replaces `to_check`.
    std::stable_partition(changed.begin(), changed.end(), [this](const Thread* thread) {
      return thread->is_whole && is_all_checked(*thread);
    });
    for (Thread* thread : changed) finish(*thread);
    for (const auto& thread : list.threads())
      if (thread->was_good && thread->id != skip) stacks.push_back(thread->stack);
    return stacks;
  }
};

StackReader::StackReader(ProcessMemory& memory, const PythonLayout& layout,
                         std::uint64_t interpreter, std::uint64_t code_type)
    : impl_(std::make_unique<Impl>(memory, layout, interpreter, code_type)) {}
StackReader::~StackReader() = default;

const std::vector<SampledStack>& StackReader::sample(std::uint64_t skip,
                                                     std::span<MemoryPiece> read_first) {
  return impl_->run(skip, read_first);
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
