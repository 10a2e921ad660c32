#include "lanescope/analysis/roofline.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "lanescope/analysis/interval_union.h"

namespace lanescope::analysis {
namespace {

constexpr std::uint32_t kNoWork = ~std::uint32_t{0};
constexpr int kHighest = 8;  // how many levels up to search for an operator with a model

// Operators' models, each distinct call parsed once.
class Models {
 public:
  Models(const Trace& trace, Roofline& roofline) : trace_(trace), roofline_(roofline) {}

  // The innermost operator with a model around a launch, and the index of its model.
  std::pair<SliceId, std::uint32_t> find(SliceId op, const SliceNesting& nesting) {
    for (int i = 0; i < kHighest && op != kNone<SliceId>; ++i) {
      if (const std::uint32_t work = model_of(op); work != kNoWork) return {op, work};
      op = nesting.parent[raw(op)];
    }
    return {kNone<SliceId>, kNoWork};
  }

 private:
  using Key = std::array<std::uint32_t, 5>;

  std::uint32_t model_of(SliceId op) {
    const ArgsView args = trace_.slice_args(op);
    const auto text = [&](ArgKey key) { return args.text(key).value_or(kNone<StringId>); };
    const StringId dims = text(ArgKey::kInputDims);
    if (dims == kNone<StringId>) return kNoWork;
    roofline_.has_shapes = true;
    const StringId types = text(ArgKey::kInputType), strides = text(ArgKey::kInputStrides),
                   concrete = text(ArgKey::kConcreteInputs);
    const Key key{raw(trace_.slices().name[raw(op)]), raw(dims), raw(types), raw(strides),
                  raw(concrete)};
    const auto [at, is_new] = index_.try_emplace(key, kNoWork);
    if (!is_new) return at->second;
    const auto work = compute_operator_work({trace_.name(op), trace_.text(dims), trace_.text(types),
                                             trace_.text(strides), trace_.text(concrete)});
    if (work) {
      at->second = static_cast<std::uint32_t>(roofline_.works.size());
      roofline_.works.push_back(*work);
    }
    return at->second;
  }

