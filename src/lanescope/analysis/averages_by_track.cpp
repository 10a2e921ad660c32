// Problem: the list of all events (torch_events.h) takes 200 bytes a slice, written and read several
// times, on one thread. Idea: a row of the table needs sums, and the sums of an event need its
// children alone. They are on its thread and inside its time, so a thread is cut where nothing is
// open: between two top-level calls. Such a group of events fits the cache, and groups do not know of
// each other, so threads share them.
//   1. Blocks of slices: which are rows, which names they have, what kernels each operator launched.
//   2. Pieces of threads, cut at moments at which nothing is open: tree, merges, sums (rules 3 to 7).
//   3. Rows of all threads are added, and put in the order of their first event.
// Everything is a sum or the first in one order, so the result does not depend on who did what.
#include "lanescope/analysis/averages_by_track.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/analysis/busy_periods.h"
#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/launch_owners.h"
#include "lanescope/analysis/torch_event_rows.h"
#include "lanescope/base/share_work.h"

namespace lanescope::analysis {
namespace {

constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};
constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();

// Slices of one track that one thread reads at once.
struct Block {
  std::uint32_t track = 0;
  std::uint32_t first = 0, count = 0;
  std::uint32_t first_word = 0;            // of Shared::is_row
  std::uint32_t rows_before = 0;           // of the track
  std::int64_t latest_end_ns = kEarliest;  // of its slices
  std::vector<EventKey> overhead;          // rows of the profiler's own cost
  bool has_overhead_on_device = false;
  BusyPeriods work;  // device work
  std::uint32_t work_count = 0;
  std::int64_t work_start_ns = 0, work_end_ns = 0;  // from the first start to the last end
  TorchEventsNotes notes;
};

// The events [first, end) of a track; nothing is open at either end.
struct Piece {
  std::uint32_t track = 0;
  std::uint32_t first = 0, end = 0;
  bool is_first = true;  // of its track
};

struct Row {
  std::uint32_t key = 0;
  std::int64_t count = 0;
  std::int64_t cpu_ns = 0, self_cpu_ns = 0, cpu_union_ns = 0;
  std::int64_t device_ns = 0, self_device_ns = 0;
  EventKey first;
  bool is_top_level = false;
  std::uint32_t piece = kNoIndex;     // in which `until_ns` holds
  std::int64_t until_ns = kEarliest;  // until then, cpu_union_ns has it
};

// An event on a thread, while what is around it is open.
struct Node {
  EventKey key;
  std::uint32_t row_key = 0;
  std::uint32_t parent = kNoIndex, child_count = 0;
  bool is_async = false, is_removed = false;
  std::int64_t kernels_ns = 0, children_ns = 0, children_device_ns = 0;
};

// What a row is grouped by: its name, and whether it is on the device or an annotation.
constexpr std::uint32_t kOnDevice = 1, kAnnotation = 2, kKeysOfName = 4;

void add_notes(const TorchEventsNotes& from, TorchEventsNotes& to) {
  to.unlaunched_count += from.unlaunched_count;
  to.unlaunched_ns += from.unlaunched_ns;
  to.before_first_step_count += from.before_first_step_count;
  to.before_first_step_ns += from.before_first_step_ns;
  to.overhead_claim_count += from.overhead_claim_count;
  to.overhead_claim_ns += from.overhead_claim_ns;
  to.python_frame_count += from.python_frame_count;
}

// What all threads read while they make rows.
struct Shared {
  const Trace& trace;
  const TorchEventRows& rows;
  std::vector<std::uint64_t> is_row{};             // a bit a slice, by Block::first_word
  std::vector<std::uint32_t> names{}, op_names{};  // by string: the name's number; of operators
  std::vector<std::int64_t> kernels_ns{};          // by slice: of the device work that it launched
  std::vector<std::uint32_t> kernel_count{};       // the same; empty without overhead rows
  std::vector<EventKey> overhead{};                // of other tracks than the main one, in order
  std::vector<BusyPeriods> work{};                 // by track
  bool counts_overhead_claims = false;

