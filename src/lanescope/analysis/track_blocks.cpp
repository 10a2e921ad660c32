// Each block has its own rows, names and device work; what blocks write together is a sum or a flag, so the order in which
// threads take them does not matter. join() goes over the blocks of each track in their order.
#include "lanescope/analysis/track_blocks.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <unordered_map>
#include <utility>

#include "lanescope/base/share_work.h"

namespace lanescope::analysis::by_track {
namespace {

void mark_used(std::uint8_t& used) {
  const std::atomic_ref flag(used);  // threads only set it; they join before anybody reads
  if (!flag.load(std::memory_order_relaxed)) flag.store(1, std::memory_order_relaxed);
}

}  // namespace

TrackBlocks::TrackBlocks(const Trace& trace, const TorchEventRows& rows, unsigned threads,
                         std::uint32_t block_slices)
    : trace_(trace),
      rows_(rows),
      threads_(threads),
      block_slices_(block_slices),
      inputs_{.trace = trace, .rows = rows} {}

void TrackBlocks::cut() {
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
  inputs_.is_row.assign(words, 0);
}

bool TrackBlocks::read() {
  owners_ = compute_launch_owners(trace_, {.threads = threads_, .slices_at_once = block_slices_});
  cut();
  inputs_.kernels_ns = UnsetArray<std::int64_t>(trace_.slices().size());
  share_work(blocks_.size(), threads_, [&](std::size_t i) {
    const auto rows = inputs_.kernels_ns.rows().subspan(blocks_[i].first, blocks_[i].count);
    std::fill(rows.begin(), rows.end(), 0);
  });
  used_names_.assign(trace_.strings().size(), 0);
  used_op_names_.assign(trace_.strings().size(), 0);
  share_work(blocks_.size(), threads_, [&](std::size_t i) { read(blocks_[i]); });
  return std::none_of(blocks_.begin(), blocks_.end(),
                      [](const Block& block) { return block.has_overhead_on_device; });
}

void TrackBlocks::read(Block& block) {
  std::size_t work = owners_.place_of(SliceId{block.first});
  for (std::uint32_t at = 0; at < block.count; ++at) {
    const SliceId id{block.first + at};
    const CategoryKind kind = trace_.kind(id);
    block.latest_end_ns = std::max(block.latest_end_ns, trace_.end_ns(id));
    const bool is_work = is_device_work(kind);
    while (is_work && owners_.device[work] != id) ++work;
    const bool is_left_out =
        is_work && rows_.is_left_out(id, owners_.launch_of[work], owners_, block.notes);
    if (!rows_.is_row(id, block.notes) || is_left_out) continue;
    inputs_.is_row[block.first_word + at / 64] |= std::uint64_t{1} << (at % 64);
    const std::uint32_t name = raw(trace_.slices().name[raw(id)]);
    mark_used((kind == CategoryKind::kCpuOp ? used_op_names_ : used_names_)[name]);
    if (kind == CategoryKind::kOverhead) {
      block.overhead.push_back(rows_.key_of(id));
      block.has_overhead_on_device |= rows_.is_on_device(id);
    }
    if (is_annotation(kind)) block.has_annotation_on_device |= rows_.is_on_device(id);
    if (is_work) add_work(work, block);
  }
}

void TrackBlocks::add_work(std::size_t work, Block& block) {
  const SliceId id = owners_.device[work];
  const std::int64_t start_ns = trace_.start_ns(id), end_ns = trace_.end_ns(id);
  block.work_start_ns = block.work_count == 0 ? start_ns : std::min(block.work_start_ns, start_ns);
  block.work_end_ns = block.work_count == 0 ? end_ns : std::max(block.work_end_ns, end_ns);
  if (block.work_count == 0)
    block.work.reserve(owners_.place_of(SliceId{block.first + block.count}) - work);
  ++block.work_count;
  block.work.add(start_ns, end_ns);
  const SliceId owner = owner_of(work);
  if (owner == kNone<SliceId>) return;
  // A sum: threads add to it in any order, and join before anybody reads it.
  std::atomic_ref(inputs_.kernels_ns[raw(owner)])
      .fetch_add(trace_.dur_ns(id), std::memory_order_relaxed);
}

SliceId TrackBlocks::owner_of(std::size_t work) const {
  return owners_.op_of[work] != kNone<SliceId> ? owners_.op_of[work] : owners_.launch_of[work];
}

void TrackBlocks::join(KeyAverages& out) {
  bool any_overhead = false;
  for (std::uint32_t t = 0; t < track_count(); ++t) {
    std::uint32_t rows = 0;
    for (std::size_t b = first_block_[t]; b < first_block_[t + 1]; ++b) {
      Block& block = blocks_[b];
      block.rows_before = rows;
      for (std::uint32_t w = 0; w < (block.count + 63) / 64; ++w)
        rows += static_cast<std::uint32_t>(std::popcount(inputs_.is_row[block.first_word + w]));
      add_notes(block.notes, out.corrections);
      any_overhead |= !block.overhead.empty();
      if (TrackId{t} != rows_.main_track())
        inputs_.overhead.insert(inputs_.overhead.end(), block.overhead.begin(),
                                block.overhead.end());
    }
    track_rows_.push_back(rows);
  }
  join_work(out);
  if (rows_.main_track() == kNone<TrackId>) inputs_.overhead.clear();
  std::sort(inputs_.overhead.begin(), inputs_.overhead.end(),
            [&](const EventKey& a, const EventKey& b) { return rows_.before(a, b); });
  inputs_.counts_overhead_claims = any_overhead && !rows_.is_own();
  number_names();
}

void TrackBlocks::join_work(KeyAverages& out) {
  inputs_.work.resize(trace_.tracks().size());
  std::map<std::int32_t, std::vector<const BusyTrack*>> by_device;
  std::int64_t first_ns = trace_.window_start_ns(), last_ns = trace_.window_end_ns();
  std::vector<Block*> asked;  // blocks of tracks on which annotations ask how busy the device was
  for (std::uint32_t t = 0; t < track_count(); ++t) {
    const auto blocks =
        std::span(blocks_).subspan(first_block_[t], first_block_[t + 1] - first_block_[t]);
    bool has_work = false, has_annotations = false;
    for (Block& block : blocks) {
      has_annotations |= block.has_annotation_on_device;
      if (block.work_count == 0) continue;
      has_work = true;
      inputs_.work[t].add(block.work);
      first_ns = std::min(first_ns, block.work_start_ns);
      last_ns = std::max(last_ns, block.work_end_ns);
    }
    if (has_work)
      by_device[trace_.track(TrackId{t}).device.value_or(-1)].push_back(&inputs_.work[t]);
    for (Block& block : blocks)
      if (has_work && has_annotations) asked.push_back(&block);
  }
  share_work(asked.size(), threads_, [&](std::size_t i) { asked[i]->work.finish(); });
  for (const auto& [device, tracks] : by_device)
    out.device_busy_ns += busy_length_ns(tracks, threads_);
  out.device_count = static_cast<std::int32_t>(by_device.size());
  out.device_window_ns = last_ns - first_ns;
}

std::uint64_t TrackBlocks::count_work_of(std::span<const SliceId> owners) const {
  if (owners.empty()) return 0;
  std::atomic<std::uint64_t> count = 0;
  share_work(blocks_.size(), threads_, [&](std::size_t i) {
    const Block& block = blocks_[i];
    if (block.work_count == 0) return;
    std::uint64_t of_block = 0;
    const std::size_t end = owners_.place_of(SliceId{block.first + block.count});
    for (std::size_t work = owners_.place_of(SliceId{block.first}); work < end; ++work) {
      const SliceId id = owners_.device[work], owner = owner_of(work);
      if (owner < owners.front() || owners.back() < owner) continue;
      const auto [first, last] = std::equal_range(owners.begin(), owners.end(), owner);
      if (first != last && inputs_.is_row_at(block, raw(id) - block.first) &&
          is_device_work(trace_.kind(id)))
        of_block += static_cast<std::uint64_t>(last - first);
    }
    count.fetch_add(of_block, std::memory_order_relaxed);  // a sum; the threads are joined
  });
  return count;
}

// Names that torch shows alike have one number.
void TrackBlocks::number_names() {
  std::unordered_map<std::string, std::uint32_t> number_of;
  const auto number = [&](std::string name) {
    const auto [it, added] =
        number_of.try_emplace(std::move(name), static_cast<std::uint32_t>(names_.size()));
    if (added) names_.push_back(it->first);
    return it->second;
  };
  const std::size_t count = trace_.strings().size();
  inputs_.names.assign(count, kNoIndex);
  inputs_.op_names.assign(count, kNoIndex);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view text = trace_.text(StringId{i});
    if (used_names_[i]) inputs_.names[i] = number(shown_name(text));
    if (used_op_names_[i]) inputs_.op_names[i] = number(shown_name(operator_text(text).first));
  }
}

