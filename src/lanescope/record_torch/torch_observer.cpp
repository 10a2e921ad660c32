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
// Cost: the callbacks allocate nothing and take no lock. The address of a RecordFunction identifies
// its range, so no ObserverContext is needed. A per-thread table finds the name by its bytes.
// Inputs are read only if shapes are wanted: encoded into a buffer on the stack
// (codec/op_details.h), and each distinct sequence is kept once. Only collectives allocate
// (collective_fields.h). Callbacks never throw.

// Without NDEBUG, RecordFunction::inputs() checks a member that a released torch never
// sets, and throws.
#ifndef NDEBUG
#define NDEBUG
#endif

#include "lanescope/record_torch/torch_observer.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <dlfcn.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "lanescope/codec/op_details.h"
#include "lanescope/record/cost_meter.h"
#include "lanescope/record/operator_lengths.h"
#include "lanescope/record/shared_range.h"
#include "lanescope/record/thread_writer.h"
#include "lanescope/record_torch/collective_fields.h"
#include "lanescope/record_torch/op_inputs.h"
#include "lanescope/record_torch/op_stacks.h"
#include "lanescope/record_torch/op_tensors.h"
#include "lanescope/record_torch/torch_cost.h"

static_assert(TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4),
              "the lanescope observer needs torch 2.4 or newer");

// What torch's record_function keeps while it is open.
struct LanescopeSharedRange {
  at::RecordFunction function;
  c10::IValue args;  // the callbacks get a reference
  explicit LanescopeSharedRange(at::StepCallbacks&& callbacks) : function(std::move(callbacks)) {}
};

namespace {

namespace codec = lanescope::codec;
namespace record = lanescope::record;
namespace spool = lanescope::spool;
using namespace lanescope::record_torch;  // NOLINT: the parts of this source in other files
using torch::profiler::impl::ProfilerStateBase;

constexpr uint32_t kInputOptions = LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_FLOPS;
constexpr uint32_t kDetailOptions = kInputOptions | LANESCOPE_RECORD_OVERLOAD_NAMES |
                                    LANESCOPE_RECORD_MEMORY | LANESCOPE_RECORD_STACK;

// start() and stop() write them before and after the callbacks run. Relaxed: nothing else
// depends on them.
std::atomic<uint32_t> observed_options{0};
std::atomic<bool> announce_wanted{false};
constinit record::OperatorLengths operator_lengths;  // learned from the calls that are measured
std::atomic<bool> announcing{false};                 // wanted, and a window is open

// ---- what torch asks about an active profiler

// ExperimentalConfig::profile_all_threads (torch 2.7) makes a state belong to the process and not
// to a thread; before, only the on-demand kind did. Prefer the former: if torch.profiler finds our
// state, it then raises an exception.
template <typename Experimental>
torch::profiler::impl::ProfilerConfig process_config(Experimental experimental) {
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
  // A state outlives its recording on threads that we cannot reach, and must then
  // look switched off.
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
const std::shared_ptr<ObserverState>& process_state() {
  static const auto* state = new std::shared_ptr<ObserverState>(
      std::make_shared<ObserverState>(process_config(torch::profiler::impl::ExperimentalConfig())));
  return *state;
}
const std::shared_ptr<ObserverState>& thread_state() {
  static const auto* state = new std::shared_ptr<ObserverState>(std::make_shared<ObserverState>(
      torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::Disabled)));
  return *state;
}

// Who is there; to be compared only. torch 2.14 has two functions where older ones have get().
template <typename Base>
const Base* in_process_slot() {
  if constexpr (requires { Base::getGlobal(); })
    return Base::getGlobal().get();
  else
    return Base::get(true);
}
template <typename Base>
const Base* in_thread_slot() {
  if constexpr (requires { Base::getTLS(); })
    return Base::getTLS();
  else
    return Base::get(false);
}

void take_process_slot() {
  if (!in_process_slot<ProfilerStateBase>()) ProfilerStateBase::push(process_state());
}
void leave_process_slot() {
  if (in_process_slot<ProfilerStateBase>() == process_state().get()) ProfilerStateBase::pop(true);
}
// torch gives allocator reports only to the thread's state. So each thread that runs an operator
// gets ours, unless it has torch.profiler's. C++ programs need it only for memory.
bool wants_thread_slot(uint32_t options) {
  return (options & LANESCOPE_RECORD_MEMORY) != 0 ||
         ((options & kInputOptions) != 0 && announce_wanted.load(std::memory_order_relaxed));
}
void take_thread_slot() {
  if (!c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE))
    c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, thread_state());
}
void leave_thread_slot() {
  if (c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) != thread_state().get())
    return;
  try {
    c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
  } catch (...) {  // something else was pushed on top of it; it stays, but reports no memory
  }
}

