// Python frames: a range for each call of a function, as torch.profiler's with_stack writes them.
//
// Problem: a hook runs at each call and return of the program, a million times a second and more.
// Idea: the recorder's own hot path takes the range (thread_writer.h), and a name is one look into
// a small table: by code object and instruction for Python functions, by method definition for C
// functions, by object for modules. The hook is Python's: up to 3.11 the C profile hook of each
// thread, from 3.12 on callbacks of sys.monitoring, which lanescope/_frames.py sets. All of it runs
// with the GIL, which is the lock of everything here.
//
// A thread's open frames are a stack of (frame, range). Frames come and go out of order where
// greenlets switch, and events may be missing where another profiler takes the hook away; so each
// event says which frame it is about, and what lies above it ends with it.
//
// The first event of a thread in a window writes the frames that were open already, as having begun
// with the window. docs/decisions/python_frames.md.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "bindings.h"
#include "lanescope/record/cost_meter.h"
#include "lanescope/record/thread_writer.h"
#include "python_frames.h"
#include "python_stacks.h"

namespace lanescope::python {
namespace {

constexpr std::uint32_t kFrameOptions = LANESCOPE_RECORD_STACK | LANESCOPE_RECORD_MODULES;
constexpr std::size_t kMostOpen = 4096;    // frames of a thread; deeper ones are counted
constexpr std::size_t kMostAtStart = 256;  // that were open before; further out is left out
constexpr std::size_t kNames = 4096;       // a power of two
constexpr std::size_t kCNames = 1024;      // a power of two

// A Python frame by its address, a call of a C function by that of its caller plus one.
using Key = std::uintptr_t;
Key key_of(const void* frame) { return reinterpret_cast<Key>(frame); }
Key key_of_c_call(const void* caller) { return key_of(caller) | 1; }
Key frame_of_key(Key key) { return key & ~Key{1}; }

struct OpenFrame {
  Key key;
  std::uint32_t sequence, index;  // of the range's token
};

struct ThreadFrames {
  std::uint32_t window = ~std::uint32_t{0};  // that `open` belongs to; at first none
  std::uint32_t count = 0;                   // of `open`
  std::size_t lost = 0;                      // open ones beyond kMostOpen
  Key import = 0;             // the outermost open import, when what it runs is left out
  OpenFrame open[kMostOpen];  // not set at first, so that unused pages take no memory
  OpenFrame& last() { return open[count - 1]; }
};

__thread ThreadFrames* thread_frames __attribute__((tls_model("initial-exec"))) = nullptr;
__thread bool thread_is_ending __attribute__((tls_model("initial-exec"))) = false;

struct FreeThreadFrames {
  ~FreeThreadFrames() {
    thread_is_ending = true;
    delete std::exchange(thread_frames, nullptr);
  }
};

struct alignas(32) KnownFrame {  // in one cache line
  const void* code;
  const void* instruction;
  std::uint32_t generation;  // 0: empty
  std::uint32_t name;
};

// The definition's own words are compared, too: another one may come to its address.
struct alignas(32) KnownFunction {
  const PyMethodDef* definition = nullptr;
  const char* text = nullptr;
  PyCFunction function = nullptr;
  std::uint32_t name = 0;
};

struct KnownModule {
  PyObject* weak = nullptr;  // our weak reference; it tells when the module goes
  std::uint32_t name = 0;
  std::int64_t number = 0;
  std::uint32_t told_in = 0;  // the window in which `module_listener` heard of it
};
struct KnownClass {
  PyObject* weak = nullptr;
  std::int64_t count = 0;
};

// What each event reads. Guarded by the GIL.
struct alignas(64) Hot {
  bool on = false;
  PyObject* module_code = nullptr;  // of nn.Module.__call__
  // Of the function that imports a module; null: it is like others.
  PyObject* import_code = nullptr;
  std::array<KnownFrame, kNames>* names = nullptr;  // never freed, as c_names
  std::array<KnownFunction, kCNames>* c_names = nullptr;
  const PyMethodDef* start_thread = nullptr;  // _thread.start_new_thread
};
constinit Hot hot;

// Guarded by the GIL.
struct Tracer {
  std::uint64_t began = 0;  // ticks
  std::unordered_map<const PyMethodDef*, KnownFunction> c_functions;
  std::unordered_map<PyObject*, KnownModule> modules;
  std::unordered_map<PyObject*, KnownClass> classes;
  std::unordered_map<PyObject*, PyObject*> of_weak;          // a weak reference's module or class
  std::unordered_map<PyThreadState*, std::uint64_t> hooked;  // since which tick
  PyObject* disable = nullptr;                               // sys.monitoring.DISABLE
  PyObject* module_listener = nullptr;                       // see listen_to_modules()
};

// Never destroyed: threads may run beyond main().
Tracer& tracer() {
  static auto* instance = new Tracer;
  return *instance;
}

// ---- names --------------------------------------------------------------------------------------

// A place in a table of `size`, a power of two.
constexpr std::size_t place_of(std::uint64_t key, std::size_t size) {
  return (key * 0x9e3779b97f4a7c15u) >> (64 - std::countr_zero(size));
}

KnownFrame& place_of_frame(const LanescopeFrame& at) {
  // Twice: since Python 3.11 the instruction is itself an address in the code object.
  const std::uint64_t key = reinterpret_cast<std::uintptr_t>(at.code) +
                            2 * reinterpret_cast<std::uintptr_t>(at.instruction);
  return (*hot.names)[place_of(key, kNames)];
}
bool is_known(const KnownFrame& known, const LanescopeFrame& at) {
  return known.code == at.code && known.instruction == at.instruction &&
         known.generation == code_generation();
}

std::uint32_t name_of(const void* frame) {
  const LanescopeFrame at{lanescope_frame_code(frame), lanescope_frame_instruction(frame)};
  KnownFrame& known = place_of_frame(at);
  if (!is_known(known, at)) known = {at.code, at.instruction, code_generation(), frame_text_id(at)};
  return known.name;
}

// As repr() of the function says it. No Python code runs for that.
std::uint32_t text_of_c_function(const PyMethodDef* definition, PyObject* self) {
  char text[512];
  const int size =
      !self || PyModule_Check(self)
          ? std::snprintf(text, sizeof text, "<built-in function %.200s>", definition->ml_name)
          : std::snprintf(text, sizeof text, "<built-in method %.200s of %.200s object at %p>",
                          definition->ml_name, Py_TYPE(self)->tp_name, static_cast<void*>(self));
  return record::intern_text(text, static_cast<std::size_t>(size));
}

KnownFunction& place_of_function(const PyMethodDef* definition) {
  return (*hot.c_names)[place_of(reinterpret_cast<std::uintptr_t>(definition), kCNames)];
}
bool is_known(const KnownFunction& known, const PyMethodDef* definition) {
  return known.definition == definition && known.text == definition->ml_name &&
         known.function == definition->ml_meth;
}

// One name for all objects that a method is called on: that of the first, as in torch.profiler.
std::uint32_t name_of_c_function(const PyMethodDef* definition, PyObject* self) {
  KnownFunction& near = place_of_function(definition);
  if (is_known(near, definition)) return near.name;
  KnownFunction& known = tracer().c_functions[definition];
  if (!is_known(known, definition))
    known = {definition, definition->ml_name, definition->ml_meth,
             text_of_c_function(definition, self)};
  near = known;
  return known.name;
}

// ---- modules ------------------------------------------------------------------------------------

PyObject* forget(PyObject*, PyObject* weak) {
  Tracer& all = tracer();
  if (const auto gone = all.of_weak.find(weak); gone != all.of_weak.end()) {
    all.modules.erase(gone->second);
    all.classes.erase(gone->second);
    all.of_weak.erase(gone);
    Py_DECREF(weak);
  }
  Py_RETURN_NONE;
}

// A weak reference that forget() hears of; null: the object has none, and its address may come
// again. May run the garbage collector, and so anything.
PyObject* watch(PyObject* object) {
  static PyMethodDef definition{"lanescope_forget", forget, METH_O, nullptr};
  static PyObject* const callback = PyCFunction_New(&definition, nullptr);
  PyObject* weak = callback ? PyWeakref_NewRef(object, callback) : nullptr;
  if (!weak) PyErr_Clear();
  return weak;
}

std::string class_name(PyTypeObject* type) {
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    Py_ssize_t size = 0;
    const char* text =
        PyUnicode_AsUTF8AndSize(reinterpret_cast<PyHeapTypeObject*>(type)->ht_name, &size);
    if (text) return std::string(text, static_cast<std::size_t>(size));
    PyErr_Clear();
  }
  const char* last = std::strrchr(type->tp_name, '.');
  return last ? last + 1 : type->tp_name;
}

KnownModule known_module_of(PyObject* self) {
  Tracer& all = tracer();
  if (const auto known = all.modules.find(self); known != all.modules.end()) return known->second;
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  if (!all.classes.contains(type)) {
    PyObject* const weak = watch(type);
    all.classes.try_emplace(type, KnownClass{weak, 0});
    if (weak) all.of_weak.emplace(weak, type);
  }
  PyObject* const weak = watch(self);
  KnownModule made{weak, 0, all.classes[type].count++};
  const std::string text =
      "nn.Module: " + class_name(Py_TYPE(self)) + "_" + std::to_string(made.number);
  made.name = record::intern_text(text.data(), text.size());
  all.modules.insert_or_assign(self, made);
  if (weak) all.of_weak.emplace(weak, self);
  return made;
}

// Tells the listener of each module that is called, once in a window. Python does not report the
// listener's own frames, because it is called in a hook.
void tell_of_module(PyObject* self) {
  Tracer& all = tracer();
  if (!all.module_listener) return;
  const std::uint32_t window = lanescope_recording.load(std::memory_order_relaxed);
  const auto known = all.modules.find(self);
  if (known == all.modules.end() || std::exchange(known->second.told_in, window) == window) return;
  const py::error_scope exception_on_its_way;
  const py::object listener = py::reinterpret_borrow<py::object>(all.module_listener);
  Py_XDECREF(PyObject_CallFunctionObjArgs(listener.ptr(), self, nullptr));
  PyErr_Clear();  // its parameters are missing
}

KnownModule module_of(PyObject* self) {
  const KnownModule module = known_module_of(self);
  tell_of_module(self);
  return module;
}

void forget_modules(Tracer& all) {
  for (const auto& [weak, object] : std::exchange(all.of_weak, {})) Py_DECREF(weak);
  all.modules.clear();
  all.classes.clear();
}

// ---- a thread's frames --------------------------------------------------------------------------

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

void push(ThreadFrames& thread, Key key, record::RangeInfo info, std::uint64_t began = 0) {
  if (thread.count == kMostOpen) [[unlikely]]
    return count_too_deep(thread);
  info.scope = spool::kFrameScope;
  info.forward_thread = thread.count + 1;
  const record::RangeToken token = record::begin_range(info, began);
  thread.open[thread.count++] = {key, token.sequence, token.index};
}

// Ends what lies above `count` frames.
void pop_to(ThreadFrames& thread, std::uint32_t count) {
  const std::uint64_t now = record::ticks();
  for (; thread.count > count; --thread.count) {
    const OpenFrame& open = thread.last();
    record::end_range({open.sequence, open.index}, now);
    if (open.key == thread.import) thread.import = 0;
  }
  thread.lost = 0;
}

// The last place whose key `is` says; nothing when there is none.
template <typename Is>
std::optional<std::uint32_t> find_open(const ThreadFrames& thread, const Is& is) {
  for (std::uint32_t at = thread.count; at-- > 0;)
    if (is(thread.open[at].key)) return at;
  return std::nullopt;
}

void push_frame(ThreadFrames& thread, const void* frame, std::uint32_t options,
                std::uint64_t began = 0) {
  const void* const code = lanescope_frame_code(frame);
  record::RangeInfo info;
  if (code == hot.module_code) {
    auto* const self = static_cast<PyObject*>(const_cast<void*>(lanescope_first_argument(frame)));
    if (self) {
      const KnownModule module = module_of(self);
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

// What was open when the window began: `innermost` and all around it.
[[gnu::noinline]] void begin_window(ThreadFrames& thread, std::uint32_t window,
                                    const void* innermost, std::uint32_t options) {
  thread.window = window;
  thread.lost = 0;
  thread.import = 0;
  thread.count = 0;
  Tracer& all = tracer();
  std::uint64_t began = all.began;
  if (const auto hooked = all.hooked.find(PyThreadState_Get()); hooked != all.hooked.end())
    began = hooked->second;
  const void* frames[kMostAtStart];
  std::size_t count = 0;
  for (; innermost && count < kMostAtStart; innermost = lanescope_outer_frame(innermost))
    frames[count++] = innermost;
  while (count-- > 0 && thread.import == 0) push_frame(thread, frames[count], options, began);
}

// This thread's frames when an event about one of them is to be noted, else null. `known`: what is
// open already, should this be the thread's first event of the window.
ThreadFrames* ready(std::uint32_t options, const void* known) {
  if (!(options & kFrameOptions)) return nullptr;
  const std::uint32_t window = lanescope_recording.load(std::memory_order_relaxed);
  if (window == 0 || !hot.on) return nullptr;
  ThreadFrames* thread = thread_frames;
  if (!thread) [[unlikely]]
    thread = make_thread_frames();
  if (thread && thread->window != window) [[unlikely]]
    begin_window(*thread, window, known, options);
  return thread;
}

// Frames above the caller are those whose end was not seen. A caller that is not there: another
// greenlet's.
void match_caller(ThreadFrames& thread, const void* caller) {
  if (thread.count == 0 || frame_of_key(thread.last().key) == key_of(caller)) return;
  const auto at = find_open(thread, [&](Key key) { return frame_of_key(key) == key_of(caller); });
  if (at) pop_to(thread, *at + 1);
}

void leave(ThreadFrames& thread, Key key) {
  if (thread.count == 0) return;
  if (thread.last().key == key) {
    const OpenFrame& open = thread.open[--thread.count];
    if (key == thread.import) thread.import = 0;
    return record::end_range({open.sequence, open.index});
  }
  if (thread.lost != 0) {
    --thread.lost;
    return;
  }
  if (const auto at = find_open(thread, [key](Key open) { return open == key; }))
    pop_to(thread, *at);
}

// ---- the common events, in short -----------------------------------------------------------------
//
// Nearly every event is about the frame that was expected, with a name that is known, in a thread
// that is known. These functions note it and say so; else they change nothing and return false, and
// the event goes to the functions below.

bool are_all_frames_wanted(std::uint32_t options) {
  return (options & (LANESCOPE_RECORD_STACK | LANESCOPE_RECORD_MEASURE)) == LANESCOPE_RECORD_STACK;
}

// `caller`: the key of what must be open innermost, or that plus one when `or_its_c_call`.
inline bool begin_known(Key key, Key caller, bool or_its_c_call, std::uint32_t name) {
  ThreadFrames* const thread = thread_frames;
  LanescopeWriter* const writer = lanescope_thread_writer;
  if (!thread || !writer) [[unlikely]]
    return false;
  const std::uint32_t count = thread->count;
  if (count - 1 >= kMostOpen - 1 || (thread->lost | thread->import) != 0) [[unlikely]]
    return false;  // none is open, or no more can be
  const Key last = thread->open[count - 1].key;
  if ((or_its_c_call ? frame_of_key(last) : last) != caller) [[unlikely]]
    return false;
  record::RecordingScope inside(writer);
  if (inside.window() != thread->window) [[unlikely]]
    return false;
  record::RangeInfo info;
  info.name = name;
  info.scope = spool::kFrameScope;
  info.forward_thread = count + 1;
  const record::RangeToken token = record::begin_range(writer, inside, info);
  thread->open[count] = {key, token.sequence, token.index};
  thread->count = count + 1;
  return true;
}

inline bool note_call(const void* frame_object, std::uint32_t options) {
  if (!are_all_frames_wanted(options) || !hot.on) [[unlikely]]
    return false;
  LanescopeCall call;
  lanescope_read_call(frame_object, &call);
  if (call.at.code == hot.module_code || call.at.code == hot.import_code) [[unlikely]]
    return false;
  const KnownFrame& known = place_of_frame(call.at);
  if (!is_known(known, call.at) || known.name == 0) [[unlikely]]
    return false;
  return begin_known(key_of(call.frame), key_of(call.outer), true, known.name);
}

inline bool note_c_call(const void* caller, const PyMethodDef* definition, std::uint32_t options) {
  if (!are_all_frames_wanted(options) || !hot.on) [[unlikely]]
    return false;
  const KnownFunction& known = place_of_function(definition);
  if (!is_known(known, definition)) [[unlikely]]
    return false;
  return begin_known(key_of_c_call(caller), key_of(caller), false, known.name);
}

// Of a frame or of the call of a C function.
inline bool note_return(Key key, std::uint32_t options) {
  if (!are_all_frames_wanted(options) || !hot.on) [[unlikely]]
    return false;
  const std::uint64_t now = record::ticks();
  ThreadFrames* const thread = thread_frames;
  LanescopeWriter* const writer = lanescope_thread_writer;
  if (!thread || !writer || thread->count == 0 || thread->last().key != key ||
      key == thread->import) [[unlikely]]
    return false;
  const OpenFrame open = thread->last();
  record::RecordingScope inside(writer);
  if (inside.window() != thread->window) [[unlikely]]
    return false;
  --thread->count;
  record::end_range(writer, inside, {open.sequence, open.index}, now);
  return true;
}

// ---- all events ---------------------------------------------------------------------------------

void on_call(const void* frame, std::uint32_t options) {
  const bool only_modules = !(options & LANESCOPE_RECORD_STACK);
  if (only_modules && lanescope_frame_code(frame) != hot.module_code) return;
  const void* const caller = lanescope_outer_frame(frame);
  ThreadFrames* const thread = ready(options, caller);
  if (!thread || thread->import != 0) return;
  if (!only_modules && thread->lost == 0) match_caller(*thread, caller);
  push_frame(*thread, frame, options);
}

void on_return(const void* frame, std::uint32_t options) {
  const bool only_modules = !(options & LANESCOPE_RECORD_STACK);
  if (only_modules && lanescope_frame_code(frame) != hot.module_code) return;
  if (ThreadFrames* const thread = ready(options, frame)) leave(*thread, key_of(frame));
}

void on_c_call(const void* caller, const PyMethodDef* definition, PyObject* self,
               std::uint32_t options) {
  if (!(options & LANESCOPE_RECORD_STACK)) return;
  ThreadFrames* const thread = ready(options, caller);
  if (!thread || thread->import != 0) return;
  if (thread->count != 0 && thread->last().key != key_of(caller) && thread->lost == 0)
    if (const auto at = find_open(*thread, [&](Key key) { return key == key_of(caller); }))
      pop_to(*thread, *at + 1);
  record::RangeInfo info;
  info.name = name_of_c_function(definition, self);
  push(*thread, key_of_c_call(caller), info);
}

void on_c_return(const void* caller, std::uint32_t options) {
  if (!(options & LANESCOPE_RECORD_STACK)) return;
  if (ThreadFrames* const thread = ready(options, caller)) leave(*thread, key_of_c_call(caller));
}

// The hooks are C: nothing leaves them.
template <typename Event>
[[gnu::noinline]] void note(std::uint32_t options, const Event& event) noexcept {
  try {
    std::optional<record::MeasuredCall> cost;
    if (options & LANESCOPE_RECORD_MEASURE) cost.emplace(kLanescopeFrames);
    event();
  } catch (...) {  // out of memory: this one is missing
  }
}

#if PY_VERSION_HEX < 0x030c0000

// ---- up to Python 3.11: the profile hook of each thread -----------------------------------------

void hook_all_threads(int* foreign);

const PyMethodDef* definition_of(PyObject* function) {
  return reinterpret_cast<const PyCFunctionObject*>(function)->m_ml;
}

[[gnu::noinline]] void on_other_event(PyFrameObject* object, int what, PyObject* arg,
                                      std::uint32_t options) noexcept {
  if (!hot.on || (record::is_recording() && !(options & kFrameOptions))) {
    PyEval_SetProfile(nullptr, nullptr);  // a forked child, or the budget is used up
    return;
  }
  const void* const frame = lanescope_frame_of(object);
  note(options, [&] {
    switch (what) {
      case PyTrace_CALL:
        return on_call(frame, options);
      case PyTrace_RETURN:  // also when an exception leaves the function
        return on_return(frame, options);
      case PyTrace_C_CALL: {
        const auto* function = reinterpret_cast<const PyCFunctionObject*>(arg);
        return on_c_call(frame, function->m_ml, function->m_self, options);
      }
      case PyTrace_C_RETURN:
      case PyTrace_C_EXCEPTION:
        on_c_return(frame, options);
        // The new thread is there and waits for the GIL.
        if (definition_of(arg) == hot.start_thread) hook_all_threads(nullptr);
        return;
    }
  });
}

int on_profile_event(PyObject*, PyFrameObject* object, int what, PyObject* arg) {
  const std::uint32_t options = record::record_options();
  bool is_noted = false;
  switch (what) {
    case PyTrace_CALL:
      is_noted = note_call(object, options);
      break;
    case PyTrace_RETURN:
      is_noted = note_return(key_of(lanescope_frame_of(object)), options);
      break;
    case PyTrace_C_CALL:
      is_noted = note_c_call(lanescope_frame_of(object), definition_of(arg), options);
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      is_noted = definition_of(arg) != hot.start_thread &&
                 note_return(key_of_c_call(lanescope_frame_of(object)), options);
      break;
  }
  if (!is_noted) [[unlikely]]
    on_other_event(object, what, arg, options);
  return 0;
}

// Threads that have another hook keep it; `foreign`, if not null, counts them.
void hook_all_threads(int* foreign) {
  Tracer& all = tracer();
  const std::uint64_t now = record::ticks();
  PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_Get()->interp);
  for (; state; state = PyThreadState_Next(state)) {
    if (state->c_profilefunc == on_profile_event) continue;
    if (state->c_profilefunc) {
      if (foreign) ++*foreign;
    } else if (_PyEval_SetProfile(state, on_profile_event, nullptr) == 0) {
      all.hooked[state] = now;
    } else {
      PyErr_Clear();  // an audit hook said no
    }
  }
}

// How many threads had our hook taken away by somebody else.
int unhook_all_threads() {
  Tracer& all = tracer();
  int taken = 0;
  PyThreadState* state = PyInterpreterState_ThreadHead(PyThreadState_Get()->interp);
  for (; state; state = PyThreadState_Next(state)) {
    if (state->c_profilefunc == on_profile_event) {
      if (_PyEval_SetProfile(state, nullptr, nullptr) != 0) PyErr_Clear();
    } else if (state->c_profilefunc && all.hooked.contains(state)) {
      ++taken;
    }
  }
  all.hooked.clear();
  return taken;
}

py::dict frame_callbacks() { return {}; }

#else

// ---- from Python 3.12 on: sys.monitoring, of all threads ----------------------------------------

void hook_all_threads(int*) {}
int unhook_all_threads() { return 0; }

// What a callback gives back: when nobody wants frames any more, Python need not call again here.
[[gnu::noinline]] PyObject* answer(std::uint32_t options, bool may_disable) {
  PyObject* const result =
      may_disable && tracer().disable && record::is_recording() && !(options & kFrameOptions)
          ? tracer().disable
          : Py_None;
  return Py_NewRef(result);
}

template <bool kMayDisable>
PyObject* on_call_event(PyObject*, PyObject* const*, std::size_t, PyObject*) {
  const std::uint32_t options = record::record_options();
  if (note_call(nullptr, options)) [[likely]]
    Py_RETURN_NONE;
  if (options & kFrameOptions)
    note(options, [options] { on_call(lanescope_current_frame(), options); });
  return answer(options, kMayDisable);
}

template <bool kMayDisable>
PyObject* on_return_event(PyObject*, PyObject* const*, std::size_t, PyObject*) {
  const std::uint32_t options = record::record_options();
  const void* const frame = lanescope_current_frame();
  if (note_return(key_of(frame), options)) [[likely]]
    Py_RETURN_NONE;
  if (options & kFrameOptions) note(options, [=] { on_return(frame, options); });
  return answer(options, kMayDisable);
}

// Of what can be called only these are C functions, as for a profile hook. PyCFunction_Check() would
// ask for each Python function whether one of all its type's bases is that of C functions; but
// such a base would be on the way of tp_base.
const PyMethodDef* c_function(PyObject* const* args, std::size_t count, PyObject** self) {
  if (PyVectorcall_NARGS(count) < 4) return nullptr;
  PyObject* const callable = args[2];
  PyTypeObject* const type = Py_TYPE(callable);
  if (type == &PyFunction_Type || type == &PyMethod_Type) return nullptr;
  if (type == &PyMethodDescr_Type) {
    *self = args[3];
    return reinterpret_cast<const PyMethodDescrObject*>(callable)->d_method;
  }
  const PyTypeObject* base = type;
  while (base && base != &PyCFunction_Type) base = base->tp_base;
  if (!base) return nullptr;
  const auto* function = reinterpret_cast<const PyCFunctionObject*>(callable);
  *self = function->m_self;
  return function->m_ml;
}

PyObject* on_c_call_event(PyObject*, PyObject* const* args, std::size_t count, PyObject*) {
  const std::uint32_t options = record::record_options();
  PyObject* self = nullptr;
  const PyMethodDef* const definition = c_function(args, count, &self);
  if (definition) {
    const void* const caller = lanescope_current_frame();
    if (note_c_call(caller, definition, options)) [[likely]]
      Py_RETURN_NONE;
    if (options & kFrameOptions)
      note(options, [=] { on_c_call(caller, definition, self, options); });
  } else if (options & kFrameOptions) {
    Py_RETURN_NONE;
  }
  return answer(options, true);
}

PyObject* on_c_return_event(PyObject*, PyObject* const* args, std::size_t count, PyObject*) {
  const std::uint32_t options = record::record_options();
  const void* const caller = lanescope_current_frame();
  // Another callable has no open call of this caller, so it need not be looked at first.
  if (!note_return(key_of_c_call(caller), options) && (options & kFrameOptions)) [[unlikely]] {
    PyObject* self = nullptr;
    if (c_function(args, count, &self)) note(options, [=] { on_c_return(caller, options); });
  }
  Py_RETURN_NONE;
}

// What sys.monitoring calls. An object with a function of its own: Python's built-in functions
// check each call.
struct Callback {
  PyObject_HEAD vectorcallfunc function;
};

PyTypeObject* callback_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(Callback, function), Py_READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_members, members},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {0, nullptr}};
  static PyType_Spec spec{
      "lanescope._core.FrameCallback", sizeof(Callback), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  return type;
}

// By the names of sys.monitoring.events.
py::dict frame_callbacks() {
  static const std::array<std::pair<const char*, vectorcallfunc>, 9> callbacks{{
      {"PY_START", on_call_event<true>},
      {"PY_RESUME", on_call_event<true>},
      {"PY_THROW", on_call_event<false>},
      {"PY_RETURN", on_return_event<true>},
      {"PY_YIELD", on_return_event<true>},
      {"PY_UNWIND", on_return_event<false>},
      {"CALL", on_c_call_event},
      {"C_RETURN", on_c_return_event},
      {"C_RAISE", on_c_return_event},
  }};
  py::dict made;
  for (const auto& [name, function] : callbacks) {
    auto callback = py::reinterpret_steal<py::object>(PyType_GenericAlloc(callback_type(), 0));
    if (!callback) throw py::error_already_set();
    reinterpret_cast<Callback*>(callback.ptr())->function = function;
    made[name] = callback;
  }
  const py::object disable = py::module_::import("sys").attr("monitoring").attr("DISABLE");
  tracer().disable = py::object(disable).release().ptr();
  return made;
}

#endif

// ---- starting and ending ------------------------------------------------------------------------

// How many threads keep a profile hook of somebody else and so are left out. A window is open.
// `is_new`: modules are numbered from 0 again. `import_code`: not None leaves out what it calls.
int start_frames(const py::object& module_code, const py::object& import_code, bool is_new) {
  Tracer& all = tracer();
  if (!hot.names) hot.names = new std::array<KnownFrame, kNames>();
  if (!hot.c_names) hot.c_names = new std::array<KnownFunction, kCNames>();
  if (is_new) forget_modules(all);
  if (!module_code.is_none()) {
    Py_XDECREF(hot.module_code);
    hot.module_code = py::object(module_code).release().ptr();
  }
  Py_CLEAR(hot.import_code);
  if (!import_code.is_none()) hot.import_code = py::object(import_code).release().ptr();
  if (!hot.start_thread) {
    const py::object start = py::module_::import("_thread").attr("start_new_thread");
    if (PyCFunction_Check(start.ptr()))
      hot.start_thread = reinterpret_cast<const PyCFunctionObject*>(start.ptr())->m_ml;
  }
  all.began = record::ticks();
  hot.on = true;
  int foreign = 0;
  hook_all_threads(&foreign);
  return foreign;
}

// How many threads lost the hook to somebody else on the way.
int stop_frames() {
  hot.on = false;
  if (thread_frames && thread_frames->window == lanescope_recording.load(std::memory_order_relaxed))
    pop_to(*thread_frames, 0);
  return unhook_all_threads();
}

// None: nobody.
void listen_to_modules(const py::object& listener) {
  PyObject* const before =
      std::exchange(tracer().module_listener,
                    listener.is_none() ? nullptr : py::object(listener).release().ptr());
  Py_XDECREF(before);
}

// Calls `function`, from Python 3.11 on without its frames being recorded.
void call_unrecorded(const py::object& function, const py::args& args) {
#if PY_VERSION_HEX >= 0x030b0000
  PyThreadState* const thread = PyThreadState_Get();
  PyThreadState_EnterTracing(thread);
  struct Leave {
    PyThreadState* thread;
    ~Leave() { PyThreadState_LeaveTracing(thread); }
  } const leave{thread};
#endif
  function(*args);
}

}  // namespace

void bind_tracer(py::module_& m) {
  m.def("start_frames", &start_frames, py::arg("module_code"), py::arg("import_code"),
        py::arg("is_new"));
  m.def("stop_frames", &stop_frames);
  m.def("listen_to_modules", &listen_to_modules, py::arg("listener"));
  m.def("call_unrecorded", &call_unrecorded, py::arg("function"));
  m.def("frame_callbacks", &frame_callbacks);
}

}  // namespace lanescope::python
