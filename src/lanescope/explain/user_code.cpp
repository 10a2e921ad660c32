#include "lanescope/explain/user_code.h"

#include <string>
#include <string_view>

#include "lanescope/explain/code_of_slice.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/python_line.h"

namespace lanescope::explain {
namespace {

constexpr std::string_view kModule = "nn.Module: ";
constexpr std::string_view kBackwardPass = ", backward pass";

// Elementwise operators and copies occur everywhere, so their names do not name a place. Nor does the node that each parameter has.
bool names_a_place(std::string_view op) {
  for (const std::string_view common :
       {"aten::to", "aten::_to_copy", "aten::copy_", "aten::add", "aten::add_", "aten::mul",
        "aten::mul_", "aten::pow", "aten::sub", "aten::div", "aten::fill_", "aten::zero_"})
    if (op == common) return false;
  return !op.ends_with("::CopySlices") && !op.ends_with("::AccumulateGrad");
}

// Ranges of torch.compile that hold no code of the program: its search for compiled code, and what comes before that code runs.
bool is_inside_of_compile(std::string_view range) {
  return range.starts_with("TorchDynamo") || range.starts_with("Pregraph bytecode");
}

// "in aten::linear", "in MmBackward0, backward pass".
Sentence operator_place(std::string_view op) {
  for (const std::string_view prefix :
       {"autograd::engine::evaluate_function: ", "torch::autograd::"})
    if (op.starts_with(prefix)) op.remove_prefix(prefix.size());
  Sentence place = say("in {}", {name(op)});
  if (op.find("Backward") != std::string_view::npos || op == "AccumulateGrad")
    place.pattern += kBackwardPass;
  return place;
}

// The forward operator of the outermost node of autograd around a slice; kNone: there is none, or it is not known.
SliceId forward_of(const Facts& facts, const std::vector<SliceId>& outward) {
  for (auto up = outward.rbegin(); up != outward.rend(); ++up)
    if (facts.trace->name(*up).starts_with(rules::kEvaluateNode))
      return rules::forward_of_node(facts, *up);
  return kNone<SliceId>;
}

bool is_of_module(const Trace& trace, SliceId frame) {
  return trace.kind(frame) == CategoryKind::kPythonFunction &&
         trace.name(frame).starts_with(kModule);
}

// The slice itself; for GPU work, the operator around its launch, else the launch.
SliceId operator_side(const Facts& facts, SliceId slice) {
  if (!is_device_work(facts.trace->kind(slice))) return slice;
  const SliceId launch = facts.links.launch_of[raw(slice)];
  if (launch == kNone<SliceId>) return launch;
  const SliceId op = facts.links.op_of[raw(launch)];
  return op == kNone<SliceId> ? launch : op;
}

}  // namespace

bool is_own_range(std::string_view range) {
  for (const std::string_view known : {"ProfilerStep",
                                       "enumerate(DataLoader)",
                                       "autograd::",
                                       "Torch-Compiled",
                                       "TorchDynamo",
                                       "CompiledFunction",
                                       "## Call CompiledFxGraph",
                                       "PyTorch Profiler",
                                       "nccl:",
                                       "NCCL:",
                                       "DistributedDataParallel.",
                                       "FSDP::",
                                       "c10d::",
                                       "gloo:",
                                       "record_param_comms",
                                       "Pregraph bytecode",
                                       "AOTDispatcher",
                                       "aten::",
                                       "Inductor",
                                       "cudaGraph",
                                       "triton_",
                                       "Iteration "})
    if (range.starts_with(known)) return false;
  return true;
}

bool is_module_frame(std::string_view frame) { return frame.starts_with(kModule); }

std::string module_class(std::string_view frame) {
  std::string_view name = frame.substr(kModule.size());
  const std::size_t end = name.find_last_not_of("0123456789");
  if (end != std::string_view::npos && end + 1 < name.size() && name[end] == '_')
    name = name.substr(0, end);
  return std::string(name);
}

std::string module_class_around(const FramesAround& frames, SliceId slice) {
  std::string found;
  frames.visit(slice, [&](SliceId frame) {
    if (!is_of_module(frames.trace(), frame)) return false;
    found = module_class(frames.trace().name(frame));
    return true;
  });
  return found;
}

std::string short_line(std::string_view frame) {
  const std::size_t open = frame.find(".py("), close = frame.find("): ", open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::string(frame);
  std::string_view file = frame.substr(0, open + 3);
  const std::size_t last = file.find_last_of("/\\");
  if (last != std::string_view::npos && last > 0) {
    const std::size_t folder = file.find_last_of("/\\", last - 1);
    if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
  }
  return std::string(file) + ":" + std::string(frame.substr(open + 4, close - open - 4)) + " " +
         std::string(frame.substr(close + 3));
}

std::string function_first(std::string_view short_line) {
  const std::size_t colon = short_line.find(".py:"), space = short_line.find(' ', colon);
  if (colon == std::string_view::npos || space == std::string_view::npos)
    return std::string(short_line);
  std::string text(short_line.substr(space + 1));
  text += " (";
  text += short_line.substr(0, space);
  text += ')';
  return text;
}

std::vector<SliceId> outward_from(const Facts& facts, SliceId slice) {
  std::vector<SliceId> outward;
  for (SliceId up = slice; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)])
    outward.push_back(up);
  return outward;
}

