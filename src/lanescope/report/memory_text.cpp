#include "lanescope/report/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "lanescope/analysis/thinning.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::MemoryDevice;
using analysis::MemoryHeld;
using analysis::MemoryOwner;
using analysis::MemorySample;
using analysis::MemoryShare;
using analysis::MemoryTimeline;

constexpr std::size_t kMemoryBarWidth = 40, kTimeRows = 16, kOwnerWidth = 90;
constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();

std::string device_text(const MemoryDevice& device) {
  const std::string type = analysis::device_type_name(device.type);
  return device.is_accelerator() ? fmt::format("{} {}", type, device.id) : type;
}

std::int64_t peak_within(const MemoryDevice& device, std::int64_t start_ns, std::int64_t end_ns) {
  std::int64_t peak = device.allocated_before(start_ns);
  auto sample = std::lower_bound(
      device.samples.begin(), device.samples.end(), start_ns,
      [](const MemorySample& each, std::int64_t time) { return each.time_ns < time; });
  for (; sample != device.samples.end() && sample->time_ns < end_ns; ++sample)
    peak = std::max(peak, sample->allocated);
  return peak;
}

std::int64_t bytes_of(const std::vector<MemoryShare>& shares) {
  std::int64_t bytes = 0;
  for (const MemoryShare& share : shares) bytes = analysis::add_bytes(bytes, share.bytes);
  return bytes;
}

class MemoryText {
 public:
  MemoryText(const Trace& trace, const MemoryTimeline& timeline, std::size_t rows)
      : trace_(trace),
        timeline_(timeline),
        rows_(rows),
        end_ns_(analysis::find_memory_end(trace)) {}

  std::string run() {
    if (timeline_.devices.empty() && end_ns_)
      return "The trace has no memory records: the recording's budget had ended them before.\n";
    if (timeline_.devices.empty())
      return "The trace has no memory records; record with profile_memory=True.\n";
    for (const bool accelerators : {true, false})
      for (const MemoryDevice& device : timeline_.devices)
        if (device.is_accelerator() == accelerators) write_device(device);
    return std::move(out_);
  }

 private:
  void write_device(const MemoryDevice& device) {
    const MemorySample& peak = device.samples[device.peak];
    out_ += fmt::format("{}{}: {} records", out_.empty() ? "" : "\n", device_text(device),
                        format_count(device.samples.size()));
    out_ += device.has_totals
                ? fmt::format("; allocated: {} at the start, {} at most, {} at the end",
                              format_size(device.allocated_at_start()), format_size(peak.allocated),
                              format_size(device.samples.back().allocated))
                : fmt::format(
                      "; allocated since the start of the recording (no totals in the "
                      "file): {} at most, {} at the end",
                      format_size(peak.allocated), format_size(device.samples.back().allocated));
    if (device.has_reserved)
      out_ += fmt::format("; reserved {} at most", format_size(device.peak_reserved));
    if (end_ns_)
      out_ += fmt::format("; recorded for the first {} only, to keep the budget",
                          format_time_ns(*end_ns_ - trace_.window_start_ns()));
    out_ += '\n';
    if (is_small_cpu_use(device)) return;
    write_levels(device);
    write_peak(device);
    write_steps(device);
    write_kept(device);
    if (device.lost_free_count > 0)
      out_ += fmt::format("  {} addresses were allocated again without a record of their release\n",
                          format_count(device.lost_free_count));
  }

  // Less than 1 MB on the CPU next to a GPU: one line is enough.
  bool is_small_cpu_use(const MemoryDevice& device) const {
    return !device.is_accelerator() && timeline_.devices.size() > 1 &&
           device.samples[device.peak].allocated < 1'000'000;
  }

