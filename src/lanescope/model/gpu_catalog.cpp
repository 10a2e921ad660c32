#include "lanescope/model/gpu_catalog.h"

#include <cctype>
#include <string>

namespace lanescope {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr std::int64_t kMiB = 1024 * 1024;
constexpr auto kUnknown = std::nullopt;

constexpr GpuPeakRates tera(std::optional<double> fp64, std::optional<double> fp64_matrix,
                            std::optional<double> fp32, std::optional<double> tf32,
                            std::optional<double> bf16, std::optional<double> fp16,
                            std::optional<double> fp8, std::optional<double> int8) {
  const auto scale = [](std::optional<double> value) {
    return value ? std::optional<double>(*value * kTera) : std::nullopt;
  };
  return {scale(fp64), scale(fp64_matrix), scale(fp32), scale(tf32),
          scale(bf16), scale(fp16),        scale(fp8),  scale(int8)};
}

// Data sheets that name only rates with sparsity: half of them is the dense rate.
// Columns of tera(): fp64, fp64_matrix, fp32, tf32, bf16, fp16, fp8, int8.
constexpr GpuSpec kSpecs[] = {
    {"NVIDIA V100 SXM2", "v100-sxm2", 7, 0, 900 * kGiga, 6 * kMiB,
     tera(7.8, kUnknown, 15.7, kUnknown, kUnknown, 125, kUnknown, kUnknown),
     "NVIDIA Tesla V100 data sheet; V100 architecture white paper (L2)", 3},
    {"NVIDIA V100 PCIe", "v100-pcie", 7, 0, 900 * kGiga, 6 * kMiB,
     tera(7, kUnknown, 14, kUnknown, kUnknown, 112, kUnknown, kUnknown),
     "NVIDIA Tesla V100 data sheet; V100 architecture white paper (L2)", 3},
    {"NVIDIA V100S PCIe", "v100s-pcie", 7, 0, 1134 * kGiga, 6 * kMiB,
     tera(8.2, kUnknown, 16.4, kUnknown, kUnknown, 130, kUnknown, kUnknown),
     "NVIDIA V100 data sheet (V100S)", 3},
    {"NVIDIA T4", "t4", 7, 5, 320 * kGiga, 4 * kMiB,
     tera(kUnknown, kUnknown, 8.1, kUnknown, kUnknown, 65, kUnknown, 130),
     "NVIDIA T4 data sheet; Turing architecture white paper (L2)", 3},
    {"NVIDIA A100 SXM 40GB", "a100-sxm4-40gb", 8, 0, 1555 * kGiga, 40 * kMiB,
     tera(9.7, 19.5, 19.5, 156, 312, 312, kUnknown, 624),
     "NVIDIA A100 data sheet; A100 architecture white paper (L2)", 4},
    {"NVIDIA A100 SXM 80GB", "a100-sxm4-80gb", 8, 0, 2039 * kGiga, 40 * kMiB,
     tera(9.7, 19.5, 19.5, 156, 312, 312, kUnknown, 624),
     "NVIDIA A100 data sheet; A100 architecture white paper (L2)", 4},
    {"NVIDIA A100 PCIe 40GB", "a100-pcie-40gb", 8, 0, 1555 * kGiga, 40 * kMiB,
     tera(9.7, 19.5, 19.5, 156, 312, 312, kUnknown, 624),
     "NVIDIA A100 data sheet; A100 architecture white paper (L2)", 4},
    {"NVIDIA A100 PCIe 80GB", "a100 80gb pcie", 8, 0, 1935 * kGiga, 40 * kMiB,
     tera(9.7, 19.5, 19.5, 156, 312, 312, kUnknown, 624),
     "NVIDIA A100 data sheet; A100 architecture white paper (L2)", 4},
    {"NVIDIA GeForce RTX 3090", "rtx 3090", 8, 6, 936 * kGiga, 6 * kMiB,
     tera(kUnknown, kUnknown, 35.6, 35.6, 71, 71, kUnknown, 284),
     "NVIDIA Ampere GA102 architecture white paper", 4},
    {"NVIDIA GeForce RTX 4090", "rtx 4090", 8, 9, 1008 * kGiga, 72 * kMiB,
     tera(kUnknown, kUnknown, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6),
     "NVIDIA Ada GPU architecture white paper", 4},
    {"NVIDIA L4", "l4", 8, 9, 300 * kGiga, kUnknown,
     tera(kUnknown, kUnknown, 30.3, 60, 121, 121, 242.5, 242.5),
     "NVIDIA L4 data sheet (halved: 120, 242, 242, 485, 485 with sparsity)", 4},
    {"NVIDIA L40S", "l40s", 8, 9, 864 * kGiga, kUnknown,
     tera(kUnknown, kUnknown, 91.6, 183, 362, 362, 733, 733), "NVIDIA L40S data sheet", 4},
    {"NVIDIA H100 SXM", "h100 80gb hbm3", 9, 0, 3350 * kGiga, 50 * kMiB,
     tera(34, 67, 67, 494.5, 989.5, 989.5, 1979, 1979),
     "NVIDIA H100 data sheet (halved: 989, 1979, 1979, 3958, 3958 with sparsity); H100 "
     "architecture white paper (L2)",
     5},
    {"NVIDIA H100 PCIe", "h100 pcie", 9, 0, 2000 * kGiga, 50 * kMiB,
     tera(26, 51, 51, 378, 756.5, 756.5, 1513, 1513),
     "NVIDIA H100 data sheet (halved: 756, 1513, 1513, 3026, 3026 with sparsity); H100 "
     "architecture white paper (L2)",
     5},
    {"NVIDIA H200 SXM", "h200", 9, 0, 4800 * kGiga, kUnknown,
     tera(34, 67, 67, 494.5, 989.5, 989.5, 1979, 1979),
     "NVIDIA H200 data sheet (halved: 989, 1979, 1979, 3958, 3958 with sparsity)", 5},
    {"NVIDIA H200 NVL", "h200 nvl", 9, 0, 4800 * kGiga, kUnknown,
     tera(30, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5),
     "NVIDIA H200 data sheet (halved: 835, 1671, 1671, 3341, 3341 with sparsity)", 5},
    {"NVIDIA B200", "b200", 10, 0, 8000 * kGiga, kUnknown,
     tera(37, 37, 75, 1125, 2250, 2250, 4500, 4500),
     "NVIDIA HGX platform data sheet, HGX B200, an eighth of eight GPUs (halved: 18, 36, 36, 72, "
     "72 peta with sparsity)"},
    // ROCm shows each of the two dies of an MI250X as a device: half of the data sheet's package.
    {"AMD Instinct MI250X (one die)", "mi250x", 9, 0, 1638.4 * kGiga, 8 * kMiB,
     tera(23.95, 47.85, 23.95, kUnknown, 191.5, 191.5, kUnknown, 191.5),
     "AMD Instinct MI250X data sheet, halved; CDNA 2 white paper (L2)"},
    {"AMD Instinct MI300X", "mi300x", 9, 4, 5300 * kGiga, kUnknown,
     tera(81.7, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9),
     "AMD Instinct MI300X data sheet", 5},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool has_words(std::string_view text, std::string_view words) {
  for (std::size_t at = text.find(words); at != std::string_view::npos;
       at = text.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if ((at == 0 || !is_word_char(text[at - 1])) &&
        (end == text.size() || !is_word_char(text[end])))
      return true;
  }
  return false;
}

}  // namespace

const GpuSpec* find_gpu_spec(const GpuDevice& device) {
  if (!device.compute_major || !device.compute_minor) return nullptr;
  const std::string name = lower(device.name);
  if (device.is_mig.value_or(false) || name.find(" mig ") != std::string::npos) return nullptr;
  const GpuSpec* best = nullptr;
  for (const GpuSpec& spec : kSpecs)
    if (spec.compute_major == *device.compute_major &&
        spec.compute_minor == *device.compute_minor && has_words(name, spec.pattern) &&
        (!best || spec.pattern.size() > best->pattern.size()))
      best = &spec;
  return best;
}

std::span<const GpuSpec> gpu_specs() { return kSpecs; }

double pcie_bytes_per_s(int generation) {
  constexpr double kGigabytesOfLane[] = {0.985, 1.969, 3.938};
  return 16 * kGigabytesOfLane[generation - 3] * kGiga;
}

}  // namespace lanescope