Sentence code_of_slice(const FramesAround& frames, std::span<const SliceId> outward,
                       PlaceDetail detail) {
  if (outward.empty()) return {};
  const Trace& trace = frames.trace();
  const rules::PythonPlace place = rules::python_place(frames, outward);
  const std::string module = module_class_around(frames, outward.front());
  if (!place.frame.empty()) {
    const std::string line = short_line(place.frame);
    Sentence text =
        place.is_call ? say("at {}", {name(line)}) : say("in {}", {name(function_first(line))});
    if (!module.empty()) append(text, say(", nn.Module {}", {name(module)}));
    return text;
  }
  if (!module.empty()) return say("in nn.Module {}", {name(module)});
  SliceId op = kNone<SliceId>;
  for (const SliceId up : outward) {
    if (trace.kind(up) == CategoryKind::kUserAnnotation && is_own_range(trace.name(up)))
      return say("in range {}", {name(trace.name(up))});
    // Old traces have ranges among the operators.
    if (trace.kind(up) == CategoryKind::kCpuOp && !trace.name(up).starts_with("ProfilerStep") &&
        !trace.name(up).starts_with("enumerate(DataLoader)") &&
        !is_inside_of_compile(trace.name(up)))
      op = up;  // the outermost: what the program called
  }
  if (op == kNone<SliceId> || detail == PlaceDetail::kNoOperators || !names_a_place(trace.name(op)))
    return {};
  return operator_place(trace.name(op));
}

Sentence user_code(const Facts& facts, SliceId slice, PlaceDetail detail) {
  if (slice == kNone<SliceId>) return {};
  const std::vector<SliceId> outward = outward_from(facts, operator_side(facts, slice));
  Sentence place = code_of_slice(frames_around(facts), outward, detail);
  // A node of autograd is no line of the program: the operator that made it has one.
  if (!place.pattern.empty() && !place.pattern.ends_with(kBackwardPass)) return place;
  const SliceId forward = forward_of(facts, outward);
  if (forward == kNone<SliceId>) return place;
  Sentence made_in = code_of_slice(frames_around(facts), outward_from(facts, forward), detail);
  // Of an operator that occurs everywhere: its name says more than that of its node.
  if (made_in.pattern.empty() && detail == PlaceDetail::kOperators)
    made_in = say("in {}", {name(facts.trace->name(forward))});
  if (made_in.pattern.empty()) return place;
  place = say("in the backward pass of ");
  append(place, without_preposition(made_in));
  return place;
}

Sentence without_preposition(Sentence place) {
  for (const std::string_view word : {"in ", "at "})
    if (place.pattern.starts_with(word)) {
      place.pattern.erase(0, word.size());
      break;
    }
  return place;
}

Sentence outer_user_code(const Facts& facts, SliceId slice) {
  if (slice == kNone<SliceId>) return {};
  slice = operator_side(facts, slice);
  if (slice == kNone<SliceId>) return {};
  const Trace& trace = *facts.trace;
  SliceId module = kNone<SliceId>, range = kNone<SliceId>;
  frames_around(facts).visit(slice, [&](SliceId frame) {
    if (is_of_module(trace, frame)) module = frame;
    if (trace.kind(frame) == CategoryKind::kUserAnnotation && is_own_range(trace.name(frame)))
      range = frame;
    return false;
  });
  if (module != kNone<SliceId>)
    return say("in nn.Module {}", {name(module_class(trace.name(module)))});
  return range == kNone<SliceId> ? Sentence{} : say("in range {}", {name(trace.name(range))});
}

}  // namespace lanescope::explain
