// Rows of torch.compile: of compiled code as it runs, and of compiling. Sources: torch/_dynamo
// (utils.py, convert_frame.py), torch/_functorch, torch/_inductor of torch 2.13, which open these
// rows only while a profiler runs; CompileId in torch/_guards.py.
#include <algorithm>
#include <iterator>

#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

constexpr std::string_view kLayerNote =
    "A few to some tens of microseconds a call are normal; for a small function that can be more "
    "than compiling it saves.";

constexpr Row kLayers[] = {
    {"TorchDynamo Cache Lookup", "torch.compile looks for compiled code that fits",
     "Before a compiled function runs, its guards are checked: do shapes, types and values still "
     "hold for which the code was compiled?",
     "no", "none", kLayerNote, "compile-overhead"},
    {"Pregraph bytecode", "Python around the compiled graph",
     "The part of the rewritten Python function that runs before its compiled graph is called.",
     "no", "none", kLayerNote, "compile-overhead"},
    {"AOTDispatcher Runtime Wrapper Prologue", "arguments made ready for the compiled graph",
     "Python of torch.compile's autograd layer that unpacks and checks arguments before the "
     "compiled graph runs.",
     "no", "none", kLayerNote, "compile-overhead"},
    {"Torch-Compiled Region", "a compiled function runs",
     "A function that torch.compile compiled runs: everything inside, from its own Python to its "
     "kernels.",
     "", "all that happens inside it", "", "compile-layers"},
    {"<forward op>", "forward pass of TorchScript code",
     "TorchScript runs the forward pass of a piece of code that it compiled."},
    {"<backward op>", "backward pass of TorchScript code",
     "TorchScript runs the backward pass of a piece of code that it compiled."},
};

constexpr Row kDispatchMode = {
    "PythonDispatchMode",
    "an operator goes to a Python dispatch mode",
    "A TorchDispatchMode gets the operator instead of the operator's own code: torch.compile while "
    "it follows a function, FlopCounterMode, or one of the program's own.",
    "no",
    "what the mode runs inside it",
    "This is Python, once for each operator."};

// Stages of compiling, by the names that dynamo_timed() is given.
struct Stage {
  std::string_view name, what;
  bool on_gpu = false;  // tries kernels out; belongs to a kernel's first launch
};
constexpr Stage kStages[] = {
    {"dynamo", "All of one compilation, from Python to kernels."},
    {"_compile.compile_inner", "All of one compilation, from Python to kernels."},
    {"entire_frame_compile", "All of one compilation, from Python to kernels."},
    {"entire_backward_compile", "All of one compilation of a backward pass."},
    {"compile_attempt_0",
     "The first attempt to follow the function; where it must start again, as after a graph break, "
     "the next one has the next number."},
    {"bytecode_tracing", "Dynamo follows the function's Python and collects its operators."},
    {"build_guards", "Dynamo writes down what must hold for the compiled code to be used again."},
    {"gc", "Python's garbage collection after compiling."},
    {"insert_deferred_runtime_asserts", "Checks of dynamic shapes are put into the graph."},
    {"backend_compile", "Dynamo gives the graph to its compiler, mostly Inductor."},
    {"OutputGraph.call_user_compiler", "Dynamo gives the graph to its compiler, mostly Inductor."},
    {"create_aot_dispatcher_function",
     "AOTAutograd: makes graphs of the forward and, in training, the backward pass, and has them "
     "compiled."},
    {"aot_collect_metadata",
     "AOTAutograd runs the graph without data, to learn what it reads and writes."},
    {"aot_trace_joint_graph", "AOTAutograd traces forward and backward pass as one graph."},
    {"min_cut_rematerialization_partition",
     "The joint graph is cut into forward and backward pass; what to keep between them is chosen."},
    {"compile_fx.<locals>.fw_compiler_base", "Inductor compiles the forward pass."},
    {"compile_fx.<locals>.bw_compiler", "Inductor compiles the backward pass."},
    {"inductor_compile", "Inductor compiles one graph."},
    {"compile_fx_inner", "Inductor compiles one graph."},
    {"fx_codegen_and_compile", "Inductor turns one graph into code."},
    {"additional_fake_tensor_prop", "Shapes and types are worked out once more, without data."},
    {"_recursive_pre_grad_passes", "Inductor rewrites the graph before gradients are known."},
    {"_recursive_joint_graph_passes", "Inductor rewrites the graph of forward and backward pass."},
    {"_recursive_post_grad_passes",
     "Inductor rewrites each graph after forward and backward pass were parted."},
    {"GraphLowering.run", "Inductor lowers the graph to its own loops."},
    {"GraphLowering.compile_to_fn", "Inductor makes a callable function of its code."},
    {"GraphLowering.compile_to_module",
     "Inductor writes its code as a Python module and loads it."},
    {"GraphLowering.codegen", "Inductor writes code."},
    {"code_gen", "Inductor writes code and loads it."},
    {"Scheduler.__init__", "Inductor decides what runs in which order and what is fused."},
    {"Scheduler.fused_nodes", "Inductor looks for work to fuse into one kernel."},
    {"Scheduler.codegen", "Inductor writes the kernels' code."},
    {"PythonWrapperCodegen.generate", "Inductor writes the Python code that calls the kernels."},
    {"PyCodeCache.load_by_key_path", "Generated Python code is loaded."},
    {"async_compile.wait", "Waits for kernels that other processes compile."},
    {"async_compile.precompile", "Kernels are compiled."},
    {"CachingAutotuner.benchmark_all_configs",
     "A Triton kernel is tried out with several settings on the GPU.", true},
    {"CachingAutotuner.coordinate_descent_tuning",
     "A Triton kernel's settings are improved by trying on the GPU.", true},
    {"TritonBundler.collect", "Compiled Triton kernels are gathered for the cache."},
    {"TritonBundler.read_and_emit", "Triton kernels are taken from the cache."},
    {"AOTAutogradCache.inductor_load", "A compiled graph is taken from the cache on disk."},
    {"inductor_codecache_torch_key",
     "torch's own part of the key under which compiled code is cached is worked out."},
};

