#include "lanescope/model/args.h"

#include <bit>

namespace lanescope {
namespace {

struct KeyRow {
  ArgKey key;
  std::string_view text;
};
// The first row of a key is torch 2's spelling; later rows are older or foreign ones.
constexpr KeyRow kKeys[] = {
    {ArgKey::kExternalId, "External id"},
    {ArgKey::kExternalId, "external id"},
    {ArgKey::kRecordFunctionId, "Record function id"},
    {ArgKey::kSequenceNumber, "Sequence number"},
    {ArgKey::kFwdThreadId, "Fwd thread id"},
    {ArgKey::kEvIdx, "Ev Idx"},
    {ArgKey::kInputDims, "Input Dims"},
    {ArgKey::kInputDims, "Input dims"},
    {ArgKey::kInputType, "Input type"},
    {ArgKey::kInputStrides, "Input Strides"},
    {ArgKey::kConcreteInputs, "Concrete Inputs"},
    {ArgKey::kCallStack, "Call stack"},
    {ArgKey::kModuleHierarchy, "Module Hierarchy"},
    {ArgKey::kOverloadName, "Overload name"},
    {ArgKey::kOverloadName, "Overload Name"},
    {ArgKey::kCorrelation, "correlation"},
    {ArgKey::kCbid, "cbid"},
    {ArgKey::kDevice, "device"},
    {ArgKey::kContext, "context"},
    {ArgKey::kStream, "stream"},
    {ArgKey::kQueued, "queued"},
    {ArgKey::kPriority, "priority"},
    {ArgKey::kRegistersPerThread, "registers per thread"},
    {ArgKey::kSharedMemory, "shared memory"},
    {ArgKey::kBlocksPerSm, "blocks per SM"},
    {ArgKey::kWarpsPerSm, "warps per SM"},
    {ArgKey::kGrid, "grid"},
    {ArgKey::kBlock, "block"},
    {ArgKey::kOccupancy, "est. achieved occupancy %"},
    {ArgKey::kOccupancy, "theoretical occupancy %"},
    {ArgKey::kGraphId, "graph id"},
    {ArgKey::kGraphNodeId, "graph node id"},
    {ArgKey::kBytes, "bytes"},
    {ArgKey::kMemoryBandwidth, "memory bandwidth (GB/s)"},
    {ArgKey::kCollectiveName, "Collective name"},
    {ArgKey::kInMsgNelems, "In msg nelems"},
    {ArgKey::kOutMsgNelems, "Out msg nelems"},
    {ArgKey::kInSplitSize, "In split size"},
    {ArgKey::kOutSplitSize, "Out split size"},
    {ArgKey::kGroupSize, "Group size"},
    {ArgKey::kDtype, "dtype"},
    {ArgKey::kProcessGroupName, "Process Group Name"},
    {ArgKey::kProcessGroupDescription, "Process Group Description"},
    {ArgKey::kProcessGroupRanks, "Process Group Ranks"},
    {ArgKey::kCollectiveSeq, "Seq"},
    {ArgKey::kMemoryBytes, "Bytes"},
    {ArgKey::kTotalAllocated, "Total Allocated"},
    {ArgKey::kTotalReserved, "Total Reserved"},
    {ArgKey::kAddr, "Addr"},
    {ArgKey::kDeviceId, "Device Id"},
    {ArgKey::kDeviceType, "Device Type"},
    {ArgKey::kPythonId, "Python id"},
    {ArgKey::kPythonParentId, "Python parent id"},
    {ArgKey::kPythonModuleId, "Python module id"},
    {ArgKey::kCudaSyncKind, "cuda_sync_kind"},
    {ArgKey::kWaitOnStream, "wait_on_stream"},
    {ArgKey::kWaitOnEventCorrelation, "wait_on_cuda_event_record_corr_id"},
    {ArgKey::kWaitOnEventId, "wait_on_cuda_event_id"},
    {ArgKey::kEventId, "event_id"},
    {ArgKey::kFlops, "flops"},
    {ArgKey::kLaunchStep, "launch step"},
    {ArgKey::kLaunchedBeforeWindow, "launched before window"},
    {ArgKey::kOccupancyLimit, "occupancy limit"},
    {ArgKey::kSamples, "Samples"},
    {ArgKey::kSelfSamples, "Self samples"},
    {ArgKey::kOnCpuSamples, "On CPU samples"},
    {ArgKey::kSampleLines, "Lines"},
};

}  // namespace

ArgKey arg_key(std::string_view text) {
  for (const KeyRow& row : kKeys)
    if (row.text == text) return row.key;
  return ArgKey::kCount;
}

std::string_view arg_key_text(ArgKey key) {
  for (const KeyRow& row : kKeys)
    if (row.key == key) return row.text;
  return {};
}

std::uint64_t ArgsView::bits(const ArgField& field) const {
  const std::uint32_t count = arg_words(field.type);
  std::uint64_t value = count >= 1 ? first_word(field) : 0;
  if (count == 2) value |= static_cast<std::uint64_t>(words(field)[1]) << 32;
  return value;
}

std::optional<std::int64_t> ArgsView::integer(const ArgField* field) const {
  if (!field) return std::nullopt;
  if (field->type == ArgType::kInt32) return static_cast<std::int32_t>(first_word(*field));
  if (field->type == ArgType::kInt64) return static_cast<std::int64_t>(bits(*field));
  return std::nullopt;
}

std::optional<double> ArgsView::number(const ArgField* field) const {
  if (!field) return std::nullopt;
  if (field->type == ArgType::kDouble) return std::bit_cast<double>(bits(*field));
  if (field->type == ArgType::kUint64) return static_cast<double>(bits(*field));
  if (const auto whole = integer(field)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<StringId> ArgsView::text(ArgKey key) const {
  const ArgField* field = find(key);
  if (!field || (field->type != ArgType::kString && field->type != ArgType::kJson))
    return std::nullopt;
  return StringId{*words(*field)};
}

}  // namespace lanescope
