// Annotations projected on streams: for each annotation that had device work, where on each stream
// that work was. docs/decisions/gpu_annotations.md.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace lanescope::format {

// Why device work belongs to an annotation.
enum class AnnotationWork : std::uint8_t {
  kOwn,       // launched with this annotation innermost
  kNested,    // launched inside annotations in this one
  kBackward,  // launched by the backward op of an op inside this one
};

// One row: from the first start to the last end of the work. Nanoseconds.
struct GpuAnnotation {
  std::uint32_t annotation = 0;  // index of the range
  std::uint32_t stream = 0;      // index of the (device, stream) pair
  std::int64_t start_ns = 0, end_ns = 0;
  // kOwn when any of it is; backward work has rows of its own.
  AnnotationWork work = AnnotationWork::kOwn;
};

// O(1) an addition; rows in order of first addition.
class GpuAnnotations {
 public:
  void add(std::uint32_t annotation, std::uint32_t stream, AnnotationWork work,
           std::int64_t start_ns, std::int64_t end_ns);
  // `enclosing`: annotations around a launch, innermost first; `forward`: those around the forward
  // op of the backward op that launched it. Each annotation counts once.
  void add_work(std::span<const std::uint32_t> enclosing, std::span<const std::uint32_t> forward,
                std::uint32_t stream, std::int64_t start_ns, std::int64_t end_ns);
  std::span<const GpuAnnotation> rows() const { return rows_; }

 private:
  std::vector<GpuAnnotation> rows_;
  std::unordered_map<std::uint64_t, std::uint32_t> row_of_[2];  // forward, backward
};

}  // namespace lanescope::format
