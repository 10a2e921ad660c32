#include "lanescope/format/spool/stream_annotations.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace lanescope::format {

StreamAnnotations::StreamAnnotations(std::span<const SpoolRange> ranges, const ActivityLinks& links,
                                     ActivityCarry* carry)
    : ranges_(ranges), links_(links), carry_(*carry), forward_ops_(ranges) {
  find_forward_annotations();
}

AnnotationRef StreamAnnotations::ref_of(std::uint32_t annotation) const {
  const SpoolRange& range = ranges_[annotation];
  return {range.external_id, range.end_ns, range.text};
}

std::vector<AnnotationRef> StreamAnnotations::refs_of(
    const OpenRanges& open, const std::vector<std::uint32_t>& list) const {
  std::vector<AnnotationRef> refs;
  for (std::uint32_t i = 0; i < open.annotations_count; ++i)
    refs.push_back(ref_of(list[open.annotations_first + i]));
  return refs;
}

// For each backward op that launched work, finds the annotations around its forward op: the last
// one in this piece or before it.
void StreamAnnotations::find_forward_annotations() {
  std::vector<OpenRanges> moments;
  std::vector<std::uint32_t> backward_of;  // by moment
  for (const LinkedWork& work : links_.work) {
    const OpenRanges* open = open_at(links_, work.call);
    if (!open || open->backward == kNoIndex) continue;
    const auto [known, is_new] = forward_of_.try_emplace(open->backward);
    if (!is_new) continue;
    const SpoolRange& backward = ranges_[open->backward];
    const std::uint32_t here = forward_ops_.find(open->backward);
    const ActivityCarry::ForwardOp* const before =
        carry_.forward_ops.find({backward.forward_thread, backward.sequence});
    if (before && (here == kNoIndex || ranges_[here].start_ns <= before->start_ns)) {
      known->second = *before->annotations;
    } else if (here != kNoIndex) {
      moments.push_back({.track = ranges_[here].track, .time_ns = ranges_[here].start_ns});
      backward_of.push_back(open->backward);
    }
  }
  std::vector<std::uint32_t> annotations;
  find_open_ranges(ranges_, moments, &annotations);
  for (std::size_t i = 0; i < moments.size(); ++i)
    forward_of_[backward_of[i]] = refs_of(moments[i], annotations);
}

// Keeps forward ops for backward ops of later pieces.
void StreamAnnotations::remember_forward_ops() {
  std::vector<OpenRanges> moments;
  std::vector<std::uint32_t> range_of;  // by moment
  for (std::uint32_t i = 0; i < ranges_.size(); ++i) {
    const SpoolRange& range = ranges_[i];
    if (range.sequence < 0 || range.is_backward || range.forward_thread == 0) continue;
    if (!range.in_piece) continue;  // remembered already
    moments.push_back({.track = range.track, .time_ns = range.start_ns});
    range_of.push_back(i);
  }
  std::vector<std::uint32_t> annotations;
  find_open_ranges(ranges_, moments, &annotations);
  std::shared_ptr<const std::vector<AnnotationRef>> last;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    std::vector<AnnotationRef> refs = refs_of(moments[i], annotations);
    const auto is_same = [](const AnnotationRef& a, const AnnotationRef& b) {
      return a.external_id == b.external_id;
    };
    if (!last || !std::equal(last->begin(), last->end(), refs.begin(), refs.end(), is_same))
      last = std::make_shared<const std::vector<AnnotationRef>>(std::move(refs));
    const SpoolRange& range = ranges_[range_of[i]];
    const NodeKey node{range.forward_thread, range.sequence};
    const ActivityCarry::ForwardOp* const known = carry_.forward_ops.find(node);
    if (!known || known->start_ns <= range.start_ns)
      carry_.forward_ops.put(node, {range.start_ns, last});
  }
}

void StreamAnnotations::add_work(const LinkedWork& work, const OpenRanges& open,
                                 std::uint32_t stream) {
  std::span<const AnnotationRef> forward;
  if (open.backward != kNoIndex)
    if (const auto known = forward_of_.find(open.backward); known != forward_of_.end())
      forward = known->second;
  enclosing_.clear();
  for (std::uint32_t i = 0; i < open.annotations_count; ++i)
    enclosing_.push_back(ref_of(links_.annotations[open.annotations_first + i]));
  carry_.annotations.add_work(enclosing_, forward, stream, work.start_ns,
                              std::max(work.start_ns, work.end_ns));
}

}  // namespace lanescope::format
