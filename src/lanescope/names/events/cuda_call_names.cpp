// Calls of the CUDA runtime (cuda...), of AMD's HIP (hip...), which has the same calls with other
// names, and of the CUDA driver (cu...). Sources: NVIDIA's and AMD's reference manuals; the cost of
// calls in recorded traces. "_ptsz" and "_ptds" (per-thread default streams) and versions at the
// end of a name are ignored.
#include <algorithm>
#include <iterator>

#include "lanescope/model/api_calls.h"
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

constexpr unsigned kCuda = 1, kHip = 2, kDriver = 4;

// Sentences that many calls share.
constexpr std::string_view kNo = "no", kNone = "none";
constexpr std::string_view kLaunchWaits =
    "no, unless the queue is full (about a thousand launches) or the kernel's code must be loaded "
    "first";
constexpr std::string_view kLaunchNote =
    "A few microseconds each are normal, and a busy GPU hides them. Very long ones once: "
    "loading code; many at once while the GPU is busy: the queue is full.";
constexpr std::string_view kCopyWaits =
    "sometimes: with memory that is not page-locked it may wait for the copy; else no";
constexpr std::string_view kAllocNote =
    "Normal in the first step, until torch's cache is filled; later it means that no cached block "
    "fits.";

struct Call {
  std::string_view stem;
  unsigned prefixes;
  std::string_view text, what;
  std::string_view cpu_waits = {}, gpu_work = {}, note = {}, rule = {};
};

