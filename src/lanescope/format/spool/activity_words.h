// torch.profiler's names for the kinds of copies, waits and overheads; a recording
// has CUPTI's numbers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lanescope::format {

// "Memcpy HtoD (Pageable -> Device)"; numbers that CUPTI 13.0 does not have read
// "<unknown>" and "Unrecognized".
std::string memcpy_name(std::uint8_t copy_kind, std::uint8_t source, std::uint8_t destination);
std::string memset_name(std::uint8_t memory_kind);       // "Memset (Device)"
const char* sync_name(std::uint8_t sync_kind);           // "Stream Wait Event"
const char* overhead_name(std::uint32_t overhead_kind);  // "Activity Buffer Request"
bool is_event_wait(std::uint8_t sync_kind);              // of a host thread or of a stream

// "cudaLaunchKernel"; "cuda runtime call #9999" when the number has no name.
std::string api_call_name(bool is_driver, std::uint32_t number);

// The demangled name. A name stays as it is if it is not mangled, longer than 2048 bytes (as in the
// tables), or longer than 32 KiB when demangled.
std::string kernel_name(std::string_view mangled);

}  // namespace lanescope::format
