// Rows of category cuda_sync: CUPTI's records of waits (CUpti_ActivitySynchronizationType), as
// Kineto names them. Recorded only with enable_cuda_sync_events.
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

constexpr std::string_view kSyncNote =
    "Drawn on the GPU's side, but it is the CPU that waits, in the API call of the same "
    "correlation id; its length is the GPU's remaining work.";

constexpr Row kSyncRows[] = {
    {"Stream Sync", "the CPU waits for a stream",
     "The record of a wait for one stream, made by cudaStreamSynchronize or its like.",
     "yes: until the stream is empty", "none", kSyncNote, "host-sync"},
    {"Event Sync", "the CPU waits for an event",
     "The record of a wait for a mark in a stream, made by cudaEventSynchronize or its like.",
     "yes: until the mark is reached", "none", kSyncNote, "host-sync"},
    {"Context Sync", "the CPU waits for the whole GPU",
     "The record of a wait for all streams, made by cudaDeviceSynchronize or its like.",
     "yes: until the GPU has nothing left to do", "none", kSyncNote, "final-sync"},
    {"Stream Wait Event", "a stream waits for another",
     "The record of cudaStreamWaitEvent: later work of this stream begins after a mark in another "
     "one.",
     "no: the GPU's stream waits", "none",
     "How streams are kept in order; normal with collectives.", ""},
};

}  // namespace

bool read_sync_name(std::string_view name, EventName& out) {
  const Row* row = find_row(kSyncRows, name);
  if (!row) return false;
  fill(EventKind::kSynchronisation, *row, out);
  return true;
}

}  // namespace lanescope::names::events
