#include "lanescope/analysis/vendor_device.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace lanescope::analysis {
namespace {

enum class VendorRow : std::uint8_t { kCompute, kCopy, kWait };

bool name_holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// CANN's names of what a stream does: a kernel has its operator's name, all else one of these.
VendorRow ascend_row(std::string_view name) {
  for (const std::string_view wait :
       {"EVENT_WAIT", "EVENT_RECORD", "EVENT_RESET", "Notify Wait", "Notify Record", "Notify_Wait",
        "Notify_Record", "NOTIFY_WAIT", "NOTIFY_RECORD", "Write Value", "Capture Wait",
        "Capture Record", "PROFILER_TRACE_EX"})
    if (name == wait) return VendorRow::kWait;
  return name.starts_with("MEMCPY") || name == "SDMA" || name == "RDMASend" ? VendorRow::kCopy
                                                                            : VendorRow::kCompute;
}

VendorRow mtia_row(std::string_view name) {
  if (name.starts_with("event_") || name.starts_with("barrier")) return VendorRow::kWait;
  return name_holds(name, "dma") ? VendorRow::kCopy : VendorRow::kCompute;
}

class VendorFinder {
 public:
  explicit VendorFinder(const Trace& trace) : trace_(trace) {}

  std::optional<VendorDevice> run() {
    for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i) visit(trace_.track(TrackId{i}));
    VendorDevice* best = nullptr;
    for (auto& [name, device] : devices_) {
      device.name = name;
      device.compute.finish();
      device.compute_or_communication.finish();
      device.any.finish();
      if (!best || device.compute.length_ns() > best->compute.length_ns()) best = &device;
    }
    if (!best || best->any.length_ns() == 0) return std::nullopt;
    return std::move(*best);
  }

 private:
  void visit(const Track& track) {
    if (track.slice_count == 0) return;
    const std::string_view process = trace_.text(trace_.process(track.process).name);
    const bool hardware = process.starts_with("Ascend Hardware");
    const bool collectives = process == "HCCL" || process.starts_with("Communication");
    bool has_work = false;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId slice{i};
      const std::string_view name = trace_.name(slice);
      if (hardware) {
        has_work |= add(devices_["Ascend NPU"], slice, ascend_row(name));
      } else if (collectives && name.starts_with("hcom_")) {
        add_collective(devices_["Ascend NPU"], slice);
      } else if (trace_.text(trace_.categories()[raw(trace_.slices().category[i])].text) ==
                 "mtia_ccp_events") {
        has_work |= add(devices_["MTIA"], slice, mtia_row(name));
      }
    }
    if (has_work) ++devices_[hardware ? "Ascend NPU" : "MTIA"].stream_count;
  }

  bool add(VendorDevice& device, SliceId slice, VendorRow row) {
    if (row == VendorRow::kWait) return false;
    const std::int64_t start = trace_.start_ns(slice), end = trace_.end_ns(slice);
    device.any.add(start, end);
    if (row == VendorRow::kCopy) return true;
    device.compute.add(start, end);
    device.compute_or_communication.add(start, end);
    device.works.push_back(slice);
    return true;
  }

  void add_collective(VendorDevice& device, SliceId slice) {
    device.communication_name = "HCCL";
    device.compute_or_communication.add(trace_.start_ns(slice), trace_.end_ns(slice));
    device.any.add(trace_.start_ns(slice), trace_.end_ns(slice));
    device.collectives.push_back(slice);
  }

  const Trace& trace_;
  std::map<std::string, VendorDevice> devices_;
};

}  // namespace

VendorWall VendorDevice::wall_of(const Window& window) const {
  const auto within = [&](const IntervalUnion& time) {
    return time.length_within_ns(window.start_ns, window.end_ns);
  };
  VendorWall wall;
  wall.wall_ns = window.length_ns();
  wall.compute_ns = within(compute);
  wall.exposed_communication_ns = within(compute_or_communication) - wall.compute_ns;
  wall.exposed_copy_ns = within(any) - within(compute_or_communication);
  return wall;
}

std::optional<VendorDevice> find_vendor_device(const Trace& trace) {
  return VendorFinder(trace).run();
}

}  // namespace lanescope::analysis
