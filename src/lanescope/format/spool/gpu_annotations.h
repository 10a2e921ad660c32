// Projects annotations on streams: for each annotation with device work, where that work was on
// each stream. docs/decisions/gpu_annotations.md.
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

// Identifies an annotation in any piece of the recording.
struct AnnotationRef {
  std::int64_t external_id = 0;
  std::int64_t end_ns = 0;
  std::uint32_t text = 0;  // id of its name in the recording
};

// One row: from the first start to the last end of the work. Nanoseconds.
struct GpuAnnotation {
  AnnotationRef annotation;
  std::uint32_t stream = 0;  // index of the (device, stream) pair
  std::int64_t start_ns = 0, end_ns = 0;
  // kOwn if any of it is; backward work has separate rows.
  AnnotationWork work = AnnotationWork::kOwn;
};

// O(1) per addition. Memory: 100 bytes per open row.
class GpuAnnotations {
 public:
  // If more rows of backward work than this wait for the end, the older half counts as complete.
  static constexpr std::size_t kMostBackwardRows = 200'000;

  void add(const AnnotationRef& annotation, std::uint32_t stream, AnnotationWork work,
           std::int64_t start_ns, std::int64_t end_ns);
  // `enclosing`: annotations around a launch, innermost first; `forward`: those around the forward
  // op of the backward op that launched it. Each annotation counts once.
  void add_work(std::span<const AnnotationRef> enclosing, std::span<const AnnotationRef> forward,
                std::uint32_t stream, std::int64_t start_ns, std::int64_t end_ns);
  // Takes the rows of annotations that ended at or before `time_ns`, sorted by annotation and
  // stream. No later launch can belong to them. Backward work can come at any time after its
  // annotation, so its rows wait for take_all().
  std::vector<GpuAnnotation> take_ended(std::int64_t time_ns);
  std::vector<GpuAnnotation> take_all();

 private:
  struct RowKey {
    std::int64_t external_id;
    std::uint32_t stream;
    bool backward;
    bool operator==(const RowKey&) const = default;
  };
  struct RowKeyHash {
    std::size_t operator()(const RowKey& key) const {
      return (static_cast<std::uint64_t>(key.external_id) << 1 | (key.backward ? 1 : 0)) *
                 0x9e3779b97f4a7c15u ^
             key.stream;
    }
  };
  template <typename Wanted>
  std::vector<GpuAnnotation> take(const Wanted& wanted);

  std::unordered_map<RowKey, GpuAnnotation, RowKeyHash> rows_;
  std::size_t backward_rows_ = 0;
};

}  // namespace lanescope::format