  // The recording in equal periods, and the most that was allocated in each.
  void write_levels(const MemoryDevice& device) {
    const std::int64_t start = device.samples.front().time_ns;
    const std::int64_t length = device.samples.back().time_ns - start + 1;
    const std::int64_t most = device.samples[device.peak].allocated;
    if (length < static_cast<std::int64_t>(kTimeRows) || most <= 0) return;
    out_ += "\n  most allocated, and since when\n";
    for (std::size_t i = 0; i < kTimeRows; ++i) {
      const auto at = [&](std::size_t row) {
        return start +
               length / static_cast<std::int64_t>(kTimeRows) * static_cast<std::int64_t>(row) +
               (row == kTimeRows ? length % static_cast<std::int64_t>(kTimeRows) : 0);
      };
      const std::int64_t bytes = peak_within(device, at(i), at(i + 1));
      const auto filled = static_cast<std::size_t>(
          std::clamp(static_cast<double>(bytes) / static_cast<double>(most), 0.0, 1.0) *
              static_cast<double>(kMemoryBarWidth) +
          0.5);
      out_ += fmt::format("  {} {}{} {}\n",
                          pad_left(format_time_ns(at(i) - trace_.window_start_ns()), 12),
                          std::string(filled, '#'), std::string(kMemoryBarWidth - filled, '.'),
                          pad_left(format_size(bytes), 10));
    }
  }

  void write_peak(const MemoryDevice& device) {
    const MemorySample& peak = device.samples[device.peak];
    out_ += fmt::format("\n  the peak, {} at {}", format_size(peak.allocated),
                        format_time_ns(peak.time_ns - trace_.window_start_ns()));
    for (const auto& step : compute_memory_steps(trace_, device))
      if (peak.time_ns >= step.start_ns && peak.time_ns < step.end_ns)
        out_ += fmt::format(" in step {}", step.number);
    if (!device.has_blocks) {
      out_ += "; the records have no addresses, so what held it is unknown\n";
      return;
    }
    out_ += ", was held by\n";
    const MemoryHeld held = memory_held(device, device.peak);
    if (held.earlier_bytes != 0)
      out_ += fmt::format("  {}  allocated before the recording\n",
                          pad_left(format_size(held.earlier_bytes), 10));
    write_shares(held.shares);
  }

  void write_shares(const std::vector<MemoryShare>& shares) {
    std::int64_t rest = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (i >= rows_) {
        rest = analysis::add_bytes(rest, shares[i].bytes);
        continue;
      }
      const MemoryShare& share = shares[i];
      out_ += fmt::format(
          "  {}  {} in {} block{}\n", pad_left(format_size(share.bytes), 10),
          shorten(memory_owner_text(trace_, timeline_.owners[share.owner]), kOwnerWidth),
          format_count(share.blocks), share.blocks == 1 ? "" : "s");
    }
    if (shares.size() > rows_)
      out_ += fmt::format("  {}  {} more\n", pad_left(format_size(rest), 10),
                          format_count(shares.size() - rows_));
  }

  void write_steps(const MemoryDevice& device) {
    const auto steps = compute_memory_steps(trace_, device);
    if (steps.empty()) return;
    out_ += fmt::format("\n  {} {} {} {} {}\n", pad_left("step", 8), pad_left("at its start", 13),
                        pad_left("at most", 13), pad_left("at its end", 13),
                        pad_left("not freed of it", 16));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i == rows_ && steps.size() - i > 1) out_ += fmt::format("  {}\n", pad_left("...", 8));
      if (i >= rows_ && steps.size() - i > 1) continue;  // the last one is always there
      const analysis::MemoryStep& step = steps[i];
      out_ += fmt::format(
          "  {} {} {} {} {}\n", pad_left(std::to_string(step.number), 8),
          pad_left(format_size(step.start_bytes), 13), pad_left(format_size(step.peak_bytes), 13),
          pad_left(format_size(step.end_bytes), 13),
          pad_left(device.has_blocks ? format_size(step.never_freed_bytes) : "unknown", 16));
    }
  }

  void write_kept(const MemoryDevice& device) {
    if (!device.has_blocks) return;
    const auto shares = never_freed(device, std::numeric_limits<std::int64_t>::min(), kEver);
    if (shares.empty()) {
      out_ += end_ns_ ? "\n  everything that was allocated in this time was freed in it\n"
                      : "\n  everything that was allocated in the recording was freed in it\n";
      return;
    }
    out_ += fmt::format("\n  allocated in {0} and not freed in it: {1}\n",
                        end_ns_ ? "this time" : "the recording", format_size(bytes_of(shares)));
    write_shares(shares);
  }

  const Trace& trace_;
  const MemoryTimeline& timeline_;
  std::size_t rows_;
  std::optional<std::int64_t> end_ns_;  // where a budget ended the records
  std::string out_;
};

