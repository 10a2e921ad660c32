#include "lanescope/simulate/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "lanescope/base/duration.h"

namespace lanescope::simulate {
namespace {

constexpr char kChangeForms[] =
    "'speed NAME 2x', 'cpu 1.5x', 'gpu 1.5x', 'gpu NAME', 'copies 2x', 'communication 2x', "
    "'loader 2x', 'workers N', 'batch 2x', 'remove NAME', 'fuse NAME', 'remove-sync [PATTERN]', "
    "'no-profiler [US]', 'cuda-graph', 'pin [GB/S]' or 'overlap-copies'";

Error wrong_change(std::string_view found, std::string_view expected) {
  return {Errc::kInvalidArgument, fmt::format("expected {}; found '{}'", expected, found)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "2x": 2. Nothing: not a factor from 0.01 to 1000.
std::optional<double> factor_of(std::string_view text) {
  const std::optional<double> value = take_decimal(&text);
  if (!value || text != "x" || *value < 0.01 || *value > 1000) return std::nullopt;
  return value;
}

// "50", "50GB/s" or "50 GB/s" with that unit.
std::optional<double> number_of(std::string_view text, std::string_view unit) {
  const std::optional<double> value = take_decimal(&text);
  text = trimmed(text);
  if (!value || (!text.empty() && text != unit)) return std::nullopt;
  return value;
}

Result<Change> parse_speed(Change change, std::string_view rest) {
  const std::size_t space = rest.find_last_of(' ');
  const auto factor =
      space == std::string_view::npos ? std::nullopt : factor_of(rest.substr(space + 1));
  if (!factor)
    return wrong_change(change.text,
                        "'speed NAME 2x': a kernel or operator and how many times faster");
  change.name = trimmed(rest.substr(0, space));
  change.factor = *factor;
  return change;
}

// A kind of time and how many times faster it is; for the GPU also the name of another one.
Result<Change> parse_scale(Change change, std::string_view word, std::string_view rest) {
  change.kind = word == "gpu"             ? ChangeKind::kGpu
                : word == "copies"        ? ChangeKind::kCopies
                : word == "communication" ? ChangeKind::kCommunication
                : word == "loader"        ? ChangeKind::kLoader
                                          : ChangeKind::kBatch;
  if (const auto factor = factor_of(rest)) {
    change.factor = *factor;
    return change;
  }
  if (word == "gpu" && !rest.empty()) {
    change.name = rest;
    return change;
  }
  return wrong_change(change.text, word == "gpu" ? "'gpu 1.5x' or 'gpu NAME'"
                                   : word == "batch"
                                       ? "'batch 2x': how many times larger"
                                       : fmt::format("'{} 2x': how many times faster", word));
}

// "4", "8 from 2".
Result<Change> parse_workers(Change change, std::string_view rest) {
  change.kind = ChangeKind::kWorkers;
  change.number = take_decimal(&rest);
  rest = trimmed(rest);
  if (rest.starts_with("from ")) {
    rest = trimmed(rest.substr(5));
    change.from = take_decimal(&rest);
    if (!change.from || *change.from < 1) change.number.reset();
  }
  if (!change.number || *change.number < 1 || !trimmed(rest).empty())
    return wrong_change(change.text,
                        "'workers 4' or 'workers 8 from 2': how many, and how many there are now");
  return change;
}

}  // namespace

Result<Change> parse_change(std::string_view text) {
  text = trimmed(text);
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space), rest = trimmed(text.substr(space));
  Change change;
  change.text = text;
  if (word == "speed") {
    change.kind = ChangeKind::kSpeed;
    return parse_speed(std::move(change), rest);
  }
  if (word == "cpu") {
    const auto factor = factor_of(rest);
    if (!factor) return wrong_change(text, "'cpu 1.5x': how many times faster the CPU is");
    change.kind = ChangeKind::kCpu;
    change.factor = *factor;
    return change;
  }
  if (word == "remove" || word == "fuse" || word == "remove-sync") {
    change.kind = word == "remove" ? ChangeKind::kRemove
                  : word == "fuse" ? ChangeKind::kFuse
                                   : ChangeKind::kRemoveSync;
    change.name = rest;
    if (word != "remove-sync" && rest.empty())
      return wrong_change(text, fmt::format("'{} NAME': a kernel, an operator or a range", word));
    return change;
  }
  if (word == "gpu" || word == "copies" || word == "communication" || word == "loader" ||
      word == "batch")
    return parse_scale(std::move(change), word, rest);
  if (word == "workers") return parse_workers(std::move(change), rest);
  if (word == "no-profiler" || word == "pin") {
    const bool pin = word == "pin";
    change.kind = pin ? ChangeKind::kPin : ChangeKind::kNoProfiler;
    if (rest.empty()) return change;
    change.number = number_of(rest, pin ? "GB/s" : "us");
    if (!change.number || (pin && *change.number <= 0))
      return wrong_change(text,
                          pin ? "'pin' or 'pin 50 GB/s'" : "'no-profiler' or 'no-profiler 0.8 us'");
    return change;
  }
  if ((word == "cuda-graph" || word == "overlap-copies") && rest.empty()) {
    change.kind = word == "cuda-graph" ? ChangeKind::kCudaGraph : ChangeKind::kOverlapCopies;
    return change;
  }
  return wrong_change(text, kChangeForms);
}

}  // namespace lanescope::simulate
