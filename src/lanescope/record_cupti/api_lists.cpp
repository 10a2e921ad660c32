#include "lanescope/record_cupti/api_lists.h"

#include <algorithm>
#include <initializer_list>

namespace lanescope::record_cupti {
namespace {

// Numbers from cupti_runtime_cbid.h and cupti_driver_cbid.h; these lists only grow. Numbers and not
// names, so that a build with older headers knows the calls of a newer CUPTI. A call has several
// numbers for its versions and for per-thread default streams.
constexpr std::initializer_list<CUpti_CallbackId> kRuntime = {
    20,                  // cudaMalloc
    21,                  // cudaMallocPitch
    22,                  // cudaFree
    25,                  // cudaMallocHost
    26,                  // cudaFreeHost
    27,                  // cudaHostAlloc
    31,  215,            // cudaMemcpy
    32,  216,            // cudaMemcpy2D
    39,  223,            // cudaMemcpyToSymbol
    40,  224,            // cudaMemcpyFromSymbol
    41,  225,            // cudaMemcpyAsync
    44,  228,            // cudaMemcpy2DAsync
    47,  231,            // cudaMemcpyToSymbolAsync
    48,  232,            // cudaMemcpyFromSymbolAsync
    49,  233,            // cudaMemset
    50,  234,            // cudaMemset2D
    51,  235,            // cudaMemsetAsync
    52,  236,            // cudaMemset2DAsync
    131, 239,            // cudaStreamSynchronize
    135, 242,            // cudaEventRecord
    137,                 // cudaEventSynchronize
    142, 243,            // cudaMemset3D
    143, 244,            // cudaMemset3DAsync
    144, 245,            // cudaMemcpy3D
    145, 246,            // cudaMemcpy3DAsync
    147, 247,            // cudaStreamWaitEvent
    152,                 // cudaHostRegister
    153,                 // cudaHostUnregister
    160,                 // cudaMemcpyPeer
    161,                 // cudaMemcpyPeerAsync
    162, 249,            // cudaMemcpy3DPeer
    163, 250,            // cudaMemcpy3DPeerAsync
    165,                 // cudaDeviceSynchronize
    206,                 // cudaMallocManaged
    211, 214,            // cudaLaunchKernel
    252, 253, 449, 450,  // cudaMemPrefetchAsync
    269, 270,            // cudaLaunchCooperativeKernel
    272,                 // cudaLaunchCooperativeKernelMultiDevice
    284, 285,            // cudaLaunchHostFunc
    310, 443,            // cudaGraphInstantiate
    311, 312,            // cudaGraphLaunch
    315, 316,            // cudaStreamBeginCapture
    319, 320,            // cudaStreamEndCapture
    335,                 // cudaGraphExecUpdate
    348, 349,            // cudaGraphUpload
    370, 371,            // cudaEventRecordWithFlags
    373, 374,            // cudaMallocAsync
    375, 376,            // cudaFreeAsync
    391, 392,            // cudaMallocFromPoolAsync
    418,                 // cudaGraphInstantiateWithFlags
    430, 431,            // cudaLaunchKernelExC
    436, 437,            // cudaGraphInstantiateWithParams
    452, 453,            // cudaStreamBeginCaptureToGraph
    470,                 // cudaLibraryLoadData
    482, 483, 509, 510,  // cudaMemcpyBatchAsync
    484, 485, 511, 512,  // cudaMemcpy3DBatchAsync
    487, 488,            // cudaMemPrefetchBatchAsync
    505, 506,            // __cudaLaunchKernel
};
constexpr std::initializer_list<CUpti_CallbackId> kDriver = {
    17,  800,            // cuCtxSynchronize
    18,                  // cuModuleLoad
    19,                  // cuModuleLoadData
    20,                  // cuModuleLoadDataEx
    21,                  // cuModuleLoadFatBinary
    29,  243,            // cuMemAlloc
    31,  244,            // cuMemAllocPitch
    33,  245,            // cuMemFree
    37,  294,            // cuMemAllocHost
    38,                  // cuMemFreeHost
    39,  271,            // cuMemHostAlloc
    43,  276, 397,       // cuMemcpyHtoD
    45,  278, 398,       // cuMemcpyDtoH
    47,  280, 399,       // cuMemcpyDtoD
    49,  285, 400,       // cuMemcpyDtoA
    51,  284, 401,       // cuMemcpyAtoD
    53,  292, 402,       // cuMemcpyHtoA
    54,  282, 403,       // cuMemcpyAtoH
    55,  286, 404,       // cuMemcpyAtoA
    56,  287, 405,       // cuMemcpy2D
    57,  288, 406,       // cuMemcpy2DUnaligned
    58,  290, 407,       // cuMemcpy3D
    60,  277, 421,       // cuMemcpyHtoDAsync
    62,  279, 422,       // cuMemcpyDtoHAsync
    64,  281, 423,       // cuMemcpyDtoDAsync
    66,  293, 419,       // cuMemcpyHtoAAsync
    67,  283, 420,       // cuMemcpyAtoHAsync
    68,  289, 424,       // cuMemcpy2DAsync
    69,  291, 425,       // cuMemcpy3DAsync
    71,  249, 411,       // cuMemsetD8
    73,  250, 412,       // cuMemsetD16
    75,  251, 413,       // cuMemsetD32
    77,  252, 414,       // cuMemsetD2D8
    79,  253, 415,       // cuMemsetD2D16
    81,  254, 416,       // cuMemsetD2D32
    119, 441,            // cuEventRecord
    121,                 // cuEventSynchronize
    126, 440,            // cuStreamSynchronize
    216, 428,            // cuMemsetD8Async
    218, 429,            // cuMemsetD16Async
    220, 430,            // cuMemsetD32Async
    222, 431,            // cuMemsetD2D8Async
    224, 432,            // cuMemsetD2D16Async
    226, 433,            // cuMemsetD2D32Async
    248, 305, 408,       // cuMemcpy
    295, 436,            // cuStreamWaitEvent
    301, 379,            // cuMemHostRegister
    302,                 // cuMemHostUnregister
    306, 418,            // cuMemcpyAsync
    307, 442,            // cuLaunchKernel
    318, 409,            // cuMemcpyPeer
    319, 426,            // cuMemcpyPeerAsync
    320, 410,            // cuMemcpy3DPeer
    321, 427,            // cuMemcpy3DPeerAsync
    371,                 // cuMemAllocManaged
    467, 468, 716, 717,  // cuMemPrefetchAsync
    477, 478,            // cuLaunchCooperativeKernel
    480,                 // cuLaunchCooperativeKernelMultiDevice
    495, 496, 539, 540,  // cuStreamBeginCapture
    497, 498,            // cuStreamEndCapture
    513, 578,            // cuGraphInstantiate
    514, 515,            // cuGraphLaunch
    527, 528,            // cuLaunchHostFunc
    549,                 // cuMemCreate
    550,                 // cuMemRelease
    551,                 // cuMemMap
    552,                 // cuMemUnmap
    561, 696,            // cuGraphExecUpdate
    580, 581,            // cuGraphUpload
    587, 588,            // cuEventRecordWithFlags
    598, 599,            // cuMemAllocAsync
    600, 601,            // cuMemFreeAsync
    611, 612,            // cuMemAllocFromPoolAsync
    643,                 // cuGraphInstantiateWithFlags
    652, 653,            // cuLaunchKernelEx
    656, 657,            // cuGraphInstantiateWithParams
    678,                 // cuLibraryLoadData
    679,                 // cuLibraryLoadFromFile
    720, 721,            // cuStreamBeginCaptureToGraph
    776, 777, 796, 797,  // cuMemcpyBatchAsync
    778, 779, 798, 799,  // cuMemcpy3DBatchAsync
};

std::vector<bool> marked(std::initializer_list<CUpti_CallbackId> list) {
  std::vector<bool> wanted(*std::max_element(list.begin(), list.end()) + 1);
  for (const CUpti_CallbackId cbid : list) wanted[cbid] = true;
  return wanted;
}

}  // namespace

ApiFilter default_api_calls() { return {false, marked(kRuntime), marked(kDriver)}; }

}  // namespace lanescope::record_cupti
