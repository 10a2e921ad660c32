// Problem: files say who launched what in three ways that disagree (flow arrows, External id,
// correlation). Idea: the correlation id joins device work to its API call, by one sort and binary
// search. The API call is on a CPU thread, so the operator open there at its start made it: one
// sweep per thread with a stack. Example: aten::mm [10, 90) on thread 1, cuLaunchKernelEx [40, 50)
// correlation 7, kernel correlation 7 at 95
//   -> launch_of(kernel) = cuLaunchKernelEx, op_of(both) = aten::mm.
// Threads share pieces of tracks. A sweep begins with an empty stack; calls in a piece that find none open wait until it is
// known what the pieces before have left open (pass_on_open).
#include "lanescope/analysis/launch_owners.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "lanescope/analysis/call_owners.h"
#include "lanescope/base/share_work.h"
#include "lanescope/base/sort_shared.h"
#include "lanescope/model/joins.h"

namespace lanescope::analysis {
namespace {

// An API call with its correlation id, or a front-end slice with its External id.
using Keyed = CorrelatedCall;

// Slices of one track.
struct Piece {
  std::uint32_t track, first, count;
  std::size_t first_call = 0, first_device = 0;
  std::uint32_t call_count = 0, device_count = 0;
  bool has_uncorrelated = false;
  std::vector<std::uint32_t>
      waiting{};                // calls of the piece around which nothing is open that began in it
  std::vector<SliceId> open{};  // at its end, of those that began in it; ended ones among them
};

bool contains(const Trace& trace, SliceId outer, SliceId inner) {
  return trace.slices().track[raw(outer)] == trace.slices().track[raw(inner)] &&
         trace.start_ns(outer) <= trace.start_ns(inner) &&
         trace.start_ns(inner) <= trace.end_ns(outer);
}

bool is_drawn_on_device(CategoryKind kind) {
  return is_device_work(kind) || kind == CategoryKind::kCudaSync;
}

class OwnerFinder {
 public:
  OwnerFinder(const Trace& trace, const LaunchOwnersOptions& options)
      : trace_(trace),
        options_(options),
        at_once_(options.slices_at_once),
        threads_(trace.slices().size() < at_once_ ? 1 : options.threads) {}

  LaunchOwners run() {
    cut();
    count();
    share_work(pieces_.size(), threads_, [this](std::size_t i) { collect(pieces_[i]); });
    pass_on_open();
    hand_out_ops();
    take_uncorrelated_out();
    sort_shared(calls_, call_count_, threads_, at_once_);
    link();
    if (has_calls_of_several_processes() && ids_repeat_across_processes(trace_, calls()))
      join_processes();
    count_launched();
    const bool needs_external_ids =
        std::any_of(is_open_.begin(), is_open_.end(), [](char is_open) { return is_open != 0; });
    if (!needs_external_ids && !options_.judges_external_ids) return std::move(out_);
    collect_front_ends();
    judge_external_ids();
    if (out_.external_id_trusted) take_external_ids();
    return std::move(out_);
  }

 private:
  std::span<const Keyed> calls() const { return calls_.rows().first(call_count_); }
  void share_device(const std::function<void(std::size_t)>& work) const {
    share_work((out_.device.size() + at_once_ - 1) / at_once_, threads_, work);
  }
  std::pair<std::size_t, std::size_t> device_rows(std::size_t part) const {
    return {part * std::size_t{at_once_},
            std::min<std::size_t>(out_.device.size(), (part + 1) * at_once_)};
  }

  void cut() {
    const std::span<const Track> tracks = trace_.tracks();
    for (std::uint32_t t = 0; t < tracks.size(); ++t)
      for (std::uint32_t at = 0; at < tracks[t].slice_count; at += at_once_)
        pieces_.push_back(
            {t, tracks[t].first_slice + at, std::min(at_once_, tracks[t].slice_count - at)});
  }