constexpr Call kCalls[] = {
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

    // Memory.
    {"Malloc", kCuda | kHip, "GPU memory taken", "Asks the driver for GPU memory.",
     "sometimes: the driver may wait for the GPU", kNone, kAllocNote, "allocator-calls"},
    {"MallocAsync", kCuda | kHip, "GPU memory taken in stream order",
     "Takes GPU memory from a pool, in the order of a stream.", kNo, kNone},
    {"MemAlloc", kDriver, "GPU memory taken", "Asks the driver for GPU memory.",
     "sometimes: the driver may wait for the GPU", kNone, kAllocNote, "allocator-calls"},
    {"Free", kCuda | kHip, "GPU memory given back", "Gives GPU memory back to the driver.",
     "yes: until the GPU has done the work queued before", kNone,
     "In steady steps: torch's cache was emptied because memory ran short, or by "
     "torch.cuda.empty_cache(). Libraries also call it once, with nothing, to start up.",
     "allocator-calls"},
    {"FreeAsync", kCuda | kHip, "GPU memory given back in stream order",
     "Gives GPU memory back to a pool, in the order of a stream.", kNo, kNone},
    {"MemFree",
     kDriver,
     "GPU memory given back",
     "Gives GPU memory back to the driver.",
     "yes: until the GPU has done the work queued before",
     kNone,
     {},
     "allocator-calls"},
    {"HostAlloc",
     kCuda,
     "page-locked CPU memory taken",
     "Takes CPU memory that the GPU can read and write directly.",
     {},
     kNone,
     "Slow, because pages are locked one by one; torch keeps what it took.",
     "allocator-calls"},
    {"MallocHost",
     kCuda,
     "page-locked CPU memory taken",
     "Takes CPU memory that the GPU can read and write directly.",
     {},
     kNone,
     "Slow, because pages are locked one by one.",
     "allocator-calls"},
    {"HostMalloc",
     kHip,
     "page-locked CPU memory taken",
     "Takes CPU memory that the GPU can read and write directly.",
     {},
     kNone,
     "Slow, because pages are locked one by one; torch keeps what it took.",
     "allocator-calls"},
    {"FreeHost",
     kCuda,
     "page-locked CPU memory given back",
     "Gives page-locked CPU memory back.",
     {},
     kNone},
    {"HostFree",
     kHip,
     "page-locked CPU memory given back",
     "Gives page-locked CPU memory back.",
     {},
     kNone},
    {"HostRegister",
     kCuda | kHip,
     "CPU memory page-locked",
     "Locks CPU memory that is already there, so that the GPU can use it directly.",
     {},
     kNone,
     "Slow, because pages are locked one by one."},
    {"HostGetDevicePointer", kCuda | kHip, "GPU's address of CPU memory",
     "Asks under which address the GPU sees page-locked CPU memory.", kNo, kNone},
    {"MemGetInfo", kCuda | kHip | kDriver, "free GPU memory asked for",
     "Asks how much GPU memory is free.", kNo, kNone},
    {"MemCreate",
     kDriver,
     "GPU memory taken, without an address",
     "Takes GPU memory that cuMemMap then gives an address: torch's expandable segments, NCCL.",
     {},
     kNone,
     kAllocNote,
     "allocator-calls"},
    {"MemMap",
     kDriver,
     "GPU memory given an address",
     "Maps GPU memory of cuMemCreate to addresses: torch's expandable segments, NCCL.",
     {},
     kNone,
     kAllocNote,
     "allocator-calls"},
    {"MemSetAccess",
     kDriver,
     "access to mapped memory set",
     "Says which GPUs may use memory that was mapped.",
     {},
     kNone},
    {"MemUnmap",
     kDriver,
     "address of GPU memory taken back",
     "Takes addresses back that cuMemMap gave.",
     {},
     kNone,
     {},
     "allocator-calls"},
    {"MemRelease",
     kDriver,
     "GPU memory of cuMemCreate given back",
     "Gives GPU memory of cuMemCreate back.",
     {},
     kNone},
    {"MemAddressReserve",
     kDriver,
     "addresses reserved",
     "Reserves addresses for GPU memory that is mapped later.",
     {},
     kNone},
    {"PointerGetAttributes", kCuda | kHip, "what a pointer points to",
     "Asks whether an address is CPU or GPU memory, and whose.", kNo, kNone},
    {"PointerGetAttribute", kHip | kDriver, "what a pointer points to",
     "Asks one fact about an address.", kNo, kNone},

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

    // Streams and devices.
    {"StreamCreateWithPriority",
     kCuda | kHip | kDriver,
     "stream made",
     "Makes a stream, a queue of work for the GPU, with a priority.",
     {},
     kNone},
    {"StreamCreateWithFlags",
     kCuda | kHip,
     "stream made",
     "Makes a stream, a queue of work for the GPU.",
     {},
     kNone},
    {"StreamCreate",
     kCuda | kHip | kDriver,
     "stream made",
     "Makes a stream, a queue of work for the GPU.",
     {},
     kNone},
    {"StreamGetPriority", kCuda | kHip | kDriver, "priority of a stream",
     "Asks for a stream's priority.", kNo, kNone, "Only a question; usually about a microsecond."},
    {"StreamGetDevice", kCuda | kHip | kDriver, "GPU of a stream",
     "Asks which GPU a stream belongs to.", kNo, kNone},
    {"StreamQuery", kCuda | kHip | kDriver, "is a stream empty?",
     "Asks whether a stream's work is done, and returns at once.", kNo, kNone},
    {"DeviceGetStreamPriorityRange", kCuda | kHip, "which priorities there are",
     "Asks which priorities streams can have.", kNo, kNone,
     "Only a question; usually about a microsecond."},
    {"DeviceGetAttribute", kCuda | kHip | kDriver, "a fact about the GPU",
     "Asks one fact about the GPU, such as how many multiprocessors it has.", kNo, kNone,
     "Libraries ask before they choose a kernel."},
    {"GetDeviceProperties", kCuda | kHip, "all facts about the GPU",
     "Asks for everything that is known of a GPU.", kNo, kNone},
    {"GetDevicePropertiesR0600", kHip, "all facts about the GPU",
     "Asks for everything that is known of a GPU.", kNo, kNone,
     "Traces of AMD GPUs have many of them; it is a question, not a wait."},
    {"GetDeviceCount", kCuda | kHip, "how many GPUs there are", "Asks how many GPUs there are.",
     kNo, kNone, "The first call starts CUDA up."},
    {"GetDevice", kCuda | kHip, "which GPU is in use", "Asks which GPU this thread uses.", kNo,
     kNone},
    {"SetDevice",
     kCuda | kHip,
     "GPU chosen",
     "Chooses the GPU that this thread uses.",
     {},
     kNone,
     "The first call for a GPU may start CUDA up there."},
    {"DeviceCanAccessPeer", kCuda | kHip | kDriver, "can one GPU reach another?",
     "Asks whether a GPU can read another one's memory.", kNo, kNone},
    {"DriverGetVersion", kCuda | kHip | kDriver, "version of the driver",
     "Asks for the driver's version.", kNo, kNone},
    {"RuntimeGetVersion", kCuda | kHip, "version of the runtime", "Asks for the runtime's version.",
     kNo, kNone},
    {"Init",
     kHip | kDriver,
     "start of the driver",
     "Starts the driver up.",
     {},
     kNone,
     "Once a process."},
    {"CtxGetCurrent", kDriver, "current context asked for", "Asks which context this thread uses.",
     kNo, kNone},
    {"CtxSetCurrent", kDriver, "context chosen", "Chooses the context that this thread uses.", kNo,
     kNone},
    {"GetProcAddress", kDriver, "address of a driver call",
     "Looks up a call of the driver by its name.", kNo, kNone},
    {"GetDriverEntryPoint", kCuda, "address of a driver call",
     "Looks up a call of the driver by its name.", kNo, kNone},
    {"GetDriverEntryPointByVersion", kCuda, "address of a driver call",
     "Looks up a call of the driver by its name.", kNo, kNone},

    // Kernels' code.
    {"FuncSetAttribute", kCuda | kHip | kDriver, "a setting of a kernel",
     "Sets something about a kernel before its launch, mostly how much shared memory it may use.",
     kNo, kNone, "If it is the first mention of the kernel, the driver may load its code here.",
     "lazy-loading"},
    {"FuncGetAttributes", kCuda | kHip, "facts about a kernel",
     "Asks about a kernel: registers, shared memory, threads.", kNo, kNone,
     "Long once: if it is the first mention of the kernel, the driver loads its code here.",
     "lazy-loading"},
    {"FuncGetAttribute", kHip | kDriver, "a fact about a kernel", "Asks one fact about a kernel.",
     kNo, kNone},
    {"GetFuncBySymbol", kCuda | kHip, "handle of a kernel",
     "Gives the driver's handle of a kernel of the runtime.", kNo, kNone,
     "Long once: the driver may load the kernel's code here.", "lazy-loading"},
    {"GetSymbolAddress",
     kCuda | kHip,
     "address of a variable on the GPU",
     "Asks where a variable of the program is in GPU memory.",
     {},
     kNone},
    {"ModuleLoadData",
     kHip | kDriver,
     "code loaded to the GPU",
     "Loads a module with kernels' code.",
     {},
     kNone,
     "Once a module; Triton and libraries load their kernels so.",
     "lazy-loading"},
    {"ModuleLoadDataEx",
     kHip | kDriver,
     "code loaded to the GPU",
     "Loads a module with kernels' code, compiling it first if need be.",
     {},
     kNone,
     "Once a module.",
     "lazy-loading"},
    {"ModuleGetFunction",
     kHip | kDriver,
     "handle of a kernel",
     "Looks a kernel up in a module.",
     {},
     kNone,
     {},
     "lazy-loading"},
    {"ModuleUnload", kHip | kDriver, "code unloaded", "Unloads a module.", {}, kNone},
    {"LibraryLoadData",
     kCuda | kDriver,
     "code loaded to the GPU",
     "Loads a library of kernels' code.",
     {},
     kNone,
     "Once a library.",
     "lazy-loading"},
    {"LibraryGetKernel",
     kCuda | kDriver,
     "handle of a kernel",
     "Looks a kernel up in a loaded library.",
     {},
     kNone},
    {"KernelGetFunction",
     kDriver,
     "handle of a kernel",
     "Gives the handle of a kernel of a library in this context.",
     {},
     kNone,
     "If it is the first mention of the kernel, the driver may load its code here.",
     "lazy-loading"},
    {"OccupancyMaxActiveBlocksPerMultiprocessor", kCuda | kHip | kDriver,
     "how many blocks of a kernel fit",
     "Works out how many blocks of a kernel fit on a multiprocessor; libraries ask before they "
     "choose a launch.",
     "no: it is arithmetic in the driver", kNone,
     "Harmless before launches of matrix products and convolutions.", "occupancy-query"},
    {"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", kCuda | kHip | kDriver,
     "how many blocks of a kernel fit",
     "Works out how many blocks of a kernel fit on a multiprocessor; libraries ask before they "
     "choose a launch.",
     "no: it is arithmetic in the driver", kNone,
     "Harmless before launches of matrix products and convolutions.", "occupancy-query"},
    {"OccupancyMaxActiveClusters",
     kCuda | kDriver,
     "how many clusters of a kernel fit",
     "Works out how many clusters of blocks of a kernel fit on the GPU.",
     "no: it is arithmetic in the driver",
     kNone,
     {},
     "occupancy-query"},
    {"OccupancyAvailableDynamicSMemPerBlock", kCuda | kDriver,
     "how much shared memory is left a block",
     "Works out how much shared memory each block can have.", "no: it is arithmetic in the driver",
     kNone},
    {"TensorMapEncodeTiled", kDriver, "plan of a bulk copy",
     "Describes a tensor for the copy unit of Hopper and later GPUs (TMA).", kNo, kNone},

    // Errors.
    {"GetLastError", kCuda | kHip, "errors asked for",
     "Asks whether an earlier call failed, and forgets it.", kNo, kNone},
    {"PeekAtLastError", kCuda | kHip, "errors asked for", "Asks whether an earlier call failed.",
     kNo, kNone, "Libraries may ask after each launch; it costs next to nothing."},
    {"GetErrorString", kCuda | kHip | kDriver, "text of an error",
     "Gives the text of an error number, also of \"no error\".", kNo, kNone,
     "Does not mean that something failed: some libraries fetch the text after each call."},
    {"GetErrorName", kCuda | kHip | kDriver, "name of an error",
     "Gives the name of an error number, also of \"no error\".", kNo, kNone},
    {"ProfilerStart",
     kCuda | kDriver,
     "profiler switched on",
     "Tells an attached profiler to begin.",
     {},
     kNone},
    {"ProfilerStop",
     kCuda | kDriver,
     "profiler switched off",
     "Tells an attached profiler to end.",
     {},
     kNone},
};

