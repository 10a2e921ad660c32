// Finds the annotations to which device work belongs, for their rows on streams: those around its
// launch, and for the work of a backward op those around its forward op.
// docs/decisions/gpu_annotations.md.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lanescope/format/spool/activity_carry.h"
#include "lanescope/format/spool/activity_links.h"
#include "lanescope/format/spool/launch_joins.h"

namespace lanescope::format {

// For one piece of a recording. Cost: linear in launches, and in the annotations around each (64 at
// most).
class StreamAnnotations {
 public:
  // All must live as long as this. `ranges`: those of earlier pieces first.
  StreamAnnotations(std::span<const SpoolRange> ranges, const ActivityLinks& links,
                    ActivityCarry* carry);
  // Adds the work to the rows in the carry. `open`: around its call; `stream`: its index there.
  void add_work(const LinkedWork& work, const OpenRanges& open, std::uint32_t stream);
  // Keeps forward ops in the carry, for backward ops of later pieces.
  void remember_forward_ops();

 private:
  AnnotationRef ref_of(std::uint32_t annotation) const;
  std::vector<AnnotationRef> refs_of(const OpenRanges& open,
                                     const std::vector<std::uint32_t>& list) const;
  void find_forward_annotations();

  std::span<const SpoolRange> ranges_;
  const ActivityLinks& links_;
  ActivityCarry& carry_;
  ForwardOps forward_ops_;
  std::unordered_map<std::uint32_t, std::vector<AnnotationRef>> forward_of_;  // by backward op
  std::vector<AnnotationRef> enclosing_;                                      // of the current work
};

}  // namespace lanescope::format
