#include "frame_stack.h"

#include <utility>

#include "frame_modules.h"
#include "frame_names.h"
#include "lanescope/codec/op_details.h"
#include "python_frames.h"

namespace lanescope::python::frames {
namespace {

std::uint64_t frames_began = 0;  // ticks; with the GIL
__thread bool thread_is_ending __attribute__((tls_model("initial-exec"))) = false;

struct FreeThreadFrames {
  ~FreeThreadFrames() {
    thread_is_ending = true;
    if (LanescopeWriter* const writer = lanescope_thread_writer) writer->frame_changes = nullptr;
    delete std::exchange(thread_frames, nullptr);
  }
};

[[gnu::noinline]] ThreadFrames* make_thread_frames() {
  if (thread_is_ending) return nullptr;
  static thread_local FreeThreadFrames at_thread_end;
  static_cast<void>(&at_thread_end);
  return thread_frames = new ThreadFrames;
}

[[gnu::noinline]] void count_too_deep(ThreadFrames& thread) {
  ++thread.lost;
  if (LanescopeWriter* writer = record::thread_writer()) {
    record::RecordingScope inside(writer);
    if (inside.ok()) inside.count(&spool::ThreadSlot::depth_overflow);
  }
}

// Of the frames around that of `key`.
std::uint64_t hash_callers(const ThreadFrames& thread, Key key) {
  const bool is_c_call = frame_of_key(key) != key;
  const void* const outer = lanescope_outer_frame(reinterpret_cast<const void*>(frame_of_key(key)));
  if (thread.count != 0) {
    const OpenFrame& last = thread.open[thread.count - 1];
    if (is_c_call && last.key == frame_of_key(key)) return last.callers_hash;
    if (!is_c_call && outer && frame_of_key(last.key) == key_of(outer))
      return lanescope_hash_on(last.callers_hash, lanescope_frame_instruction(outer));
  }
  return lanescope_hash_frames(outer, codec::kMaxStackFrames);
}

void begin_empty(ThreadFrames& thread, std::uint32_t window) {
  if (LanescopeWriter* const writer = record::thread_writer())
    writer->frame_changes = &thread.events;
  thread.window = window;
  thread.lost = 0;
  thread.import = 0;
  thread.count = 0;
}

// What was open when the window began: `innermost` and all around it.
[[gnu::noinline]] void begin_window(ThreadFrames& thread, std::uint32_t window,
                                    const void* innermost, std::uint32_t options) {
  begin_empty(thread, window);
  std::uint64_t began = frames_began;
  const auto& hooked = hooked_threads();
  if (const auto since = hooked.find(PyThreadState_Get()); since != hooked.end())
    began = since->second;
  const void* frames[kMostAtStart];
  std::size_t count = 0;
  for (; innermost && count < kMostAtStart; innermost = lanescope_outer_frame(innermost))
    frames[count++] = innermost;
  while (count-- > 0 && thread.import == 0) push_frame(thread, frames[count], options, began);
}

}  // namespace

void count_changes([[maybe_unused]] bool on) {
#if PY_VERSION_HEX >= 0x030c0000
  static std::uint32_t last = 0;  // a mark from before must not be one from after
  lanescope_frames_counted.store(on ? ++last : 0, std::memory_order_relaxed);
#endif
}

std::uint64_t mark_without_frames() {
  const std::uint32_t window = lanescope_recording.load(std::memory_order_relaxed);
  if (window == 0 || !hot.on.load(std::memory_order_relaxed) ||
      lanescope_frames_counted.load(std::memory_order_relaxed) == 0 ||
      !are_all_frames_wanted(record::record_options()))
    return 0;
  ThreadFrames* const thread = thread_frames ? thread_frames : make_thread_frames();
  if (!thread) return 0;
  if (thread->window != window) begin_empty(*thread, window);
  return thread->count == 0 ? frame_mark() : 0;
}

void set_frames_began(std::uint64_t ticks) { frames_began = ticks; }

// Never destroyed: threads may run beyond main().
std::unordered_map<PyThreadState*, std::uint64_t>& hooked_threads() {
  static auto* instance = new std::unordered_map<PyThreadState*, std::uint64_t>;
  return *instance;
}

void push(ThreadFrames& thread, Key key, record::RangeInfo info, std::uint64_t began) {
  ++thread.events;
  if (thread.count == kMostOpen) [[unlikely]]
    return count_too_deep(thread);
  info.scope = spool::kFrameScope;
  info.forward_thread = thread.count + 1;
  const record::RangeToken token = record::begin_range(info, began);
  const std::uint64_t callers = hash_callers(thread, key);
  thread.open[thread.count++] = {key, token, callers};
}

void pop_to(ThreadFrames& thread, std::uint32_t count) {
  const std::uint64_t now = record::ticks();
  ++thread.events;
  for (; thread.count > count; --thread.count) {
    const OpenFrame& open = thread.last();
    record::end_range(open.token(), now);
    if (open.key == thread.import) thread.import = 0;
  }
  thread.lost = 0;
}

void push_frame(ThreadFrames& thread, const void* frame, std::uint32_t options,
                std::uint64_t began) {
  const void* const code = lanescope_frame_code(frame);
  record::RangeInfo info;
  if (code == hot.module_code) {
    auto* const self = static_cast<PyObject*>(const_cast<void*>(lanescope_first_argument(frame)));
    if (self) {
      const NamedModule module = module_of(self);
      info.name = module.name;
      info.flags = spool::kModuleFrame;
      info.sequence_number = module.number;
    }
  } else if (!(options & LANESCOPE_RECORD_STACK)) {
    return;
  }
  if (info.name == 0) info.name = name_of(frame);
  if (info.name == 0) return;
  push(thread, key_of(frame), info, began);
  if (code == hot.import_code && thread.count != 0 && thread.last().key == key_of(frame))
    thread.import = key_of(frame);
}

ThreadFrames* ready(std::uint32_t options, const void* known) {
  if (!(options & kFrameOptions)) return nullptr;
  const std::uint32_t window = lanescope_recording.load(std::memory_order_relaxed);
  if (window == 0 || !hot.on.load(std::memory_order_relaxed)) return nullptr;
  ThreadFrames* thread = thread_frames;
  if (!thread) [[unlikely]]
    thread = make_thread_frames();
  if (thread && thread->window != window) [[unlikely]]
    begin_window(*thread, window, known, options);
  return thread;
}

void match_caller(ThreadFrames& thread, const void* caller) {
  if (thread.count == 0 || frame_of_key(thread.last().key) == key_of(caller)) return;
  const auto at = find_open(thread, [&](Key key) { return frame_of_key(key) == key_of(caller); });
  if (at) pop_to(thread, *at + 1);
}

void leave(ThreadFrames& thread, Key key) {
  if (thread.count == 0) return;
  if (thread.last().key == key) {
    const OpenFrame& open = thread.open[--thread.count];
    ++thread.events;
    if (key == thread.import) thread.import = 0;
    return record::end_range(open.token());
  }
  if (thread.lost != 0) {
    --thread.lost;
    ++thread.events;
    return;
  }
  if (const auto at = find_open(thread, [key](Key open) { return open == key; }))
    pop_to(thread, *at);
}

}  // namespace lanescope::python::frames
