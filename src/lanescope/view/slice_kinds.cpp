#include "lanescope/view/slice_kinds.h"

#include "lanescope/analysis/cpu_collectives.h"

namespace lanescope::view {
namespace {

using analysis::WorkClass;

TimeKind kind_of(WorkClass work) {
  return work == WorkClass::kCompute         ? TimeKind::kCompute
         : work == WorkClass::kCommunication ? TimeKind::kCommunication
                                             : TimeKind::kCopy;
}

TimeKind kind_of(analysis::VendorRowKind row) {
  switch (row) {
    case analysis::VendorRowKind::kCompute:
      return TimeKind::kCompute;
    case analysis::VendorRowKind::kCommunication:
      return TimeKind::kCommunication;
    case analysis::VendorRowKind::kCopy:
      return TimeKind::kCopy;
    case analysis::VendorRowKind::kWait:
      break;
  }
  return TimeKind::kWait;
}

TimeKind kind_of(const Trace& trace, const analysis::LaunchLinks& links, SliceId slice) {
  if (is_front_end(trace.kind(slice)) && analysis::cpu_collective_library(trace.name(slice)))
    return TimeKind::kCommunication;
  switch (trace.kind(slice)) {
    case CategoryKind::kCpuOp:
      return TimeKind::kOperator;
    case CategoryKind::kUserAnnotation:
    case CategoryKind::kGpuUserAnnotation:
      return TimeKind::kAnnotation;
    case CategoryKind::kPythonFunction:
    case CategoryKind::kPythonSample:
      return TimeKind::kPython;
    case CategoryKind::kRuntime:
    case CategoryKind::kDriver:
      return analysis::is_blocking_call(trace, links, slice) ? TimeKind::kWait : TimeKind::kCall;
    case CategoryKind::kKernel:
      return TimeKind::kCompute;
    case CategoryKind::kGpuMemcpy:
    case CategoryKind::kGpuMemset:
      return TimeKind::kCopy;
    case CategoryKind::kCudaSync:
    case CategoryKind::kCudaEvent:
      return TimeKind::kWait;
    case CategoryKind::kCommunication:
      return TimeKind::kCommunication;
    default:
      return TimeKind::kOther;
  }
}

}  // namespace

std::vector<TimeKind> time_kinds(const explain::Facts& facts,
                                 const std::vector<analysis::VendorRow>& vendor_rows) {
  const Trace& trace = *facts.trace;
  std::vector<TimeKind> kinds(trace.slices().size());
  for (std::uint32_t i = 0; i < kinds.size(); ++i)
    kinds[i] = kind_of(trace, facts.links, SliceId{i});
  for (const analysis::VendorRow& row : vendor_rows) kinds[raw(row.slice)] = kind_of(row.kind);
  for (const auto& device : facts.devices)
    for (const auto& work : device.timeline.work) kinds[raw(work.slice)] = kind_of(work.work);
  return kinds;
}

std::vector<NameUse> name_uses(const Trace& trace) {
  std::vector<NameUse> uses(trace.strings().size(), NameUse::kOther);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const CategoryKind kind = trace.kind(SliceId{i});
    NameUse& use = uses[raw(trace.slices().name[i])];
    if (is_device_work(kind)) use = NameUse::kWork;
    if ((kind == CategoryKind::kPythonFunction || kind == CategoryKind::kPythonSample) &&
        use == NameUse::kOther)
      use = NameUse::kFrame;
  }
  return uses;
}

}  // namespace lanescope::view
