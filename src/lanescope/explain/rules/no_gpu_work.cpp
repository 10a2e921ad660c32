// The program used a GPU, but the recording holds nothing that the GPU did.
#include <algorithm>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr Need kUsedGpu = {used_gpu,
                           "calls to a GPU or records of its memory: without them the trace does "
                           "not show whether the program used one"};

struct UnrecordedGpu {
  std::uint64_t launches = 0;
  std::uint64_t records = 0;
  SliceId first = kNone<SliceId>;
};

UnrecordedGpu measure_no_gpu_work(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::uint64_t launches = 0, records = 0;
  SliceId first = kNone<SliceId>;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!trace.api_call(id).does(api_effect::kStartsKernels)) continue;
    ++launches;
    if (first == kNone<SliceId> || trace.start_ns(id) < trace.start_ns(first)) first = id;
  }
  for (const auto& device : facts.memory.devices)
    if (device.is_accelerator()) records += device.samples.size();
  return UnrecordedGpu{launches, records, first};
}

Finding tell_no_gpu_work(const Facts& facts, const UnrecordedGpu& measured) {
  const Trace& trace = *facts.trace;
  const auto& [launches, records, first] = measured;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.confidence = Confidence::kHigh;
  if (trace.import_stats().is_truncated()) {
    finding.verdict = say(
        "The end of the file is missing, and what is left holds no GPU work, though the program "
        "used a GPU: torch writes the CPU's events first, so the GPU's may have been in the "
        "missing part.");
    finding.try_next = {"write the file again, and let the program end before copying it"};
    finding.sample_count = launches > 0 ? launches : records;
    finding.sample_noun = launches > 0 ? "launch call" : "record";
  } else if (launches > 0) {
    finding.verdict = say(facts,
                          "The program launched {} [kernel|kernels] and the trace holds none of "
                          "them: the GPU's work was not recorded, so the trace shows neither GPU "
                          "time nor idle gaps.",
                          {count(launches)});
    finding.evidence.push_back({first, say("the first launch")});
    finding.try_next = {
        "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]: with the CPU alone "
        "torch.profiler still records these calls",
        "run lanescope doctor to see whether CUPTI is allowed here; another profiler (nsys, DCGM, "
        "a second torch.profiler) may be using it",
        "keep the profiler open until the GPU is done: torch.cuda.synchronize() before it stops"};
    finding.sample_count = launches;
    finding.sample_noun = "launch call";
  } else if (records == 0) {
    finding.verdict = say(
        "The program ran collectives of NCCL, which need a GPU, but neither calls to the GPU nor "
        "GPU work are in the trace: only the CPU was recorded.");
    finding.try_next = {
        "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; lanescope doctor "
        "shows whether the GPU can be recorded here"};
    finding.sample_count = 1;
    finding.sample_noun = "recording";
  } else {
    finding.verdict = say(facts,
                          "The program allocated GPU memory ({} [record|records]), but only the "
                          "CPU was recorded: neither calls to the GPU nor GPU work are in the "
                          "trace.",
                          {count(records)});
    finding.try_next = {
        "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]; lanescope doctor "
        "shows whether the GPU can be recorded here"};
    finding.sample_count = records;
    finding.sample_noun = "record";
  }
  return finding;
}

}  // namespace

extern constinit const Rule no_gpu_work_rule = {
    .id = "no-gpu-work",
    .question = "why is there no GPU work in the trace?",
    .meant_by = "missing empty",
    .order = 250,
    .only_if = [](const Facts& facts) { return has_no_gpu_work(facts) && !facts.vendor; },
    .then_needs = {kUsedGpu},
    .run = [](const Facts& facts) -> Outcome {
      return tell_no_gpu_work(facts, measure_no_gpu_work(facts));
    },
};

}  // namespace lanescope::explain::rules
