// What the name of a GPU kernel says: its library, what it computes, in which types and tiles.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::names {

// The m x n tile of the result that one thread block computes. It adds up the sum over k in steps of this k.
struct KernelTile {
  std::uint32_t m = 0, n = 0;
  std::optional<std::uint32_t> k;
  bool operator==(const KernelTile&) const = default;
};

// Every field comes from the name (docs/definitions/names.md#kernel-names gives the sources). A field
// is empty if the name does not say it, or if nobody has published what the name says. Types are written f64
// f32 tf32 bf16 f16 f8e4m3 f8e5m2 i8 u8 i32 i64 bool c64 ...
struct KernelName {
  // The short form for people, usually up to 60 characters, at most kLongestText bytes. For an
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
  std::vector<std::string> epilogue;    // "bias", "relu", "gelu", ...: applied to the result
  bool split_k = false;                 // several blocks share the sum over k
  std::optional<std::uint32_t> split_k_count;
  std::vector<std::string> fused;  // operators of a compiler's fused kernel, in the name's order
  std::optional<std::uint32_t> vector_width;   // elements that a thread loads at once
  std::string algorithm, protocol, reduction;  // collectives: "ring", "LL128", "sum"

  // True: lanescope recognised at least a part of the name.
  bool known() const { return !library.empty() || !operation.empty(); }
  bool operator==(const KernelName&) const = default;
};

inline constexpr std::size_t kLongestText = 100;

// Accepts any bytes: megabytes of text, unbalanced brackets, control characters, invalid UTF-8. Reads
// only the first 64 KiB, in linear time; recursion has a fixed limit. The text can contain any
// character of the name: escape it for a terminal. Any thread.
KernelName parse_kernel_name(std::string_view name);
// True: KernelName::kind is "collective". Takes less time than to parse all of the name.
bool is_collective_kernel(std::string_view name);
// KernelName::text if that is known(), else the name as it is. Escape it for a terminal.
std::string readable_kernel_name(std::string_view name);

}  // namespace lanescope::names
