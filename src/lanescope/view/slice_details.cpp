#include "lanescope/view/slice_details.h"

#include <algorithm>

#include "lanescope/analysis/slice_joins.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/code_of_slice.h"
#include "lanescope/model/gpu_device.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::view {
namespace {

using analysis::SliceNesting;
using Role = ChainLink::Role;

constexpr std::string_view kModulePrefix = "nn.Module: ";

Role role_of(const Trace& trace, SliceId slice) {
  switch (trace.kind(slice)) {
    case CategoryKind::kUserAnnotation:
      return trace.name(slice).starts_with("ProfilerStep#") ? Role::kStep : Role::kAnnotation;
    case CategoryKind::kGpuUserAnnotation:
      return Role::kAnnotation;
    case CategoryKind::kPythonFunction:
      return Role::kModule;
    case CategoryKind::kCpuOp:
      return Role::kOperator;
    case CategoryKind::kRuntime:
    case CategoryKind::kDriver:
      return Role::kLaunch;
    case CategoryKind::kKernel:
    case CategoryKind::kGpuMemcpy:
    case CategoryKind::kGpuMemset:
      return Role::kKernel;
    default:
      return Role::kOther;
  }
}

// A slice of the track at whose start nothing is open that nests, not after `slice`. Rows of a thread's
// lane are depths, so the last one in row 0 is such a slice. O(log n).
SliceId slice_with_nothing_open(const Lanes& lanes, SliceId slice) {
  const Trace& trace = lanes.trace();
  const SliceId first{trace.track(slice).first_slice};
  const auto place = lanes.place(slice);
  if (!place || lanes.lanes()[place->lane].kind != LaneKind::kCpu) return first;
  const std::uint32_t row = lanes.lanes()[place->lane].first_row;
  for (std::size_t at = lanes.index().lower_bound(row, trace.start_ns(slice) + 1); at > 0; --at)
    if (const std::uint32_t id = lanes.index().slice(row, at - 1).id; id <= raw(slice))
      return SliceId{id};
  return first;
}

// The joins of one slice: from facts where they are known, else from the trace.
class Joins {
 public:
  Joins(const Lanes& lanes, const explain::Facts* known)
      : lanes_(lanes), trace_(lanes.trace()), known_(known) {}

  analysis::EnclosingSlices enclosing(SliceId slice) const {
    if (!known_)
      return analysis::enclosing_slices(trace_, slice, slice_with_nothing_open(lanes_, slice));
    if (known_->nesting.depth[raw(slice)] == SliceNesting::kNotNested) return {};
    return {explain::outward_from(*known_, slice), known_->nesting.self_ns[raw(slice)]};
  }

  SliceId launch_of(SliceId work) {
    if (!links())
      if (const auto found = analysis::find_launch(trace_, work)) return *found;
    return all_links().launch_of[raw(work)];
  }

  SliceId operator_around(SliceId call) const {
    if (links()) return links()->op_of[raw(call)];
    return analysis::operator_around_call(trace_, call, slice_with_nothing_open(lanes_, call));
  }

  // What the slices launched, in order of (call, work).
  analysis::Launched launched(const std::vector<SliceId>& slices) {
    if (!links())
      if (auto found = analysis::find_launched(trace_, slices)) return *std::move(found);
    analysis::Launched launched;
    for (const SliceId call : slices)
      for (const SliceId work : all_links().launched_by(call)) launched.emplace_back(call, work);
    return launched;
  }

  SliceId forward_of(SliceId slice) const {
    return known_ ? known_->links.forward_of[raw(slice)] : kNone<SliceId>;
  }

 private:
  const analysis::LaunchLinks* links() const {
    return known_ ? &known_->links : own_links_ ? &*own_links_ : nullptr;
  }
  const analysis::LaunchLinks& all_links() {
    if (!links()) own_links_ = analysis::compute_launch_links(trace_, 0);
    return *links();
  }

  const Lanes& lanes_;
  const Trace& trace_;
  const explain::Facts* known_;
  std::optional<analysis::LaunchLinks> own_links_;
};

class Details {
 public:
  Details(const Lanes& lanes, SliceId slice, const explain::Facts* known)
      : lanes_(lanes), trace_(lanes.trace()), joins_(lanes, known) {
    out_.slice = slice;
  }

  SliceDetails run() {
    const SliceId slice = out_.slice;
    out_.place = lanes_.place(slice);
    const bool is_work = is_device_work(trace_.kind(slice));
    const SliceId launch = is_work ? joins_.launch_of(slice) : kNone<SliceId>;
    const analysis::EnclosingSlices own = joins_.enclosing(slice);
    const bool is_nested = !own.outward.empty();
    if (is_nested) out_.self_ns = own.self_ns;
    if (launch != kNone<SliceId>)
      add_chain(launch, joins_.enclosing(launch).outward);
    else if (!is_work)
      add_chain(slice, own.outward);
    if (is_work || !is_nested) add_link(slice);
    if (is_work)
      add_code_of_launch(launch);
    else
      out_.code = is_nested ? own.outward : std::vector<SliceId>{slice};
    if (launch != kNone<SliceId>) {
      out_.queue_ns = trace_.start_ns(slice) - trace_.end_ns(launch);
      out_.arrows.push_back({launch, slice});
    }
    if (!is_work) add_launched();
    out_.forward = joins_.forward_of(slice);
    if (out_.forward != kNone<SliceId>) out_.arrows.push_back({out_.forward, slice});
    add_neighbours();
    add_same_name();
    if (trace_.kind(slice) == CategoryKind::kKernel) add_shape();
    return std::move(out_);
  }

