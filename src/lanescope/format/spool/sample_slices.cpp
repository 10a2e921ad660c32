#include "lanescope/format/spool/sample_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace lanescope::format {
namespace {

// Samples further apart than so many periods leave a gap: nothing is known about the time between.
constexpr std::int64_t kGapPeriods = 4;
constexpr std::size_t kMostLines = 64;  // that a slice names

}  // namespace

SampleSlices::SampleSlices(TraceBuilder& builder)
    : builder_(builder),
      category_(builder.category("python_sample")),
      samples_(builder.intern("Samples")),
      self_(builder.intern("Self samples")),
      on_cpu_(builder.intern("On CPU samples")),
      lines_(builder.intern("Lines")),
      others_waited_(builder.intern("Others waited for the GIL samples")),
      collecting_(builder.intern("Collecting garbage samples")) {}

void SampleSlices::begin_thread(const Scalar& pid, std::int64_t thread, std::string_view name) {
  Scalar tid;
  tid.is_text = true;
  tid.text = builder_.intern(fmt::format("{} sampled", thread));
  track_ = builder_.thread_track(pid, tid);
  std::string text = fmt::format("Python (sampled) of thread {}", thread);
  if (!name.empty()) text += fmt::format(" ({})", name);
  builder_.set_track_name(track_, builder_.intern(text));
  builder_.set_track_sort_index(track_, thread);
}

void SampleSlices::add(const SampleRun& run) {
  if (!open_.empty()) {
    const bool is_near = run.first_ns - last_ns_ <= kGapPeriods * run.period_ns;
    if (is_near)
      end_ns_ = run.first_ns;
    else
      close_to(0, end_ns_);
  }
  std::size_t equal = 0;
  while (equal < open_.size() && equal < run.frames.size() &&
         open_[equal].function == run.frames[equal].function)
    ++equal;
  close_to(equal, end_ns_);
  for (std::size_t depth = 0; depth < run.frames.size(); ++depth) {
    if (depth == open_.size())
      open_.push_back({.order = begun_++,
                       .function = run.frames[depth].function,
                       .start_ns = run.first_ns,
                       .lines = {}});
    OpenFrame& frame = open_[depth];
    frame.samples += run.samples;
    if (depth + 1 == run.frames.size()) {
      frame.self += run.samples;
      frame.others_waited += run.others_waited;
      frame.collecting += run.collecting;
    }
    frame.cpu_known |= run.cpu_known;
    frame.on_cpu += run.on_cpu;
    const std::uint32_t line = run.frames[depth].line;
    if (frame.lines.size() < kMostLines || frame.lines.contains(line))
      frame.lines[line] += run.samples;
  }
  last_ns_ = run.last_ns;
  end_ns_ = run.last_ns + run.period_ns;
}

void SampleSlices::end_thread() { close_to(0, end_ns_); }

// Ends the frames that are deeper than `depth`.
void SampleSlices::close_to(std::size_t depth, std::int64_t end_ns) {
  for (; open_.size() > depth; open_.pop_back()) {
    open_.back().end_ns = std::max(end_ns, open_.back().start_ns);
    closed_.push_back(std::move(open_.back()));
  }
  if (open_.empty()) write_closed();
}

// A caller and its callee may have equal times: then their order says which is which.
void SampleSlices::write_closed() {
  std::sort(closed_.begin(), closed_.end(),
            [](const OpenFrame& a, const OpenFrame& b) { return a.order < b.order; });
  for (const OpenFrame& frame : closed_) write(frame);
  closed_.clear();
}

void SampleSlices::write(const OpenFrame& frame) {
  ArgsBuilder& args = builder_.args();
  args.begin();
  args.add_int(samples_, ArgKey::kSamples, frame.samples);
  args.add_int(self_, ArgKey::kSelfSamples, frame.self);
  if (frame.cpu_known) args.add_int(on_cpu_, ArgKey::kOnCpuSamples, frame.on_cpu);
  if (frame.others_waited > 0) args.add_int(others_waited_, ArgKey::kCount, frame.others_waited);
  if (frame.collecting > 0) args.add_int(collecting_, ArgKey::kCount, frame.collecting);
  std::string lines;
  for (const auto& [line, samples] : frame.lines)
    lines += fmt::format("{}\"{}\": {}", lines.empty() ? "{" : ", ", line, samples);
  args.add_json(lines_, ArgKey::kSampleLines, builder_.intern(lines + "}"));
  builder_.add_slice(track_, category_, frame.function, frame.start_ns,
                     frame.end_ns - frame.start_ns, args.end());
}

}  // namespace lanescope::format