  std::uint32_t row_key(SliceId id, bool on_device) const {
    const CategoryKind kind = trace.kind(id);
    const std::uint32_t text = raw(trace.slices().name[raw(id)]);
    const std::uint32_t name = kind == CategoryKind::kCpuOp ? op_names[text] : names[text];
    return name * kKeysOfName + (on_device ? kOnDevice : 0) +
           (is_annotation(kind) ? kAnnotation : 0);
  }
};

// The rows that one thread has made.
class RowMaker {
 public:
  RowMaker(const Shared& shared, std::size_t key_count)
      : in_(shared), row_of_(key_count, kNoIndex) {}

  // `moved`: events of other tracks that belong to this thread, in order.
  void add(const Piece& piece, std::uint32_t number, std::span<const EventKey> moved,
           std::span<const Block> blocks) {
    piece_ = number;
    track_ = TrackId{piece.track};
    begin_group();
    std::size_t hint = 0;
    auto next = moved.begin();
    for (const Block& block : blocks) {
      const std::uint32_t begin = std::max(piece.first, block.first),
                          end = std::min(piece.end, block.first + block.count);
      for (std::uint32_t i = begin; i < end; ++i) {
        const std::uint32_t bit = i - block.first;
        if (!(in_.is_row[block.first_word + bit / 64] >> (bit % 64) & 1)) continue;
        const SliceId id{i};
        const bool on_device = in_.rows.is_on_device(id);
        if (!on_device && in_.trace.kind(id) == CategoryKind::kOverhead &&
            in_.rows.main_track() != kNone<TrackId> && in_.rows.main_track() != track_)
          continue;  // it belongs to the main thread
        const EventKey key = in_.rows.key_of(id);
        if (on_device) {
          add_device_event(key, hint);
          continue;
        }
        while (next != moved.end() && in_.rows.before(*next, key)) push(*next++);
        push(key);
      }
    }
    while (next != moved.end()) push(*next++);
    end_group();
  }

  std::vector<Row>& rows() { return rows_; }
  const TorchEventsNotes& notes() const { return notes_; }
  std::int64_t annotation_span_ns() const { return annotation_span_ns_; }
  std::int64_t annotation_busy_ns() const { return annotation_busy_ns_; }

