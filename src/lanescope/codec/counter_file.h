// The file of hardware counters next to a recording: <recording>.counters. A separate process
// writes it (record_cupti/hardware_sampler.h), the reader of recordings adds it to the trace.
//
// A header of 16 bytes, then blocks: a header of 16 bytes and its payload, all little endian. Each
// block is written with one call, so a killed writer leaves whole blocks. docs/formats/counters.md.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::counters {

inline constexpr char kMagic[8] = {'L', 'S', 'C', 'O', 'U', 'N', 'T', '1'};
inline constexpr std::uint32_t kBlockMagic = 0x4b4c4248;
inline constexpr std::string_view kEnding = ".counters";  // after the recording's whole name

enum class BlockKind : std::uint16_t {
  kDescription = 1,  // JSON: what the device's values are
  kSamples = 2,      // SampleHead, then `values` floats, for each sample
  kAnchors = 3,      // Anchor
  kSlowSamples = 4,  // ticks, then `values` floats, for each sample
  kLosses = 5,       // Losses; the last one counts
};

struct FileHead {
  char magic[8] = {};
  std::uint64_t pid = 0;  // of the recorded process
};
struct BlockHead {
  std::uint32_t magic = kBlockMagic;
  BlockKind kind = BlockKind::kDescription;
  std::uint16_t device = 0;  // CUDA's number in the recorded process
  std::uint32_t bytes = 0;   // of the payload
  std::uint32_t values = 0;  // floats of a sample
};
// What a device counted from start_ns to start_ns + length_ns, on the device's own clock.
struct SampleHead {
  std::uint64_t start_ns = 0;
  std::uint32_t length_ns = 0;
  std::uint32_t reserved = 0;
};
// One moment on the recorder's clock and on that of the samples.
struct Anchor {
  std::uint64_t ticks = 0;
  std::uint64_t device_ns = 0;
};
struct Losses {
  std::uint64_t overflows = 0;           // times the device's buffer was full, or could not be read
  std::uint64_t refused = 0;             // samples with impossible times
  std::uint64_t gaps = 0, gap_ns = 0;    // places where samples are missing, and how long they are
  std::uint64_t size_limit_reached = 0;  // 1: the file may not grow, later samples are missing
};
static_assert(sizeof(FileHead) == 16 && sizeof(BlockHead) == 16 && sizeof(SampleHead) == 16 &&
              sizeof(Anchor) == 16 && sizeof(Losses) == 40);

// One series: at time i its value is values[i * width + column].
struct Samples {
  std::uint32_t width = 0;
  std::vector<std::uint64_t> start_ns;   // device clock; in slow samples: ticks
  std::vector<std::uint32_t> length_ns;  // in slow samples: empty
  std::vector<float> values;
  std::size_t size() const { return start_ns.size(); }
};

struct Device {
  std::uint16_t number = 0;
  std::string description;  // JSON
  Samples samples;          // by start
  Samples slow;
  std::vector<Anchor> anchors;
  Losses losses;
};

struct CounterFile {
  std::uint64_t pid = 0;
  std::vector<Device> devices;
  std::uint64_t bad_blocks = 0;  // skipped: torn, or of no known form
};

// Reads what is whole. kCorruptInput: not such a file. Memory: the samples.
Result<CounterFile> parse_counter_file(std::string_view bytes);

}  // namespace lanescope::counters
