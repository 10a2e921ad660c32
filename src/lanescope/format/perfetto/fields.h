// Numbers of the fields that lanescope reads and writes of Perfetto's traces, after
// https://perfetto.dev/docs/reference/trace-packet-proto. Other fields are passed over.
#pragma once
#include <cstdint>

namespace lanescope::format::pftrace {

enum Trace : std::uint32_t { kPacket = 1 };

enum TracePacket : std::uint32_t {
  kFtraceEvents = 1,
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kStateCleared = 41,
  kPacketsDropped = 42,
  kProcessDescriptor = 43,
  kThreadDescriptor = 44,
  kCompressedPackets = 50,
  kGpuRenderStage = 53,
  kTimestampClock = 58,
  kPacketDefaults = 59,
  kTrackDescriptor = 60,
  kZstdPackets = 133,
};
inline constexpr std::uint64_t kFlagCleared = 1, kFlagNeedsState = 2;

enum Clock : std::uint32_t { kClockId = 1, kClockTime = 2, kClockIncremental = 3, kClockUnit = 4 };
enum ClockSnapshot : std::uint32_t { kClocks = 1, kPrimaryClock = 2 };
inline constexpr std::uint64_t kRealtime = 1, kBootTime = 6, kFirstSequenceClock = 64;

enum PacketDefaults : std::uint32_t { kDefaultEvent = 11, kDefaultClock = 58 };

enum TrackEvent : std::uint32_t {
  kDeltaUs = 1,
  kCategoryIids = 3,
  kAnnotations = 4,
  kLegacyEvent = 6,
  kType = 9,
  kNameIid = 10,
  kTrackUuid = 11,
  kExtraValues = 12,
  kAbsoluteUs = 16,
  kCategories = 22,
  kName = 23,
  kCounterValue = 30,
  kExtraTracks = 31,
  kFlowsOld = 36,
  kEndingFlowsOld = 42,
  kDoubleValue = 44,
  kExtraDoubleTracks = 45,
  kExtraDoubles = 46,
  kFlows = 47,
  kEndingFlows = 48,
};
enum EventType : std::uint64_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };

enum LegacyEvent : std::uint32_t {
  kLegacyName = 1,
  kPhase = 2,
  kDurationUs = 3,
  kUnscopedId = 6,
  kBindId = 8,
  kLocalId = 10,
  kGlobalId = 11,
  kFlowDirection = 13,
  kPidOverride = 18,
  kTidOverride = 19,
};

enum TrackDescriptor : std::uint32_t {
  kUuid = 1,
  kTrackName = 2,
  kTrackProcess = 3,
  kTrackThread = 4,
  kParentUuid = 5,
  kTrackCounter = 8,
  kStaticName = 10,
  kAtraceName = 13,
};
enum ProcessFields : std::uint32_t { kPid = 1, kProcessSort = 3, kProcessName = 6, kLabels = 8 };
enum ThreadFields : std::uint32_t {
  kThreadPid = 1,
  kTid = 2,
  kThreadSort = 3,
  kThreadName = 5,
  kReferenceUs = 6,
};
enum CounterFields : std::uint32_t { kUnitMultiplier = 4, kIncremental = 5 };

enum InternedData : std::uint32_t {
  kEventCategories = 1,
  kEventNames = 2,
  kAnnotationNames = 3,
  kGraphicsContexts = 23,
  kGpuSpecifications = 24,
  kAnnotationTexts = 29,
};
enum Interned : std::uint32_t { kIid = 1, kText = 2 };  // of names, categories and texts
enum GpuSpecification : std::uint32_t { kSpecName = 2, kSpecCategory = 4 };
inline constexpr std::uint64_t kCompute = 2;

enum Annotation : std::uint32_t {
  kAnnotationNameIid = 1,
  kBool = 2,
  kUint = 3,
  kInt = 4,
  kDouble = 5,
  kString = 6,
  kPointer = 7,
  kNested = 8,
  kJson = 9,
  kAnnotationName = 10,
  kDict = 11,
  kArray = 12,
  kStringIid = 17,
};
enum NestedValue : std::uint32_t {
  kNestedKeys = 2,
  kNestedValues = 3,
  kNestedArray = 4,
  kNestedInt = 5,
  kNestedDouble = 6,
  kNestedBool = 7,
  kNestedString = 8,
};

enum RenderStage : std::uint32_t {
  kEventId = 1,
  kDuration = 2,
  kQueueId = 3,
  kStageId = 4,
  kExtraData = 6,
  kSpecifications = 7,
  kGpuId = 11,
  kQueueIid = 13,
  kStageIid = 14,
  kStageName = 17,
  kStageNameIid = 20,
  kLaunch = 21,
};
enum Launch : std::uint32_t { kGrid = 1, kWorkgroup = 2 };

// What Perfetto has no place for, in fields that its readers pass over: docs/formats/pftrace.md. The fields are of TracePacket
// and TrackDescriptor; older files of lanescope also have them in a TrackEvent, where Perfetto counts an error.
inline constexpr std::uint32_t kOwnField = 200'001;
enum OwnTrace : std::uint32_t {
  kOwnBaseTime = 1,
  kOwnShift = 2,
  kOwnMetadata = 3,
  kOwnMetadataEvent = 4,
  kOwnFlowKind = 5,
  kOwnFlow = 6,
  kOwnEventScope = 7,  // of the instant in the same packet
  kOwnArgument = 8,    // of the event in the same packet, that Perfetto does not show
};
// How many arguments of the event come before it, and its DebugAnnotation.
enum OwnArgumentFields : std::uint32_t { kOwnPlace = 1, kOwnAnnotation = 2 };
enum OwnPair : std::uint32_t { kOwnKey = 1, kOwnValue = 2 };
enum OwnFlowKindFields : std::uint32_t {
  kOwnFlowName = 1,
  kOwnFlowCategory = 2,
  kOwnFlowBinds = 3
};
enum OwnFlowFields : std::uint32_t {
  kOwnWireId = 1,
  kOwnFromTrack = 2,
  kOwnFromNs = 3,
  kOwnToTrack = 4,
  kOwnToNs = 5,
  kOwnFlowKindIndex = 6,
  kOwnFlowId = 7,
  kOwnFlowIdText = 8,
};
enum OwnTrack : std::uint32_t {
  kOwnKind = 1,  // a TrackKind, or kOwnProcess
  kOwnPid = 2,
  kOwnPidText = 3,
  kOwnTid = 4,
  kOwnTidText = 5,
  kOwnName = 6,
  kOwnSeries = 7,
  kOwnSort = 8,
  kOwnDevice = 9,
  kOwnStream = 10,
  kOwnLabels = 11,
};
inline constexpr std::uint64_t kOwnProcess = 100;
enum OwnEvent : std::uint32_t { kOwnScope = 1 };
// Also of an InternedString of kAnnotationTexts, as a number: the text is a list in JSON.
inline constexpr std::uint64_t kOwnIsList = 1;
// An arrow's id in the file: (1 + the place of its kind in OwnTrace) times this, plus its own id.
inline constexpr std::uint64_t kFlowKindFactor = std::uint64_t{1} << 40U;
inline constexpr std::uint64_t kOwnFlowsFrom = std::uint64_t{1} << 63U;  // those with a kOwnFlow

}  // namespace lanescope::format::pftrace
