// Calls that start or order work on the GPU: launches, graphs, waits, events, copies.
#include "lanescope/names/events/cuda_call_rows.h"

namespace lanescope::names::events::cuda_calls {
namespace {

constexpr std::string_view kLaunchWaits =
    "no, unless the queue is full (about a thousand launches) or the kernel's code must be loaded "
    "first";
constexpr std::string_view kLaunchNote =
    "A few microseconds each are normal, and a busy GPU hides them. Very long ones once: "
    "loading code; many at once while the GPU is busy: the queue is full.";
constexpr std::string_view kCopyWaits =
    "sometimes: with memory that is not page-locked it may wait for the copy; else no";

constexpr Row kWorkCalls[] = {
    // Launches.
    {"LaunchKernel", kCuda | kHip | kDriver, "kernel launch",
     "Puts a kernel into a stream's queue and returns; the GPU runs it when its turn comes.",
     kLaunchWaits, "one kernel", kLaunchNote, "slow-launches"},
    {"LaunchKernelExC", kCuda | kHip, "kernel launch with attributes",
     "Puts a kernel with attributes (such as clusters of blocks) into a stream's queue and "
     "returns.",
     kLaunchWaits, "one kernel", kLaunchNote, "slow-launches"},
    {"LaunchKernelEx", kDriver, "kernel launch with attributes",
     "Puts a kernel with attributes (such as clusters of blocks) into a stream's queue and "
     "returns; libraries and Triton launch so.",
     kLaunchWaits, "one kernel", kLaunchNote, "slow-launches"},
    {"LaunchCooperativeKernel", kCuda | kHip | kDriver,
     "kernel launch, blocks that wait for each other",
     "Launches a kernel whose blocks may wait for each other, so that all of them must fit on the "
     "GPU at once.",
     kLaunchWaits, "one kernel", kLaunchNote, "slow-launches"},
    {"ModuleLaunchKernel", kHip, "kernel launch",
     "Launches a kernel of a loaded module; HIP's form of cuLaunchKernel.", kLaunchWaits,
     "one kernel", kLaunchNote, "slow-launches"},
    {"ExtModuleLaunchKernel", kHip, "kernel launch",
     "Launches a kernel of a loaded module; AMD's libraries launch so.", kLaunchWaits, "one kernel",
     kLaunchNote, "slow-launches"},
    {"ExtLaunchKernel", kHip, "kernel launch", "Launches a kernel; HIP's extended form.",
     kLaunchWaits, "one kernel", kLaunchNote, "slow-launches"},
    {"GraphLaunch", kCuda | kHip | kDriver, "launch of a whole graph",
     "Starts a recorded CUDA graph: all its kernels and copies with one call.", kLaunchWaits,
     "everything that the graph holds",
     "One call instead of hundreds; what is left between graphs is worth a look.", "graph-gaps"},

    {"LaunchHostFunc", kCuda | kHip | kDriver, "CPU function put into a stream",
     "Puts a function of the CPU into a stream's queue; a thread of the driver runs it when its "
     "turn comes.",
     kNo, "none, but later work of that stream waits for the function"},

    // Waits.
    {"DeviceSynchronize", kCuda | kHip, "wait for the whole GPU",
     "Waits until everything that was queued on the GPU, on all streams, is done.",
     "yes: until the GPU has nothing left to do", kNone,
     "Its length is the GPU's remaining work, not its own cost. Once at the end is normal, also "
     "for the profiler; in the middle of steps docs/rules/host-sync.md is about it.",
     "final-sync"},
    {"CtxSynchronize", kDriver, "wait for the whole GPU",
     "Waits until everything that was queued in this context is done.",
     "yes: until the GPU has nothing left to do", kNone,
     "Its length is the GPU's remaining work, not its own cost.", "host-sync"},
    {"StreamSynchronize", kCuda | kHip | kDriver, "wait for a stream",
     "Waits until everything that was queued on one stream is done.",
     "yes: until the stream is empty", kNone,
     "Under .item(), .to(\"cpu\") or a mask as an index: the program asked for a value. Its length "
     "is the GPU's remaining work.",
     "host-sync"},
    {"EventSynchronize", kCuda | kHip | kDriver, "wait for an event",
     "Waits until the GPU has reached a mark in a stream.", "yes: until the mark is reached", kNone,
     "", "host-sync"},
    {"StreamWaitEvent", kCuda | kHip | kDriver, "a stream waits for another",
     "Makes a stream wait for a mark in another one; the GPU waits, not the CPU.", kNo,
     "none: later work of that stream begins after the mark"},

    // Events.
    {"EventRecord", kCuda | kHip | kDriver, "mark put into a stream",
     "Puts a mark into a stream; others can wait for it or ask for its time.", kNo,
     "a mark, no kernel",
     "torch records them for waits between streams, for timing, and to know when shared memory is "
     "free."},
    {"EventRecordWithFlags", kCuda | kHip | kDriver, "mark put into a stream",
     "Puts a mark into a stream, with flags.", kNo, "a mark, no kernel"},
    {"EventQuery", kCuda | kHip | kDriver, "has a mark been reached?",
     "Asks whether the GPU has reached a mark, and returns at once.", kNo, kNone,
     "By the thousand: torch's allocator asks whether memory used on another stream is free, or "
     "the watchdog thread of torch.distributed asks whether collectives are done."},
    {"EventCreate", kCuda | kHip | kDriver, "event made", "Makes an event, a mark for later.", kNo,
     kNone},
    {"EventCreateWithFlags", kCuda | kHip, "event made",
     "Makes an event, a mark for later, with flags.", kNo, kNone},
    {"EventDestroy", kCuda | kHip | kDriver, "event given back", "Gives an event back.", kNo,
     kNone},
    {"EventElapsedTime", kCuda | kHip | kDriver, "time between two marks",
     "Tells the GPU's time between two marks that were reached.", kNo, kNone},

    // Copies and memsets.
    {"MemcpyAsync", kCuda | kHip | kDriver, "copy put into a stream",
     "Puts a copy into a stream's queue: between CPU and GPU, or on the GPU.", kCopyWaits,
     "one copy",
     "A wait mostly follows a copy to the CPU. From plain CPU memory the driver must stage "
     "the data first: pinned memory avoids that.",
     "pageable-copy"},
    {"Memcpy", kCuda | kHip | kDriver, "copy", "Copies memory between CPU and GPU, or on the GPU.",
     "yes, when CPU memory takes part: until the data is out of the way", "one copy", "",
     "exposed-copy"},
    {"MemcpyWithStream", kHip, "copy that waits",
     "HIP: puts a copy into a stream and waits until it is done.", "yes: until the copy is done",
     "one copy", "", "exposed-copy"},
    {"MemcpyPeerAsync", kCuda | kHip | kDriver, "copy to another GPU",
     "Puts a copy from one GPU to another into a stream's queue.", kNo, "one copy"},
    {"Memcpy2DAsync", kCuda | kHip | kDriver, "copy of rows put into a stream",
     "Puts a copy of a rectangle of memory into a stream's queue.", kCopyWaits, "one copy"},
    {"MemcpyHtoDAsync", kHip | kDriver, "copy to the GPU",
     "Puts a copy from the CPU to the GPU into a stream's queue.", kCopyWaits, "one copy"},
    {"MemcpyDtoHAsync", kHip | kDriver, "copy to the CPU",
     "Puts a copy from the GPU to the CPU into a stream's queue.", kCopyWaits, "one copy"},
    {"MemcpyDtoDAsync", kHip | kDriver, "copy on the GPU",
     "Puts a copy within the GPU's memory into a stream's queue.", kNo, "one copy"},
    {"MemcpyHtoD", kHip | kDriver, "copy to the GPU", "Copies from the CPU to the GPU.",
     "yes: until the data is out of the way", "one copy"},
    {"MemcpyDtoH", kHip | kDriver, "copy to the CPU", "Copies from the GPU to the CPU.",
     "yes: until the data has arrived", "one copy", "", "host-sync"},
    {"MemsetAsync", kCuda | kHip, "memset put into a stream",
     "Puts the filling of memory with one byte value into a stream's queue.", kNo, "one memset",
     "Next to matrix products it is the library clearing its own workspace."},
    {"Memset", kCuda | kHip, "memset", "Fills GPU memory with one byte value.", {}, "one memset"},
    {"MemsetD8Async", kHip | kDriver, "memset put into a stream",
     "Puts the filling of memory with one value into a stream's queue.", kNo, "one memset"},
    {"MemsetD32Async", kHip | kDriver, "memset put into a stream",
     "Puts the filling of memory with one value into a stream's queue.", kNo, "one memset"},

    // Capturing.
    {"StreamIsCapturing", kCuda | kHip | kDriver, "is a graph being recorded?",
     "Asks whether a stream is being recorded into a CUDA graph, and returns at once.", kNo, kNone,
     "torch and libraries ask before some launches and allocations, because not everything is "
     "allowed while recording. Mostly less than a microsecond each; that they ask does not mean "
     "that CUDA graphs are used."},
    {"StreamGetCaptureInfo", kCuda | kHip | kDriver, "is a graph being recorded, and which?",
     "Asks whether a stream is being recorded into a CUDA graph, and into which.", kNo, kNone},
    {"ThreadExchangeStreamCaptureMode", kCuda | kHip | kDriver,
     "rules while recording a graph changed",
     "Changes what this thread may do while a CUDA graph is recorded; torch puts it around its "
     "allocations and queries.",
     kNo, kNone, "It comes in pairs and costs next to nothing; no graph need be recorded."},
    {"StreamBeginCapture", kCuda | kHip | kDriver, "recording of a graph begins",
     "From here on work for this stream is recorded into a CUDA graph and not run.", kNo, kNone},
    {"StreamEndCapture", kCuda | kHip | kDriver, "recording of a graph ends",
     "Ends the recording and hands out the CUDA graph.", kNo, kNone},
    {"GraphInstantiate", kCuda | kHip | kDriver, "graph made ready",
     "Makes a recorded CUDA graph ready to be launched.", kNo, kNone,
     "It may take long; once a graph."},
    {"GraphInstantiateWithFlags", kCuda | kHip | kDriver, "graph made ready",
     "Makes a recorded CUDA graph ready to be launched.", kNo, kNone,
     "It may take long; once a graph."},
    {"GraphDestroy",
     kCuda | kHip | kDriver,
     "graph given back",
     "Gives a CUDA graph back.",
     {},
     kNone},
    {"GraphExecDestroy",
     kCuda | kHip | kDriver,
     "graph given back",
     "Gives a CUDA graph that was ready to launch back.",
     {},
     kNone},

};

}  // namespace

std::span<const Row> work_calls() { return kWorkCalls; }

}  // namespace lanescope::names::events::cuda_calls
