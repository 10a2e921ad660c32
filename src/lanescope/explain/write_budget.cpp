// Writes a budget file from a good trace.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lanescope/explain/budget.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain {
namespace {

// Limits that --write-budget writes; the other measures are for budgets written by hand.
constexpr std::string_view kTimes[] = {"wall", "median_wall"};
constexpr std::string_view kShares[] = {"idle", "exposed_communication", "exposed_copy"};
constexpr std::string_view kAmounts[] = {"host_waits", "launches",    "kernels",      "copies",
                                         "copy_bytes", "peak_memory", "peak_reserved"};
// Small shares of the wall can vary by more than their own size.
constexpr double kShareSlack = 0.01;

// Rounded up to three digits, so that the limit holds for the trace that it was made from.
std::string rounded_up(double value) {
  if (value <= 0) return "0";
  const double scale = std::pow(10.0, std::floor(std::log10(value)) - 2);
  const double up = std::ceil(value / scale - 1e-9) * scale;
  return fmt::format("{}", std::stod(fmt::format("{:.6g}", up)));
}

std::string time_text(double value_ns) {
  if (value_ns >= 1e9) return rounded_up(value_ns / 1e9) + " s";
  if (value_ns >= 1e6) return rounded_up(value_ns / 1e6) + " ms";
  return rounded_up(value_ns / 1e3) + " us";
}

std::string bytes_text(double value) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{:.0f} B", std::ceil(value))
                   : fmt::format("{} {}", rounded_up(value), kUnits[unit]);
}

class Writer {
 public:
  Writer(const Facts& facts, double slack) : facts_(facts), slack_(slack) {}

  Result<std::string> run(std::string_view source) {
    if (!facts_.main_device || facts_.selection.steady.empty())
      return Error{Errc::kInvalidArgument,
                   fmt::format("expected a trace to make a budget from; it lacks {}",
                               rules::need::kGpuWork.missing)};
    if (facts_.trace->import_stats().lost_anything())
      return Error{Errc::kInvalidArgument,
                   "expected a whole trace to make a budget from; of this one something was lost "
                   "(lanescope info lists it)"};
    std::string clean;  // the path without control characters, because it is in a comment line
    for (const char c : source)
      clean += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    out_ = fmt::format(
        "# lanescope check TRACE --budget THIS_FILE\n"
        "# Made from {} ({}), with {} % on top of what was measured.\n"
        "# Keys, units and what each number means: docs/formats/budget.md\n\n",
        clean,
        facts_.steps.marked ? fmt::format("{} steady {}", facts_.selection.steady.size(),
                                          facts_.selection.steady.size() == 1 ? "step" : "steps")
                            : std::string("a recording without steps"),
        fmt::format("{:g}", slack_ * 100));
    out_ += facts_.steps.marked ? "per = \"step\"\n" : "per = \"recording\"\n";
    out_ += "\n[at_most]\n";
    for (const std::string_view key : kTimes) time(key);
    for (const std::string_view key : kShares) share(key);
    for (const std::string_view key : kAmounts) amount(key);
    quiet_rules();
    return std::move(out_);
  }

 private:
  std::optional<MeasuredValue> measured(const Measure& measure) const {
    const Measured value = compute_measure(facts_, measure);
    const auto* found = std::get_if<MeasuredValue>(&value);
    return found ? std::optional(*found) : std::nullopt;
  }
  void line(std::string_view key, const std::string& value, const Measure& measure) {
    const std::string left = fmt::format("{} = {}", key, value);
    out_ += fmt::format("{:<36}  # {}\n", left, measure.meaning);
  }
  void time(std::string_view key) {
    const Measure& measure = *find_measure(key);
    if (const auto value = measured(measure))
      line(key, fmt::format("\"{}\"", time_text(value->real() * (1 + slack_))), measure);
  }
  void share(std::string_view key) {
    const Measure& measure = *find_measure(key);
    const auto value = measured(measure);
    const auto wall = static_cast<double>(facts_.wall.partition.wall_ns);
    if (!value || wall <= 0) return;
    const double part = static_cast<double>(value->total) / wall;
    const double limit = std::min(1.0, part * (1 + slack_) + kShareSlack);
    line(key, fmt::format("\"{:g} %\"", std::ceil(limit * 1000 - 1e-9) / 10), measure);
  }
  // Counts are whole: rounded down after the slack, but not below the measured value.
  void amount(std::string_view key) {
    const Measure& measure = *find_measure(key);
    const auto value = measured(measure);
    if (!value) return;
    if (measure.unit == MeasureUnit::kBytes)
      return line(key, fmt::format("\"{}\"", bytes_text(value->real() * (1 + slack_))), measure);
    const double limit =
        std::max(std::ceil(value->real()), std::floor(value->real() * (1 + slack_)));
    line(key, fmt::format("{:.0f}", limit), measure);
  }
  void quiet_rules() {
    const auto own = facts_of_explain(facts_);
    if (!own) return;
    const auto explanation = run_rules(*own ? **own : facts_);
    if (!explanation) return;
    std::string ids;
    for (const RuleRun& run : explanation->runs)
      if (run.state == RuleRun::State::kQuiet && find_rule(run.id)->is_regression)
        ids += fmt::format("{}\"{}\"", ids.empty() ? "" : ", ", run.id);
    if (!ids.empty()) out_ += fmt::format("\n[rules]\nmust_not_fire = [{}]\n", ids);
  }

  const Facts& facts_;
  double slack_;
  std::string out_;
};

}  // namespace

Result<std::string> write_budget(const Facts& facts, double slack, std::string_view source) {
  return Writer(facts, slack).run(source);
}

}  // namespace lanescope::explain