  const Trace& trace_;
  Roofline& roofline_;
  std::map<Key, std::uint32_t> index_;
};

bool runs_on_device(const Trace& trace, const DeviceWork& work) {
  if (work.work == WorkClass::kCommunication) return false;
  if (work.work == WorkClass::kCompute) return true;
  const std::string_view label = trace.name(work.slice);
  return label.starts_with("Memset") || label.find("DtoD") != std::string_view::npos ||
         label.find("Device -> Device") != std::string_view::npos;
}

void rate(const Roofline& roofline, RooflineCall& call) {
  const OperatorWork& work = roofline.works[call.work];
  std::optional<double> peak;
  // The units matter only for operators that multiply matrices.
  const bool multiplies = work.kind == OperatorKind::kGemm ||
                          work.kind == OperatorKind::kConvolution ||
                          work.kind == OperatorKind::kAttention;
  if (roofline.spec)
    peak = multiplies ? peak_rate(*roofline.spec, work.type, call.matrix_units)
                      : roofline.spec->peak.fp32;
  if (peak && *peak > 0) call.compute_floor_ns = work.flops / *peak * 1e9;
  if (roofline.bandwidth_bytes_per_s)
    call.memory_floor_ns = work.bytes / *roofline.bandwidth_bytes_per_s * 1e9;
  const bool is_rated = roofline.bandwidth_bytes_per_s && (peak || !multiplies);
  if (call.time_ns < kShortCallNs)
    call.kind = RooflineClass::kShort;
  else if (!is_rated)
    call.kind = RooflineClass::kUnrated;
  else
    call.kind = call.compute_floor_ns > call.memory_floor_ns ? RooflineClass::kCompute
                                                             : RooflineClass::kMemory;
}

}  // namespace

const char* roofline_class_name(RooflineClass kind) {
  static constexpr const char* kNames[] = {"compute", "memory", "short", "unrated", "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<double> peak_rate(const GpuSpec& spec, std::string_view type, MatrixUnits units) {
  const GpuPeakRates& peak = spec.peak;
  const bool ordinary = units == MatrixUnits::kNotUsed;
  if (type == "f32") return units == MatrixUnits::kUsed && peak.tf32 ? peak.tf32 : peak.fp32;
  if (type == "f64") return !ordinary && peak.fp64_matrix ? peak.fp64_matrix : peak.fp64;
  if (type == "bf16") return peak.bf16;
  if (type == "f16") return peak.fp16;
  if (type.starts_with("f8")) return peak.fp8;
  if (type == "i8" || type == "u8") return peak.int8;
  return std::nullopt;
}

GpuDevice find_device(const Trace& trace, std::int64_t device) {
  const auto json = trace.metadata_json("deviceProperties");
  if (!json) return {};
  auto devices = parse_gpu_devices(*json);
  for (GpuDevice& each : devices)
    if (each.id == device) return std::move(each);
  // Some writers number the devices of work and of the list differently, which does not matter if
  // all GPUs are equal.
  const bool all_equal = std::all_of(devices.begin(), devices.end(), [&](const GpuDevice& each) {
    return each.name == devices[0].name && each.sm_count == devices[0].sm_count;
  });
  return !devices.empty() && all_equal ? devices[0] : GpuDevice{};
}

Roofline compute_roofline(const Trace& trace, const LaunchLinks& links, const SliceNesting& nesting,
                          const DeviceTimeline& timeline, std::span<const Window> windows) {
  Roofline roofline;
  roofline.device = find_device(trace, timeline.device);
  roofline.spec = find_gpu_spec(roofline.device);
  if (roofline.device.memory_bandwidth_bytes_per_s)
    roofline.bandwidth_bytes_per_s =
        static_cast<double>(*roofline.device.memory_bandwidth_bytes_per_s);
  else if (roofline.spec)
    roofline.bandwidth_bytes_per_s = roofline.spec->memory_bandwidth_bytes_per_s;
  roofline.call_of.assign(timeline.work.size(), Roofline::kNoCall);

  Models models(trace, roofline);
  std::unordered_map<std::uint32_t, std::uint32_t> call_by_op;
  std::array<IntervalUnion, kRooflineClassCount> wall;
  IntervalUnion busy;
  for (std::size_t i = 0; i < timeline.work.size(); ++i) {
    const DeviceWork& work = timeline.work[i];
    if (!is_inside(windows, work.start_ns) || !runs_on_device(trace, work)) continue;
    busy.add(work.start_ns, work.end_ns);
    const SliceId launch = links.launch_of[raw(work.slice)];
    const bool is_graph = launch != kNone<SliceId> && links.launched_by(launch).size() > 1;
    const auto [op, model] = is_graph ? std::pair{kNone<SliceId>, kNoWork}
                                      : models.find(links.op_of[raw(work.slice)], nesting);
    if (op == kNone<SliceId>) continue;
    const auto [at, is_new] =
        call_by_op.try_emplace(raw(op), static_cast<std::uint32_t>(roofline.calls.size()));
    if (is_new) {
      RooflineCall call;
      call.op = op;
      call.kernel = work.slice;
      call.work = model;
      call.start_ns = call.end_ns = work.start_ns;
      roofline.calls.push_back(call);
    }
    RooflineCall& call = roofline.calls[at->second];
    roofline.call_of[i] = at->second;
    call.time_ns += std::max<std::int64_t>(0, work.end_ns - std::max(work.start_ns, call.end_ns));
    call.end_ns = std::max(call.end_ns, work.end_ns);
    if (trace.dur_ns(work.slice) > trace.dur_ns(call.kernel)) call.kernel = work.slice;
  }

  std::unordered_map<std::uint32_t, MatrixUnits> units;  // by the kernel's name
  for (RooflineCall& call : roofline.calls) {
    const StringId label = trace.slices().name[raw(call.kernel)];
    const auto [at, is_new] = units.try_emplace(raw(label));
    if (is_new) at->second = matrix_units(trace.text(label));
    call.matrix_units = at->second;
    rate(roofline, call);
    RooflineTotals& totals = roofline.totals[static_cast<std::size_t>(call.kind)];
    ++totals.calls;
    totals.floor_ns += call.achieved_ratio() * static_cast<double>(call.time_ns);
    totals.above_peak_calls += call.is_above_peak() ? 1 : 0;
    totals.above_peak_ns += call.is_above_peak() ? call.time_ns : 0;
    totals.flops += roofline.works[call.work].flops;
    totals.bytes += roofline.works[call.work].bytes;
  }
  for (std::size_t i = 0; i < timeline.work.size(); ++i) {
    const DeviceWork& work = timeline.work[i];
    if (!is_inside(windows, work.start_ns) || !runs_on_device(trace, work)) continue;
    const std::uint32_t call = roofline.call_of[i];
    const auto kind =
        call == Roofline::kNoCall ? RooflineClass::kUnknown : roofline.calls[call].kind;
    if (call == Roofline::kNoCall)
      ++roofline.totals[static_cast<std::size_t>(RooflineClass::kUnknown)].calls;
    wall[static_cast<std::size_t>(kind)].add(work.start_ns, work.end_ns);
  }
  for (std::size_t i = 0; i < kRooflineClassCount; ++i) {
    wall[i].finish();
    roofline.totals[i].time_ns = wall[i].length_ns();
  }
  busy.finish();
  roofline.busy_ns = busy.length_ns();
  return roofline;
}

}  // namespace lanescope::analysis
