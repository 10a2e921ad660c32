// The sums of an event need its children alone. They are on its thread and inside its time, so events are
// taken in groups between moments at which nothing is open: such a group fits the cache.
// Rules 3 to 7 of docs/definitions/key_averages.md. The steps of add() are inline: each is called in one or two places.
#include "lanescope/analysis/track_rows.h"

#include <algorithm>

namespace lanescope::analysis::by_track {

void add_notes(const TorchEventsNotes& from, TorchEventsNotes& to) {
  to.unlaunched_count += from.unlaunched_count;
  to.unlaunched_ns += from.unlaunched_ns;
  to.before_first_step_count += from.before_first_step_count;
  to.before_first_step_ns += from.before_first_step_ns;
  to.overhead_claim_count += from.overhead_claim_count;
  to.overhead_claim_ns += from.overhead_claim_ns;
  to.python_frame_count += from.python_frame_count;
}

void RowMaker::add(const Piece& piece, std::uint32_t number, std::span<const EventKey> moved,
                   std::span<const Block> blocks) {
  piece_ = number;
  track_ = TrackId{piece.track};
  begin_group();
  BusyPlace place;
  auto next = moved.begin();
  for (const Block& block : blocks) {
    const std::uint32_t begin = std::max(piece.first, block.first),
                        end = std::min(piece.end, block.first + block.count);
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t bit = i - block.first;
      if (!in_.is_row_at(block, bit)) continue;
      const SliceId id{i};
      const bool on_device = in_.rows.is_on_device(id);
      if (!on_device && in_.trace.kind(id) == CategoryKind::kOverhead &&
          in_.rows.main_track() != kNone<TrackId> && in_.rows.main_track() != track_)
        continue;  // it belongs to the main thread
      const EventKey key = in_.rows.key_of(id);
      if (on_device) {
        add_device_event(key, place);
        continue;
      }
      while (next != moved.end() && in_.rows.before(*next, key)) push(*next++);
      push(key);
    }
  }
  while (next != moved.end()) push(*next++);
  end_group();
}

inline Row& RowMaker::row_at(std::uint32_t key, const EventKey& event, bool is_top_level) {
  std::uint32_t& index = row_of_[key];
  if (index == kNoIndex) {
    index = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back({.key = key, .first = event, .is_top_level = is_top_level});
  }
  Row& row = rows_[index];
  if (in_.rows.before(event, row.first)) {
    row.first = event;
    row.is_top_level = is_top_level;
  }
  return row;
}

inline void RowMaker::add_device_event(const EventKey& key, BusyPlace& place) {
  const std::uint32_t row_key = in_.row_key(key.slice, true);
  Row& row = row_at(row_key, key, true);
  ++row.count;
  const std::int64_t dur_ns = key.end_ns - key.start_ns;
  if (row_key & kAnnotation) {
    const std::int64_t busy_ns = in_.work[raw(track_)].within_ns(key.start_ns, key.end_ns, place);
    row.device_ns += busy_ns;
    annotation_span_ns_ += dur_ns;
    annotation_busy_ns_ += busy_ns;
    return;
  }
  row.device_ns += dur_ns;
  row.self_device_ns += dur_ns;
}

inline void RowMaker::begin_group() {
  nodes_.clear();
  latest_end_ns_ = kEarliest;
  is_in_order_ = true;
}

inline void RowMaker::push(const EventKey& key) {
  if (!nodes_.empty()) {
    const EventKey& last = nodes_.back().key;
    if (key.start_ns > last.start_ns && key.start_ns >= latest_end_ns_)
      end_group();
    else if (in_.rows.before(key, last))
      is_in_order_ = false;
  }
  Node node;
  node.key = key;
  node.row_key = in_.row_key(key.slice, false);
  node.is_async = in_.rows.is_async(key.slice);
  node.kernels_ns = in_.kernels_ns[raw(key.slice)];
  latest_end_ns_ = std::max(latest_end_ns_, key.end_ns);
  nodes_.push_back(node);
}

inline void RowMaker::end_group() {
  if (!is_in_order_)
    std::sort(nodes_.begin(), nodes_.end(),
              [&](const Node& a, const Node& b) { return in_.rows.before(a.key, b.key); });
  if (in_.counts_overhead_claims && track_ == in_.rows.main_track()) count_overhead_claims();
  build_tree();
  merge_same_names();
  add_up();
  begin_group();
}

// Kernels that torch would count twice: overhead rows take the kernels of the operator around them.
inline void RowMaker::count_overhead_claims() {
  open_.clear();
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const CategoryKind kind = in_.trace.kind(nodes_[i].key.slice);
    if (is_front_end(kind)) open_.push_back(i);
    if (kind != CategoryKind::kOverhead) continue;
    while (!open_.empty() && nodes_[open_.back()].key.end_ns <= nodes_[i].key.start_ns)
      open_.pop_back();
    if (open_.empty()) continue;
    const SliceId op = nodes_[open_.back()].key.slice;
    claimed_.push_back(op);
    notes_.overhead_claim_ns += in_.kernels_ns[raw(op)];
  }
}

// Rule 4.
inline void RowMaker::build_tree() {
  open_.clear();
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.is_async) continue;
    while (!open_.empty() && (node.key.start_ns >= nodes_[open_.back()].key.end_ns ||
                              node.key.end_ns > nodes_[open_.back()].key.end_ns))
      open_.pop_back();
    if (!open_.empty()) {
      node.parent = open_.back();
      ++nodes_[node.parent].child_count;
    }
    open_.push_back(i);
  }
}

// Rule 5: an only child with its parent's name is one call seen twice. Parents come first, so one
// pass joins chains of them.
inline void RowMaker::merge_same_names() {
  for (Node& node : nodes_) {
    if (node.parent == kNoIndex) continue;
    if (nodes_[node.parent].is_removed) node.parent = nodes_[node.parent].parent;
    Node& parent = nodes_[node.parent];
    if (parent.child_count != 1 || parent.row_key / kKeysOfName != node.row_key / kKeysOfName)
      continue;
    parent.child_count = node.child_count;
    parent.kernels_ns += node.kernels_ns;
    node.is_removed = true;
  }
}

// Rules 6 and 7.
inline void RowMaker::add_up() {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    if (node.is_removed || node.parent == kNoIndex) continue;
    nodes_[node.parent].children_ns += node.key.end_ns - node.key.start_ns;
    nodes_[node.parent].children_device_ns += node.kernels_ns + node.children_device_ns;
  }
  for (const Node& node : nodes_)
    if (!node.is_removed) add_event(node);
}

inline void RowMaker::add_event(const Node& node) {
  Row& row = row_at(node.row_key, node.key, node.parent == kNoIndex);
  const std::int64_t dur_ns = node.key.end_ns - node.key.start_ns;
  ++row.count;
  row.cpu_ns += dur_ns;
  if (node.is_async) return;
  if (row.piece != piece_) {
    row.piece = piece_;
    row.until_ns = kEarliest;
  }
  // Events come in order of start, so time before the latest end of the row's earlier calls on the
  // thread is already counted.
  row.cpu_union_ns +=
      std::max<std::int64_t>(0, node.key.end_ns - std::max(node.key.start_ns, row.until_ns));
  row.until_ns = std::max(row.until_ns, node.key.end_ns);
  row.self_cpu_ns += dur_ns - node.children_ns;
  row.device_ns += node.kernels_ns + node.children_device_ns;
  row.self_device_ns += node.kernels_ns;
}

}  // namespace lanescope::analysis::by_track