  void count() {
    share_work(pieces_.size(), threads_, [this](std::size_t i) {
      Piece& piece = pieces_[i];
      std::uint32_t calls = 0, device = 0;
      for (std::uint32_t at = piece.first; at < piece.first + piece.count; ++at) {
        const CategoryKind kind = trace_.kind(SliceId{at});
        calls += is_api_call(kind);
        device += is_drawn_on_device(kind);
      }
      piece.call_count = calls;
      piece.device_count = device;
    });
    std::size_t devices = 0;
    for (Piece& piece : pieces_) {
      piece.first_call = call_count_;
      piece.first_device = devices;
      call_count_ += piece.call_count;
      devices += piece.device_count;
    }
    calls_ = UnsetArray<Keyed>(call_count_);
    out_.device = UnsetArray<SliceId>(devices);
  }

  // The last front-end slice to start that contains the start of the call is its operator.
  void collect(Piece& piece) {
    const auto end_of = [this](SliceId id) { return trace_.end_ns(id); };
    OpenRangeStack<SliceId, decltype(end_of)> open(end_of);
    const bool is_thread = trace_.track(TrackId{piece.track}).kind == TrackKind::kThread;
    std::uint32_t call = 0;
    SliceId* device = out_.device.data() + piece.first_device;
    for (std::uint32_t i = piece.first; i < piece.first + piece.count; ++i) {
      const SliceId id{i};
      const CategoryKind kind = trace_.kind(id);
      if (is_front_end(kind)) {
        if (is_thread) open.push(id, trace_.start_ns(id));
      } else if (is_api_call(kind)) {
        const std::int64_t correlation =
            trace_.slice_args(id).integer(ArgKey::kCorrelation).value_or(0);
        const SliceId* const op = is_thread ? open.top(trace_.start_ns(id)) : nullptr;
        calls_[piece.first_call + call] = {correlation, trace_.start_ns(id), id,
                                           op ? *op : kNone<SliceId>};
        if (is_thread && !op) piece.waiting.push_back(call);
        piece.has_uncorrelated |= correlation == 0;
        ++call;
      } else if (is_drawn_on_device(kind)) {
        *device++ = id;
      }
    }
    piece.open.assign(open.all().begin(), open.all().end());
  }

  // Dropping what has ended later than one sweep over the track would do drops the same: what has ended stays ended.
  void pass_on_open() {
    const auto end_of = [this](SliceId id) { return trace_.end_ns(id); };
    OpenRangeStack<SliceId, decltype(end_of)> open(end_of);
    const Piece* before = nullptr;
    for (const Piece& piece : pieces_) {
      if (before && before->track != piece.track) open.clear();
      before = &piece;
      if (!open.all().empty())
        for (const std::uint32_t waiting : piece.waiting) {
          Keyed& call = calls_[piece.first_call + waiting];
          if (const SliceId* const op = open.top(call.start_ns)) call.op = *op;
        }
      for (const SliceId id : piece.open) open.push(id, trace_.start_ns(id));
    }
  }

  void hand_out_ops() {
    if (options_.ops_of_calls.empty()) return;
    share_work(pieces_.size(), threads_, [this](std::size_t i) {
      const Piece& piece = pieces_[i];
      for (const Keyed& call : calls_.rows().subspan(piece.first_call, piece.call_count))
        options_.ops_of_calls[raw(call.slice)] = call.op;
    });
  }

  // Calls without a correlation id go to a list by External id.
  void take_uncorrelated_out() {
    if (std::none_of(pieces_.begin(), pieces_.end(),
                     [](const Piece& piece) { return piece.has_uncorrelated; }))
      return;
    std::size_t kept = 0;
    for (const Keyed& call : calls()) {
      if (call.id != 0) {
        calls_[kept++] = call;
        continue;
      }
      if (const std::int64_t external = external_id(call.slice); external != 0)
        uncorrelated_calls_.push_back({external, call.start_ns, call.slice, call.op});
    }
    call_count_ = kept;
    std::sort(uncorrelated_calls_.begin(), uncorrelated_calls_.end());
  }

  void link() {
    out_.launch_of = UnsetArray<SliceId>(out_.device.size());
    out_.op_of = UnsetArray<SliceId>(out_.device.size());
    share_device([this](std::size_t part) {
      std::size_t place = 0;
      const auto [first, end] = device_rows(part);
      for (std::size_t i = first; i < end; ++i) {
        const Keyed* const call = call_of(out_.device[i], place);
        out_.launch_of[i] = call ? call->slice : kNone<SliceId>;
        out_.op_of[i] = call ? call->op : kNone<SliceId>;
      }
    });
  }

