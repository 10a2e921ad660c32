// Rows of torch.distributed. Sources: the operators of torch/csrc/distributed/c10d (namespace c10d
// and _c10d_functional), the titles that its process groups give their work ("nccl:all_reduce"),
// and DDP's reducer.
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

// What a collective does, by a word of its name; longer words first.
struct Operation {
  std::string_view word, what;
};
constexpr Operation kOperations[] = {
    {"allreduce",
     "All processes add up their tensors (or combine them otherwise), and each gets the result."},
    {"reducescatter", "All processes add up their tensors, and each gets one part of the result."},
    {"allgather", "Each process gets the tensors of all."},
    {"alltoall", "Each process sends a part of its tensor to each other one."},
    {"broadcast", "One process sends its tensor to all others."},
    {"reduce", "All processes add up their tensors, and one of them gets the result."},
    {"gather", "One process gets the tensors of all."},
    {"scatter", "One process sends each other one a part."},
    {"monitoredbarrier", "All processes wait for each other, and the late ones are named."},
    {"barrier", "All processes wait for each other."},
    {"recvanysource", "A tensor is received from any process."},
    {"recv", "A tensor is received from one process."},
    {"send", "A tensor is sent to one process."},
    {"coalesced", "Several collectives are started as one."},
    {"waittensor", "Waits for a collective that was started before."},
};

std::string letters_of(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 64))
    if (c != '_') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

const Operation* operation_of(std::string_view name) {
  const std::string letters = letters_of(name);
  const auto* found = std::find_if(
      std::begin(kOperations), std::end(kOperations),
      [&letters](const Operation& row) { return letters.find(row.word) != letters.npos; });
  return found == std::end(kOperations) ? nullptr : found;
}

constexpr std::string_view kWaitNote =
    "On the GPU its kernel lasts until the slowest process has come: a long one may be waiting for "
    "another GPU.";

constexpr Row kCollectiveRows[] = {
    {"record_param_comms", "what a collective was called with",
     "torch.distributed notes a collective and its parameters: which one, how many elements, of "
     "which type, between which processes.",
     "", "none itself; the collective's kernel is launched about then",
     "Its length says nothing about the collective's.", ""},
    {"torch::distributed::reducer::mul_out", "DDP puts a gradient into its bucket",
     "DistributedDataParallel copies a gradient into the bucket that is sent, divided by the "
     "number of processes.",
     "no", "with GPU tensors an elementwise kernel",
     "One a parameter and step; gradient_as_bucket_view=True saves the copy.", ""},
    {"torch::distributed::reducer::copy_", "DDP puts a gradient into its bucket",
     "DistributedDataParallel copies a gradient into the bucket that is sent.", "no",
     "with GPU tensors a copy", "", ""},
    {"torch.distributed.ddp.reducer::copy_bucket_to_grad", "DDP takes a gradient out of its bucket",
     "DistributedDataParallel copies a summed gradient from the bucket back to the parameter.",
     "no", "with GPU tensors a copy",
     "One a parameter and step; gradient_as_bucket_view=True saves the copy.", ""},
    {"torch.distributed.ddp.reducer::search_unused_parameters", "DDP looks for unused parameters",
     "DistributedDataParallel walks the graph of gradients to find parameters that get none.", "no",
     "none", "Switched on by find_unused_parameters=True; needed only where there are any.", ""},
    {"All2All_Pooled_Req", "TorchRec sends looked-up embeddings",
     "TorchRec starts to exchange sums of looked-up rows of embedding tables between all "
     "processes."},
    {"All2All_Pooled_Wait", "TorchRec waits for looked-up embeddings",
     "TorchRec waits for the exchange of looked-up rows of embedding tables."},
    {"All2All_Pooled_ReqBackward", "TorchRec takes the gradients of embeddings",
     "The backward pass of TorchRec's exchange of looked-up rows: it waits for their gradients."},
    {"All2All_Pooled_WaitBackward", "TorchRec sends the gradients of embeddings",
     "The backward pass of TorchRec's exchange of looked-up rows: it starts to send their "
     "gradients."},
};

enum class Where : std::uint8_t {
  kStart,     // the title of work on a GPU: the row is its start
  kOperator,  // any device
  kCpu,
  kUnknown,
};
struct Prefix {
  std::string_view text, whose;
  Where where;
};
constexpr Prefix kPrefixes[] = {
    {"nccl:", "NCCL (of AMD's GPUs RCCL)", Where::kStart},
    {"gloo:", "Gloo, on the CPU", Where::kCpu},
    {"mpi:", "MPI", Where::kUnknown},
    {"ucc:", "UCC", Where::kUnknown},
    {"xccl:", "oneCCL, on Intel's GPUs", Where::kUnknown},
    {"c10d::", "torch.distributed", Where::kOperator},
    {"_c10d_functional::", "torch.distributed, in the form that torch.compile can follow",
     Where::kOperator},
    {"c10d_functional::", "torch.distributed, in the form that torch.compile can follow",
     Where::kOperator},
    {"symm_mem::", "torch.distributed, through memory that the GPUs share", Where::kOperator},
};

}  // namespace

bool read_collective_name(std::string_view name, EventName& out) {
  if (const Row* row = find_row(kCollectiveRows, name)) {
    fill(EventKind::kCollective, *row, out);
    return true;
  }
  for (const Prefix& prefix : kPrefixes) {
    const auto rest = after(name, prefix.text);
    if (!rest) continue;
    if (rest->empty() || rest->size() > 80) return false;
    // "nccl:send 0->1" has the processes after the word.
    const std::string_view word = rest->substr(0, rest->find(' '));
    if (!is_identifier(word)) return false;
    const Operation* operation = operation_of(word);
    if (!operation) return false;
    out.kind = EventKind::kCollective;
    out.text = shortened(word, 40).append(" through ").append(prefix.whose);
    out.what = std::string(operation->what);
    if (word.starts_with("fused_")) out.what += " In one with a matrix product.";
    if (operation->word == "waittensor") {
      out.text = "wait for a collective";
      out.cpu_waits = "no, with GPU tensors";
      out.gpu_work = "none: with GPU tensors the stream waits, not the CPU";
      return true;
    }
    const bool barrier = operation->word.ends_with("barrier");
    switch (prefix.where) {
      case Where::kStart:
        out.what += " On the CPU the row is only the starting of it.";
        if (!barrier) out.cpu_waits = "no: it returns when the collective is queued";
        if (!barrier) out.gpu_work = "the collective's kernel";
        out.note = std::string(kWaitNote).append(
            " Long on the CPU once: the first collective connects the processes.");
        break;
      case Where::kOperator:
        if (!barrier) out.gpu_work = "with GPU tensors the collective's kernel";
        out.note = kWaitNote;
        break;
      case Where::kCpu:
        if (!barrier)
          out.gpu_work = "none with CPU tensors; GPU tensors are copied to the CPU and back";
        break;
      case Where::kUnknown:
        break;
    }
    if (!barrier) out.rule = "communication-bound";
    out.details.emplace_back("collective", std::string(word));
    return true;
  }
  return false;
}

}  // namespace lanescope::names::events