constexpr std::string_view kCompilingNote =
    "Normal in the first call. In later steps something is compiled again: a function that was not "
    "called before, or one whose guards failed.";

void compiling(std::string_view stage, EventName& out) {
  out.kind = EventKind::kCompiling;
  out.note = kCompilingNote;
  out.rule = "recompiles";
  const auto* row = std::find_if(std::begin(kStages), std::end(kStages),
                                 [stage](const Stage& known) { return known.name == stage; });
  out.what = "A stage of torch.compile's compiling, on the CPU.";
  if (row != std::end(kStages)) {
    if (row->on_gpu) {
      out.what = "A stage of torch.compile's compiling.";
      out.gpu_work = "the kernel, many times";
      out.note = "Normal once a kernel, when it is launched for the first time.";
      out.rule = "triton-autotune";
    }
    out.what.append(" ").append(row->what);
  } else if (const auto pass = after(stage, "pass.")) {
    out.what += " One of Inductor's rewrites of the graph.";
  }
  out.text = std::string("torch.compile compiles: ").append(shortened(stage, 60));
  out.details.emplace_back("stage", std::string(stage));
}

bool is_known_stage(std::string_view name) {
  return std::any_of(std::begin(kStages), std::end(kStages),
                     [name](const Stage& known) { return known.name == name; });
}

// "2/1", "!0/2/1" of compiled autograd, "2/1_1" where compiling was tried again.
bool region(std::string_view id, EventName& out) {
  fill(EventKind::kCompiledCode, kLayers[3], out);
  out.group = "Torch-Compiled Region: *";
  std::string_view rest = id;
  if (const auto autograd = after(rest, "!")) {
    const std::size_t slash = autograd->find('/');
    if (!is_digits(autograd->substr(0, slash))) return false;
    out.details.emplace_back("compiled_autograd", std::string(autograd->substr(0, slash)));
    if (slash == autograd->npos) return true;
    rest = autograd->substr(slash + 1);
  }
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos) return false;
  const std::string_view function = rest.substr(0, slash);
  std::string_view version = rest.substr(slash + 1);
  if (const std::size_t again = version.find('_'); again != version.npos) {
    if (!is_digits(version.substr(again + 1))) return false;
    version = version.substr(0, again);
  }
  if (!is_digits(function) || !is_digits(version)) return false;
  out.text = std::string("compiled function ")
                 .append(shortened(function, 12))
                 .append(", version ")
                 .append(shortened(version, 12));
  out.what +=
      " The first number counts the functions that were compiled, from 0; the second the versions "
      "of this function, 0 for the first and one more for each time that it was compiled again.";
  const bool again = version.find_first_not_of('0') != version.npos;
  out.note = again ? "Not the first version: shapes, types or values changed and the function was "
                     "compiled again."
                   : "A region inside another region is a graph break.";
  out.rule = again ? "recompiles" : "graph-breaks";
  out.details.emplace_back("function", std::string(function));
  out.details.emplace_back("version", std::string(version));
  return true;
}

}  // namespace

