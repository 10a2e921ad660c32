// What the allocators' `[memory]` records say for each device: how much was allocated when, who
// owns each block, what the peak consisted of and what was never freed.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/frame_table.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// Who allocated: names of the events that were open on the allocating thread. kNone: none was.
// docs/definitions/memory.md.
struct MemoryOwner {
  StringId op = kNone<StringId>;          // the outermost operator below the annotation
  StringId annotation = kNone<StringId>;  // the innermost annotation that is not a ProfilerStep#N
  StringId frame = kNone<StringId>;       // the innermost Python frame in the program's code
  auto operator<=>(const MemoryOwner&) const = default;
};

// One record. Nanoseconds since Trace::base_time_ns(), bytes; both clamped to +-2^60, so that sums
// of a few of them hold.
struct MemorySample {
  std::int64_t time_ns = 0;
  std::int64_t bytes = 0;      // of this record: negative when freed
  std::int64_t allocated = 0;  // after it
  std::int64_t reserved = 0;   // after it; 0: unknown
};

// A piece of memory from its allocation to its release, if the recording has them.
struct MemoryBlock {
  std::uint32_t first = 0;            // the record that allocated it; 0: allocated
                                      // before the recording
  std::optional<std::uint32_t> last;  // the record that freed it; nothing: not freed
                                      // during the recording
  std::int64_t bytes = 0;
  std::uint32_t owner = 0;  // index into MemoryTimeline::owners; before_recording: who freed it
  bool before_recording = false;
};

struct MemoryShare {
  std::uint32_t owner = 0;
  std::int64_t bytes = 0;
  std::uint64_t blocks = 0;
};

struct MemoryDevice {
  std::int64_t type = 0;  // c10::DeviceType: 0 CPU, 1 CUDA, 6 HIP, ...
  std::int64_t id = -1;
  // The file has totals. Without them `allocated` counts from 0 at the start of the recording.
  bool has_totals = false;
  bool has_reserved = false;
  bool has_blocks = false;  // every record has its address; without it there are no blocks
  std::vector<MemorySample> samples;  // in order of time, one per record
  std::vector<MemoryBlock> blocks;    // in order of their first record
  std::size_t peak = 0;  // index of the sample with most allocated; ties: the first one
  std::int64_t peak_reserved = 0;
  std::uint64_t lost_free_count = 0;  // addresses allocated again though nothing had freed them

  bool is_accelerator() const { return type != 0; }
  std::int64_t allocated_at_start() const {
    return samples.front().allocated - samples.front().bytes;
  }
  // Bytes allocated just before `time_ns`. O(log n).
  std::int64_t allocated_before(std::int64_t time_ns) const;
};

struct MemoryTimeline {
  std::vector<MemoryDevice> devices;  // with a record; by type and id
  std::vector<MemoryOwner> owners;    // distinct
};

// O(n log n) over instants; slices are only read when there are memory records. `frames`: those of the trace; if they are not
// given, they are found. Any thread.
MemoryTimeline compute_memory_timeline(const Trace& trace, const FrameTable* frames = nullptr);

// What was allocated right after samples[index], by owner; most bytes first, ties: by owner.
// `earlier_bytes`: allocated before the recording, so no block has it.
struct MemoryHeld {
  std::vector<MemoryShare> shares;
  std::int64_t earlier_bytes = 0;
};
MemoryHeld memory_held(const MemoryDevice& device, std::size_t index);

// Blocks allocated in [start_ns, end_ns) and not freed during the recording.
std::vector<MemoryShare> never_freed(const MemoryDevice& device, std::int64_t start_ns,
                                     std::int64_t end_ns);

// What a marked step did to a device's memory. A step lasts until the next step starts on the CPU,
// where allocation happens; the last one until its end.
struct MemoryStep {
  std::int64_t number = 0, start_ns = 0, end_ns = 0;
  std::int64_t start_bytes = 0, peak_bytes = 0, end_bytes = 0;  // allocated
  std::int64_t never_freed_bytes = 0;  // allocated in the step; needs blocks
};
std::vector<MemoryStep> compute_memory_steps(const Trace& trace, const MemoryDevice& device);

// The sum, limited to +-2^60, because sizes in a damaged file can be anything.
std::int64_t add_bytes(std::int64_t a, std::int64_t b);

// "CUDA", "CPU", ... for a c10::DeviceType; "device type 77" for an unknown number.
std::string device_type_name(std::int64_t type);

}  // namespace lanescope::analysis
