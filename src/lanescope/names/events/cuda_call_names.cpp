// Calls of the CUDA runtime (cuda...), of AMD's HIP (hip...), which has the same calls with other
// names, and of the CUDA driver (cu...). Sources: NVIDIA's and AMD's reference manuals; the cost of
// calls in recorded traces. "_ptsz" and "_ptds" (per-thread default streams) and versions at the
// end of a name are ignored.
#include <algorithm>
#include <iterator>

#include "lanescope/model/api_calls.h"
#include "lanescope/names/events/cuda_call_rows.h"
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

using cuda_calls::kCuda;
using cuda_calls::kDriver;
using cuda_calls::kHip;

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

// `api`: the bit of one API. Null: the table does not have the call.
const cuda_calls::Row* find_row(std::string_view stem, unsigned api) {
  for (const auto rows :
       {cuda_calls::work_calls(), cuda_calls::memory_calls(), cuda_calls::state_calls()})
    for (const cuda_calls::Row& row : rows)
      if (row.stem == stem && (row.prefixes & api) != 0) return &row;
  return nullptr;
}

}  // namespace

bool read_cuda_call_name(std::string_view name, EventName& out) {
  if (name.size() > 96 || !is_identifier(name)) return false;
  const auto [runtime, stem] = split_api_name(name);
  for (const Api& api : kApis) {
    if (api.runtime != runtime) continue;
    if (const cuda_calls::Row* call = find_row(stem, api.bit)) {
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
