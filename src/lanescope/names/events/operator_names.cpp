// Operators: those of PyTorch by their tables, those of libraries by their prefix, which is the
// namespace of TORCH_LIBRARY.
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/operator_rows.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

struct Library {
  std::string_view prefix, whose;
  bool may_be_kernel;  // its kernels are in a C++ namespace with that name
};
constexpr Library kLibraries[] = {
    {"prims", "PyTorch's own small set of primitives, which its compiler and reference code use",
     false},
    {"profiler", "PyTorch's profiler: it opens or closes a range", false},
    {"inductor", "PyTorch's compiler Inductor", false},
    {"inductor_prims", "PyTorch's compiler Inductor", false},
    {"quantized", "PyTorch's quantized layers", false},
    {"_quantized", "PyTorch's quantized layers", false},
    {"quantized_decomposed", "PyTorch's quantized layers", false},
    {"mkldnn", "oneDNN in PyTorch, on the CPU", false},
    {"onednn", "oneDNN in PyTorch, on the CPU", false},
    {"torchvision", "torchvision", false},
    {"torchaudio", "torchaudio", false},
    {"fbgemm", "FBGEMM, embedding tables and low-precision products", true},
    {"xformers", "xFormers", true},
    {"flash_attn", "FlashAttention", true},
    {"vllm", "vLLM, a server of language models", true},
    {"_C_cache_ops", "vLLM, which keeps keys and values of attention in a cache", true},
    {"_moe_C", "vLLM, mixtures of experts", true},
    {"sglang", "SGLang, a server of language models", true},
    {"sgl_kernel", "SGLang, a server of language models", true},
    {"aiter", "AITER, AMD's library of kernels for language models", true},
    {"npu", "torch_npu, PyTorch on Huawei's Ascend", false},
    {"torch_ipex", "Intel's extension for PyTorch", false},
    {"torchao", "torchao, quantization for PyTorch", true},
};

void explain_unlisted(std::string_view name, EventName& out) {
  const bool in_place = name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
  const bool backward = name.find("_backward") != name.npos;
  if (const auto rest = after(name, "_foreach_")) {
    const std::string each = shortened(in_place ? rest->substr(0, rest->size() - 1) : *rest, 60);
    out.text = std::string(each).append(" of a list of tensors");
    out.what = std::string("Does ").append(each).append(
        " to each tensor of a list, many tensors in one call; optimizers work so.");
    out.cpu_waits = cpu_waits_of(Cost::kList);
    out.gpu_work = gpu_work_of(Cost::kList);
    return;
  }
  out.text = std::string(name);
  out.what = "An ATen operator: one of the functions with which PyTorch computes on tensors.";
  if (backward) out.what = "An ATen operator of the backward pass: it computes gradients.";
  if (in_place) out.what += " The \"_\" at the end says that it changes its input.";
}

bool read_aten(std::string_view name, EventName& out) {
  // With overload names recorded: "add.Tensor".
  const std::string_view whole = name;
  std::string_view overload;
  if (const std::size_t dot = name.find('.'); dot != name.npos) {
    overload = name.substr(dot + 1);
    name = name.substr(0, dot);
    if (!is_identifier(overload)) return false;
  }
  if (!is_identifier(name)) return false;
  out.kind = EventKind::kOperator;
  if (const OperatorRow* row = find_operator_row(name)) {
    out.text = row->text;
    out.what = row->what;
    out.cpu_waits = cpu_waits_of(row->cost);
    out.gpu_work = gpu_work_of(row->cost);
    out.note = row->note;
    out.rule = row->rule;
  } else {
    explain_unlisted(name, out);
  }
  if (const PythonFunction python = documented_function(name); !python.name.empty())
    out.details.emplace_back("python", std::string(python.module).append(python.name));
  if (!overload.empty()) out.details.emplace_back("overload", std::string(overload));
  out.group = std::string("aten::").append(whole);
  return true;
}

}  // namespace

std::string_view operator_in_short(std::string_view name) {
  const OperatorRow* row = find_operator_row(name);
  return row ? row->text : std::string_view();
}

bool read_operator_name(std::string_view name, EventName& out) {
  if (const auto rest = after(name, "aten::")) return read_aten(*rest, out);
  // torch records the inner part of aten::detach as a separate row.
  if (name == "detach" || name == "detach_") {
    out.kind = EventKind::kOperator;
    out.text = std::string("inner row of aten::").append(name);
    out.what = std::string("The second of two rows that one call of aten::")
                   .append(name)
                   .append(" leaves.");
    out.cpu_waits = "no";
    out.gpu_work = "none";
    return true;
  }
  const std::size_t colons = name.find("::");
  if (colons == name.npos) return false;
  const std::string_view prefix = name.substr(0, colons), op = name.substr(colons + 2);
  const std::size_t dot = op.find('.');
  if (!is_identifier(op.substr(0, dot)) || (dot != op.npos && !is_identifier(op.substr(dot + 1))))
    return false;
  for (const Library& library : kLibraries) {
    if (library.prefix != prefix) continue;
    out.kind = EventKind::kOperator;
    out.text = shortened(op, 60).append(" (").append(prefix).append(")");
    out.what = std::string("An operator of ").append(library.whose).append(".");
    out.details.emplace_back("library", std::string(prefix));
    out.may_be_kernel = library.may_be_kernel && op.find("ernel") != op.npos;
    return true;
  }
  return false;
}

}  // namespace lanescope::names::events