void write_json_shares(JsonWriter& json, std::string_view key,
                       const std::vector<MemoryShare>& shares) {
  json.begin_array(key);
  for (const MemoryShare& share : shares)
    json.begin_object()
        .integer("owner", share.owner)
        .integer("bytes", share.bytes)
        .integer("block_count", share.blocks)
        .end_object();
  json.end_array();
}

void write_json_steps(JsonWriter& json, const Trace& trace, const MemoryDevice& device) {
  json.begin_array("steps");
  for (const auto& step : compute_memory_steps(trace, device)) {
    json.begin_object()
        .integer("number", step.number)
        .integer("start_bytes", step.start_bytes)
        .integer("peak_bytes", step.peak_bytes)
        .integer("end_bytes", step.end_bytes);
    if (device.has_blocks)
      json.integer("never_freed_bytes", step.never_freed_bytes);
    else
      json.null("never_freed_bytes");
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string memory_owner_text(const Trace& trace, const MemoryOwner& owner) {
  std::string text = one_line(trace.text(owner.op));
  if (text.empty()) text = "outside any operator";
  if (owner.annotation != kNone<StringId>) text += " in " + one_line(trace.text(owner.annotation));
  if (owner.frame != kNone<StringId>) text += ", " + one_line(trace.text(owner.frame));
  return text;
}

std::string memory_text(const Trace& trace, const MemoryTimeline& timeline, std::size_t rows) {
  return MemoryText(trace, timeline, rows).run();
}

std::string memory_json(const Trace& trace, const MemoryTimeline& timeline) {
  const auto end_ns = analysis::find_memory_end(trace);
  JsonWriter json("memory");
  json.begin_array("owners");
  for (const MemoryOwner& owner : timeline.owners)
    json.begin_object()
        .text("op", trace.text(owner.op))
        .text("annotation", trace.text(owner.annotation))
        .text("frame", trace.text(owner.frame))
        .end_object();
  json.end_array().begin_array("devices");
  for (const MemoryDevice& device : timeline.devices) {
    const MemorySample& peak = device.samples[device.peak];
    json.begin_object()
        .text("type", analysis::device_type_name(device.type))
        .integer("device", device.id)
        .boolean("has_totals", device.has_totals)
        .boolean("has_addresses", device.has_blocks)
        .integer("start_bytes", device.allocated_at_start())
        .integer("peak_bytes", peak.allocated)
        .integer("peak_time_ns", peak.time_ns)
        .integer("end_bytes", device.samples.back().allocated);
    if (end_ns)
      json.integer("recorded_until_ns", *end_ns);
    else
      json.null("recorded_until_ns");
    if (device.has_reserved)
      json.integer("peak_reserved_bytes", device.peak_reserved);
    else
      json.null("peak_reserved_bytes");
    json.integer("lost_free_count", device.lost_free_count);
    if (device.has_blocks) {
      const MemoryHeld held = memory_held(device, device.peak);
      json.integer("held_at_peak_from_before_bytes", held.earlier_bytes);
      write_json_shares(json, "held_at_peak", held.shares);
      write_json_shares(json, "never_freed",
                        never_freed(device, std::numeric_limits<std::int64_t>::min(), kEver));
    }
    write_json_steps(json, trace, device);
    json.begin_array("records");
    for (const MemorySample& sample : device.samples)
      json.begin_object()
          .integer("time_ns", sample.time_ns)
          .integer("bytes", sample.bytes)
          .integer("allocated_bytes", sample.allocated)
          .integer("reserved_bytes", sample.reserved)
          .end_object();
    json.end_array().end_object();
  }
  json.end_array();
  return json.take();
}

}  // namespace lanescope::report