std::uint32_t TrackBlocks::rows_before(std::uint32_t track, const EventKey& event,
                                       std::uint64_t& steps) const {
  const Track& of = trace_.track(TrackId{track});
  if (of.slice_count == 0) return 0;
  // Events that begin earlier by more than a tick are before this one, as annotations on the device
  // move by a tick; those that begin later are not.
  const auto starts = std::span(trace_.slices().start_ns.data() + of.first_slice, of.slice_count);
  const auto early =
      std::lower_bound(starts.begin(), starts.end(), event.start_ns - rows_.tick_ns());
  auto at = static_cast<std::uint32_t>(early - starts.begin());
  std::uint32_t count = 0;
  const std::span<const Block> blocks = of_track(track);
  if (at == of.slice_count) return track_rows_[track];
  const Block& first = blocks[at / block_slices_];
  const std::uint32_t within = at % block_slices_;
  count = first.rows_before;
  for (std::uint32_t w = 0; w < within / 64; ++w)
    count += static_cast<std::uint32_t>(std::popcount(inputs_.is_row[first.first_word + w]));
  const std::uint64_t rest = (std::uint64_t{1} << (within % 64)) - 1;
  count += static_cast<std::uint32_t>(
      std::popcount(inputs_.is_row[first.first_word + within / 64] & rest));
  steps += within / 1024;  // a word takes far less time than a comparison
  for (; at < of.slice_count && starts[at] <= event.start_ns; ++at, ++steps) {
    const Block& block = blocks[at / block_slices_];
    if (inputs_.is_row_at(block, at % block_slices_) &&
        rows_.before(rows_.key_of(SliceId{of.first_slice + at}), event))
      ++count;
  }
  return count;
}

}  // namespace lanescope::analysis::by_track