 private:
  Row& row_at(std::uint32_t key, const EventKey& event, bool is_top_level) {
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

  void add_device_event(const EventKey& key, std::size_t& hint) {
    const std::uint32_t row_key = in_.row_key(key.slice, true);
    Row& row = row_at(row_key, key, true);
    ++row.count;
    const std::int64_t dur_ns = key.end_ns - key.start_ns;
    if (row_key & kAnnotation) {
      const std::int64_t busy_ns = in_.work[raw(track_)].within_ns(key.start_ns, key.end_ns, hint);
      row.device_ns += busy_ns;
      annotation_span_ns_ += dur_ns;
      annotation_busy_ns_ += busy_ns;
      return;
    }
    row.device_ns += dur_ns;
    row.self_device_ns += dur_ns;
  }

  void begin_group() {
    nodes_.clear();
    latest_end_ns_ = kEarliest;
    is_in_order_ = true;
  }

  void push(const EventKey& key) {
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

  void end_group() {
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
  void count_overhead_claims() {
    open_.clear();
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const CategoryKind kind = in_.trace.kind(nodes_[i].key.slice);
      if (is_front_end(kind)) open_.push_back(i);
      if (kind != CategoryKind::kOverhead) continue;
      while (!open_.empty() && nodes_[open_.back()].key.end_ns <= nodes_[i].key.start_ns)
        open_.pop_back();
      if (open_.empty()) continue;
      const std::size_t op = raw(nodes_[open_.back()].key.slice);
      notes_.overhead_claim_count += in_.kernel_count[op];
      notes_.overhead_claim_ns += in_.kernels_ns[op];
    }
  }

  // Rule 4.
  void build_tree() {
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
  void merge_same_names() {
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
  void add_up() {
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      const Node& node = nodes_[i];
      if (node.is_removed || node.parent == kNoIndex) continue;
      nodes_[node.parent].children_ns += node.key.end_ns - node.key.start_ns;
      nodes_[node.parent].children_device_ns += node.kernels_ns + node.children_device_ns;
    }
    for (const Node& node : nodes_)
      if (!node.is_removed) add_event(node);
  }

  void add_event(const Node& node) {
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

  const Shared& in_;
  std::vector<std::uint32_t> row_of_;  // by key
  std::vector<Row> rows_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> open_;  // nodes
  std::int64_t latest_end_ns_ = kEarliest;
  bool is_in_order_ = true;
  std::uint32_t piece_ = 0;
  TrackId track_{};
  TorchEventsNotes notes_;
  std::int64_t annotation_span_ns_ = 0, annotation_busy_ns_ = 0;
};

class Averager {
 public:
  Averager(const Trace& trace, unsigned threads, std::uint32_t block_slices)
      : trace_(trace),
        block_slices_(block_slices),
        threads_(trace.slices().size() < block_slices ? 1
                 : threads == 0                       ? usual_threads()
                                                      : threads),
        rows_(trace, TableStyle::kLanescope, false),
        shared_{.trace = trace, .rows = rows_} {}

  std::optional<KeyAverages> run() {
    // Front-end events on a stream would take part in counting overhead claims.
    const TrackId main = rows_.main_track();
    if (main != kNone<TrackId> && trace_.track(main).kind != TrackKind::kThread)
      return std::nullopt;
    links_ = compute_launch_owners(trace_, threads_);
    read_blocks();
    // They are events of the main thread and of the device.
    for (const Block& block : blocks_)
      if (block.has_overhead_on_device) return std::nullopt;
    join_blocks();
    number_names();
    cut_pieces();
    make_rows();
    if (!number_first_events()) return std::nullopt;
    return std::move(out_);
  }

 private:
  std::span<const Block> blocks_of(std::uint32_t track) const {
    return std::span(blocks_).subspan(first_block_[track],
                                      first_block_[track + 1] - first_block_[track]);
  }

  void read_blocks() {
    std::uint32_t words = 0;
    const std::span<const Track> tracks = trace_.tracks();
    for (std::uint32_t t = 0; t < tracks.size(); ++t) {
      first_block_.push_back(blocks_.size());
      for (std::uint32_t at = 0; at < tracks[t].slice_count; at += block_slices_) {
        Block block;
        block.track = t;
        block.first = tracks[t].first_slice + at;
        block.count = std::min(block_slices_, tracks[t].slice_count - at);
        block.first_word = words;
        words += (block.count + 63) / 64;
        blocks_.push_back(std::move(block));
      }
    }
    first_block_.push_back(blocks_.size());
    shared_.is_row.assign(words, 0);
    shared_.kernels_ns.assign(trace_.slices().size(), 0);
    used_names_.assign(trace_.strings().size(), 0);
    used_op_names_.assign(trace_.strings().size(), 0);
    share_work(blocks_.size(), threads_, [&](std::size_t i) { read(blocks_[i]); });
  }

  static void mark(std::uint8_t& used) {
    const std::atomic_ref flag(used);  // threads only set it; they join before anybody reads
    if (!flag.load(std::memory_order_relaxed)) flag.store(1, std::memory_order_relaxed);
  }

  void read(Block& block) {
    for (std::uint32_t at = 0; at < block.count; ++at) {
      const SliceId id{block.first + at};
      const CategoryKind kind = trace_.kind(id);
      block.latest_end_ns = std::max(block.latest_end_ns, trace_.end_ns(id));
      const bool is_left_out = is_device_work(kind) && rows_.is_left_out(id, links_, block.notes);
      if (!rows_.is_row(id, block.notes) || is_left_out) continue;
      shared_.is_row[block.first_word + at / 64] |= std::uint64_t{1} << (at % 64);
      const std::uint32_t name = raw(trace_.slices().name[raw(id)]);
      mark((kind == CategoryKind::kCpuOp ? used_op_names_ : used_names_)[name]);
      if (kind == CategoryKind::kOverhead) {
        block.overhead.push_back(rows_.key_of(id));
        block.has_overhead_on_device |= rows_.is_on_device(id);
      }
      if (is_device_work(kind)) add_work(id, block);
    }
  }

  void add_work(SliceId id, Block& block) {
    const std::int64_t start_ns = trace_.start_ns(id), end_ns = trace_.end_ns(id);
    block.work_start_ns =
        block.work_count == 0 ? start_ns : std::min(block.work_start_ns, start_ns);
    block.work_end_ns = block.work_count == 0 ? end_ns : std::max(block.work_end_ns, end_ns);
    ++block.work_count;
    block.work.add(start_ns, end_ns);
    const SliceId owner = owner_of(id);
    if (owner == kNone<SliceId>) return;
    // A sum: threads add to it in any order, and join before anybody reads it.
    std::atomic_ref(shared_.kernels_ns[raw(owner)])
        .fetch_add(trace_.dur_ns(id), std::memory_order_relaxed);
  }

  SliceId owner_of(SliceId device_work) const {
    const SliceId op = links_.op_of[raw(device_work)];
    return op != kNone<SliceId> ? op : links_.launch_of[raw(device_work)];
  }

  void join_blocks() {
    shared_.work.resize(trace_.tracks().size());
    std::map<std::int32_t, IntervalUnion> by_device;
    std::int64_t first_ns = trace_.window_start_ns(), last_ns = trace_.window_end_ns();
    bool any_overhead = false;
    for (std::uint32_t t = 0; t + 1 < first_block_.size(); ++t) {
      std::uint32_t rows = 0;
      bool has_work = false;
      for (std::size_t b = first_block_[t]; b < first_block_[t + 1]; ++b) {
        Block& block = blocks_[b];
        block.rows_before = rows;
        for (std::uint32_t w = 0; w < (block.count + 63) / 64; ++w)
          rows += static_cast<std::uint32_t>(std::popcount(shared_.is_row[block.first_word + w]));
        shared_.work[t].add(block.work);
        if (block.work_count > 0) {
          has_work = true;
          first_ns = std::min(first_ns, block.work_start_ns);
          last_ns = std::max(last_ns, block.work_end_ns);
        }
        add_notes(block.notes, out_.corrections);
        any_overhead |= !block.overhead.empty();
        if (TrackId{t} != rows_.main_track())
          shared_.overhead.insert(shared_.overhead.end(), block.overhead.begin(),
                                  block.overhead.end());
      }
      track_rows_.push_back(rows);
      shared_.work[t].finish();
      if (has_work) shared_.work[t].add_to(by_device[trace_.track(TrackId{t}).device.value_or(-1)]);
    }
    for (auto& [device, busy] : by_device) {
      busy.finish();
      out_.device_busy_ns += busy.length_ns();
    }
    out_.device_count = static_cast<std::int32_t>(by_device.size());
    out_.device_window_ns = last_ns - first_ns;
    if (rows_.main_track() == kNone<TrackId>) shared_.overhead.clear();
    std::sort(shared_.overhead.begin(), shared_.overhead.end(),
              [&](const EventKey& a, const EventKey& b) { return rows_.before(a, b); });
    shared_.counts_overhead_claims = any_overhead && !rows_.is_own();
    if (shared_.counts_overhead_claims) count_kernels();
  }

  template <typename Each>
  void each_work(std::uint32_t track, Each each) const {
    for (const Block& block : blocks_of(track)) {
      if (block.work_count == 0) continue;
      for (std::uint32_t at = 0; at < block.count; ++at)
        if (shared_.is_row[block.first_word + at / 64] >> (at % 64) & 1 &&
            is_device_work(trace_.kind(SliceId{block.first + at})))
          each(SliceId{block.first + at});
    }
  }

  void count_kernels() {
    shared_.kernel_count.assign(trace_.slices().size(), 0);
    for (std::uint32_t t = 0; t + 1 < first_block_.size(); ++t)
      each_work(t, [&](SliceId id) {
        if (const SliceId owner = owner_of(id); owner != kNone<SliceId>)
          ++shared_.kernel_count[raw(owner)];
      });
  }

  // Names that torch shows alike have one number.
  void number_names() {
    std::unordered_map<std::string, std::uint32_t> number_of;
    const auto number = [&](std::string name) {
      const auto [it, added] =
          number_of.try_emplace(std::move(name), static_cast<std::uint32_t>(names_.size()));
      if (added) names_.push_back(it->first);
      return it->second;
    };
    const std::size_t count = trace_.strings().size();
    shared_.names.assign(count, kNoIndex);
    shared_.op_names.assign(count, kNoIndex);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string_view text = trace_.text(StringId{i});
      if (used_names_[i]) shared_.names[i] = number(shown_name(text));
      if (used_op_names_[i]) shared_.op_names[i] = number(shown_name(operator_text(text).first));
    }
  }

  // Cuts each track near the first slice of each block, where nothing is open.
  void cut_pieces() {
    std::vector<std::int64_t> overhead_end_ns;  // the latest of the first i + 1
    for (const EventKey& each : shared_.overhead)
      overhead_end_ns.push_back(
          std::max(overhead_end_ns.empty() ? kEarliest : overhead_end_ns.back(), each.end_ns));
    for (std::uint32_t t = 0; t + 1 < first_block_.size(); ++t) {
      const Track& track = trace_.track(TrackId{t});
      if (track.slice_count == 0) continue;
      const std::uint32_t track_end = track.first_slice + track.slice_count;
      const bool has_moved = TrackId{t} == rows_.main_track();
      std::uint32_t first = track.first_slice;
      std::int64_t latest_ns = kEarliest;
      for (const Block& block : blocks_of(t)) {
        std::int64_t end_ns = latest_ns;  // the latest end of the slices before `i`
        latest_ns = std::max(latest_ns, block.latest_end_ns);
        if (block.first == track.first_slice) continue;
        for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
          const std::int64_t start_ns = trace_.start_ns(SliceId{i});
          if (start_ns >= end_ns && start_ns > trace_.start_ns(SliceId{i - 1}) &&
              (!has_moved || end_of_overhead_before(start_ns, overhead_end_ns) <= start_ns)) {
            pieces_.push_back({t, first, i, first == track.first_slice});
            first = i;
            break;
          }
          end_ns = std::max(end_ns, trace_.end_ns(SliceId{i}));
        }
      }
      pieces_.push_back({t, first, track_end, first == track.first_slice});
    }
  }

  std::size_t overhead_before(std::int64_t time_ns) const {
    return static_cast<std::size_t>(
        std::partition_point(shared_.overhead.begin(), shared_.overhead.end(),
                             [&](const EventKey& each) { return each.start_ns < time_ns; }) -
        shared_.overhead.begin());
  }
  std::int64_t end_of_overhead_before(std::int64_t time_ns,
                                      const std::vector<std::int64_t>& end_ns) const {
    const std::size_t count = overhead_before(time_ns);
    return count == 0 ? kEarliest : end_ns[count - 1];
  }

  // What other tracks have of the main thread's events, between the ends of a piece of it.
  std::span<const EventKey> moved_to(const Piece& piece) const {
    if (TrackId{piece.track} != rows_.main_track()) return {};
    const Track& track = trace_.track(TrackId{piece.track});
    const std::size_t first =
        piece.is_first ? 0 : overhead_before(trace_.start_ns(SliceId{piece.first}));
    const std::size_t end = piece.end == track.first_slice + track.slice_count
                                ? shared_.overhead.size()
                                : overhead_before(trace_.start_ns(SliceId{piece.end}));
    return std::span(shared_.overhead).subspan(first, end - first);
  }

  void make_rows() {
    std::vector<RowMaker> makers(std::min<std::size_t>(threads_, pieces_.size()),
                                 RowMaker(shared_, names_.size() * kKeysOfName));
    std::atomic<std::uint32_t> next = 0;  // piece; whoever takes it has it alone
    share_work(makers.size(), threads_, [&](std::size_t i) {
      for (std::uint32_t at; (at = next.fetch_add(1, std::memory_order_relaxed)) < pieces_.size();)
        makers[i].add(pieces_[at], at, moved_to(pieces_[at]), blocks_of(pieces_[at].track));
    });
    std::unordered_map<std::uint32_t, std::size_t> place;  // of a key
    for (RowMaker& maker : makers) {
      add_notes(maker.notes(), out_.corrections);
      out_.annotation_span_ns += maker.annotation_span_ns();
      out_.annotation_busy_ns += maker.annotation_busy_ns();
      for (const Row& row : maker.rows()) {
        const auto [it, added] = place.try_emplace(row.key, table_.size());
        if (added)
          table_.push_back(row);
        else
          join(row, table_[it->second]);
      }
    }
    std::sort(table_.begin(), table_.end(),
              [&](const Row& a, const Row& b) { return rows_.before(a.first, b.first); });
    for (const Row& row : table_) out_.rows.push_back(average_of(row));
    out_.style = TableStyle::kLanescope;
    out_.device = rows_.device();
    out_.window_ns = trace_.window_end_ns() - trace_.window_start_ns();
  }

  void join(const Row& from, Row& to) const {
    to.count += from.count;
    to.cpu_ns += from.cpu_ns;
    to.self_cpu_ns += from.self_cpu_ns;
    to.cpu_union_ns += from.cpu_union_ns;
    to.device_ns += from.device_ns;
    to.self_device_ns += from.self_device_ns;
    if (!rows_.before(from.first, to.first)) return;
    to.first = from.first;
    to.is_top_level = from.is_top_level;
  }

  KeyAverage average_of(const Row& row) const {
    KeyAverage average;
    average.name = names_[row.key / kKeysOfName];
    average.on_device = (row.key & kOnDevice) != 0;
    average.is_annotation = (row.key & kAnnotation) != 0;
    average.is_overhead = trace_.kind(row.first.slice) == CategoryKind::kOverhead;
    average.is_async = rows_.is_async(row.first.slice);
    average.is_top_level = row.is_top_level;
    average.count = row.count;
    average.cpu_time_total_ns = row.cpu_ns;
    average.self_cpu_time_total_ns = row.self_cpu_ns;
    average.cpu_time_union_ns = row.cpu_union_ns;
    average.device_time_total_ns = row.device_ns;
    average.self_device_time_total_ns = row.self_device_ns;
    return average;
  }

  // The place of each row's first event in the list of all events. False: it would take too long,
  // because very many events begin at the same time.
  bool number_first_events() {
    std::uint64_t steps = 0;
    const std::uint64_t most_steps = 64 * std::uint64_t{trace_.slices().size()} + 1'000'000;
    for (std::size_t i = 0; i < table_.size(); ++i) {
      std::uint32_t before = 0;
      for (std::uint32_t t = 0; t + 1 < first_block_.size(); ++t)
        before += rows_before(t, table_[i].first, steps);
      if (steps > most_steps) return false;
      out_.rows[i].first_event = before;
    }
    return true;
  }

  std::uint32_t rows_before(std::uint32_t track, const EventKey& key, std::uint64_t& steps) const {
    const Track& of = trace_.track(TrackId{track});
    if (of.slice_count == 0) return 0;
    // Events that begin earlier by more than a tick are before the key, as annotations on the device
    // move by a tick; those that begin later are not.
    const auto starts = std::span(trace_.slices().start_ns.data() + of.first_slice, of.slice_count);
    const auto early =
        std::lower_bound(starts.begin(), starts.end(), key.start_ns - rows_.tick_ns());
    auto at = static_cast<std::uint32_t>(early - starts.begin());
    std::uint32_t count = 0;
    const std::span<const Block> blocks = blocks_of(track);
    if (at == of.slice_count) return track_rows_[track];
    const Block& first = blocks[at / block_slices_];
    const std::uint32_t within = at % block_slices_;
    count = first.rows_before;
    for (std::uint32_t w = 0; w < within / 64; ++w)
      count += static_cast<std::uint32_t>(std::popcount(shared_.is_row[first.first_word + w]));
    const std::uint64_t rest = (std::uint64_t{1} << (within % 64)) - 1;
    count += static_cast<std::uint32_t>(
        std::popcount(shared_.is_row[first.first_word + within / 64] & rest));
    steps += within / 1024;  // a word takes far less time than a comparison
    for (; at < of.slice_count && starts[at] <= key.start_ns; ++at, ++steps) {
      const Block& block = blocks[at / block_slices_];
      const std::uint32_t bit = at % block_slices_;
      if (shared_.is_row[block.first_word + bit / 64] >> (bit % 64) & 1 &&
          rows_.before(rows_.key_of(SliceId{of.first_slice + at}), key))
        ++count;
    }
    return count;
  }

  const Trace& trace_;
  const std::uint32_t block_slices_;
  const unsigned threads_;
  const TorchEventRows rows_;
  Shared shared_;
  LaunchLinks links_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> track_rows_;                 // by track
  std::vector<std::size_t> first_block_;                  // by track, and the end
  std::vector<std::uint8_t> used_names_, used_op_names_;  // by string
  std::vector<std::string> names_;                        // by number
  std::vector<Piece> pieces_;
  std::vector<Row> table_;
  KeyAverages out_;
};

}  // namespace

std::optional<KeyAverages> averages_by_track(const Trace& trace, unsigned threads,
                                             std::uint32_t block_slices) {
  return Averager(trace, threads, block_slices).run();
}

}  // namespace lanescope::analysis