// ---- collectives ----

// Records sizes, group and number of a collective, whatever is recorded for other operators.
[[gnu::noinline]] void describe_collective(const at::RecordFunction& fn, bool with_inputs,
                                           std::uint32_t stack, record::RangeInfo* info,
                                           record::CallNumbers* numbers) {
  char buffer[codec::kMaxOpDetailsBytes];
  codec::OpDetailsWriter out(buffer, sizeof buffer);
  if (stack != 0) out.stack(stack);
  if (with_inputs) encode_inputs(fn, out);
  char* const mark = out.mark();
  out.keywords();
  auto call = encode_collective(fn, out);
  if (!call.seq && with_inputs) call.seq = sequence_among(fn.inputs());
  if (out.overflowed()) out.undo(mark);
  info->detail = intern_detail(out);
  if (call.seq) numbers->flags |= spool::kHasSeq;
  if (call.comms_id) numbers->flags |= spool::kHasCommsId;
  numbers->seq = call.seq.value_or(0);
  numbers->comms_id = call.comms_id.value_or(0);
}

// ---- names --------------------------------------------------------------------------------------

// Names come as pointers: into operator schemas, which stay, or into strings that live for one
// call, so one address can have many names. A thread remembers the last name at an address and
// compares the characters, which costs a third of hashing them.
struct alignas(64) SeenName {  // one cache line
  const char* pointer;
  std::uint32_t id;
  char text[52];  // ends with 0; longer names are found by their hash
};
constexpr std::size_t kSeenNames = 512;
// Initial-exec: one load instead of a call. The static TLS block has room for a pointer even in a
// library that is loaded late.
__thread SeenName* seen_names __attribute__((tls_model("initial-exec"))) = nullptr;
__thread bool thread_ends __attribute__((tls_model("initial-exec"))) = false;

struct FreeSeenNames {
  ~FreeSeenNames() {
    thread_ends = true;
    std::free(std::exchange(seen_names, nullptr));
  }
};

[[gnu::noinline]] std::uint32_t intern_new_name(const char* name, std::size_t place) {
  const std::size_t size = std::strlen(name);
  const std::uint32_t id = record::intern_text(name, size);
  if (!seen_names && !thread_ends) {
    static thread_local FreeSeenNames at_thread_end;
    static_cast<void>(&at_thread_end);
    seen_names = static_cast<SeenName*>(
        std::aligned_alloc(alignof(SeenName), kSeenNames * sizeof(SeenName)));
    if (seen_names) std::memset(static_cast<void*>(seen_names), 0, kSeenNames * sizeof(SeenName));
  }
  if (seen_names && size < sizeof SeenName::text) {
    seen_names[place].pointer = name;
    seen_names[place].id = id;
    std::memcpy(seen_names[place].text, name, size + 1);
  }
  return id;
}

std::uint32_t intern_name(const char* name) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(name));
  const std::size_t place = (address * 0x9e3779b97f4a7c15u) >> 55;  // kSeenNames is 2^9
  if (const SeenName* seen = seen_names) [[likely]] {
    if (seen[place].pointer == name && std::strcmp(seen[place].text, name) == 0) [[likely]]
      return seen[place].id;
  }
  return intern_new_name(name, place);
}

// RecordFunction::overload_name() and torch.profiler's capture_overload_names came together.
template <typename Function>
const char* overload_of(const Function& fn) {
  if constexpr (requires { fn.overload_name(); })
    return fn.overload_name();
  else
    return "";
}

// With capture_overload_names, torch.profiler shows "aten::add.Tensor".
std::uint32_t intern_overload(const at::RecordFunction& fn) {
  const char* overload = overload_of(fn);
  if (!overload || !*overload) return intern_name(fn.name());
  char text[512];
  const int size = std::snprintf(text, sizeof text, "%s.%s", fn.name(), overload);
  return size < 0 ? intern_name(fn.name())
                  : record::intern_text(text, std::min<std::size_t>(size, sizeof text - 1));
}

// ---- the callbacks

void prepare_thread(uint32_t options) noexcept {
  try {
    if (wants_thread_slot(options)) take_thread_slot();
  } catch (...) {  // out of memory: this thread's allocations are missing
  }
}

