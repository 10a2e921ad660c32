#include "lanescope/explain/rules/attention_rates.h"

#include <array>

namespace lanescope::explain::rules {
namespace {

// Lengths of up to 4,096: the time of the kernels, median of nine calls. 8,192: timed by events on the GPU.
constexpr std::array kRates = std::to_array<AttentionRate>({
    // head size, causal, length, positions, forward, backward
    {64, false, 256, 131072, 288, 185},   {64, false, 256, 524288, 318, 197},
    {64, false, 512, 131072, 361, 267},   {64, false, 512, 524288, 375, 284},
    {64, false, 1024, 131072, 406, 346},  {64, false, 1024, 524288, 426, 371},
    {64, false, 2048, 131072, 433, 409},  {64, false, 2048, 524288, 457, 431},
    {64, false, 4096, 131072, 458, 449},  {64, false, 4096, 524288, 477, 459},
    {64, false, 8192, 131072, 443, 403},  {64, true, 256, 131072, 153, 96},
    {64, true, 256, 524288, 181, 105},    {64, true, 512, 131072, 223, 156},
    {64, true, 512, 524288, 256, 174},    {64, true, 1024, 131072, 296, 226},
    {64, true, 1024, 524288, 330, 254},   {64, true, 2048, 131072, 340, 293},
    {64, true, 2048, 524288, 390, 330},   {64, true, 4096, 131072, 375, 350},
    {64, true, 4096, 524288, 434, 389},   {64, true, 8192, 131072, 358, 340},
    {128, false, 256, 131072, 424, 222},  {128, false, 256, 524288, 442, 241},
    {128, false, 512, 131072, 515, 328},  {128, false, 512, 524288, 544, 363},
    {128, false, 1024, 131072, 578, 435}, {128, false, 1024, 524288, 617, 464},
    {128, false, 2048, 131072, 634, 515}, {128, false, 2048, 524288, 654, 533},
    {128, false, 4096, 131072, 663, 565}, {128, false, 4096, 524288, 674, 574},
    {128, false, 8192, 131072, 655, 543}, {128, true, 256, 131072, 223, 121},
    {128, true, 256, 524288, 250, 132},   {128, true, 512, 131072, 327, 202},
    {128, true, 512, 524288, 362, 228},   {128, true, 1024, 131072, 404, 296},
    {128, true, 1024, 524288, 469, 335},  {128, true, 2048, 131072, 477, 386},
    {128, true, 2048, 524288, 550, 431},  {128, true, 4096, 131072, 536, 456},
    {128, true, 4096, 524288, 602, 502},  {128, true, 8192, 131072, 539, 435},
    {256, false, 8192, 131072, 714, 356}, {256, true, 8192, 131072, 610, 391},
});

}  // namespace

std::span<const AttentionRate> attention_rates() { return kRates; }

FoundRate find_attention_rate(std::int64_t head_size, bool is_causal, std::int64_t length,
                              std::int64_t positions) {
  FoundRate found;
  for (const AttentionRate& row : kRates) {
    if (row.head_size != head_size || row.is_causal != is_causal || row.length > length) continue;
    const bool is_above = row.positions > positions;
    const bool is_better = !found.row || row.length > found.row->length ||
                           (row.length == found.row->length &&
                            (is_above ? found.is_above && row.positions < found.row->positions
                                      : found.is_above || row.positions > found.row->positions));
    if (is_better) found = {&row, is_above};
  }
  return found;
}

}  // namespace lanescope::explain::rules
