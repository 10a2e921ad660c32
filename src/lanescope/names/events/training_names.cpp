// Ranges that torch opens around the parts of a training loop. Sources: torch/profiler,
// torch/optim/optimizer.py, torch/utils/data, torch/distributed/fsdp of torch 2.13.
#include <algorithm>

#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

constexpr Row kTrainingRows[] = {
    {"DataParallel.forward", "forward pass, several GPUs from one process",
     "torch.nn.DataParallel copies the model to each GPU, shares the batch out, runs the model and "
     "collects the results.",
     "", "all that happens inside it"},
    {"DistributedDataParallel.forward", "forward pass of a model in DDP",
     "The forward pass of a model in DistributedDataParallel, with what DDP does before and after.",
     "", "all that happens inside it", "The exchange of gradients is in the backward pass."},
};

// torch.distributed.fsdp: names of both generations, without the module's name at the end.
constexpr Row kFsdp[] = {
    {"FSDP::root_pre_forward", "FSDP before the forward pass",
     "Preparations before the model's forward pass."},
    {"FSDP::inputs_to_device", "FSDP moves inputs", "The model's inputs are moved to the GPU."},
    {"FSDP::pre_forward", "FSDP before a module",
     "Before a module runs: its parameters are gathered."},
    {"FSDP::post_forward", "FSDP after a module",
     "After a module has run: its gathered parameters may be freed."},
    {"FSDP::pre_backward", "FSDP before a module's backward pass",
     "Before a module's backward pass: its parameters are gathered again."},
    {"FSDP::all_gather", "FSDP gathers parameters",
     "The parts of a module's parameters are collected from all processes."},
    {"FSDP::all_gather_copy_out", "FSDP unpacks parameters",
     "Gathered parameters are copied to where the module expects them."},
    {"FSDP::post_backward_accumulate", "FSDP after a module's backward pass",
     "Gradients of several small batches are added up, where there are any."},
    {"FSDP::post_backward_reshard", "FSDP frees parameters",
     "Gathered parameters of a module are freed."},
    {"FSDP::post_backward_rs_wait", "FSDP orders the summing of gradients",
     "The GPU's stream waits for an earlier summing of gradients, so that its memory can "
     "be used again.",
     "no: the GPU's stream waits", "none"},
    {"FSDP::post_backward_reduce", "FSDP shares gradients",
     "Gradients are summed over all processes, each keeps its part."},
    {"FSDP::root_post_backward_callback", "FSDP after the backward pass",
     "The end of the backward pass: what is left is waited for and cleaned up."},
    {"FSDP::cast_forward_inputs", "FSDP converts inputs",
     "A module's inputs are converted to another type."},
    {"FSDP::cast_forward_outputs", "FSDP converts outputs",
     "A module's outputs are converted to another type."},
    {"FullyShardedDataParallel.forward", "forward pass of a model in FSDP",
     "The forward pass of a module in FullyShardedDataParallel."},
    {"FullyShardedDataParallel._pre_forward", "FSDP before a module",
     "Before a module runs: its parameters are gathered."},
    {"FullyShardedDataParallel._post_forward", "FSDP after a module",
     "After a module has run: its gathered parameters may be freed."},
    {"FullyShardedDataParallel._root_pre_forward", "FSDP before the forward pass",
     "Preparations before the model's forward pass."},
    {"FullyShardedDataParallel._to_kwargs", "FSDP moves inputs",
     "The model's inputs are moved to the GPU."},
    {"FullyShardedDataParallel._pre_backward_hook", "FSDP before a module's backward pass",
     "Before a module's backward pass: its parameters are gathered again."},
    {"FullyShardedDataParallel._post_backward_hook", "FSDP shares gradients",
     "Gradients are summed over all processes, each keeps its part."},
    {"FullyShardedDataParallel._pre_forward_prefetch", "FSDP gathers ahead",
     "The gathering of the next module's parameters is started."},
    {"FullyShardedDataParallel._pre_backward_prefetch", "FSDP gathers ahead",
     "The gathering of the next module's parameters is started."},
    {"FullyShardedDataParallel._post_backward_prefetch", "FSDP gathers ahead",
     "The gathering of the next module's parameters is started."},
    {"FullyShardedDataParallel.rate_limiter", "FSDP holds the CPU back",
     "Keeps the CPU from gathering too many parameters ahead: it waits for an earlier gather's "
     "memory to be free.",
     "yes: until the GPU has reached a mark", "none"},
};