// What the first words of a call mean, if it has no row; longer words first.
struct Topic {
  std::string_view words, about;
};
constexpr Topic kTopics[] = {
    {"Graph", "CUDA graphs"},
    {"Stream", "streams, the queues of the GPU"},
    {"Event", "events, marks in a stream"},
    {"Memcpy", "copies"},
    {"Memset", "filling memory"},
    {"Mem", "memory"},
    {"Malloc", "memory"},
    {"Free", "memory"},
    {"Host", "memory of the CPU that the GPU uses"},
    {"Array", "memory for images"},
    {"Func", "kernels"},
    {"Launch", "starting work"},
    {"Kernel", "kernels"},
    {"ModuleLaunch", "starting work"},
    {"ModuleOccupancy", "how many blocks fit"},
    {"Module", "loading code"},
    {"Library", "loading code"},
    {"Link", "loading code"},
    {"Occupancy", "how many blocks fit"},
    {"DevicePrimaryCtx", "contexts"},
    {"Device", "the GPU itself"},
    {"Driver", "the driver"},
    {"Runtime", "the runtime"},
    {"Ctx", "contexts"},
    {"Ipc", "memory shared by processes"},
    {"Pointer", "what addresses point to"},
    {"Tex", "textures"},
    {"Surf", "surfaces"},
    {"Multicast", "memory of several GPUs"},
    {"GreenCtx", "contexts with a part of the GPU"},
    {"Import", "memory and marks of other programs"},
    {"Profiler", "an attached profiler"},
};

