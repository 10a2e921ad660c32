// What takes the time of a step: ranges, modules, lines, loops, operators and the code between them,
// each with all waiting that it causes.
//
// Problem: users do not know the innermost event of a moment (a launch call, a kernel). Idea: each
// piece of the critical path belongs to the chain of events around it or around its launch. The
// chains form a tree. From its root, go down as long as one child has most of the time, and name
// the node where that ends. Example: step > range forward > 64 x aten::mm > cudaLaunchKernel: the
// owner is the loop "64 x aten::mm in range forward". docs/definitions/explain.md#owners
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/simulate/replay.h"

namespace lanescope::explain {

enum class OwnerKind : std::uint8_t {
  kStep,      // what is left of the step itself
  kRange,     // an annotation of the program or of torch, such as Optimizer.step
  kModule,    // an nn.Module, from recorded stacks
  kLine,      // a function of the program, from recorded stacks
  kBackward,  // the backward pass
  kLoop,      // rounds of equal operators, one after the other
  kOperator,  // an operator that the program called, or a node of autograd
  kCall,      // a call of the runtime or driver outside of operators, with what it launched
  kCode,      // between two operators: Python, or code without events
};
const char* owner_kind_name(OwnerKind kind);  // "step", "range", ...

// How unequal equal things are: kernels of one name, or launch calls.
struct Spread {
  std::int64_t median_ns = 0, longest_ns = 0;
  std::int64_t excess_ns = 0;  // what exceeds twice the median, summed
};

struct KindOfTime {
  std::string words;
  std::int64_t time_ns = 0;
};

// What an owner did in the steady steps, counted apart from the critical path.
struct OwnerWork {
  std::uint64_t calls = 0;            // operators that the program called
  std::uint64_t launches = 0;         // pieces of GPU work
  std::int64_t launch_calls_ns = 0;   // inside the calls that launched them
  std::int64_t gpu_ns = 0;            // their times, summed
  std::uint64_t allocator_calls = 0;  // cudaMalloc, cudaFree and others
  std::int64_t allocator_ns = 0;
  std::uint64_t start_up_calls = 0;  // first uses of libraries and kernels
  std::int64_t start_up_ns = 0;
  std::uint64_t waits = 0;         // calls in which the CPU may wait for the GPU
  std::uint64_t upload_waits = 0;  // of `waits`: in operators that copy to the GPU
  std::uint64_t size_waits =
      0;  // of `waits`: for a size that the GPU computes, as a mask has (aten::nonzero)
  std::uint64_t copies = 0;  // between CPU and GPU, or on the GPU, by copy engines
  std::int64_t copied_bytes = 0, copies_ns = 0;
  SliceId longest_copy = kNone<SliceId>;
  SliceId top_kernel = kNone<SliceId>;  // the longest of the kernels of one name with most time
  std::uint64_t top_kernel_count = 0;
  std::int64_t top_kernel_ns = 0;
  Spread kernel_spread, launch_spread;  // of the kernels of the top name, of launch calls
  // Of calls that launch CUDA graphs: their work by kind (kind_of_work.h), most time first. The call's name does not say it.
  std::vector<KindOfTime> kinds;
  // For operators whose work is known from their shapes: their time, and the least that it could be.
  std::int64_t rated_ns = 0;
  double rated_floor_ns = 0;
  std::int64_t rated_by_memory_ns = 0;  // part of rated_ns that memory limits
  // Without a GPU: of calls with equal names and shapes, what exceeds twice their median, summed.
  std::int64_t uneven_ns = 0;
};

// How the sizes of a loop's rounds differ, in one dimension of one input: that of the longest call
// of a round among those whose shapes change.
struct SizeChange {
  std::string op;  // empty: the same shapes in every round, or no shapes
  std::int64_t least = 0, most = 0;
  bool grows = false;  // by the same number from each round to the next
  bool falls = false;  // never larger than in the round before, to half or less
};

struct OwnerPart {  // one operator of a loop or of a range
  std::string name;
  std::int64_t time_ns = 0;
};

// Times are sums over the steady steps.
struct Owner {
  OwnerKind kind = OwnerKind::kStep;
  std::string name;                  // "aten::mm"; of kCode what is before it, may be empty
  std::string next_name;             // kCode: what comes after it, may be empty
  SliceId example = kNone<SliceId>;  // the longest of its events; kNone: no event
  std::vector<std::string> around;   // what it lies in, from the outside: ranges, modules, lines
  OwnerKind around_kind = OwnerKind::kStep;  // of around.back()
  std::int64_t total_ns = 0;
  std::array<std::int64_t, simulate::kPathKindCount> time_ns{};  // by kind, adds up to total_ns
  std::int64_t most_in_a_step_ns = 0;                            // of total_ns
  std::int64_t code_ns = 0;  // of total_ns: threads outside of operators and calls
  // kCode: what another thread of the process did for most of that time; empty: no other worked.
  std::string other_thread, other_event;
  std::int64_t other_ns = 0;
  // For code, and for the code in a loop, in traces with stacks: the Python frame that has most of
  // the owner's time, if it began in that time.
  std::string frame;
  std::int64_t frame_ns = 0;
  std::int64_t restart_ns =
      0;  // kCode, of total_ns: while the DataLoader started its workers again
  // The same for traces with samples of Python stacks: the function with half of them or more.
  std::optional<SampledCode> sampled;
  // kCode: half of the time or more the innermost Python frame is torch's, or the profiler's.
  bool is_torch_code = false, is_profilers = false;
  bool is_rest = false;  // others, named before it, were taken out of it
  // With stacks: the function of the program in which a quarter of the owner's operators or more lie, but not nearly all.
  // function_ns: of total_ns, its operators and those of the functions that it calls; empty: there is none.
  std::string function;
  std::int64_t function_ns = 0;
  std::vector<std::string> function_calls;  // names of its operators, sorted
  OwnerWork work;
  std::vector<std::string>
      inside;                    // kOperator: operators inside one of its calls, from the outside
  std::vector<OwnerPart> parts;  // operators inside, most time first; at most five
  // kLoop; of an operator inside a loop too.
  std::uint64_t rounds = 0;                          // of the loop, in total
  std::uint64_t loops = 0;                           // how often the loop ran
  std::uint64_t fewest_rounds = 0, most_rounds = 0;  // of the times it ran
  std::vector<std::string> cell;  // names of one round, in order, equal neighbours once
  std::uint64_t cell_size = 0;    // calls of one round
  SizeChange sizes;
  bool has_large_products = false;  // rounds with a product of many rows, as a model's layers are
  bool has_layers = false;          // rounds with a product, norm, convolution or node of autograd
  bool has_backward = false;        // each round starts a backward pass on autograd's thread,
  bool repeats_graph = false;       // which goes over the same nodes each time
  bool adds_gradients = false;      // and adds to the gradients of parameters
  std::size_t backward_passes = 0;  // in a round
  std::int64_t of(simulate::PathKind kind_of_time) const {
    return time_ns[static_cast<std::size_t>(kind_of_time)];
  }
  // Python, operators and calls on the CPU, and delays that follow from late launches.
  std::int64_t cpu_ns() const {
    return of(simulate::PathKind::kHost) + of(simulate::PathKind::kCall) +
           of(simulate::PathKind::kDelay);
  }
};

struct Owners {
  std::int64_t total_ns = 0;  // of the steady steps' critical path
  std::vector<Owner>
      owners;  // by rank_of_owner(), then most time first: disjoint, each kLeastOwner of the total or more
  std::array<std::int64_t, simulate::kPathKindCount> time_ns{};
  bool has_stacks = false;
  // Of a host-bound step: when the path is on the GPU's compute work, in order of time. Of others: empty.
  std::vector<analysis::Window> compute_windows;
};
inline constexpr double kLeastOwner = 0.05;
// Rounds of so many calls are no small operators in Python's loop: their parts say more than their number.
inline constexpr std::uint64_t kManyCallsOfARound = 128;
inline constexpr std::size_t kMostOwners = 6;

// Owners with a tenth of the step that are known by name come first, whatever "all other parts" have: those many small parts
// have no cause in common. 0 or 1; within a rank the most time first.
inline int rank_of_owner(bool is_rest_of_step, double share) {
  constexpr double kNamed = 0.1;
  return is_rest_of_step || share < kNamed ? 1 : 0;
}

// Computed once per Facts, by the first call; any thread. Null: find_step_path() finds nothing.
// O(n log n).
const Owners* step_owners(const Facts& facts);

}  // namespace lanescope::explain
