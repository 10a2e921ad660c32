// torch looks for a profiler's state in a slot of the process and in a slot of each thread. While we
// record, our states are in the process slot and in the slots of threads that record.
// docs/decisions/torch_observer.md.
//
// Part of torch_observer.cpp (compiled with it, against the user's torch).
#pragma once
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "lanescope/record/activity_source.h"
#include "lanescope/record/cost_meter.h"
#include "lanescope/record/thread_writer.h"

namespace lanescope::record_torch {

using torch::profiler::impl::ProfilerStateBase;

inline constexpr uint32_t kInputOptions = LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_FLOPS;
inline constexpr uint32_t kDetailOptions = kInputOptions | LANESCOPE_RECORD_OVERLOAD_NAMES |
                                           LANESCOPE_RECORD_MEMORY | LANESCOPE_RECORD_STACK;

// start() writes them before the first callback runs, and stop() after the last. Relaxed: nothing
// else depends on them.
inline std::atomic<uint32_t> observed_options{0};
inline std::atomic<bool> announce_wanted{false};
inline std::atomic<bool> announcing{false};  // wanted, and a window is open

// From torch 2.7 on, ExperimentalConfig::profile_all_threads makes a state belong to the process and
// not to a thread. Before, only states of the kind KINETO_ONDEMAND did. Prefer profile_all_threads:
// with it, torch.profiler raises an exception if it finds our state.
template <typename Experimental>
inline torch::profiler::impl::ProfilerConfig process_config(Experimental experimental) {
  using torch::profiler::impl::ProfilerState;
  ProfilerState kind = ProfilerState::KINETO_ONDEMAND;
  if constexpr (requires { experimental.profile_all_threads; }) {
    experimental.profile_all_threads = true;
    kind = ProfilerState::CPU;
  }
  return torch::profiler::impl::ProfilerConfig(kind, false, false, false, false, false,
                                               experimental);
}

// A state in the process slot makes _RecordFunctionFast write. A state in a thread's slot gets that
// thread's allocator reports.
class ObserverState final : public ProfilerStateBase {
 public:
  explicit ObserverState(torch::profiler::impl::ProfilerConfig config)
      : ProfilerStateBase(std::move(config)) {}

  void reportMemoryUsage(void* pointer, int64_t bytes, size_t total_allocated,
                         size_t total_reserved, c10::Device device) override {
    report(pointer, bytes, total_allocated, total_reserved, device, false);
  }
  void reportOutOfMemory(int64_t bytes, size_t total_allocated, size_t total_reserved,
                         c10::Device device) override {
    report(nullptr, bytes, total_allocated, total_reserved, device, true);
  }
  // On threads that we cannot reach, a state stays after its recording. It must look switched off
  // then.
  void set_enabled(bool enabled, bool with_inputs) {
    using torch::profiler::impl::ProfilerState;
    std::atomic_ref<ProfilerState>(config_.state)
        .store(enabled ? ProfilerState::CPU : ProfilerState::Disabled, std::memory_order_relaxed);
    std::atomic_ref<bool>(config_.report_input_shapes)
        .store(with_inputs, std::memory_order_relaxed);
  }
  // Allocators ask before each report, also on threads that kept this state after the recording.
  bool memoryProfilingEnabled() const override {
    return (observed_options.load(std::memory_order_relaxed) & LANESCOPE_RECORD_MEMORY) != 0;
  }
  torch::profiler::impl::ActiveProfilerType profilerType() override {
    return torch::profiler::impl::ActiveProfilerType::NONE;
  }

 private:
  // May run under an allocator's lock: takes no lock, calls nothing of torch.
  void report(const void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved,
              c10::Device device, bool out_of_memory) const {
    const uint32_t options = observed_options.load(std::memory_order_relaxed);
    if ((options & LANESCOPE_RECORD_MEMORY) == 0) return;
    const record::MeasuredCall cost(kLanescopeMemory, lanescope_cost_scale,
                                    (options & LANESCOPE_RECORD_MEASURE) != 0);
    spool::MemoryRecord memory;
    memory.bytes = bytes;
    memory.address = reinterpret_cast<std::uintptr_t>(pointer);
    memory.total_allocated = total_allocated;
    memory.set_total_reserved(total_reserved);
    memory.device_type = static_cast<std::uint8_t>(device.type());
    memory.device_index = device.index();
    record::record_memory(memory, out_of_memory);
  }
};

// Never destroyed: threads and autograd graphs may use them after main().
inline const std::shared_ptr<ObserverState>& process_state() {
  static const auto* state = new std::shared_ptr<ObserverState>(
      std::make_shared<ObserverState>(process_config(torch::profiler::impl::ExperimentalConfig())));
  return *state;
}
inline const std::shared_ptr<ObserverState>& thread_state() {
  static const auto* state = new std::shared_ptr<ObserverState>(std::make_shared<ObserverState>(
      torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::Disabled)));
  return *state;
}

// The state in that slot, to compare only. torch 2.14 has two functions where older ones have
// get().
template <typename Base>
inline const Base* in_process_slot() {
  if constexpr (requires { Base::getGlobal(); })
    return Base::getGlobal().get();
  else
    return Base::get(true);
}
template <typename Base>
inline const Base* in_thread_slot() {
  if constexpr (requires { Base::getTLS(); })
    return Base::getTLS();
  else
    return Base::get(false);
}

inline void take_process_slot() {
  if (!in_process_slot<ProfilerStateBase>()) ProfilerStateBase::push(process_state());
}
inline void leave_process_slot() {
  if (in_process_slot<ProfilerStateBase>() == process_state().get()) ProfilerStateBase::pop(true);
}
// torch gives allocator reports only to the thread's state. So each thread that runs an operator gets
// our state, unless it has torch.profiler's. C++ programs need our state only for memory.
inline bool wants_thread_slot(uint32_t options) {
  return (options & LANESCOPE_RECORD_MEMORY) != 0 ||
         ((options & kInputOptions) != 0 && announce_wanted.load(std::memory_order_relaxed));
}
// A thread's slot is destroyed when the thread ends. On the main thread this happens before the
// functions of atexit() run, and one of those functions ends open recordings.
inline __thread bool slot_is_gone __attribute__((tls_model("initial-exec"))) = false;
struct SlotEnd {
  ~SlotEnd() { slot_is_gone = true; }
};
inline void take_thread_slot() {
  if (slot_is_gone || c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE)) return;
  static thread_local const SlotEnd end;  // made after the slot, so destroyed before it
  static_cast<void>(&end);
  c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, thread_state());
}
inline void leave_thread_slot() {
  if (slot_is_gone) return;
  if (c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) != thread_state().get())
    return;
  try {
    c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
  } catch (...) {  // another state is on top of ours; ours stays, but reports no memory
  }
}

}  // namespace lanescope::record_torch