  // The last call with its id to start at or before it, else the first one. `place`: find_by_id_and_time().
  const Keyed* call_of(SliceId work, std::size_t& place) const {
    const auto correlation = trace_.slice_args(work).integer(ArgKey::kCorrelation);
    if (correlation && *correlation != 0)
      return find_by_id_and_time(calls(), *correlation, trace_.start_ns(work), place);
    return uncorrelated_calls_.empty() ? nullptr : call_by_external_id(work);
  }

  // Files without correlation ids: the only call with the External id of the work.
  const Keyed* call_by_external_id(SliceId work) const {
    const std::int64_t external = external_id(work);
    if (external == 0) return nullptr;
    const auto first =
        std::lower_bound(uncorrelated_calls_.begin(), uncorrelated_calls_.end(), external,
                         [](const Keyed& call, std::int64_t id) { return call.id < id; });
    if (first == uncorrelated_calls_.end() || first->id != external) return nullptr;
    const auto next = std::next(first);
    const bool is_only = next == uncorrelated_calls_.end() || next->id != external;
    return is_only && first->start_ns <= trace_.start_ns(work) ? &*first : nullptr;
  }

  bool has_calls_of_several_processes() const {
    ProcessId process = kNone<ProcessId>;
    for (const Piece& piece : pieces_) {
      if (piece.call_count == 0) continue;
      const ProcessId of = trace_.track(TrackId{piece.track}).process;
      if (process != kNone<ProcessId> && of != process) return true;
      process = of;
    }
    return false;
  }

  void join_processes() {
    std::vector<SliceId> launch_of(trace_.slices().size(), kNone<SliceId>), op_of = launch_of;
    for (std::size_t i = 0; i < out_.device.size(); ++i)
      launch_of[raw(out_.device[i])] = out_.launch_of[i];
    join_by_process(trace_, calls(), out_.device.rows(), launch_of);
    for (const Keyed& call : calls()) op_of[raw(call.slice)] = call.op;
    for (const Keyed& call : uncorrelated_calls_) op_of[raw(call.slice)] = call.op;
    for (std::size_t i = 0; i < out_.device.size(); ++i) {
      const SliceId launch = launch_of[raw(out_.device[i])];
      out_.launch_of[i] = launch;
      out_.op_of[i] = launch == kNone<SliceId> ? launch : op_of[raw(launch)];
    }
  }

  void count_launched() {
    is_open_.assign((out_.device.size() + at_once_ - 1) / at_once_, 0);
    std::atomic<std::uint64_t> works = 0, launched = 0;  // sums; the threads are joined
    share_device([&](std::size_t part) {
      const auto [first, end] = device_rows(part);
      std::uint64_t of_part = 0, launched_of_part = 0;
      for (std::size_t i = first; i < end; ++i) {
        if (out_.op_of[i] == kNone<SliceId> && external_id(out_.device[i]) != 0) is_open_[part] = 1;
        if (!is_device_work(trace_.kind(out_.device[i]))) continue;
        ++of_part;
        launched_of_part += out_.launch_of[i] != kNone<SliceId>;
      }
      works.fetch_add(of_part, std::memory_order_relaxed);
      launched.fetch_add(launched_of_part, std::memory_order_relaxed);
    });
    out_.device_work_count = works;
    out_.launched_count = launched;
  }

  std::int64_t external_id(SliceId id) const {
    return trace_.slice_args(id).integer(ArgKey::kExternalId).value_or(0);
  }

