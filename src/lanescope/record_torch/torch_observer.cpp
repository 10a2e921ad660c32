// Turns at::RecordFunction callbacks and allocator reports into lanescope records. One
// file, one command:
//
//   T=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))')
//   g++ -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -D_GLIBCXX_USE_CXX11_ABI=1
//       -I<lanescope headers>
//       -isystem $T/include -isystem $T/include/torch/csrc/api/include torch_observer.cpp
//       -o liblanescope_torch_observer.so liblanescope_record.so -L$T/lib -ltorch_cpu -lc10
//
// with the _GLIBCXX_USE_CXX11_ABI that this torch was built with (torch.compiled_with_cxx11_abi()).
// torch 2.4 or newer.
//
// This file adds and removes the callbacks. The parts: what the callbacks do (op_callbacks.h), with
// names (op_names.h), inputs (op_inputs.h), tensors (op_tensors.h), stacks (op_stacks.h) and collectives
// (collective_fields.h); ranges of the program (shared_ranges.h); torch's questions about an active
// profiler (profiler_state.h); what torch's own work costs (torch_cost.h), and how some of it is avoided
// (torch_shortcuts.h).

// Without NDEBUG, RecordFunction::inputs() checks a member that a released torch never
// sets, and throws.
#ifndef NDEBUG
#define NDEBUG
#endif

#include "lanescope/record_torch/torch_observer.h"

#include <ATen/record_function.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>

#include "lanescope/record/activity_source.h"
#include "lanescope/record/shared_range.h"
#include "lanescope/record/thread_writer.h"
#include "lanescope/record_torch/op_callbacks.h"
#include "lanescope/record_torch/op_stacks.h"
#include "lanescope/record_torch/op_tensors.h"
#include "lanescope/record_torch/profiler_state.h"
#include "lanescope/record_torch/shared_ranges.h"
#include "lanescope/record_torch/torch_cost.h"
#include "lanescope/record_torch/torch_shortcuts.h"

static_assert(TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4),
              "the lanescope observer needs torch 2.4 or newer");

namespace {

namespace record = lanescope::record;
namespace spool = lanescope::spool;
using namespace lanescope::record_torch;  // NOLINT: the parts of this source in other files

struct Observer {
  std::mutex mutex;
  bool registered = false;  // guarded by mutex, as all below
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  TorchShortcuts shortcuts;
};
Observer& observer() {
  static auto* instance = new Observer;
  return *instance;
}

void say(char* line, size_t size, const char* text) {
  if (line && size != 0) std::snprintf(line, size, "%s", text);
}

// The next two with `observer().mutex` held.
void remove_callback() {
  if (observer().handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(observer().handle);
  observer().handle = at::INVALID_CALLBACK_HANDLE;
  observer().shortcuts.leave();
}

void measure_cost() {
  observer().shortcuts.take();
  measure_torch_cost(&operator_lengths, observer().shortcuts.are_callbacks_kept());
  observer().shortcuts.leave();
}

template <bool kMeasured>
at::RecordFunctionCallback::StartCallback begin_callback(uint32_t detail_options) {
  switch (detail_options) {
    case 0:
      return on_begin<Details::kNone, kMeasured>;
    case LANESCOPE_RECORD_STACK:
      return on_begin<Details::kStack, kMeasured>;
    default:
      return on_begin<Details::kAny, kMeasured>;
  }
}

void add_callback(uint32_t options) {
  const bool measured = (options & LANESCOPE_RECORD_MEASURE) != 0;
  at::RecordFunctionCallback callback(measured ? begin_callback<true>(options & kDetailOptions)
                                               : begin_callback<false>(options & kDetailOptions),
                                      measured ? on_end<true> : on_end<false>);
  callback.needsInputs((options & kInputOptions) != 0);
  // Steps and record_function stay: they are few, and times refer to them. When the budget has no
  // room for them either, nothing is left of us, because torch sorts even one callback by scope around
  // each node of a backward pass. Steps are there all the same: they come without torch.
  if (options & LANESCOPE_RECORD_PAUSED_RANGES) return;
  if (options & LANESCOPE_RECORD_PAUSED)
    callback.scopes({at::RecordScope::USER_SCOPE});
  else
    callback.scopes(scopes_of_programs());
  observer().handle = at::addGlobalCallback(callback);
  observer().shortcuts.take();  // after what may throw
}

int start(void*, uint32_t options, char* line, size_t size) {
  try {
    const std::lock_guard lock(observer().mutex);
    const auto* other = in_thread_slot<ProfilerStateBase>();
    if (other && other != thread_state().get()) {
      say(line, size,
          (options & LANESCOPE_RECORD_MEMORY)
              ? "torch.profiler is active on this thread: both record operators, only "
                "torch.profiler gets memory events"
              : "torch.profiler is active on this thread: both record operators, and each sees the "
                "other's cost");
    }
    remove_callback();
    if (options & LANESCOPE_RECORD_MEASURE) measure_cost();
    observed_options.store(options, std::memory_order_relaxed);
    thread_state()->set_enabled(true, (options & kInputOptions) != 0);
    held_tensors().open(wants_tensors(options));
    if (wants_thread_slot(options)) take_thread_slot();
    if (announce_wanted.load(std::memory_order_relaxed)) {
      announcing.store(true, std::memory_order_relaxed);
      take_process_slot();
    }
    add_callback(options);
    return 0;
  } catch (const std::exception& error) {
    say(line, size, error.what());
  } catch (...) {
    say(line, size, "torch refused the observer with an exception of unknown type");
  }
  observed_options.store(0, std::memory_order_relaxed);
  return 1;
}

void stop(void*) {
  try {
    const std::lock_guard lock(observer().mutex);
    observed_options.store(0, std::memory_order_relaxed);
    thread_state()->set_enabled(false, false);
    remove_callback();
    if (announcing.exchange(false, std::memory_order_relaxed)) leave_process_slot();
    leave_thread_slot();
    held_tensors().close();
  } catch (...) {  // a callback that could not be removed does nothing while no window is open
  }
}

// torch has no call that replaces a callback. So operators that begin between the two calls, some
// microseconds, are missing; in the other order they would be there twice.
void change(void*, uint32_t options) {
  try {
    const std::lock_guard lock(observer().mutex);
    observed_options.store(options, std::memory_order_relaxed);
    remove_callback();
    if (options & LANESCOPE_RECORD_MEASURE) measure_cost();
    thread_state()->set_enabled(true, (options & kInputOptions) != 0);
    add_callback(options);
  } catch (...) {  // out of memory: no operators until the next change
  }
}

const LanescopeActivitySource kSource = {LANESCOPE_RECORD_ABI,
                                         LANESCOPE_ACTIVITY_CPU,
                                         "torch",
                                         nullptr,
                                         nullptr,
                                         start,
                                         stop,
                                         nullptr,
                                         nullptr,
                                         change};

// torch may call the callbacks of open ranges long after the last recording: this library must
// never be unloaded.
void stay_loaded() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&kSource), &self) != 0 && self.dli_fname)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

