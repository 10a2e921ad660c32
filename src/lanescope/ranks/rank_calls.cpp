#include "lanescope/ranks/rank_calls.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/call_table.h"

namespace lanescope::ranks {
namespace {

using analysis::DeviceWork;
using analysis::WorkClass;
using explain::Facts;

constexpr std::size_t kLongestName = 120;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

std::int64_t elements(const ArgsView& args, ArgKey key) {
  const auto count = args.integer(key);
  return count && *count >= 0 && *count <= kMostElements ? *count : -1;
}

// "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": without parameters.
std::string kernel_name(std::string_view name) {
  return std::string(name.substr(0, std::min(name.find('('), kLongestName)));
}

// "[0, 1, 2, 3]"; Kineto shortens long lists with "...": then nothing.
std::vector<std::int64_t> rank_list(std::string_view text) {
  std::vector<std::int64_t> ranks;
  const auto list = parse_json(text);
  if (!list || !list->is_array() || list->items.size() > kMostGroupRanks) return ranks;
  for (const JsonValue& item : list->items)
    if (item.integer) ranks.push_back(*item.integer);
  return ranks;
}

// The arguments of the kernel, else of the event around its launch.
ArgsView metadata_of(const Facts& facts, SliceId slice) {
  const ArgsView own = facts.trace->slice_args(slice);
  if (own.has(ArgKey::kCollectiveName)) return own;
  const SliceId op = facts.links.op_of[raw(slice)];
  return op == kNone<SliceId> ? own : facts.trace->slice_args(op);
}

void read_metadata(const Trace& trace, const ArgsView& args, FoundCall& call) {
  const auto text = [&](ArgKey key) {
    const auto id = args.text(key);
    return id ? std::string(trace.text(*id).substr(0, kLongestName)) : std::string();
  };
  call.kind.name = text(ArgKey::kCollectiveName);
  call.kind.dtype = text(ArgKey::kDtype);
  call.kind.in_elements = elements(args, ArgKey::kInMsgNelems);
  call.kind.out_elements = elements(args, ArgKey::kOutMsgNelems);
  call.kind.has_metadata = true;
  const auto size = analysis::element_bytes(call.kind.dtype);
  const std::int64_t most = std::max(call.kind.in_elements, call.kind.out_elements);
  if (size && most >= 0) call.kind.bytes = most * *size;
  call.group.name = text(ArgKey::kProcessGroupName);
  call.group.description = text(ArgKey::kProcessGroupDescription);
  call.group.size = std::max<std::int64_t>(0, args.integer(ArgKey::kGroupSize).value_or(0));
  if (const auto ranks = args.text(ArgKey::kProcessGroupRanks))
    call.group.ranks = rank_list(trace.text(*ranks));
  call.sequence = args.integer(ArgKey::kCollectiveSeq);
  const CallShape shape = shape_of(call.kind);
  if (shape != CallShape::kSend && shape != CallShape::kReceive) return;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (const std::string_view key = trace.text(args.field(i).key);
        key == (shape == CallShape::kSend ? "Dst Rank" : "Src Rank"))
      call.peer = args.integer(&args.field(i));
}

FoundCall call_at(const Trace& trace, SliceId slice, std::int64_t launch_ns) {
  FoundCall call;
  call.slice = slice;
  call.start_ns = trace.start_ns(slice);
  call.end_ns = trace.end_ns(slice);
  call.launch_ns = launch_ns;
  call.kind.name = kernel_name(trace.name(slice));
  return call;
}

void find_gpu_calls(const Facts& facts, RankCalls& found) {
  const Trace& trace = *facts.trace;
  bool any_metadata = false;
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (work.work == WorkClass::kCompute) found.compute.add(work.start_ns, work.end_ns);
    if (work.work != WorkClass::kCommunication) continue;
    found.communication.add(work.start_ns, work.end_ns);
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    const bool launched = launch != kNone<SliceId> || !facts.device().timeline.has_launches();
    FoundCall call = call_at(trace, work.slice,
                             launch == kNone<SliceId> ? work.start_ns : trace.start_ns(launch));
    const ArgsView args = metadata_of(facts, work.slice);
    if (args.has(ArgKey::kCollectiveName)) {
      read_metadata(trace, args, call);
      any_metadata = true;
    } else if (!launched) {
      ++found.unlinked;
      continue;
    }
    found.calls.push_back(std::move(call));
  }
  if (!any_metadata) return;
  const auto bare = [](const FoundCall& call) { return !call.kind.has_metadata; };
  found.unlinked +=
      static_cast<std::uint64_t>(std::count_if(found.calls.begin(), found.calls.end(), bare));
  std::erase_if(found.calls, bare);
}

// "hcom_allReduce__868_0_1": the collective, the group, the place in the group's sequence.
void read_hccl_name(std::string_view name, FoundCall& call) {
  const std::size_t split = name.find("__");
  if (!name.starts_with("hcom_") || split == std::string_view::npos) return;
  call.kind.name = std::string(name.substr(5, split - 5));
  const std::string_view rest = name.substr(split + 2);
  const std::size_t bar = rest.find('_');
  if (bar == std::string_view::npos) return;
  call.group.name = std::string(rest.substr(0, bar));
  std::int64_t place = 0;
  const auto [end, error] =
      std::from_chars(rest.data() + bar + 1, rest.data() + rest.size(), place);
  if (error == std::errc() && place >= 0) call.sequence = place;
}

void read_hccl_arguments(const Trace& trace, SliceId slice, FoundCall& call) {
  const ArgsView args = trace.slice_args(slice);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ArgField& field = args.field(i);
    const std::string_view key = trace.text(field.key);
    const auto number = args.integer(&field);
    if (key == "count" && number && *number >= 0 && *number <= kMostElements)
      call.kind.in_elements = call.kind.out_elements = *number;
    if (key == "data_type" && field.type == ArgType::kString)
      call.kind.dtype =
          trace.text(StringId{static_cast<std::uint32_t>(args.bits(field))}).substr(0, 16);
  }
  const std::int64_t size = call.kind.dtype == "FP32"                                 ? 4
                            : call.kind.dtype == "FP16" || call.kind.dtype == "BFP16" ? 2
                                                                                      : 0;
  if (size > 0 && call.kind.in_elements >= 0) call.kind.bytes = call.kind.in_elements * size;
}