  void collect_front_ends() {
    std::vector<std::vector<Keyed>> parts(pieces_.size());
    share_work(pieces_.size(), threads_, [&](std::size_t i) {
      const Piece& piece = pieces_[i];
      for (std::uint32_t at = piece.first; at < piece.first + piece.count; ++at) {
        const SliceId id{at};
        if (!is_front_end(trace_.kind(id))) continue;
        if (const std::int64_t external = external_id(id); external != 0)
          parts[i].push_back({external, trace_.start_ns(id), id, kNone<SliceId>});
      }
    });
    std::vector<std::size_t> first(parts.size() + 1, 0);
    for (std::size_t i = 0; i < parts.size(); ++i) first[i + 1] = first[i] + parts[i].size();
    front_ends_ = UnsetArray<Keyed>(first.back());
    share_work(parts.size(), threads_, [&](std::size_t i) {
      std::copy(parts[i].begin(), parts[i].end(), front_ends_.data() + first[i]);
      std::vector<Keyed>().swap(parts[i]);
    });
    sort_shared(front_ends_, front_ends_.size(), threads_, at_once_);
  }

  SliceId by_external_id(SliceId id, std::size_t& place) const {
    const std::int64_t external = external_id(id);
    if (external == 0) return kNone<SliceId>;
    const Keyed* const found = find_by_id_and_time(std::span<const Keyed>(front_ends_.rows()),
                                                   external, trace_.start_ns(id), place);
    return found ? found->slice : kNone<SliceId>;
  }

  struct Judgement {
    std::uint64_t present = 0, copies = 0, checked = 0, right = 0;
  };
  Judgement judge(std::size_t part) const {
    Judgement sum;
    std::size_t place = 0;
    const auto [first, end] = device_rows(part);
    for (std::size_t i = first; i < end; ++i) {
      const SliceId id = out_.device[i], launch = out_.launch_of[i];
      const std::int64_t external = external_id(id);
      if (external == 0) continue;
      ++sum.present;
      sum.copies += trace_.slice_args(id).integer(ArgKey::kCorrelation) == external;
      if (launch == kNone<SliceId> || out_.op_of[i] == kNone<SliceId>) continue;
      ++sum.checked;
      const SliceId op = by_external_id(id, place);
      sum.right += op != kNone<SliceId> && contains(trace_, op, launch);
    }
    return sum;
  }

  void judge_external_ids() {
    std::vector<Judgement> parts(is_open_.size());
    share_device([&](std::size_t part) { parts[part] = judge(part); });
    Judgement sum;
    for (const Judgement& part : parts) {
      sum.present += part.present;
      sum.copies += part.copies;
      sum.checked += part.checked;
      sum.right += part.right;
    }
    out_.external_id_checked_count = sum.checked;
    out_.external_id_right_count = sum.right;
    out_.external_id_trusted = sum.checked > 0 ? sum.right * 100 > sum.checked * 99
                                               : sum.present > 0 && sum.copies < sum.present;
  }

  void take_external_ids() {
    std::atomic<std::uint64_t> used = 0;  // a sum; the threads are joined
    share_device([&](std::size_t part) {
      if (is_open_[part] == 0) return;
      std::size_t place = 0;
      const auto [first, end] = device_rows(part);
      for (std::size_t i = first; i < end; ++i) {
        SliceId& op = out_.op_of[i];
        if (op != kNone<SliceId>) continue;
        op = by_external_id(out_.device[i], place);
        if (op != kNone<SliceId> && is_device_work(trace_.kind(out_.device[i])))
          used.fetch_add(1, std::memory_order_relaxed);
      }
    });
    out_.external_id_used_count = used;
  }

  const Trace& trace_;
  const LaunchOwnersOptions options_;
  const std::uint32_t at_once_;
  const unsigned threads_;
  LaunchOwners out_;
  std::vector<Piece> pieces_;
  UnsetArray<Keyed> calls_;  // the first call_count_ have a correlation id
  std::size_t call_count_ = 0;
  UnsetArray<Keyed> front_ends_;
  std::vector<Keyed> uncorrelated_calls_;  // API calls without a correlation id, by External id
  std::vector<char>
      is_open_;  // by part of the device's rows: one has an External id and no operator yet
};

}  // namespace

std::size_t LaunchOwners::place_of(SliceId slice) const {
  const std::span<const SliceId> rows = device.rows();
  return static_cast<std::size_t>(std::lower_bound(rows.begin(), rows.end(), slice) - rows.begin());
}

LaunchOwners compute_launch_owners(const Trace& trace, const LaunchOwnersOptions& options) {
  return OwnerFinder(trace, options).run();
}

}  // namespace lanescope::analysis