extern "C" {

uint32_t lanescope_torch_observer_abi(void) { return LANESCOPE_TORCH_OBSERVER_ABI; }

const char* lanescope_torch_observer_built_for(void) {
  static char version[40];
  static const int written = std::snprintf(version, sizeof version, "%d.%d.%d", TORCH_VERSION_MAJOR,
                                           TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
  return written > 0 ? version : "";
}

int lanescope_torch_observer_install(char* line, size_t size) {
  if (lanescope_record_abi() != LANESCOPE_RECORD_ABI) {
    say(line, size,
        "the torch observer was built for another version of liblanescope_record; build it again");
    return 1;
  }
  try {
    process_state();  // made here and not in a callback
    thread_state();
    const std::lock_guard lock(observer().mutex);
    if (observer().registered) return 0;
    watch_schemas();
    const int refused = lanescope_register_source(&kSource);
    if (refused == 0) {
      stay_loaded();
      lanescope_range_listeners.store(&kListeners, std::memory_order_release);
      observer().registered = true;
      return 0;
    }
    say(line, size,
        refused == 3
            ? "another torch observer is registered already; this one is not needed"
            : "the recorder does not accept the torch observer (another ABI, or too many sources)");
  } catch (const std::exception& error) {
    say(line, size, error.what());
  }
  return 1;
}

void lanescope_torch_observer_uninstall(void) {
  lanescope_unregister_source(&kSource);  // calls stop(), so not under our mutex
  const std::lock_guard lock(observer().mutex);
  observer().registered = false;
}

void lanescope_torch_observer_stacks(LanescopeStackFunction capture) {
  stack_function.store(capture, std::memory_order_release);  // pairs with find_stack()
}

void lanescope_torch_observer_tensor(const void* implementation, uint32_t role) {
  if (implementation && record::is_recording() &&
      wants_tensors(observed_options.load(std::memory_order_relaxed)))
    note_tensor(implementation, static_cast<spool::TensorRole>(role));
}

void lanescope_torch_observer_runtimes(int on) {
  try {
    const std::lock_guard lock(observer().mutex);
    const bool was_on = are_runtimes_wanted.exchange(on != 0, std::memory_order_relaxed);
    if (was_on == (on != 0) || observer().handle == at::INVALID_CALLBACK_HANDLE) return;
    remove_callback();
    add_callback(observed_options.load(std::memory_order_relaxed));
  } catch (...) {  // out of memory: no operators until the next window
  }
}

void lanescope_torch_observer_announce(int on) {
  announce_wanted.store(on != 0, std::memory_order_relaxed);
}

void lanescope_torch_observer_pause(void) {
  leave_process_slot();
  leave_thread_slot();
}

void lanescope_torch_observer_resume(void) {
  try {
    if (announcing.load(std::memory_order_relaxed)) take_process_slot();
    if (wants_thread_slot(observed_options.load(std::memory_order_relaxed))) take_thread_slot();
  } catch (...) {  // out of memory: _RecordFunctionFast ranges are missing from here on
  }
}

}  // extern "C"