struct Api {
  ApiRuntime runtime;
  unsigned bit;
  EventKind kind;
  std::string_view whose;
};
constexpr Api kApis[] = {
    {ApiRuntime::kCudaRuntime, kCuda, EventKind::kRuntimeCall, "the CUDA runtime"},
    {ApiRuntime::kHip, kHip, EventKind::kRuntimeCall,
     "HIP, AMD's counterpart of the CUDA runtime,"},
    {ApiRuntime::kCudaDriver, kDriver, EventKind::kDriverCall, "the CUDA driver"},
};

}  // namespace

bool read_cuda_call_name(std::string_view name, EventName& out) {
  if (name.size() > 96 || !is_identifier(name)) return false;
  const auto [runtime, stem] = split_api_name(name);
  for (const Api& api : kApis) {
    if (api.runtime != runtime) continue;
    const auto* call = std::find_if(std::begin(kCalls), std::end(kCalls), [&](const Call& row) {
      return row.stem == stem && (row.prefixes & api.bit) != 0;
    });
    if (call != std::end(kCalls)) {
      fill(only_waits(name) ? EventKind::kSynchronisation : api.kind,
           {name, call->text, call->what, call->cpu_waits, call->gpu_work, call->note, call->rule},
           out);
      return true;
    }
    const auto* topic = std::find_if(std::begin(kTopics), std::end(kTopics), [&](const Topic& row) {
      // "MemPool..." but not "Memory...": a word ends where the next one begins.
      return stem.starts_with(row.words) &&
             (stem.size() == row.words.size() || stem[row.words.size()] < 'a' ||
              stem[row.words.size()] > 'z');
    });
    if (topic == std::end(kTopics)) return false;
    out.kind = api.kind;
    out.text = std::string("call about ").append(topic->about);
    out.what = std::string("A call of ")
                   .append(api.whose)
                   .append(" about ")
                   .append(topic->about)
                   .append(".");
    return true;
  }
  return false;
}

}  // namespace lanescope::names::events