// kMeasured: measures its cost.
template <bool kMeasured>
struct MaybeMeasured {
  explicit MaybeMeasured(const at::RecordFunction&) noexcept {}
};
template <>
struct MaybeMeasured<true> : record::MeasuredCall {
  explicit MaybeMeasured(const at::RecordFunction& fn) noexcept
      : MeasuredCall(
            fn.scope() == at::RecordScope::USER_SCOPE ? kLanescopeRanges : kLanescopeOperators,
            torch_cost.scale) {
    if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) add_unseen(torch_cost.of_node);
  }
};

// In a pause of operators torch still sorts our callback for ranges around each node of a backward
// pass. Nothing of ours runs then, so the next range of the thread counts the nodes: each has been
// numbered in the forward pass.
void count_paused_nodes() {
  static thread_local std::uint64_t last = at::sequence_number::peek();
  const std::uint64_t now = at::sequence_number::peek();
  const std::uint64_t nodes = now - std::exchange(last, now);
  if (observed_options.load(std::memory_order_relaxed) & LANESCOPE_RECORD_PAUSED)
    record::add_cost(kLanescopeRanges, nodes * torch_cost.of_paused_node);
}

// A range of the program in a pause that leaves them out.
bool is_paused_range(const at::RecordFunction& fn) {
  return fn.scope() == at::RecordScope::USER_SCOPE &&
         (observed_options.load(std::memory_order_relaxed) & LANESCOPE_RECORD_PAUSED_RANGES) != 0 &&
         !record::is_step_name(fn.name());
}

// Never leaves out collectives and ranges of the program.
bool is_left_out(const at::RecordFunction& fn, std::uint32_t name) {
  const std::uint64_t limit = lanescope_short_operator_ticks.load(std::memory_order_relaxed);
  return limit != 0 && fn.scope() != at::RecordScope::USER_SCOPE && !is_collective(fn) &&
         operator_lengths.is_shorter(name, limit);
}

template <bool kDetailed, bool kMeasured>
std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& fn) {
  if (!record::is_recording()) return nullptr;
  MaybeMeasured<kMeasured> cost(fn);
  record::RangeInfo info;
  info.handle = reinterpret_cast<std::uintptr_t>(&fn);
  if constexpr (kMeasured) {
    if (fn.scope() == at::RecordScope::USER_SCOPE) count_paused_nodes();
    if (is_paused_range(fn)) [[unlikely]] {
      record::leave_out_nested(info.handle, &LanescopeCost::left_out_ranges);
      return nullptr;
    }
  }
  const uint32_t options = kDetailed ? observed_options.load(std::memory_order_relaxed) : 0;
  if constexpr (kDetailed && kMeasured) {
    if ((options & kInputOptions) != 0) cost.add_unseen(torch_cost.of_inputs);
  }
  const bool with_stack = (options & LANESCOPE_RECORD_STACK) != 0;
  StackOfRange found;
  if constexpr (kDetailed) {
    if ((options & (kInputOptions | LANESCOPE_RECORD_MEMORY)) != 0) prepare_thread(options);
  }
  const char* const name = fn.name();
  info.name =
      (options & LANESCOPE_RECORD_OVERLOAD_NAMES) != 0 ? intern_overload(fn) : intern_name(name);
  if constexpr (kMeasured) {
    if (is_left_out(fn, info.name)) {
      record::leave_out_nested(info.handle, &LanescopeCost::left_out);
      return nullptr;
    }
  }
  if constexpr (kDetailed) {
    try {
      if (with_stack) found = find_stack();
      const bool with_inputs = (options & kInputOptions) && !is_collective(fn);
      info.detail = with_inputs ? detail_of(fn, found.stack) : found.stack;
    } catch (...) {  // out of memory: the range is worth more than its details
      info.detail = found.stack;
    }
  }
  info.scope = static_cast<std::uint8_t>(fn.scope());
  if (fn.isAsync()) info.flags = spool::kAsync;
  info.sequence_number = fn.seqNr();
  if (info.sequence_number >= 0) info.flags |= spool::kHasSequence | spool::kHasForwardThread;
  info.forward_thread = static_cast<std::uint32_t>(fn.forwardThreadId());
  record::CallNumbers numbers;
  // torch numbers its calls only if somebody, such as an execution trace, wants it.
  numbers.record_function_id = fn.handle();
  if (numbers.record_function_id != 0) [[unlikely]]
    numbers.flags |= spool::kHasRecordFunctionId;
  if (is_collective(fn)) [[unlikely]] {
    try {
      describe_collective(fn, (options & kInputOptions) != 0, info.detail, &info, &numbers);
    } catch (...) {  // out of memory
    }
  }
  if (numbers.flags != 0) [[unlikely]]
    record::record_call_numbers(info.name, numbers);
  if constexpr (kDetailed) {
    if (wants_tensors(options) && !is_collective(fn)) [[unlikely]]
      note_inputs(fn, info.name);
  }
  record::begin_nested(info);
  if constexpr (kDetailed) {
    if (found.is_new) keep_stack(found, fn, name);
  }
  const LanescopeWriter* writer = lanescope_thread_writer;
  if (writer && writer->slot && !writer->slot->has_torch_tid) [[unlikely]]
    lanescope_set_torch_thread(fn.threadId());
  return nullptr;
}

