// What torch.compile did at run time: calls of compiled code, breaks between them, compiling.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {

// "Torch-Compiled Region: 0/1": the range of a call of compiled code.
inline constexpr std::string_view kCompiledRegion = "Torch-Compiled Region";
constexpr bool is_compiled_region(std::string_view name) {
  return name.starts_with(kCompiledRegion);
}

// Autograd's function in such a range, "CompiledFunction", and its node "CompiledFunctionBackward".
inline constexpr std::string_view kCompiledFunction = "CompiledFunction";
constexpr bool is_of_compiled_function(std::string_view name) {
  return name.starts_with(kCompiledFunction);
}

// A compiled region or the function in it: what it holds was compiled.
constexpr bool runs_compiled_code(std::string_view name) {
  return is_compiled_region(name) || name == kCompiledFunction;
}

// The layers of a call of compiled code, outside in. docs/definitions/steps.md#compiled-code.
enum class CompileLayer : std::uint8_t {
  kNone,
  kCacheLookup,  // "TorchDynamo Cache Lookup": guards are checked
  kRegion,       // "Torch-Compiled Region: K/M": the code that Dynamo wrote for frame K, version M
  kPrologue,     // "AOTDispatcher Runtime Wrapper Prologue", "Pregraph bytecode"
  kGraph,        // "## Call CompiledFxGraph <hash> ##": Inductor's code, which launches the kernels
  kCompiling,    // "... (dynamo_timed)" and all inside: compiling, not running
};
inline constexpr std::size_t kCompileLayerCount = 6;

// One "Torch-Compiled Region".
struct CompiledCall {
  SliceId slice{};
  std::string_view id;              // "0/1"; empty: the writer gives none
  SliceId around = kNone<SliceId>;  // the compiled call around it: this call follows a graph break
};

// An outermost period of compiling.
struct CompileRun {
  SliceId slice{};
  std::int64_t start_ns = 0, end_ns = 0;
  std::string_view id;  // "0/1"; empty: unknown, for example for a backward graph
};

struct CompiledCode {
  std::vector<CompileLayer> layer;   // one entry per slice: the innermost layer around it or itself
  std::vector<CompiledCall> calls;   // in the order of the slices
  std::vector<CompileRun> compiles;  // the same; one thread's are disjoint
  std::vector<StringId> graphs;      // names of the compiled graphs that ran, each once
  bool any() const { return !calls.empty() || !compiles.empty() || !graphs.empty(); }
};

// The text views borrow the trace. O(n). Any thread.
CompiledCode find_compiled_code(const Trace& trace, const SliceNesting& nesting);

}  // namespace lanescope::analysis
