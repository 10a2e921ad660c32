// The rules, one file each. docs/rules/<id>.md says what each looks at and where its limits are.
#pragma once
#include "lanescope/explain/rule.h"

namespace lanescope::explain::rules {

Outcome host_bound(const Facts& facts);
Outcome gpu_bound(const Facts& facts);
Outcome communication_bound(const Facts& facts);
Outcome gpu_idle(const Facts& facts);
Outcome dataloader_wait(const Facts& facts);
Outcome exposed_copy(const Facts& facts);
Outcome host_sync(const Facts& facts);
Outcome pageable_copy(const Facts& facts);
Outcome allocator_calls(const Facts& facts);
Outcome tiny_kernels(const Facts& facts);
Outcome many_calls(const Facts& facts);
Outcome python_indexing(const Facts& facts);
Outcome hotspot_kernel(const Facts& facts);
Outcome kernel_spread(const Facts& facts);
Outcome compiled_code(const Facts& facts);
Outcome slow_first_step(const Facts& facts);
Outcome long_step(const Facts& facts);
Outcome dead_window(const Facts& facts);
Outcome edge_gap(const Facts& facts);
Outcome lone_gap(const Facts& facts);
Outcome final_sync(const Facts& facts);
Outcome profiler_stall(const Facts& facts);
Outcome earlier_work(const Facts& facts);

// Trust, memory and variation.
Outcome no_gpu_work(const Facts& facts);
Outcome cpu_time(const Facts& facts);
Outcome clock_offset(const Facts& facts);
Outcome lost_events(const Facts& facts);
Outcome damaged_file(const Facts& facts);
Outcome few_steps(const Facts& facts);
Outcome stack_cost(const Facts& facts);
Outcome start_up_lag(const Facts& facts);
Outcome cpu_ahead(const Facts& facts);
Outcome full_queue(const Facts& facts);
Outcome slow_launches(const Facts& facts);
Outcome uneven_steps(const Facts& facts);
Outcome memory_growth(const Facts& facts);
Outcome memory_limit(const Facts& facts);
Outcome memory_fragmentation(const Facts& facts);
Outcome memory_peak(const Facts& facts);
Outcome small_collectives(const Facts& facts);
Outcome serial_communication(const Facts& facts);
Outcome first_collective(const Facts& facts);
Outcome slowed_compute(const Facts& facts);
Outcome micro_step_sync(const Facts& facts);
Outcome collective_keys(const Facts& facts);
Outcome cpu_built_tensor(const Facts& facts);
Outcome growing_cat(const Facts& facts);

// torch.compile, CUDA graphs, the training loop, cold start.
Outcome unfused_chain(const Facts& facts);
Outcome unfused_norm(const Facts& facts);
Outcome graph_breaks(const Facts& facts);
Outcome recompiles(const Facts& facts);
Outcome cold_compile(const Facts& facts);
Outcome compile_overhead(const Facts& facts);
Outcome compile_layers(const Facts& facts);
Outcome graph_opportunity(const Facts& facts);
Outcome graph_gaps(const Facts& facts);
Outcome outside_graphs(const Facts& facts);
Outcome collapsed_graph(const Facts& facts);
Outcome optimizer_loop(const Facts& facts);
Outcome optimizer_share(const Facts& facts);
Outcome zero_grad_fills(const Facts& facts);
Outcome backward_gap(const Facts& facts);
Outcome recompute(const Facts& facts);
Outcome logits_loss(const Facts& facts);
Outcome scaler_sync(const Facts& facts);
Outcome lazy_loading(const Facts& facts);
Outcome first_allocations(const Facts& facts);
Outcome cudnn_benchmark(const Facts& facts);
Outcome triton_autotune(const Facts& facts);
Outcome worker_restart(const Facts& facts);

// Launched kernels or allocated memory of an accelerator, whatever the trace shows of its work.
bool used_gpu(const Facts& facts);

// "idle {} + busy {}": the terms that are not zero, in order; the first one when all are.
struct Term {
  std::string words;
  std::int64_t time_ns = 0;
};
Sentence sum_of(const std::vector<Term>& terms);

// Calls that launch one kernel each, in steady steps, by place in the trace; first uses of a kernel
// left out. With the work that was launched and had not begun when the call was made (of the main
// device, all streams together).
struct QueuedLaunch {
  SliceId call = kNone<SliceId>;
  std::uint64_t queued = 0;
};
std::vector<QueuedLaunch> queued_launches(const Facts& facts);
// So much waiting work that a queue of the driver (1024 launches) may be full.
inline constexpr std::uint64_t kFullQueue = 1000;

inline constexpr char kNeedsGpuMemory[] =
    "memory records of a GPU (record with profile_memory=True and ProfilerActivity.CUDA)";
inline constexpr char kNeedsMemory[] = "memory records (record with profile_memory=True)";
// The accelerator with the highest peak; without records of one the CPU; null: there are none.
const analysis::MemoryDevice* main_memory(const Facts& facts);
const char* memory_name(const analysis::MemoryDevice& device);  // "GPU memory", "CPU memory"
// What the device has, by the file's deviceProperties; 0: unknown.
std::int64_t device_memory_bytes(const Facts& facts, std::int64_t device);
// The four largest as evidence: bytes, blocks, who allocated them.
void add_owners(const Facts& facts, const std::vector<analysis::MemoryShare>& shares,
                Finding& finding);
// About single kernels (kernel_facts.h).
Outcome copy_before_gemm(const Facts& facts);
Outcome matmul_chain(const Facts& facts);
Outcome self_total(const Facts& facts);
Outcome occupancy_query(const Facts& facts);
Outcome fp32_matmul(const Facts& facts);
Outcome half_off_tensor_cores(const Facts& facts);
Outcome unaligned_dims(const Facts& facts);
Outcome slow_gemm(const Facts& facts);
Outcome slow_attention(const Facts& facts);
Outcome wave_tail(const Facts& facts);
Outcome few_blocks(const Facts& facts);
Outcome memory_roof(const Facts& facts);
Outcome no_roof(const Facts& facts);
Outcome same_flops(const Facts& facts);
Outcome layout_copies(const Facts& facts);
Outcome conv_layout(const Facts& facts);
Outcome math_attention(const Facts& facts);
Outcome split_k(const Facts& facts);
Outcome conv_bias(const Facts& facts);
Outcome low_occupancy(const Facts& facts);

// Shared by several rules.
inline constexpr char kNeedsDevice[] =
    "GPU work in the trace (record with ProfilerActivity.CUDA, and where CUPTI is allowed)";
inline constexpr char kNeedsWork[] = "GPU work, or operators and annotations of the CPU";
inline constexpr char kNeedsLaunches[] =
    "the launch calls of the GPU work (cuda_runtime and cuda_driver events)";
inline constexpr char kNeedsSteps[] =
    "three steps or more (call prof.step() at the end of each iteration)";

inline constexpr char kNeedsShapes[] =
    "input shapes of the operators (record with record_shapes=True)";
inline constexpr char kNeedsGrids[] =
    "grid, block and registers of the kernels (CUPTI gives them; traces of ROCm lack them)";
inline constexpr char kNeedsGemmShapes[] =
    "the shapes of the matmuls: most were launched by graphs, compiled code or libraries "
    "(record a run without CUDA graphs)";
inline constexpr char kNeedsOperators[] =
    "operators of known work: much of the GPU work was launched by graphs, compiled code or by "
    "operators that are not modelled";
inline constexpr char kNeedsPeaks[] =
    "a GPU whose peak rates are known (deviceProperties must name one that `lanescope info` rates)";

// Fewer than two pieces of GPU work, or less than 20 us of wall: no verdict about a step.
bool is_thin(const Facts& facts);
// A gap beside the first work of the recording that holds more than half of all idle time and ends
// with work that had been launched long before: what ran in it was not recorded. None: no such gap.
const analysis::Gap* find_edge_gap(const Facts& facts);
// Idle waiting for the CPU is more than half of the steady wall; or more than 30 %, and more than
// half of the work found an empty queue.
bool is_host_bound(const Facts& facts);
// Rules that blame launches need them: most work of the main device has its launch call.
bool has_launches(const Facts& facts);
// Adds "CPU meanwhile" evidence: the three largest host shares.
void add_host_evidence(const Facts& facts, const std::vector<HostShare>& shares, Finding& finding);
double share_of(std::int64_t part, std::int64_t whole);

}  // namespace lanescope::explain::rules
