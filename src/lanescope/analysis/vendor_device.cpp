#include "lanescope/analysis/vendor_device.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "lanescope/analysis/vendor_rows.h"

namespace lanescope::analysis {
namespace {

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
    const VendorProcess process =
        vendor_process_of(trace_.text(trace_.process(track.process).name));
    const bool hardware = process == VendorProcess::kAscendStreams;
    const bool collectives = process == VendorProcess::kAscendCollectives;
    bool has_work = false;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId slice{i};
      const std::string_view name = trace_.name(slice);
      if (hardware) {
        has_work |= add(devices_["Ascend NPU"], slice, ascend_row(name));
      } else if (collectives && name.starts_with("hcom_")) {
        add_collective(devices_["Ascend NPU"], slice);
      } else if (is_mtia_row(trace_, slice)) {
        has_work |= add(devices_["MTIA"], slice, mtia_row(name));
      }
    }
    if (has_work) ++devices_[hardware ? "Ascend NPU" : "MTIA"].stream_count;
  }

  bool add(VendorDevice& device, SliceId slice, VendorRowKind row) {
    if (row == VendorRowKind::kWait) return false;
    const std::int64_t start = trace_.start_ns(slice), end = trace_.end_ns(slice);
    device.any.add(start, end);
    if (row == VendorRowKind::kCopy) return true;
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
