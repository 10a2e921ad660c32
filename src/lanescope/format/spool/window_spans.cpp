#include "lanescope/format/spool/window_spans.h"

#include <fmt/format.h>

namespace lanescope::format {
namespace {

// The mark comes after everything that ends with the window. Readers, PyTorch's own tests among
// them, compare it with ts + dur in doubles of microseconds. Since Kineto's base time, at most three
// months, a double has steps of almost a nanosecond: the sum is wrong by up to one step, the mark
// by half of one.
constexpr std::int64_t kMarkAfterEndNs = 2;

}  // namespace

void add_window_spans(TraceBuilder& builder, const SpoolWindows& windows,
                      const std::function<std::optional<std::int64_t>(std::uint64_t)>& time_ns) {
  const auto text = [&](const char* value) {
    Scalar scalar;
    scalar.is_text = true;
    scalar.text = builder.intern(value);
    return scalar;
  };
  if (windows.all().empty()) return;
  const Scalar spans = text("Spans");
  builder.set_process_sort_index(spans, 536'870'912);
  const TrackId track = builder.thread_track(spans, text("PyTorch Profiler"));
  const CategoryId category = builder.category("Trace");
  std::optional<std::int64_t> first, last;
  std::uint32_t number = 0;
  for (const SpoolWindows::Window& window : windows.all()) {
    const auto start = time_ns(window.start), stop = time_ns(window.stop);
    if (!start || !stop || *stop < *start) continue;
    builder.args().begin();
    builder.args().add_int(builder.intern("Op count"), arg_key("Op count"), 0);
    const ArgsId args = builder.args().end();
    builder.add_slice(track, category,
                      builder.intern(fmt::format("PyTorch Profiler ({})", number++)), *start,
                      *stop - *start, args);
    if (!first) first = start;
    last = stop;
  }
  if (!first) return;
  builder.add_instant(builder.thread_track(text("Traces"), text("Trace PyTorch Profiler")),
                      builder.no_category(), builder.intern("Iteration Start: PyTorch Profiler"),
                      *first, 'g', kNone<ArgsId>);
  builder.add_instant(builder.thread_track(text(""), text("")), builder.no_category(),
                      builder.intern("Record Window End"), *last + kMarkAfterEndNs, 'g',
                      kNone<ArgsId>);
}

}  // namespace lanescope::format
