#include "lanescope/analysis/vendor_rows.h"

namespace lanescope::analysis {
namespace {

// A collective ("hcom_allReduce__868_0_1"), or what one of its planes does for it.
VendorRowKind hccl_row(std::string_view name) {
  return ascend_row(name) == VendorRowKind::kWait ? VendorRowKind::kWait
                                                  : VendorRowKind::kCommunication;
}

// "Computing", "Communication(Not Overlapped)", "Free".
VendorRowKind overlap_row(std::string_view name) {
  return name == "Computing"                 ? VendorRowKind::kCompute
         : name.starts_with("Communication") ? VendorRowKind::kCommunication
                                             : VendorRowKind::kWait;
}

}  // namespace

VendorProcess vendor_process_of(std::string_view name) {
  if (name.starts_with("Ascend Hardware")) return VendorProcess::kAscendStreams;
  if (name == "HCCL" || name.starts_with("Communication")) return VendorProcess::kAscendCollectives;
  return name == "Overlap Analysis" ? VendorProcess::kAscendSums : VendorProcess::kNone;
}

bool is_mtia_row(const Trace& trace, SliceId slice) {
  return trace.text(trace.categories()[raw(trace.slices().category[raw(slice)])].text) ==
         "mtia_ccp_events";
}

// CANN's names of what a stream does: a kernel has its operator's name, all else one of these.
VendorRowKind ascend_row(std::string_view name) {
  for (const std::string_view wait :
       {"EVENT_WAIT", "EVENT_RECORD", "EVENT_RESET", "Notify Wait", "Notify Record", "Notify_Wait",
        "Notify_Record", "NOTIFY_WAIT", "NOTIFY_RECORD", "Write Value", "Capture Wait",
        "Capture Record", "PROFILER_TRACE_EX"})
    if (name == wait) return VendorRowKind::kWait;
  return name.starts_with("MEMCPY") || name == "SDMA" || name == "RDMASend"
             ? VendorRowKind::kCopy
             : VendorRowKind::kCompute;
}

VendorRowKind mtia_row(std::string_view name) {
  if (name.starts_with("event_") || name.starts_with("barrier")) return VendorRowKind::kWait;
  return name.find("dma") != name.npos ? VendorRowKind::kCopy : VendorRowKind::kCompute;
}

std::vector<VendorRow> find_vendor_rows(const Trace& trace) {
  std::vector<VendorRow> rows;
  for (const Track& track : trace.tracks()) {
    const VendorProcess process = vendor_process_of(trace.text(trace.process(track.process).name));
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId slice{i};
      const std::string_view name = trace.name(slice);
      switch (process) {
        case VendorProcess::kAscendStreams:
          rows.push_back({slice, ascend_row(name)});
          break;
        case VendorProcess::kAscendCollectives:
          rows.push_back({slice, hccl_row(name)});
          break;
        case VendorProcess::kAscendSums:
          rows.push_back({slice, overlap_row(name), true});
          break;
        case VendorProcess::kNone:
          if (is_mtia_row(trace, slice)) rows.push_back({slice, mtia_row(name)});
          break;
      }
    }
  }
  return rows;
}

}  // namespace lanescope::analysis
