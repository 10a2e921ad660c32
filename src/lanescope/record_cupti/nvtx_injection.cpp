#include "lanescope/record_cupti/nvtx_injection.h"

#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstring>
#include <cwchar>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/record/cost_meter.h"
#include "lanescope/record/thread_writer.h"

namespace lanescope::record_cupti {
namespace {

// Handles of NVTX ranges; the highest bit makes them differ from those of operators (addresses).
constexpr std::uint64_t kPushed = std::uint64_t{1} << 63;
constexpr std::uint64_t kStarted = std::uint64_t{3} << 62;
constinit std::atomic<std::uint64_t> next_range{1};  // relaxed: only has to be unique
constinit std::atomic<std::uint64_t> next_thread{1};
// Initial-exec, like every thread-local here: a small piece of the static block.
__thread std::uint64_t thread_number __attribute__((tls_model("initial-exec"))) = 0;
__thread std::uint32_t depth __attribute__((tls_model("initial-exec"))) = 0;

struct Domain {
  std::string name;
};

// Wide text as UTF-8; keeps only ASCII characters as they are.
std::string narrow(const wchar_t* text) {
  std::string out;
  for (; text && *text; ++text) out += *text < 0x80 ? static_cast<char>(*text) : '?';
  return out;
}

std::uint32_t intern(std::string_view text) {
  return record::intern_text(text.data(), text.size());
}

std::uint32_t message_id(const nvtxEventAttributes_t* event, const Domain* domain) {
  std::string wide;
  std::string_view text;
  if (event) {
    switch (event->messageType) {
      case NVTX_MESSAGE_TYPE_ASCII:
        if (event->message.ascii) text = event->message.ascii;
        break;
      case NVTX_MESSAGE_TYPE_UNICODE:
        text = wide = narrow(event->message.unicode);
        break;
      case NVTX_MESSAGE_TYPE_REGISTERED:
        if (event->message.registered)
          text = *reinterpret_cast<const std::string*>(event->message.registered);
        break;
      default:
        break;
    }
  }
  if (!domain || domain->name.empty()) return intern(text);
  return intern(domain->name + ": " + std::string(text));
}

std::uint64_t pushed_handle(std::uint32_t level) {
  if (thread_number == 0) thread_number = next_thread.fetch_add(1, std::memory_order_relaxed);
  return kPushed | (thread_number << 24) | (level & 0xffffffu);
}

void begin_range(std::uint32_t name, std::uint16_t flags, std::uint64_t handle) {
  const record::RangeCall call;
  if (call.is_paused()) [[unlikely]]
    return record::leave_out_nested(handle, &LanescopeCost::left_out_ranges);
  record::RangeInfo info;
  info.name = name;
  info.flags = flags;
  info.handle = handle;
  record::begin_nested(info);
}

void end_range(std::uint64_t handle) {
  const record::RangeCall call;
  record::end_nested(handle);
}

// Counts the depth also while nothing is recorded, so that a pop finds its push.
int push(std::uint32_t name) {
  const std::uint32_t level = depth++;
  if (record::is_recording()) begin_range(name, spool::kNvtx, pushed_handle(level));
  return static_cast<int>(level);
}

int NVTX_API pop() {
  if (depth == 0) return NVTX_NO_PUSH_POP_TRACKING;
  const std::uint32_t level = --depth;
  if (record::is_recording()) end_range(pushed_handle(level));
  return static_cast<int>(level);
}

nvtxRangeId_t begin(std::uint32_t name) {
  const std::uint64_t id = next_range.fetch_add(1, std::memory_order_relaxed);
  if (record::is_recording()) begin_range(name, spool::kNvtx | spool::kAsync, kStarted | id);
  return id;
}

void NVTX_API end(nvtxRangeId_t id) {
  if (record::is_recording()) end_range(kStarted | id);
}

// Never reads the text of a call that is not recorded.
template <typename Message>
std::uint32_t id_of(const Message& message) {
  return record::is_recording() ? message() : 0;
}

const Domain* domain_of(nvtxDomainHandle_t handle) {
  return reinterpret_cast<const Domain*>(handle);
}

void NVTX_API mark_ex(const nvtxEventAttributes_t* event) {
  if (record::is_recording()) record::record_instant(message_id(event, nullptr));
}
void NVTX_API mark_a(const char* text) {
  if (record::is_recording()) record::record_instant(intern(text ? text : ""));
}
void NVTX_API mark_w(const wchar_t* text) {
  if (record::is_recording()) record::record_instant(intern(narrow(text)));
}
nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t* event) {
  return begin(id_of([&] { return message_id(event, nullptr); }));
}
nvtxRangeId_t NVTX_API start_a(const char* text) {
  return begin(id_of([&] { return intern(text ? text : ""); }));
}
nvtxRangeId_t NVTX_API start_w(const wchar_t* text) {
  return begin(id_of([&] { return intern(narrow(text)); }));
}
int NVTX_API push_ex(const nvtxEventAttributes_t* event) {
  return push(id_of([&] { return message_id(event, nullptr); }));
}
int NVTX_API push_a(const char* text) {
  return push(id_of([&] { return intern(text ? text : ""); }));
}
int NVTX_API push_w(const wchar_t* text) {
  return push(id_of([&] { return intern(narrow(text)); }));
}
void NVTX_API domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  if (record::is_recording()) record::record_instant(message_id(event, domain_of(domain)));
}
nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return begin(id_of([&] { return message_id(event, domain_of(domain)); }));
}
void NVTX_API domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }
int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return push(id_of([&] { return message_id(event, domain_of(domain)); }));
}
int NVTX_API domain_pop(nvtxDomainHandle_t) { return pop(); }

