#include "lanescope/format/spool/activity_words.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "lanescope/codec/cuda_call_names.h"
#include "lanescope/codec/spool_layout.h"

namespace lanescope::format {
namespace {

constexpr std::size_t kLongestMangledName = 2048;

template <std::size_t N>
const char* word(const char* const (&words)[N], std::size_t number, const char* otherwise) {
  return number < N ? words[number] : otherwise;
}

const char* memory_word(std::uint8_t kind) {
  static constexpr const char* kWords[] = {"Unknown",       "Pageable",      "Pinned",
                                           "Device",        "Array",         "Managed",
                                           "Device Static", "Managed Static"};
  return word(kWords, kind, "Unrecognized");
}

}  // namespace

std::string memcpy_name(std::uint8_t copy_kind, std::uint8_t source, std::uint8_t destination) {
  static constexpr const char* kWords[] = {"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                           "AtoD",      "DtoA", "DtoD", "HtoH", "PtoP"};
  return fmt::format("Memcpy {} ({} -> {})", word(kWords, copy_kind, "<unknown>"),
                     memory_word(source), memory_word(destination));
}

std::string memset_name(std::uint8_t memory_kind) {
  return fmt::format("Memset ({})", memory_word(memory_kind));
}

const char* sync_name(std::uint8_t sync_kind) {
  static constexpr const char* kWords[] = {"Unknown", "Event Sync", "Stream Wait Event",
                                           "Stream Sync", "Context Sync"};
  return word(kWords, sync_kind, "<unknown>");
}

bool is_event_wait(std::uint8_t sync_kind) { return sync_kind == 1 || sync_kind == 2; }

const char* overhead_name(std::uint32_t overhead_kind) {
  if (overhead_kind == 0) return "Unknown";
  if (overhead_kind == 1) return "Driver Compiler";
  static constexpr const char* kWords[] = {"Unrecognized",
                                           "Buffer Flush",
                                           "Instrumentation",
                                           "Resource",
                                           "Runtime Triggered Module Loading",
                                           "Lazy Function Loading",
                                           "Command Buffer Full",
                                           "Activity Buffer Request",
                                           "UVM Activity Init"};
  if ((overhead_kind & 0xffff) != 0) return "Unrecognized";
  return word(kWords, overhead_kind >> 16, "Unrecognized");
}

std::string api_call_name(bool is_driver, std::uint32_t number) {
  const std::string_view name =
      is_driver ? codec::cuda_driver_call_name(number) : codec::cuda_runtime_call_name(number);
  if (!name.empty()) return std::string(name);
  return fmt::format("cuda {} call #{}", is_driver ? "driver" : "runtime", number);
}

std::string kernel_name(std::string_view mangled) {
  std::string name(mangled);
  if (!mangled.starts_with("_Z") || mangled.size() > kLongestMangledName) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || !demangled) return name;
  const std::string_view text = demangled.get();
  return text.size() <= spool::kMaxTextBytes ? std::string(text) : name;
}

}  // namespace lanescope::format