void loader(std::string_view iterator, EventName& out) {
  out.kind = EventKind::kTrainingLoop;
  out.text = "next batch of input data";
  out.what = "The program asks its DataLoader for the next batch.";
  out.details.emplace_back("iterator", std::string(iterator));
  if (iterator.starts_with("_SingleProcess"))
    out.what +=
        " There are no worker processes: the batch is loaded here, in the training process.";
  if (iterator.starts_with("_MultiProcessing"))
    out.what += " Worker processes prepare batches; a long row waits for them.";
  out.gpu_work = "none itself; a data set may put some there";
  out.note = "Short is normal. Long while the GPU is idle: loading is the limit.";
  out.rule = "dataloader-wait";
}

// "Optimizer.step#AdamW.step" -> "AdamW".
bool optimizer(std::string_view rest, std::string_view method, bool step, EventName& out) {
  if (!rest.ends_with(method) || rest.size() == method.size()) return false;
  const std::string_view name = rest.substr(0, rest.size() - method.size());
  out.kind = EventKind::kTrainingLoop;
  out.details.emplace_back("optimizer", std::string(name));
  out.gpu_work = "all that happens inside it";
  if (step) {
    out.text = shortened(name, 40) + " changes the parameters";
    out.what = "optimizer.step(): the optimizer changes the model's parameters by their gradients.";
    out.note =
        "Hundreds of short kernels inside it: an implementation that loops over parameters; "
        "foreach=True or fused=True works on all at once.";
    out.rule = "optimizer-loop";
  } else {
    out.text = shortened(name, 40) + " clears the gradients";
    out.what = "optimizer.zero_grad(): gradients of the step before are dropped or set to zero.";
    out.note = "Kernels inside it: gradients are filled with zeros; set_to_none=True drops them.";
    out.rule = "zero-grad-fills";
  }
  return true;
}

}  // namespace

bool read_training_name(std::string_view name, EventName& out) {
  if (const auto rest = after(name, "ProfilerStep");
      rest && (*rest == "*" || rest->starts_with('#'))) {
    const std::string_view number = rest->substr(1);
    const bool all = *rest == "*";
    if (!all && !is_digits(number)) return false;
    out.kind = EventKind::kTrainingLoop;
    out.text = all ? std::string("steps of the loop")
                   : std::string("step ").append(shortened(number, 20)).append(" of the loop");
    out.what =
        "One step of the program's loop, from one prof.step() to the next, counted from the "
        "profiler's start; steps that were not recorded count, too.";
    out.gpu_work = "all that happens inside it";
    out.note =
        "The CPU's part only: on a GPU that is late, its kernels run on after the step's row has "
        "ended.";
    if (!all) out.details.emplace_back("step", std::string(number));
    out.group = "ProfilerStep#*";
    return true;
  }
  if (const auto rest = after(name, "Optimizer.step#")) return optimizer(*rest, ".step", true, out);
  if (const auto rest = after(name, "Optimizer.zero_grad#"))
    return optimizer(*rest, ".zero_grad", false, out);
  if (const auto rest = after(name, "enumerate(DataLoader)#");
      rest && rest->ends_with(".__next__")) {
    loader(rest->substr(0, rest->size() - 9), out);
    return true;
  }
  if (const Row* row = find_row(kTrainingRows, name)) {
    fill(EventKind::kTrainingLoop, *row, out);
    return true;
  }
  for (const std::string_view pass : {"forward", "backward"}) {
    const std::string start = std::string("FSDP::").append(pass).append("_prefetch for ");
    const auto module = after(name, start);
    if (!module || module->empty()) continue;
    out.kind = EventKind::kTrainingLoop;
    out.text = "FSDP gathers ahead";
    out.what = "The gathering of the next module's parameters is started.";
    out.details.emplace_back("module", std::string(*module));
    out.group = start + "*";
    return true;
  }
  // "FSDP::all_gather (layers.3)".
  const std::size_t bracket = name.find(" (");
  const std::string_view base = name.substr(0, std::min(bracket, name.find(" [")));
  if (const Row* row = find_row(kFsdp, base)) {
    fill(EventKind::kTrainingLoop, *row, out);
    out.what = "FullyShardedDataParallel, which keeps a part of each parameter on each GPU. " +
               std::string(row->what);
    if (bracket != name.npos) out.group = std::string(base).append(" (*)");
    if (bracket != name.npos && name.ends_with(')'))
      out.details.emplace_back("module",
                               std::string(name.substr(bracket + 2, name.size() - bracket - 3)));
    return true;
  }
  return false;
}

}  // namespace lanescope::names::events
