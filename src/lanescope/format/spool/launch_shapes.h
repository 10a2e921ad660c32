// What the shape of a kernel's launch gives the kernel's row: texts of its sizes, and its occupancy
// where the limits of its device are known.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct LaunchShape {
  std::int64_t shared_bytes = 0;        // of a block, static and dynamic
  StringId grid{}, block{}, cluster{};  // "[x, y, z]"; no cluster: not set
  bool occupancy = false;               // the next fields are known
  double blocks_per_sm = 0, warps_per_sm = 0;
  std::int64_t achieved_percent = 0;
  StringId limit{};
};

// Programs repeat their launches, so each shape is computed once. Memory: 150 bytes a shape.
class LaunchShapes {
 public:
  // Both must live as long as this.
  LaunchShapes(TraceBuilder& builder, std::span<const GpuDevice> devices);
  // Valid as long as this.
  const LaunchShape& of(const spool::KernelRecord& kernel, const spool::KernelMoreRecord& more);

 private:
  using Key = std::array<std::uint32_t, 13>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t hash = 0;
      for (const std::uint32_t part : key) hash = (hash ^ part) * 0x9e3779b97f4a7c15;
      return static_cast<std::size_t>(hash ^ (hash >> 32));
    }
  };
  LaunchShape compute(const spool::KernelRecord& kernel, const spool::KernelMoreRecord& more);

  TraceBuilder& builder_;
  std::unordered_map<std::int64_t, const GpuDevice*> device_by_id_;
  std::unordered_map<Key, LaunchShape, KeyHash> shapes_;
};

}  // namespace lanescope::format
