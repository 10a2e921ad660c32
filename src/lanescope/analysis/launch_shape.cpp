#include "lanescope/analysis/launch_shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

namespace lanescope::analysis {
namespace {

constexpr std::int64_t kMostBlocks = 1'000'000'000'000;  // blocks; no real grid is larger

// [x, y, z] multiplied. Asked of each kernel, so the numbers are read where they are.
std::optional<std::int64_t> volume(const Trace& trace, const ArgsView& args, ArgKey key) {
  const auto text = args.text(key);
  if (!text) return std::nullopt;
  std::string_view rest = trace.text(*text);
  const auto skip_spaces = [&] {
    while (rest.starts_with(' ') || rest.starts_with('\n') || rest.starts_with('\t'))
      rest.remove_prefix(1);
  };
  const auto take = [&](char wanted) {
    skip_spaces();
    if (!rest.starts_with(wanted)) return false;
    rest.remove_prefix(1);
    skip_spaces();
    return true;
  };
  std::int64_t product = 1;
  for (const char before : {'[', ',', ','}) {
    std::int64_t size = 0;
    if (!take(before)) return std::nullopt;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (read.ec != std::errc() || size < 1 || size > kMostBlocks / product) return std::nullopt;
    product *= size;
    rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
  }
  return take(']') && rest.empty() ? std::optional(product) : std::nullopt;
}

std::int64_t tiles_of(const GemmShape& gemm, std::int64_t tile_m, std::int64_t tile_n) {
  const auto pieces = [](std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; };
  const double tiles = static_cast<double>(gemm.batch) *
                       static_cast<double>(pieces(gemm.m, tile_m)) *
                       static_cast<double>(pieces(gemm.n, tile_n));
  return tiles > static_cast<double>(kMostBlocks) ? kMostBlocks : static_cast<std::int64_t>(tiles);
}

double efficiency_of(std::int64_t items, std::int64_t slots) {
  if (slots == 0 || items == 0) return 0;
  const double waves = static_cast<double>(items) / static_cast<double>(slots);
  return waves / std::ceil(waves);
}

}  // namespace

double LaunchShape::wave_efficiency() const {
  const double by_wave = efficiency_of(items, slots);
  // Fewer blocks on a multiprocessor run faster, so the loss is at most that of the multiprocessor
  // with one block more than the others.
  return is_persistent || by_wave == 0 ? by_wave
                                       : std::max(by_wave, efficiency_of(items, sm_count));
}

std::optional<LaunchShape> compute_launch_shape(const Trace& trace, SliceId kernel,
                                                const GpuDevice& device,
                                                const names::KernelName& name,
                                                const OperatorWork* work) {
  const ArgsView args = trace.slice_args(kernel);
  const auto registers = args.integer(ArgKey::kRegistersPerThread);
  const auto blocks = volume(trace, args, ArgKey::kGrid);
  const auto threads = volume(trace, args, ArgKey::kBlock);
  if (!registers || !blocks || !threads || device.sm_count.value_or(0) < 1) return std::nullopt;
  LaunchShape shape;
  shape.blocks = shape.items = *blocks;
  shape.block_threads = *threads;
  shape.sm_count = *device.sm_count;
  shape.occupancy = compute_gpu_occupancy(
      device, {.grid_blocks = *blocks,
               .block_threads = *threads,
               .registers_per_thread = *registers,
               .shared_bytes = args.integer(ArgKey::kSharedMemory).value_or(0)});
  if (shape.occupancy && shape.sm_count < 100'000)
    shape.slots = shape.sm_count * shape.occupancy->resident_blocks;
  // A block that computes several tiles: all blocks fit at once, and there are more tiles.
  if (!work || !work->gemm || !name.tile || name.tile->m == 0 || name.tile->n == 0 ||
      name.split_k || shape.slots == 0 || shape.blocks > shape.slots)
    return shape;
  // Column-major libraries compute the transposed matrix, so the tile may be transposed.
  const std::int64_t upright = tiles_of(*work->gemm, name.tile->m, name.tile->n);
  const std::int64_t turned = tiles_of(*work->gemm, name.tile->n, name.tile->m);
  if (std::min(upright, turned) <= shape.blocks) return shape;
  shape.is_persistent = true;
  shape.slots = shape.blocks;
  // Unknown which: take the one that wastes less.
  shape.items =
      efficiency_of(upright, shape.slots) >= efficiency_of(turned, shape.slots) ? upright : turned;
  return shape;
}

}  // namespace lanescope::analysis
