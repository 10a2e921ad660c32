// What a source of events (the torch observer, CUPTI) gives the recorder: a table of plain
// functions, so that a source can be built with another compiler or another std::string.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "lanescope/record/record_abi.h"

extern "C" {

// `line` is a buffer of `size` bytes for one line to the user, ending with 0: what is wrong, or
// what the source cost. Every function may be null. One thread at a time calls it, any thread. It
// must not throw or block for long.
struct LanescopeActivitySource {
  uint32_t abi;  // LANESCOPE_RECORD_ABI
  uint32_t
      activities;    // LANESCOPE_ACTIVITY_* that it serves; asked only when one of them is wanted
  const char* name;  // "torch", "cupti"; stays valid
  void* self;        // handed to each function
  // The slow set-up; called in warm-up, before the first start. 0 is success. Else `line` says why
  // not: the recording goes on without this source, and the line is in the file.
  int (*prepare)(void* self, uint32_t options, char* line, size_t size);
  // A window opens. Called before records are accepted. 0 is success.
  int (*start)(void* self, uint32_t options, char* line, size_t size);
  // The window has closed and threads record no more. The source now writes what it still holds of
  // the window, with lanescope_source_write(). Called once for each start that succeeded.
  void (*stop)(void* self);
  // The recording is over: writes one line about its cost. 0: there is a line.
  int (*cost_line)(void* self, char* line, size_t size);
  // A copy of the recording is about to be made while recording goes on: the source now writes
  // its finished records. Called between start and stop, from any thread, also while another
  // function above runs.
  void (*flush)(void* self);
  // Record with these options from now on: the missing details cost too much. Called between start
  // and stop, never while another function above runs.
  void (*change)(void* self, uint32_t options) = nullptr;
};

// The source and the table must stay valid until unregistered. 0: success; 1: another ABI; 2: too
// many sources; 3: there is already a source with this name (nothing changes). A source registered
// during a window starts with the next one.
LANESCOPE_RECORD_EXPORT int lanescope_register_source(
    const struct LanescopeActivitySource* source) noexcept;
// Stops the source first if it runs. Does nothing for unknown sources.
LANESCOPE_RECORD_EXPORT void lanescope_unregister_source(
    const struct LanescopeActivitySource* source) noexcept;

// Appends `count` records of activity_layout.h, 48 bytes each, to the spool. A record and its
// kContinued record must be in one call, because they stay together. Any thread (takes a lock),
// between start and the return of stop. Returns how many were kept; the others count as dropped.
// Costs a copy.
LANESCOPE_RECORD_EXPORT uint32_t lanescope_source_write(const void* records,
                                                        uint32_t count) noexcept;
// Counts records that the source lost.
LANESCOPE_RECORD_EXPORT void lanescope_source_count_drops(uint64_t count) noexcept;
// Adds a top-level entry to the traces of all sessions; `json` is one JSON value of at most 120
// KiB. The last of equal keys wins. Allowed when lanescope_source_write() is. 0: success.
LANESCOPE_RECORD_EXPORT int lanescope_source_metadata(const char* key, const char* json) noexcept;

}  // extern "C"
