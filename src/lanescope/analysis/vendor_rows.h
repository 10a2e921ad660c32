// All rows that a file has of a device that is no GPU, for drawing them. vendor_device.h says which
// of them count as its time.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope::analysis {

enum class VendorRowKind : std::uint8_t { kCompute, kCommunication, kCopy, kWait };

struct VendorRow {
  SliceId slice;
  VendorRowKind kind;
  bool is_sum = false;  // of rows of other tracks: CANN's "Overlap Analysis"
};

// The rows of Ascend NPUs and MTIA, also the parts of collectives and CANN's sums. O(slices).
std::vector<VendorRow> find_vendor_rows(const Trace& trace);

// Which rows a track holds, by its process; MTIA is known by the category of a row.
enum class VendorProcess : std::uint8_t { kNone, kAscendStreams, kAscendCollectives, kAscendSums };
VendorProcess vendor_process_of(std::string_view process_name);
bool is_mtia_row(const Trace& trace, SliceId slice);
// What a row of an Ascend stream, or of an MTIA stream, is by its name.
VendorRowKind ascend_row(std::string_view name);
VendorRowKind mtia_row(std::string_view name);

}  // namespace lanescope::analysis