 private:
  void add_link(SliceId slice) { out_.chain.push_back({role_of(trace_, slice), slice}); }

  void add_code_of_launch(SliceId launch) {
    if (launch == kNone<SliceId>) return;
    const SliceId op = joins_.operator_around(launch);
    const SliceId from = op == kNone<SliceId> ? launch : op;
    out_.code = joins_.enclosing(from).outward;
    if (out_.code.empty()) out_.code.push_back(from);
  }

  // What encloses a slice, with it, and the modules among the Python frames around it.
  void add_chain(SliceId inner, const std::vector<SliceId>& outward) {
    for (const SliceId up : outward) add_link(up);
    add_modules(inner);
    sort_rows(out_.chain.begin(), out_.chain.end(), [&](const ChainLink& a, const ChainLink& b) {
      const auto key = [&](SliceId id) {
        return std::pair(trace_.start_ns(id), -trace_.end_ns(id));
      };
      return key(a.slice) < key(b.slice);
    });
  }

  void add_modules(SliceId inner) {
    const TrackId track = trace_.slices().track[raw(inner)];
    for (const Lane& lane : lanes_.lanes()) {
      if (lane.kind != LaneKind::kPython || lane.track != track) continue;
      const LevelIndex& index = lanes_.index();
      for (std::uint32_t row = lane.first_row; row < lane.first_row + lane.row_count; ++row) {
        const auto [first, last] =
            index.range(row, trace_.start_ns(inner), trace_.start_ns(inner) + 1);
        if (first >= last) break;
        const SliceId frame{index.slice(row, first).id};
        if (frame != inner && trace_.end_ns(frame) >= trace_.end_ns(inner) &&
            trace_.name(frame).starts_with(kModulePrefix))
          add_link(frame);
      }
    }
  }

  void add_launched() {
    const SliceId slice = out_.slice;
    const Track& track = trace_.track(slice);
    if (track.kind != TrackKind::kThread) return;
    std::vector<SliceId> calls;
    for (std::uint32_t i = raw(slice); i < track.first_slice + track.slice_count; ++i) {
      if (i != raw(slice) && trace_.slices().start_ns[i] >= trace_.end_ns(slice)) break;
      if (is_api_call(trace_.kind(SliceId{i}))) calls.push_back(SliceId{i});
    }
    for (const auto& [call, work] : joins_.launched(calls)) {
      ++out_.launched_count;
      if (out_.launched.size() >= kMostListedArrows) continue;
      out_.launched.push_back(work);
      out_.arrows.push_back({call, work});
    }
  }

  void add_neighbours() {
    if (!out_.place) return;
    const std::uint32_t row = lanes_.lanes()[out_.place->lane].first_row + out_.place->row;
    if (out_.place->at > 0)
      out_.previous = SliceId{lanes_.index().slice(row, out_.place->at - 1).id};
    if (out_.place->at + 1 < lanes_.index().size(row))
      out_.next = SliceId{lanes_.index().slice(row, out_.place->at + 1).id};
  }

  void add_same_name() {
    const auto& names = trace_.slices().name;
    const StringId name = names[raw(out_.slice)];
    const CategoryKind kind = trace_.kind(out_.slice);
    const TrackId track = trace_.slices().track[raw(out_.slice)];
    std::vector<std::int64_t> times;
    SameName& same = out_.same;
    for (std::uint32_t i = 0; i < names.size(); ++i) {
      if (names[i] != name || trace_.kind(SliceId{i}) != kind) continue;
      times.push_back(trace_.dur_ns(SliceId{i}));
      same.total_ns += times.back();
      if (trace_.slices().track[i] != track) continue;
      if (i < raw(out_.slice)) same.previous = SliceId{i};
      if (i > raw(out_.slice) && same.next == kNone<SliceId>) same.next = SliceId{i};
    }
    same.count = times.size();
    const auto [shortest, longest] = std::minmax_element(times.begin(), times.end());
    same.shortest_ns = *shortest;
    same.longest_ns = *longest;
    same.median_ns = analysis::lower_median(std::move(times));
  }

  void add_shape() {
    const auto json = trace_.metadata_json("deviceProperties");
    const auto number = trace_.slice_args(out_.slice).integer(ArgKey::kDevice);
    if (!json) return;
    const std::vector<GpuDevice> devices = parse_gpu_devices(*json);
    for (const GpuDevice& device : devices)
      if (devices.size() == 1 || (number && device.id == *number)) {
        out_.shape = analysis::compute_launch_shape(
            trace_, out_.slice, device, names::parse_kernel_name(trace_.name(out_.slice)), nullptr);
        return;
      }
  }

  const Lanes& lanes_;
  const Trace& trace_;
  Joins joins_;
  SliceDetails out_;
};

}  // namespace

const char* chain_role_name(Role role) {
  switch (role) {
    case Role::kStep:
      return "step";
    case Role::kAnnotation:
      return "annotation";
    case Role::kModule:
      return "module";
    case Role::kOperator:
      return "operator";
    case Role::kLaunch:
      return "launch";
    case Role::kKernel:
      return "kernel";
    case Role::kOther:
      return "other";
  }
  return "";
}

SliceDetails describe_slice(const Lanes& lanes, SliceId slice, const explain::Facts* known) {
  return Details(lanes, slice, known).run();
}

}  // namespace lanescope::view
