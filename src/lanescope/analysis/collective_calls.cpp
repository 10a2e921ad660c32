#include "lanescope/analysis/collective_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace lanescope::analysis {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

// The arguments about the collective: of the kernel, else of the innermost event around its launch.
ArgsView collective_args(const Trace& trace, const LaunchLinks& links, SliceId work) {
  const ArgsView own = trace.slice_args(work);
  if (own.has(ArgKey::kCollectiveName)) return own;
  const SliceId op = links.op_of[raw(work)];
  if (op == kNone<SliceId>) return own;
  const ArgsView around = trace.slice_args(op);
  return around.has(ArgKey::kCollectiveName) ? around : own;
}

}  // namespace

double bus_factor(std::string_view collective, std::int64_t ranks) {
  std::string name;
  for (const char letter : collective)
    if (letter != '_') name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (ranks < 2) return 0;
  const auto n = static_cast<double>(ranks);
  if (has("allreduce")) return 2 * (n - 1) / n;
  if (has("allgather") || has("reducescatter") || has("alltoall")) return (n - 1) / n;
  return 0;
}

std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, int>, 16> kSizes{{
      {"Float", 4},
      {"BFloat16", 2},
      {"Half", 2},
      {"Double", 8},
      {"Long", 8},
      {"Int", 4},
      {"Short", 2},
      {"Char", 1},
      {"Byte", 1},
      {"Bool", 1},
      {"UInt64", 8},
      {"ComplexFloat", 8},
      {"ComplexDouble", 16},
      {"Float8_e4m3fn", 1},
      {"Float8_e5m2", 1},
      {"UInt32", 4},
  }};
  for (const auto& [name, size] : kSizes)
    if (name == dtype) return size;
  return std::nullopt;
}

std::vector<CollectiveCall> find_collective_calls(const Trace& trace, const LaunchLinks& links,
                                                  const DeviceTimeline& timeline) {
  std::vector<CollectiveCall> calls;
  for (const DeviceWork& work : timeline.work) {
    if (work.work != WorkClass::kCommunication) continue;
    const ArgsView args = collective_args(trace, links, work.slice);
    CollectiveCall call;
    call.work = work;
    call.name = args.text(ArgKey::kCollectiveName).value_or(kNone<StringId>);
    call.group = args.text(ArgKey::kProcessGroupName).value_or(kNone<StringId>);
    call.sequence = args.integer(ArgKey::kCollectiveSeq);
    call.group_size = std::max<std::int64_t>(0, args.integer(ArgKey::kGroupSize).value_or(0));
    const auto in = args.integer(ArgKey::kInMsgNelems), out = args.integer(ArgKey::kOutMsgNelems);
    const auto dtype = args.text(ArgKey::kDtype);
    const auto size = dtype ? element_bytes(trace.text(*dtype)) : std::nullopt;
    const std::int64_t elements = std::max(in.value_or(-1), out.value_or(-1));
    if (size && elements >= 0 && elements <= kMostElements) call.message_bytes = elements * *size;
    calls.push_back(call);
  }
  return calls;
}

}  // namespace lanescope::analysis