void find_vendor_calls(const Facts& facts, RankCalls& found) {
  for (const SliceId slice : facts.vendor->works)
    found.compute.add(facts.trace->start_ns(slice), facts.trace->end_ns(slice));
  for (const SliceId slice : facts.vendor->collectives) {
    FoundCall call = call_at(*facts.trace, slice, facts.trace->start_ns(slice));
    read_hccl_name(facts.trace->name(slice), call);
    read_hccl_arguments(*facts.trace, slice, call);
    found.communication.add(call.start_ns, call.end_ns);
    found.calls.push_back(std::move(call));
  }
}

// Gloo runs on threads of its own, and its ranges are as long as its work. Operators compute.
void find_cpu_calls(const Facts& facts, RankCalls& found) {
  const Trace& trace = *facts.trace;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    const std::string_view name = trace.name(slice);
    if (trace.kind(slice) == CategoryKind::kCpuOp && name != "record_param_comms")
      found.compute.add(trace.start_ns(slice), trace.end_ns(slice));
    if (!name.starts_with("gloo:")) continue;
    FoundCall call = call_at(trace, slice, trace.start_ns(slice));
    found.communication.add(call.start_ns, call.end_ns);
    found.calls.push_back(std::move(call));
  }
}

}  // namespace

CalledCollectives find_called_collectives(const Trace& trace) {
  CalledCollectives found;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    if (trace.kind(slice) != CategoryKind::kCpuOp || trace.name(slice) != "record_param_comms")
      continue;
    const ArgsView args = trace.slice_args(slice);
    if (!args.has(ArgKey::kCollectiveName)) continue;
    FoundCall call = call_at(trace, slice, trace.start_ns(slice));
    read_metadata(trace, args, call);
    if (call.kind.name == "init" || call.kind.name == "broadcastUniqueNCCLID")
      found.from_start |= found.calls.empty();
    else if (shape_of(call.kind) != CallShape::kUnknown)
      found.calls.push_back(std::move(call));
  }
  sort_rows(found.calls.begin(), found.calls.end(),
            [](const FoundCall& a, const FoundCall& b) { return a.start_ns < b.start_ns; });
  return found;
}

RankCalls find_rank_calls(const Facts& facts) {
  RankCalls found;
  if (facts.main_device)
    find_gpu_calls(facts, found);
  else if (facts.vendor)
    find_vendor_calls(facts, found);
  else
    find_cpu_calls(facts, found);
  found.compute.finish();
  found.communication.finish();
  found.compute_or_communication = found.compute;
  for (const FoundCall& call : found.calls)
    found.compute_or_communication.add(call.start_ns, call.end_ns);
  found.compute_or_communication.finish();
  sort_rows(found.calls.begin(), found.calls.end(), [](const FoundCall& a, const FoundCall& b) {
    return std::pair(a.launch_ns, a.start_ns) < std::pair(b.launch_ns, b.start_ns);
  });
  return found;
}

}  // namespace lanescope::ranks
