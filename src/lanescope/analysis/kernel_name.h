// What the name of a GPU kernel says: whose kernel it is, what it computes, in which types and
// tiles.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::analysis {

// How much of C a thread block computes at once; k: how far it steps along the sum.
struct KernelTile {
  std::uint32_t m = 0, n = 0;
  std::optional<std::uint32_t> k;
  bool operator==(const KernelTile&) const = default;
};

// Every field is what the name itself says (docs/definitions.md#kernel-names says from where); an
// empty field is one that the name does not give, or whose meaning nobody has published. Types are
// written f64 f32 tf32 bf16 f16 f8e4m3 f8e5m2 i8 u8 i32 i64 bool c64 ...
struct KernelName {
  // The short form that people read, usually up to 60 characters, at most kLongestText bytes. Of an
  // unknown name: the name without template arguments, parameters and namespaces.
  std::string text;
  std::string library;       // "cuBLAS", "ATen", "NCCL", ...
  std::string kind;          // "gemm", "convolution", "attention", "elementwise", "collective", ...
  std::string operation;     // "GEMM", "add", "AllReduce", "layer norm backward", ...
  std::string variant;       // how: "elementwise", "persistent reduction", "winograd", ...
  std::string architecture;  // "ampere", "sm90", "gfx942", ...
  std::string input_type, accumulate_type, output_type;
  std::optional<KernelTile> tile;
  std::optional<std::uint32_t> stages;  // depth of the software pipeline
  std::string warps, cluster;           // "2x2x1", "2x1x1"
  std::string layout;                   // "nn", "nt", "tn", "tt", as the name writes it
  std::vector<std::string> epilogue;    // "bias", "relu", "gelu", ...: computed on the way out
  bool split_k = false;                 // the sum over k is shared by several blocks
  std::optional<std::uint32_t> split_k_count;
  std::vector<std::string> fused;  // operators of a compiler's fused kernel, in the name's order
  std::optional<std::uint32_t> vector_width;   // elements that a thread loads at once
  std::string algorithm, protocol, reduction;  // collectives: "ring", "LL128", "sum"

  // Whether anything was recognised.
  bool known() const { return !library.empty() || !operation.empty(); }
  bool operator==(const KernelName&) const = default;
};

inline constexpr std::size_t kLongestText = 100;

// Any bytes are a name: text of megabytes, unbalanced brackets, control characters, no UTF-8.
// Linear in the first 64 KiB, which is all that is read; no recursion beyond a fixed depth. The
// text holds whatever characters the name holds: escape it before a terminal. Any thread.
KernelName parse_kernel_name(std::string_view name);
// Its text where anything was recognised, else the name as it is. Escape it before a terminal.
std::string readable_kernel_name(std::string_view name);

}  // namespace lanescope::analysis