bool read_compile_stage(std::string_view name, EventName& out) {
  if (!is_known_stage(name)) return false;
  compiling(name, out);
  return true;
}

bool read_compile_name(std::string_view name, EventName& out) {
  if (const Row* row = find_row(kLayers, name)) {
    fill(EventKind::kCompiledCode, *row, out);
    return true;
  }
  if (name == kDispatchMode.name) {
    fill(EventKind::kOperator, kDispatchMode, out);
    return true;
  }
  if (const auto id = after(name, "Torch-Compiled Region: ")) return region(*id, out);
  if (const auto rest = after(name, "## Call CompiledFxGraph "); rest && rest->ends_with(" ##")) {
    const std::string_view key = rest->substr(0, rest->size() - 3);
    out.kind = EventKind::kCompiledCode;
    out.text = "a compiled graph runs";
    out.what =
        "The code that Inductor wrote for one graph runs: it takes memory and launches kernels. "
        "The letters are the key of that graph in the compiler's cache.";
    out.gpu_work = "the kernels of the graph, launched inside it";
    out.note = "One key in all steps: the same code each time.";
    out.rule = "compiled-code";
    out.details.emplace_back("key", std::string(key));
    out.group = "## Call CompiledFxGraph * ##";
    return true;
  }
  if (const auto rest = after(name, "graph_"); rest && rest->ends_with("_inductor_wrapper_call") &&
                                               is_digits(rest->substr(0, rest->size() - 22))) {
    out.kind = EventKind::kCompiledCode;
    out.text = "a compiled graph runs";
    out.what = "The code that Inductor wrote around the kernels of one graph runs.";
    out.gpu_work = "the kernels of the graph, launched inside it";
    out.group = "graph_*_inductor_wrapper_call";
    return true;
  }
  if (const std::string_view end = " (dynamo_timed)";
      name.ends_with(end) && name.size() > end.size()) {
    compiling(name.substr(0, name.size() - end.size()), out);
    return true;
  }
  // "dynamo_data: compile_id=0/1": what was known about the stage, as an empty row after it.
  if (const std::size_t at = name.find("_data: ");
      at != name.npos && at > 0 && name.find("compile_id=", at) != name.npos) {
    compiling(name.substr(0, at), out);
    out.what = "An empty row whose name carries facts about a stage of torch.compile's compiling.";
    out.details.emplace_back("facts", std::string(name.substr(at + 7)));
    out.group = std::string(name.substr(0, at)).append("_data: *");
    return true;
  }
  // Without the ending, only if the name is not an ordinary word: "gc" alone can be anything.
  const bool telling = name != "gc" && name != "dynamo" && name != "code_gen";
  const bool is_pass = name.starts_with("pass.pre_grad_passes.") ||
                       name.starts_with("pass.joint_graph_passes.") ||
                       name.starts_with("pass.post_grad_passes.");
  if (is_pass || (telling && is_known_stage(name))) {
    compiling(name, out);
    return true;
  }
  // Inductor opens a row with the kernel's name around each launch.
  if (const auto rest = after(name, "triton_")) {
    const std::string_view category = rest->substr(0, 3);
    static constexpr std::string_view kCategories[] = {"poi", "red", "per", "tem", "for", "spl"};
    const bool known = rest->size() > 4 && (*rest)[3] == '_' &&
                       std::find(std::begin(kCategories), std::end(kCategories), category) !=
                           std::end(kCategories);
    if (!known || !is_identifier(name)) return false;
    out.kind = EventKind::kCompiledCode;
    out.text = "launch of a kernel that torch.compile wrote";
    out.what =
        "Inductor prepares and launches one of the kernels it wrote; the kernel on the GPU has the "
        "same name.";
    out.gpu_work = "one kernel of this name";
    out.note = "Long once: the kernel is loaded, or its settings are tried out.";
    out.rule = "triton-autotune";
    out.may_be_kernel = true;
    return true;
  }
  return false;
}

}  // namespace lanescope::names::events
