// Call stacks of operators and ranges: walk, look up, and only for a stack not met before, text.
//
// Problem: an operator's callback runs without the GIL, often a million times a second, and wants
// to know which Python lines led to it. Idea: the thread in the callback owns its frames, so it
// reads the instruction of each one (python_frames.h); their hash finds the stack's id in a table
// of this thread. A miss builds the id from the outermost frame inwards, one interned node {frame
// text, node of its caller} a frame, so a thousand stacks that share callers share their nodes.
// Cost: bench/stack_cost.py.
//
// A code object may be freed and another one made at its address. Every code object that a stack
// was read from is known by address; when one of them is destroyed, it is forgotten and the
// generation counts up, which makes all ids in all threads' tables stale.
// docs/decisions/python_stacks.md argues why that is enough.
#include "python_stacks.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <pybind11/stl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bindings.h"
#include "frame_stack.h"
#include "lanescope/base/utf8.h"
#include "lanescope/codec/op_details.h"
#include "lanescope/record/thread_writer.h"
#include "python_frames.h"

namespace lanescope::python {

// Counts the destroyed code objects that had been seen. The thread that meets a new code object at
// an old address has got the GIL, or its work, after the one that destroyed the old object let go
// of it; so relaxed is enough.
constinit std::atomic<std::uint32_t> code_generations{1};

namespace {

constexpr std::size_t kMaxFrames = codec::kMaxStackFrames;
constexpr std::size_t kMaxFrameText = 1024;  // bytes of "file(line): function"
constexpr std::size_t kSeenLines = 512;      // a power of two

struct SeenStack {
  std::uint64_t hash;
  std::uint32_t generation;  // 0: empty
  std::uint32_t id;
};
// The stacks whose hashes have the same place, the newest first. A stack that is looked up again in full takes
// some microseconds, so those of a step should not take each other's places.
struct alignas(64) SeenLine {
  std::array<SeenStack, 4> stacks;
  void add(const SeenStack& stack) {
    std::shift_right(stacks.begin(), stacks.end(), 1);
    stacks.front() = stack;
  }
};

// What one thread keeps. Only its thread touches it, except `inside`.
struct ThreadStacks {
  // 1 while the thread reads its frames: end_stacks() waits for 0 (acquire, pairs with the release
  // in Reading).
  std::atomic<std::uint32_t> inside{0};
  std::array<SeenLine, kSeenLines> seen{};
};

struct CodeText {
  std::string file, function;
  std::unordered_map<int, std::uint32_t> frames;  // byte offset -> text id
};

struct Stacks {
  std::mutex mutex;
  std::unordered_map<const void*, CodeText> codes;  // guarded by mutex, as all below
  std::vector<std::string> prefixes;                // of file names, to be left out
  std::vector<ThreadStacks*> threads;
  bool is_prepared = false;
};

// Never destroyed: threads may run operators beyond main().
Stacks& stacks() {
  static auto* instance = new Stacks;
  return *instance;
}

std::atomic<bool> enabled{false};
bool has_membarrier = false;  // written before `enabled`

__thread ThreadStacks* thread_stacks __attribute__((tls_model("initial-exec"))) = nullptr;
__thread bool thread_ends __attribute__((tls_model("initial-exec"))) = false;

void forget_thread(ThreadStacks* gone) {
  const std::lock_guard lock(stacks().mutex);
  std::erase(stacks().threads, gone);
}

struct FreeThreadStacks {
  ~FreeThreadStacks() {
    thread_ends = true;
    const std::unique_ptr<ThreadStacks> own(std::exchange(thread_stacks, nullptr));
    if (own) forget_thread(own.get());
  }
};

[[gnu::noinline]] ThreadStacks* make_thread_stacks() {
  if (thread_ends) return nullptr;
  static thread_local FreeThreadStacks at_thread_end;
  static_cast<void>(&at_thread_end);
  auto made = std::make_unique<ThreadStacks>();
  const std::lock_guard lock(stacks().mutex);
  stacks().threads.push_back(made.get());
  return thread_stacks = made.release();
}

// Marks this thread as one that reads its frames; `ok` when it may.
class Reading {
 public:
  explicit Reading(ThreadStacks* thread) : thread_(thread) {
    thread_->inside.store(1, std::memory_order_relaxed);
    if (has_membarrier)
      std::atomic_signal_fence(std::memory_order_seq_cst);  // end_stacks() makes it a real fence
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
    ok_ = enabled.load(std::memory_order_acquire);
  }
  ~Reading() { thread_->inside.store(0, std::memory_order_release); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  bool ok() const { return ok_; }

 private:
  ThreadStacks* thread_;
  bool ok_;
};

// ---- text ---------------------------------------------------------------------------------------

// A str's own characters: they never change, so that no GIL is needed. (Its UTF-8 copy, which
// PyUnicode_AsUTF8 would make, is written by whoever asks first.)
std::string text_of(PyObject* object) {
  std::string out;
  if (!object || !PyUnicode_Check(object)) return "?";
#if PY_VERSION_HEX < 0x030c0000
  if (!PyUnicode_IS_READY(object)) return "?";
#endif
  const auto kind = PyUnicode_KIND(object);
  const void* data = PyUnicode_DATA(object);
  const Py_ssize_t size = PyUnicode_GET_LENGTH(object);
  for (Py_ssize_t i = 0; i < size && out.size() < kMaxFrameText; ++i) {
    const Py_UCS4 c = PyUnicode_READ(kind, data, i);
    append_utf8(out, c == ';' ? '_' : c);  // a semicolon is between frames
  }
  return out;
}

CodeText& code_text(Stacks& all, const void* object) {
  const auto [it, is_new] = all.codes.try_emplace(object);
  if (!is_new) return it->second;
  const auto* code = static_cast<const PyCodeObject*>(object);
  it->second.file = text_of(code->co_filename);
  it->second.function = text_of(code->co_name);
  for (const std::string& prefix : all.prefixes) {
    if (!it->second.file.starts_with(prefix)) continue;
    it->second.file.erase(0, prefix.size());
    break;
  }
  return it->second;
}

std::uint32_t frame_text(Stacks& all, const void* code, int offset) {
  CodeText& known = code_text(all, code);
  const auto [it, is_new] = known.frames.try_emplace(offset);
  if (!is_new) return it->second;
  std::string text =
      known.file + "(" + std::to_string(lanescope_line_of(code, offset)) + "): " + known.function;
  return it->second = record::intern_text(text.data(), text.size());
}

std::uint32_t add_node(std::uint32_t frame, std::uint32_t caller) {
  char buffer[codec::kMaxStackNodeBytes];
  codec::OpDetailsWriter out(buffer, sizeof buffer);
  out.stack_node(frame, caller);
  const std::string_view bytes = out.bytes();
  return record::intern_text(bytes.data(), bytes.size());
}

// All frames are on this thread's stack, so their code objects live.
[[gnu::noinline]] std::uint32_t add_stack(const void* innermost) noexcept {
  LanescopeFrame frames[kMaxFrames];
  int is_cut = 0;
  const std::size_t count = lanescope_walk_frames(innermost, frames, kMaxFrames, &is_cut);
  try {
    Stacks& all = stacks();
    const std::lock_guard lock(all.mutex);
    constexpr std::string_view kDeeper = "(deeper frames left out)";
    std::uint32_t node =
        is_cut ? add_node(record::intern_text(kDeeper.data(), kDeeper.size()), 0) : 0;
    for (std::size_t at = count; at-- > 0;) {
      int offset = 0;
      const int kind = lanescope_frame_offset(&frames[at], &offset);
      if (kind == 0) code_text(all, frames[at].code);  // in the hash, so its end must be noticed
      if (kind == 1) node = add_node(frame_text(all, frames[at].code, offset), node);
    }
    return node;
  } catch (...) {  // out of memory: this range goes without
    return 0;
  }
}

// ---- starting and ending ------------------------------------------------------------------------

// With the GIL, in the thread that drops the last reference.
void code_is_destroyed(const void* code) {
  Stacks& all = stacks();
  const std::lock_guard lock(all.mutex);
  if (all.codes.erase(code) != 0) code_generations.fetch_add(1, std::memory_order_relaxed);
}

// The other threads are gone in a forked child, wherever they were.
void after_fork_in_child() {
  Stacks& all = stacks();
  all.threads.clear();
  if (thread_stacks) all.threads.push_back(thread_stacks);
  all.mutex.unlock();
}

std::string prepare(Stacks& all) {
  if (all.is_prepared) return {};
  // The recorder takes its locks inside ours, here and around fork(): its handlers come first.
  if (!record::thread_writer()) return "the recorder has no memory for this thread";
  if (lanescope_watch_code(code_is_destroyed) != 0)
    return "Python has no place left for one more watcher of code objects";
  has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  pthread_atfork([] { stacks().mutex.lock(); }, [] { stacks().mutex.unlock(); },
                 after_fork_in_child);
  lanescope_frames_home();
  all.is_prepared = true;
  return {};
}

// Why there will be no stacks, in one line; empty when there will.
std::string start_stacks(std::vector<std::string> prefixes) {
  if (const char* reason = lanescope_frames_unsupported()) return reason;
  Stacks& all = stacks();
  const std::lock_guard lock(all.mutex);
  if (std::string reason = prepare(all); !reason.empty()) return reason;
  if (all.prefixes != prefixes) {
    all.prefixes = std::move(prefixes);
    all.codes.clear();
    code_generations.fetch_add(1, std::memory_order_relaxed);
  }
  enabled.store(true, std::memory_order_release);
  return {};
}

// From Python's atexit: afterwards no thread looks at frames, which the interpreter is about to
// free under threads that are still busy.
void end_stacks() {
  enabled.store(false, std::memory_order_release);
  if (has_membarrier) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto is_any_inside = [] {
    const std::lock_guard lock(stacks().mutex);
    return std::ranges::any_of(stacks().threads, [](const ThreadStacks* thread) {
      return thread->inside.load(std::memory_order_acquire) != 0;
    });
  };
  while (is_any_inside() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
}

}  // namespace

namespace {

// Of the stack from `frame` outwards; inside a Reading.
inline std::uint32_t id_of_stack(ThreadStacks* thread, std::uint64_t hash,
                                 const void* frame) noexcept {
  const std::uint32_t now = code_generation();
  SeenLine& line = thread->seen[hash & (kSeenLines - 1)];
  for (const SeenStack& seen : line.stacks)
    if (seen.hash == hash && seen.generation == now) return seen.id;
  const std::uint32_t id = add_stack(frame);
  line.add({hash, now, id});
  return id;
}

// capture_stack() wherever the thread is.
[[gnu::noinline]] std::uint32_t capture_anywhere(LanescopeStackPosition* position,
                                                 std::uint32_t known, std::uint64_t mark) noexcept {
  ThreadStacks* thread = thread_stacks;
  if (!thread) [[unlikely]] {
    try {
      thread = make_thread_stacks();
    } catch (...) {
    }
    if (!thread) return 0;
  }
  const Reading reading(thread);
  if (!reading.ok()) return 0;
  const void* instruction = nullptr;
  const void* const frame = lanescope_innermost_frame(&instruction);
  if (!frame) {
    const std::uint64_t empty = frames::mark_without_frames();
    *position = {nullptr, nullptr, empty, empty != 0};
    return 0;
  }
  if (position->frame == frame && position->instruction == instruction) return known;
  *position = {frame, instruction, mark, frames::innermost_c_call(mark).frame == frame};
  const auto hash = frames::hash_of_stack(mark, frame, instruction);
  return id_of_stack(thread, hash ? *hash : lanescope_hash_frames(frame, kMaxFrames), frame);
}

}  // namespace

std::uint32_t capture_stack(LanescopeStackPosition* position, std::uint32_t known) noexcept {
  const std::uint64_t mark = frames::frame_mark();
  if (mark != 0 && position->mark == mark) return known;  // as most operators inside others
  // Nearly all others are called by a C function that Python called, and whose frame is known: Python
  // is not asked for it.
  ThreadStacks* const thread = thread_stacks;
  const frames::InnermostCCall call = frames::innermost_c_call(mark);
  if (!thread || !call.frame) return capture_anywhere(position, known, mark);
  const Reading reading(thread);
  if (!reading.ok()) return 0;
  const void* const instruction = lanescope_frame_instruction(call.frame);
  *position = {call.frame, instruction, mark, 1};
  return id_of_stack(thread, lanescope_hash_on(call.callers_hash, instruction), call.frame);
}

std::uint32_t frame_text_id(const LanescopeFrame& frame) noexcept {
  try {
    Stacks& all = stacks();
    const std::lock_guard lock(all.mutex);
    int offset = 0;
    if (!all.is_prepared || lanescope_frame_offset(&frame, &offset) != 1) return 0;
    return frame_text(all, frame.code, offset);
  } catch (...) {  // out of memory: this frame goes without
    return 0;
  }
}

void bind_stacks(py::module_& m) {
  m.def(
      "start_stacks",
      [](std::vector<std::string> prefixes) { return to_str(start_stacks(std::move(prefixes))); },
      py::arg("prefixes"));
  m.def("end_stacks", [] { without_gil([] { end_stacks(); }); });
  m.def("stack_function", [] {
    return reinterpret_cast<std::uintptr_t>(static_cast<LanescopeStackFunction>(
        [](LanescopeStackPosition* position, std::uint32_t known) {
          return capture_stack(position, known);
        }));
  });
}

}  // namespace lanescope::python
