// All process-wide state of lanescope, and what happens around fork(), when a thread ends and when
// the process ends. Everything else of the recorder is passed in.
//
// What recording threads read is in record_abi.h. The recorder itself is
// ActiveRecorder::instance().
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "lanescope/record/bus_guard.h"
#include "lanescope/record/intern_table.h"
#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// Names and details, the same for all recordings. Any thread.
InternTable& process_texts();

// The guard of all recordings' files; its handler is installed when this returns. One thread at a
// time.
BusGuard& installed_bus_guard();

// Makes this thread's writer; null: impossible (the thread ends, no memory), and a drop is counted.
LanescopeWriter* attach_this_thread() noexcept;

// Records lost on threads without a writer. Taking them sets the count to 0.
void count_drop_without_writer() noexcept;
std::uint64_t take_drops_without_writer() noexcept;

// After this, every thread sees our earlier stores before its next load, and we see all its
// earlier stores. Microseconds; 10 ms where the kernel cannot do it.
void fence_all_threads();

// From now on the signal counts up dump_signals(), for the life of the process. Returns an empty
// text; if the program has its own handler for the signal, says so and changes nothing.
std::string take_dump_signal(int signal);
const std::atomic<std::uint32_t>* dump_signals();
const char* signal_name(int signal);

}  // namespace lanescope::record