// Programs may keep these for ever, so they are never freed.
template <typename T>
T* keep(T value) {
  static auto* const kept = new std::deque<T>();
  static std::mutex mutex;  // guards *kept; deque: the addresses stay
  try {
    const std::lock_guard lock(mutex);
    return &kept->emplace_back(std::move(value));
  } catch (...) {  // no memory
    return nullptr;
  }
}

nvtxStringHandle_t NVTX_API register_a(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(keep(std::string(text ? text : "")));
}
nvtxStringHandle_t NVTX_API register_w(nvtxDomainHandle_t, const wchar_t* text) {
  return reinterpret_cast<nvtxStringHandle_t>(keep(narrow(text)));
}
nvtxDomainHandle_t NVTX_API create_a(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(keep(Domain{name ? name : ""}));
}
nvtxDomainHandle_t NVTX_API create_w(const wchar_t* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(keep(Domain{narrow(name)}));
}

struct Entry {
  unsigned id;
  void* function;
};
template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

bool fill(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
          std::initializer_list<Entry> entries) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) != 1 || !table) return false;
  for (const Entry& entry : entries)
    if (entry.id < size && table[entry.id])
      *table[entry.id] = reinterpret_cast<NvtxFunctionPointer>(entry.function);
  return true;
}

}  // namespace

bool take_nvtx(const void* (*export_table)(std::uint32_t)) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  if (!callbacks || callbacks->struct_size < sizeof *callbacks) return false;
  const bool core = fill(*callbacks, NVTX_CB_MODULE_CORE,
                         {{NVTX_CBID_CORE_MarkEx, address(mark_ex)},
                          {NVTX_CBID_CORE_MarkA, address(mark_a)},
                          {NVTX_CBID_CORE_MarkW, address(mark_w)},
                          {NVTX_CBID_CORE_RangeStartEx, address(start_ex)},
                          {NVTX_CBID_CORE_RangeStartA, address(start_a)},
                          {NVTX_CBID_CORE_RangeStartW, address(start_w)},
                          {NVTX_CBID_CORE_RangeEnd, address(end)},
                          {NVTX_CBID_CORE_RangePushEx, address(push_ex)},
                          {NVTX_CBID_CORE_RangePushA, address(push_a)},
                          {NVTX_CBID_CORE_RangePushW, address(push_w)},
                          {NVTX_CBID_CORE_RangePop, address(pop)}});
  fill(*callbacks, NVTX_CB_MODULE_CORE2,
       {{NVTX_CBID_CORE2_DomainMarkEx, address(domain_mark)},
        {NVTX_CBID_CORE2_DomainRangeStartEx, address(domain_start)},
        {NVTX_CBID_CORE2_DomainRangeEnd, address(domain_end)},
        {NVTX_CBID_CORE2_DomainRangePushEx, address(domain_push)},
        {NVTX_CBID_CORE2_DomainRangePop, address(domain_pop)},
        {NVTX_CBID_CORE2_DomainRegisterStringA, address(register_a)},
        {NVTX_CBID_CORE2_DomainRegisterStringW, address(register_w)},
        {NVTX_CBID_CORE2_DomainCreateA, address(create_a)},
        {NVTX_CBID_CORE2_DomainCreateW, address(create_w)}});
  return core;
}

}  // namespace lanescope::record_cupti