// Also runs for ranges that were open when a recording ended, at any later time.
template <bool kMeasured>
void on_end(const at::RecordFunction& fn, at::ObserverContext*) {
  const MaybeMeasured<kMeasured> cost(fn);
  const auto handle = reinterpret_cast<std::uintptr_t>(&fn);
  if constexpr (kMeasured) {
    if (cost.is_measured()) {
      const record::OpenRange range = record::innermost_range(handle);
      if (range.ticks != 0) operator_lengths.learn(range.name, range.ticks);
    }
  }
  record::end_nested(handle);
}

// ---- ranges of the program

bool is_ours(const at::StepCallbacks::StartEndPair& pair) {
  return pair.start_ == on_begin<false, false> || pair.start_ == on_begin<false, true> ||
         pair.start_ == on_begin<true, false> || pair.start_ == on_begin<true, true>;
}

LanescopeSharedRange* open_range(const char* name, size_t name_size, const char* args,
                                 size_t args_size, int* recorded) {
  *recorded = 0;
  try {
    // Ask once per range, like torch: callbacks that sample count how often they are asked.
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
    if (!callbacks) return nullptr;
    const auto& pairs = callbacks->callbacks_;
    const bool ours = std::any_of(pairs.begin(), pairs.end(), is_ours);
    const bool with_args = args && callbacks->needs_inputs_;
    // The recorder alone is faster, but takes no inputs.
    if (ours && pairs.size() == 1 && !with_args) return nullptr;
    auto range = std::make_unique<LanescopeSharedRange>(std::move(*callbacks));
    const std::string text(name, name_size);
    if (with_args) {
      range->args = c10::IValue(std::string(args, args_size));
      range->function.before(text, c10::ArrayRef<const c10::IValue>(&range->args, 1));
    } else {
      range->function.before(text);
    }
    *recorded = ours ? 1 : 0;
    return range.release();
  } catch (...) {  // out of memory, or a callback threw: only the recorder has the range
    return nullptr;
  }
}

void close_range(LanescopeSharedRange* range) {
  try {
    delete range;
  } catch (...) {  // a callback threw
  }
}

constexpr LanescopeRangeListeners kListeners = {open_range, close_range};

// ---- the source

struct Observer {
  std::mutex mutex;
  bool registered = false;  // guarded by mutex, as all below
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};
Observer& observer() {
  static auto* instance = new Observer;
  return *instance;
}

void say(char* line, size_t size, const char* text) {
  if (line && size != 0) std::snprintf(line, size, "%s", text);
}

// With `observer().mutex` held.
void add_callback(uint32_t options) {
  const bool measured = (options & LANESCOPE_RECORD_MEASURE) != 0;
  const bool detailed = (options & kDetailOptions) != 0;
  at::RecordFunctionCallback callback(
      measured ? (detailed ? on_begin<true, true> : on_begin<false, true>)
               : (detailed ? on_begin<true, false> : on_begin<false, false>),
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
    if (observer().handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(observer().handle);
    observer().handle = at::INVALID_CALLBACK_HANDLE;
    if (options & LANESCOPE_RECORD_MEASURE) measure_torch_cost(&operator_lengths);
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
    if (observer().handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(observer().handle);
    observer().handle = at::INVALID_CALLBACK_HANDLE;
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
    if (observer().handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(observer().handle);
    observer().handle = at::INVALID_CALLBACK_HANDLE;
    if (options & LANESCOPE_RECORD_MEASURE) measure_torch_cost(&operator_lengths);
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
