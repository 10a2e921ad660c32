// What a source of events (the torch observer, later CUPTI) gives the recorder: a table of plain
// functions, so that it may be compiled elsewhere, with another compiler or another std::string.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "lanescope/record/record_abi.h"

extern "C" {

// `line` is a buffer of `size` bytes for one line that tells the user what is wrong or what it
// cost; it ends with 0. Every function may be null, is called by one thread at a time (any thread),
// and must not throw or block for long.
struct LanescopeActivitySource {
  uint32_t abi;  // LANESCOPE_RECORD_ABI
  uint32_t
      activities;    // LANESCOPE_ACTIVITY_* that it serves; asked only when one of them is wanted
  const char* name;  // "torch", "cupti"; stays valid
  void* self;        // handed to each function
  // Whatever is slow; called in warm-up, before the first start. 0 is success, else `line` says why
  // not; the recording goes on without this source and the line is kept in the file.
  int (*prepare)(void* self, uint32_t options, char* line, size_t size);
  // A window opens. Called before records are accepted. 0 is success.
  int (*start)(void* self, uint32_t options, char* line, size_t size);
  // The window has closed: threads record no more. What the source still holds of the window it
  // writes now, with lanescope_source_write(). Called once for each start that succeeded.
  void (*stop)(void* self);
  // The recording is over. What it cost, in one line; 0 when there is one.
  int (*cost_line)(void* self, char* line, size_t size);
  // A copy of the recording is about to be made while it goes on: what the source holds and is
  // finished it writes now. Between start and stop, from any thread, also beside the others above.
  void (*flush)(void* self);
  // From now on record with these options, between start and stop: details that are missing here
  // cost too much. Beside the others above never.
  void (*change)(void* self, uint32_t options) = nullptr;
};

// The source, and the table, stay valid until unregistered. 0 is success; 1: another ABI; 2: too
// many sources; 3: one of this name is there already (nothing changes). A source that comes during
// a window starts with the next one.
LANESCOPE_RECORD_EXPORT int lanescope_register_source(
    const struct LanescopeActivitySource* source) noexcept;
// Stops it first if it runs. Unknown sources: nothing happens.
LANESCOPE_RECORD_EXPORT void lanescope_unregister_source(
    const struct LanescopeActivitySource* source) noexcept;

// Appends records of activity_layout.h to the spool that is being written; `count` of 48 bytes.
// A record with its kContinued one is never parted, so both must be in one call. From any thread
// (takes a lock), between start and the return of stop. Returns how many were kept; the rest is
// counted as dropped. Costs a copy.
LANESCOPE_RECORD_EXPORT uint32_t lanescope_source_write(const void* records,
                                                        uint32_t count) noexcept;
// Records that the source itself lost.
LANESCOPE_RECORD_EXPORT void lanescope_source_count_drops(uint64_t count) noexcept;
// A top-level entry of the traces of all sessions; `json` is one JSON value of at most 120 KiB. The
// last of equal keys wins. When lanescope_source_write() may be called; 0 is success.
LANESCOPE_RECORD_EXPORT int lanescope_source_metadata(const char* key, const char* json) noexcept;

}  // extern "C"
