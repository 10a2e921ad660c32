// The rows of api_calls.h, by what the calls do. Names are separated by spaces, those of MTIA by
// ", ", because they have spaces. Sources: NVIDIA's, AMD's, Intel's and Huawei's reference manuals;
// CUPTI's lists of calls; names in recorded traces. Private to api_calls.cpp.
#pragma once
#include <string_view>

#include "lanescope/model/api_calls.h"

namespace lanescope::api_call_rows {

using namespace api_effect;

struct Group {
  ApiEffects effects;
  std::string_view names;
  ApiRuntime runtime = ApiRuntime::kUnknown;  // kUnknown: the names are stems, a prefix decides
};

// clang-format off
constexpr Group kGroups[] = {
    // Stems: CUDA's runtime and driver, HIP, MUSA.
    {kLaunchesKernel,
     "Launch LaunchCooperativeKernel LaunchCooperativeKernelMultiDevice LaunchGrid "
     "LaunchGridAsync LaunchKernel LaunchKernelEx LaunchKernelExC DrvLaunchKernelEx "
     "ExtLaunchKernel ExtLaunchMultiKernelMultiDevice ExtModuleLaunchKernel "
     "HccModuleLaunchKernel LaunchByPtr ModuleLaunchCooperativeKernel "
     "ModuleLaunchCooperativeKernelMultiDevice ModuleLaunchKernel"},
    {kLaunchesGraph,
     "GraphLaunch"},
    {kCopies | kBlocks,
     "Memcpy Memcpy2D Memcpy2DFromArray Memcpy2DToArray Memcpy2DUnaligned Memcpy3D MemcpyAtoH "
     "MemcpyDtoH MemcpyFromArray MemcpyFromSymbol MemcpyHtoA MemcpyHtoD MemcpyToArray "
     "MemcpyToSymbol DrvMemcpy2DUnaligned DrvMemcpy3D MemcpyParam2D MemcpyWithStream"},
    {kCopies,
     "Memcpy2DArrayToArray Memcpy2DAsync Memcpy2DFromArrayAsync Memcpy2DToArrayAsync "
     "Memcpy3DAsync Memcpy3DBatchAsync Memcpy3DPeer Memcpy3DPeerAsync MemcpyArrayToArray "
     "MemcpyAsync MemcpyAtoA MemcpyAtoD MemcpyAtoHAsync MemcpyBatchAsync MemcpyDtoA MemcpyDtoD "
     "MemcpyDtoDAsync MemcpyDtoHAsync MemcpyFromArrayAsync MemcpyFromSymbolAsync "
     "MemcpyHtoAAsync MemcpyHtoDAsync MemcpyPeer MemcpyPeerAsync MemcpyToArrayAsync "
     "MemcpyToSymbolAsync DrvMemcpy3DAsync MemcpyParam2DAsync MemDiscardAndPrefetchBatchAsync "
     "MemPrefetchAsync MemPrefetchBatchAsync"},
    {kSets,
     "Memset Memset2D Memset2DAsync Memset3D Memset3DAsync MemsetAsync MemsetD16 "
     "MemsetD16Async MemsetD2D16 MemsetD2D16Async MemsetD2D32 MemsetD2D32Async MemsetD2D8 "
     "MemsetD2D8Async MemsetD32 MemsetD32Async MemsetD8 MemsetD8Async"},
    {kBlocks | kWaitsForDevice,
     "CtxSynchronize DeviceSynchronize ThreadSynchronize"},
    {kBlocks,
     "EventSynchronize StreamSynchronize"},
    {kStreamWaits,
     "CtxWaitEvent GreenCtxWaitEvent StreamBatchMemOp StreamWaitEvent StreamWaitValue32 "
     "StreamWaitValue64 WaitExternalSemaphoresAsync"},
    {kRecordsEvent,
     "CtxRecordEvent EventRecord EventRecordWithFlags GreenCtxRecordEvent"},
    {kQueries,
     "EventQuery StreamQuery"},
    {kBeginsCapture,
     "StreamBeginCapture StreamBeginCaptureToGraph"},
    {kEndsCapture,
     "StreamEndCapture"},
    {kAllocates,
     "Array3DCreate ArrayCreate HostAlloc HostRegister Malloc Malloc3D Malloc3DArray "
     "MallocArray MallocHost MallocManaged MallocMipmappedArray MallocPitch MemAlloc "
     "MemAllocHost MemAllocManaged MemAllocPitch MemCreate MemHostAlloc MemHostRegister MemMap "
     "MemSetAccess MipmappedArrayCreate ExtHostAlloc ExtMallocWithFlags HostMalloc"},
    {kAllocates | kInStreamOrder,
     "MallocAsync MallocFromPoolAsync MemAllocAsync MemAllocFromPoolAsync"},
    {kFrees,
     "ArrayDestroy DeviceGraphMemTrim Free FreeArray FreeHost FreeMipmappedArray "
     "HostUnregister MemFree MemFreeHost MemHostUnregister MemPoolTrimTo MemRelease MemUnmap "
     "MipmappedArrayDestroy HostFree"},
    {kFrees | kInStreamOrder,
     "FreeAsync MemFreeAsync"},
    {kLoadsCode,
     "FuncLoad LibraryLoadData LibraryLoadFromFile ModuleLoad ModuleLoadData ModuleLoadDataEx "
     "ModuleLoadFatBinary"},
    {kMayLoadCode,
     "FuncGetAttribute FuncGetAttributes FuncSetAttribute FuncSetCacheConfig "
     "FuncSetSharedMemConfig GetFuncBySymbol KernelGetAttribute KernelGetFunction "
     "KernelSetAttribute KernelSetAttributeForDevice KernelSetCacheConfig LibraryGetKernel "
     "LibraryGetModule ModuleGetFunction"},
    {kAsksOccupancy,
     "OccupancyAvailableDynamicSMemPerBlock OccupancyMaxActiveBlocksPerMultiprocessor "
     "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags OccupancyMaxActiveClusters "
     "OccupancyMaxPotentialBlockSize OccupancyMaxPotentialBlockSizeWithFlags "
     "OccupancyMaxPotentialClusterSize ModuleOccupancyMaxActiveBlocksPerMultiprocessor "
     "ModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags "
     "ModuleOccupancyMaxPotentialBlockSize ModuleOccupancyMaxPotentialBlockSizeWithFlags"},
    // None of these: questions, settings, building of graphs, callbacks.
    {0,
     "Array3DGetDescriptor ArrayGetDescriptor ArrayGetInfo ArrayGetMemoryRequirements "
     "ArrayGetPlane ArrayGetSparseProperties ChooseDevice ConfigureCall CreateChannelDesc "
     "CtxAttach CtxCreate CtxDestroy CtxDetach CtxDisablePeerAccess CtxEnablePeerAccess "
     "CtxFromGreenCtx CtxGetApiVersion CtxGetCacheConfig CtxGetCurrent CtxGetDevResource "
     "CtxGetDevice CtxGetExecAffinity CtxGetFlags CtxGetId CtxGetLimit CtxGetSharedMemConfig "
     "CtxGetStreamPriorityRange CtxPopCurrent CtxPushCurrent CtxResetPersistingL2Cache "
     "CtxSetCacheConfig CtxSetCurrent CtxSetFlags CtxSetLimit CtxSetSharedMemConfig "
     "DestroyExternalMemory DestroyExternalSemaphore DevResourceGenerateDesc "
     "DevSmResourceSplitByCount DeviceCanAccessPeer DeviceComputeCapability "
     "DeviceDisablePeerAccess DeviceEnablePeerAccess DeviceFlushGPUDirectRDMAWrites DeviceGet "
     "DeviceGetAttribute DeviceGetByPCIBusId DeviceGetCacheConfig DeviceGetCount "
     "DeviceGetDefaultMemPool DeviceGetDevResource DeviceGetExecAffinitySupport "
     "DeviceGetGraphMemAttribute DeviceGetHostAtomicCapabilities DeviceGetLimit DeviceGetLuid "
     "DeviceGetMemPool DeviceGetName DeviceGetP2PAtomicCapabilities DeviceGetP2PAttribute "
     "DeviceGetPCIBusId DeviceGetProperties DeviceGetSharedMemConfig "
     "DeviceGetStreamPriorityRange DeviceGetUuid DevicePrimaryCtxGetState "
     "DevicePrimaryCtxRelease DevicePrimaryCtxReset DevicePrimaryCtxRetain "
     "DevicePrimaryCtxSetFlags DeviceRegisterAsyncNotification DeviceReset "
     "DeviceSetCacheConfig DeviceSetGraphMemAttribute DeviceSetLimit DeviceSetMemPool "
     "DeviceSetSharedMemConfig DeviceTotalMem DeviceUnregisterAsyncNotification "
     "DriverGetGpuCodeIsaVersion DriverGetVersion EventCreate EventCreateWithFlags "
     "EventDestroy EventElapsedTime ExternalMemoryGetMappedBuffer FlushGPUDirectRDMAWrites "
     "FuncGetModule FuncGetName FuncGetParamInfo FuncIsLoaded FuncSetBlockShape "
     "FuncSetSharedSize GetChannelDesc GetDevice GetDeviceCount GetDeviceFlags "
     "GetDeviceProperties GetDriverEntryPoint GetDriverEntryPointByVersion GetErrorName "
     "GetErrorString GetExportTable GetKernel GetLastError GetProcAddress GetSymbolAddress "
     "GetSymbolSize GraphAddBatchMemOpNode GraphAddChildGraphNode GraphAddDependencies "
     "GraphAddEmptyNode GraphAddEventRecordNode GraphAddEventWaitNode "
     "GraphAddExternalSemaphoresSignalNode GraphAddExternalSemaphoresWaitNode GraphAddHostNode "
     "GraphAddKernelNode GraphAddMemAllocNode GraphAddMemFreeNode GraphAddMemcpyNode "
     "GraphAddMemcpyNode1D GraphAddMemcpyNodeFromSymbol GraphAddMemcpyNodeToSymbol "
     "GraphAddMemsetNode GraphAddNode GraphBatchMemOpNodeGetParams "
     "GraphBatchMemOpNodeSetParams GraphChildGraphNodeGetGraph GraphClone "
     "GraphConditionalHandleCreate GraphCreate GraphDebugDotPrint GraphDestroy "
     "GraphDestroyNode GraphEventRecordNodeGetEvent GraphEventRecordNodeSetEvent "
     "GraphEventWaitNodeGetEvent GraphEventWaitNodeSetEvent GraphExecBatchMemOpNodeSetParams "
     "GraphExecChildGraphNodeSetParams GraphExecDestroy GraphExecEventRecordNodeSetEvent "
     "GraphExecEventWaitNodeSetEvent GraphExecExternalSemaphoresSignalNodeSetParams "
     "GraphExecExternalSemaphoresWaitNodeSetParams GraphExecGetFlags "
     "GraphExecHostNodeSetParams GraphExecKernelNodeSetParams GraphExecMemcpyNodeSetParams "
     "GraphExecMemcpyNodeSetParams1D GraphExecMemcpyNodeSetParamsFromSymbol "
     "GraphExecMemcpyNodeSetParamsToSymbol GraphExecMemsetNodeSetParams GraphExecNodeSetParams "
     "GraphExecUpdate GraphExternalSemaphoresSignalNodeGetParams "
     "GraphExternalSemaphoresSignalNodeSetParams GraphExternalSemaphoresWaitNodeGetParams "
     "GraphExternalSemaphoresWaitNodeSetParams GraphGetEdges GraphGetNodes GraphGetRootNodes "
     "GraphHostNodeGetParams GraphHostNodeSetParams GraphInstantiate GraphInstantiateWithFlags "
     "GraphInstantiateWithParams GraphKernelNodeCopyAttributes GraphKernelNodeGetAttribute "
     "GraphKernelNodeGetParams GraphKernelNodeSetAttribute GraphKernelNodeSetParams "
     "GraphMemAllocNodeGetParams GraphMemFreeNodeGetParams GraphMemcpyNodeGetParams "
     "GraphMemcpyNodeSetParams GraphMemcpyNodeSetParams1D GraphMemcpyNodeSetParamsFromSymbol "
     "GraphMemcpyNodeSetParamsToSymbol GraphMemsetNodeGetParams GraphMemsetNodeSetParams "
     "GraphNodeFindInClone GraphNodeGetDependencies GraphNodeGetDependentNodes "
     "GraphNodeGetEnabled GraphNodeGetType GraphNodeSetEnabled GraphNodeSetParams "
     "GraphReleaseUserObject GraphRemoveDependencies GraphRetainUserObject GraphUpload "
     "GreenCtxCreate GreenCtxDestroy GreenCtxGetDevResource GreenCtxGetId GreenCtxStreamCreate "
     "HostGetDevicePointer HostGetFlags ImportExternalMemory ImportExternalSemaphore Init "
     "InitDevice IpcCloseMemHandle IpcGetEventHandle IpcGetMemHandle IpcOpenEventHandle "
     "IpcOpenMemHandle KernelGetLibrary KernelGetName KernelGetParamInfo LaunchHostFunc "
     "LibraryEnumerateKernels LibraryGetGlobal LibraryGetKernelCount LibraryGetManaged "
     "LibraryGetUnifiedFunction LibraryUnload LinkAddData LinkAddFile LinkComplete LinkCreate "
     "LinkDestroy MemAddressFree MemAddressReserve MemAdvise MemBatchDecompressAsync "
     "MemDiscardBatchAsync MemExportToShareableHandle MemGetAccess MemGetAddressRange "
     "MemGetAllocationGranularity MemGetAllocationPropertiesFromHandle MemGetDefaultMemPool "
     "MemGetHandleForAddressRange MemGetInfo MemGetMemPool MemHostGetDevicePointer "
     "MemHostGetFlags MemImportFromShareableHandle MemMapArrayAsync MemPeerGetDevicePointer "
     "MemPeerRegister MemPeerUnregister MemPoolCreate MemPoolDestroy MemPoolExportPointer "
     "MemPoolExportToShareableHandle MemPoolGetAccess MemPoolGetAttribute "
     "MemPoolImportFromShareableHandle MemPoolImportPointer MemPoolSetAccess "
     "MemPoolSetAttribute MemRangeGetAttribute MemRangeGetAttributes MemRetainAllocationHandle "
     "MemSetMemPool ModuleEnumerateFunctions ModuleGetFunctionCount ModuleGetGlobal "
     "ModuleGetLoadingMode ModuleUnload MulticastAddDevice MulticastBindAddr MulticastBindMem "
     "MulticastCreate MulticastGetGranularity MulticastUnbind PeekAtLastError "
     "PeerGetDevicePointer PeerRegister PeerUnregister PointerGetAttribute "
     "PointerGetAttributes PointerSetAttribute ProfilerInitialize ProfilerStart ProfilerStop "
     "RuntimeGetVersion SetDevice SetDeviceFlags SetValidDevices SetupArgument "
     "SignalExternalSemaphoresAsync StreamAddCallback StreamAttachMemAsync "
     "StreamCopyAttributes StreamCreate StreamCreateForCaptureToCig StreamCreateWithFlags "
     "StreamCreateWithPriority StreamDestroy StreamGetAttribute StreamGetCaptureInfo "
     "StreamGetCtx StreamGetDevice StreamGetFlags StreamGetGreenCtx StreamGetId "
     "StreamGetPriority StreamIsCapturing StreamSetAttribute StreamSetFlags "
     "StreamUpdateCaptureDependencies StreamWriteValue32 StreamWriteValue64 "
     "TensorMapEncodeIm2col TensorMapEncodeIm2colWide TensorMapEncodeTiled "
     "TensorMapReplaceAddress ThreadExchangeStreamCaptureMode ThreadExit ThreadGetCacheConfig "
     "ThreadGetLimit ThreadSetCacheConfig ThreadSetLimit UserObjectCreate UserObjectRelease "
     "UserObjectRetain ChooseDeviceR0000 ChooseDeviceR0600 DrvGetErrorName DrvGetErrorString "
     "ExtGetLastError ExtGetLinkTypeAndHopCount ExtStreamCreateWithCUMask ExtStreamGetCUMask "
     "GetDevicePropertiesR0000 GetDevicePropertiesR0600 GetStreamDeviceId KernelNameRef "
     "KernelNameRefByPtr MemPtrGetInfo "
     "PopCallConfiguration PushCallConfiguration"},
    // Level Zero.
    {kLaunchesKernel,
     "zeCommandListAppendLaunchCooperativeKernel zeCommandListAppendLaunchKernel "
     "zeCommandListAppendLaunchKernelIndirect zeCommandListAppendLaunchKernelWithArguments "
     "zeCommandListAppendLaunchKernelWithParameters "
     "zeCommandListAppendLaunchMultipleKernelsIndirect",
     ApiRuntime::kLevelZero},
    {kLaunchesKernel | kCopies | kSets,
     "zeCommandListImmediateAppendCommandListsExp zeCommandQueueExecuteCommandLists",
     ApiRuntime::kLevelZero},
    {kCopies,
     "zeCommandListAppendImageCopy zeCommandListAppendImageCopyFromMemory "
     "zeCommandListAppendImageCopyRegion zeCommandListAppendImageCopyToMemory "
     "zeCommandListAppendMemoryCopy zeCommandListAppendMemoryCopyFromContext "
     "zeCommandListAppendMemoryCopyRegion zeCommandListAppendMemoryPrefetch",
     ApiRuntime::kLevelZero},
    {kSets,
     "zeCommandListAppendMemoryFill",
     ApiRuntime::kLevelZero},
    {kBlocks,
     "zeCommandListHostSynchronize zeCommandQueueSynchronize zeEventHostSynchronize "
     "zeFenceHostSynchronize",
     ApiRuntime::kLevelZero},
    {kStreamWaits,
     "zeCommandListAppendBarrier zeCommandListAppendMemoryRangesBarrier "
     "zeCommandListAppendWaitOnEvents",
     ApiRuntime::kLevelZero},
    {kRecordsEvent,
     "zeCommandListAppendSignalEvent",
     ApiRuntime::kLevelZero},
    {kQueries,
     "zeEventQueryStatus zeFenceQueryStatus",
     ApiRuntime::kLevelZero},
    {kAllocates,
     "zeMemAllocDevice zeMemAllocHost zeMemAllocShared zePhysicalMemCreate zeVirtualMemMap",
     ApiRuntime::kLevelZero},
    {kFrees,
     "zeMemFree zeMemFreeExt zePhysicalMemDestroy zeVirtualMemUnmap",
     ApiRuntime::kLevelZero},
    {kLoadsCode,
     "zeModuleCreate zeModuleDynamicLink",
     ApiRuntime::kLevelZero},
    {0,
     "zeCommandListAppendEventReset zeCommandListAppendQueryKernelTimestamps "
     "zeCommandListAppendWriteGlobalTimestamp zeCommandListClose zeCommandListCreate "
     "zeCommandListCreateImmediate zeCommandListDestroy zeCommandListReset "
     "zeCommandQueueCreate zeCommandQueueDestroy zeContextCreate zeContextDestroy "
     "zeContextMakeMemoryResident zeDeviceGet zeDeviceGetGlobalTimestamps "
     "zeDeviceGetProperties zeDriverGet zeEventCreate zeEventDestroy zeEventHostReset "
     "zeEventHostSignal zeEventPoolCreate zeEventPoolDestroy zeEventQueryKernelTimestamp "
     "zeEventQueryTimestampsExp zeFenceCreate zeFenceDestroy zeFenceReset zeInit zeInitDrivers "
     "zeKernelCreate zeKernelDestroy zeKernelGetProperties zeKernelSetArgumentValue "
     "zeKernelSetGroupSize zeKernelSetIndirectAccess zeKernelSuggestGroupSize "
     "zeMemGetAddressRange zeMemGetAllocProperties zeModuleBuildLogDestroy zeModuleDestroy",
     ApiRuntime::kLevelZero},
    // Unified Runtime, and the Plugin Interface before it.
    {kLaunchesKernel,
     "piEnqueueKernelLaunch urEnqueueCooperativeKernelLaunchExp urEnqueueKernelLaunch "
     "urEnqueueKernelLaunchCustomExp urEnqueueKernelLaunchWithArgsExp",
     ApiRuntime::kSycl},
    {kLaunchesGraph,
     "urCommandBufferEnqueueExp urEnqueueCommandBufferExp",
     ApiRuntime::kSycl},
    {kCopies,
     "piextUSMEnqueueMemcpy piextUSMEnqueueMemcpy2D piextUSMEnqueuePrefetch "
     "urEnqueueDeviceGlobalVariableRead urEnqueueDeviceGlobalVariableWrite "
     "urEnqueueMemBufferCopy urEnqueueMemBufferCopyRect urEnqueueMemBufferRead "
     "urEnqueueMemBufferReadRect urEnqueueMemBufferWrite urEnqueueMemBufferWriteRect "
     "urEnqueueUSMMemcpy urEnqueueUSMMemcpy2D urEnqueueUSMPrefetch",
     ApiRuntime::kSycl},
    {kSets,
     "piextUSMEnqueueFill piextUSMEnqueueFill2D piextUSMEnqueueMemset piextUSMEnqueueMemset2D "
     "urEnqueueMemBufferFill urEnqueueUSMFill urEnqueueUSMFill2D",
     ApiRuntime::kSycl},
    {kBlocks,
     "piEventsWait piQueueFinish urEventWait urQueueFinish",
     ApiRuntime::kSycl},
    {kStreamWaits,
     "piEnqueueEventsWait piEnqueueEventsWaitWithBarrier urEnqueueEventsWait "
     "urEnqueueEventsWaitWithBarrier urEnqueueEventsWaitWithBarrierExt",
     ApiRuntime::kSycl},
    {kRecordsEvent,
     "urEnqueueTimestampRecordingExp",
     ApiRuntime::kSycl},
    {kQueries,
     "piEventGetInfo urEventGetInfo",
     ApiRuntime::kSycl},
    {kAllocates,
     "piextUSMDeviceAlloc piextUSMHostAlloc piextUSMSharedAlloc urMemBufferCreate "
     "urPhysicalMemCreate urUSMDeviceAlloc urUSMHostAlloc urUSMSharedAlloc urVirtualMemMap",
     ApiRuntime::kSycl},
    {kAllocates | kInStreamOrder,
     "urEnqueueUSMDeviceAllocExp urEnqueueUSMHostAllocExp urEnqueueUSMSharedAllocExp",
     ApiRuntime::kSycl},
    {kFrees,
     "piextUSMFree urMemRelease urPhysicalMemRelease urUSMFree urVirtualMemUnmap",
     ApiRuntime::kSycl},
    {kFrees | kInStreamOrder,
     "urEnqueueUSMFreeExp",
     ApiRuntime::kSycl},
    {kLoadsCode,
     "piProgramBuild piProgramLink urProgramBuild urProgramBuildExp urProgramLink "
     "urProgramLinkExp",
     ApiRuntime::kSycl},
    {0,
     "urAdapterGet urContextCreate urContextRelease urContextRetain urDeviceGet "
     "urDeviceGetInfo urEnqueueUSMAdvise urEventCreateWithNativeHandle urEventGetProfilingInfo "
     "urEventRelease urEventRetain urKernelCreate urKernelGetGroupInfo urKernelGetInfo "
     "urKernelRelease urKernelRetain urKernelSetArgLocal urKernelSetArgPointer "
     "urKernelSetArgValue urKernelSetExecInfo urPlatformGet urProgramCreateWithBinary "
     "urProgramCreateWithIL urProgramRelease urQueueCreate urQueueFlush urQueueGetInfo "
     "urQueueRelease urQueueRetain urUSMGetMemAllocInfo urUSMPoolCreate urVirtualMemReserve",
     ApiRuntime::kSycl},
    // CANN.
    {kLaunchesKernel,
     "aclopCompileAndExecute aclopExecuteV2 aclrtLaunchKernel",
     ApiRuntime::kCann},
    {kCopies | kBlocks,
     "aclrtMemcpy aclrtMemcpy2d",
     ApiRuntime::kCann},
    {kCopies,
     "aclrtMemcpy2dAsync aclrtMemcpyAsync",
     ApiRuntime::kCann},
    {kSets,
     "aclrtMemset aclrtMemsetAsync",
     ApiRuntime::kCann},
    {kBlocks | kWaitsForDevice,
     "aclrtSynchronizeDevice aclrtSynchronizeDeviceWithTimeout",
     ApiRuntime::kCann},
    {kBlocks,
     "aclrtSynchronizeEvent aclrtSynchronizeEventWithTimeout aclrtSynchronizeStream "
     "aclrtSynchronizeStreamWithTimeout",
     ApiRuntime::kCann},
    {kStreamWaits,
     "aclrtStreamWaitEvent",
     ApiRuntime::kCann},
    {kRecordsEvent,
     "aclrtRecordEvent",
     ApiRuntime::kCann},
    {kQueries,
     "aclrtQueryEventStatus aclrtStreamQuery",
     ApiRuntime::kCann},
    {kAllocates,
     "aclrtMalloc aclrtMallocAlign32 aclrtMallocHost aclrtMallocPhysical aclrtMapMem",
     ApiRuntime::kCann},
    {kFrees,
     "aclrtFree aclrtFreeHost aclrtFreePhysical aclrtUnmapMem",
     ApiRuntime::kCann},
    {0,
     "aclCreateDataBuffer aclCreateTensorDesc aclDestroyDataBuffer aclDestroyTensorDesc "
     "aclopCreateAttr aclopDestroyAttr aclrtCreateEvent aclrtCreateEventExWithFlag "
     "aclrtCreateEventWithFlag aclrtCreateStream aclrtDestroyEvent aclrtDestroyStream "
     "aclrtGetCurrentContext aclrtGetDevice aclrtSetCurrentContext aclrtSetDevice",
     ApiRuntime::kCann},
    // MTIA.
    {kCopies,
     "enqueueCommand memcpyDtoHAsync, enqueueCommand memcpyHtoDAsync",
     ApiRuntime::kMtia},
    {kBlocks,
     "synchronize, synchronizeStream",
     ApiRuntime::kMtia},
    {kStreamWaits,
     "enqueueCommand waitOnEvent",
     ApiRuntime::kMtia},
    {kRecordsEvent,
     "recordEvent",
     ApiRuntime::kMtia},};
// clang-format on

}  // namespace lanescope::api_call_rows
