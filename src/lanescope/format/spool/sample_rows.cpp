#include "lanescope/format/spool/sample_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "lanescope/codec/op_details.h"
#include "lanescope/format/spool/sample_slices.h"
#include "lanescope/model/child_process.h"

namespace lanescope::format {
namespace {

using spool::SampleRecord;

class SampleReader {
 public:
  explicit SampleReader(const SampleRowsContext& context)
      : context_(context), slices_(context.builder) {}

  void run(const std::vector<SampleRecord>& samples) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const SampleRecord& record = samples[i];
      if (i == 0 || !is_same_thread(samples[i - 1], record)) begin_thread(record);
      add(record);
      if (i + 1 < samples.size() && is_same_thread(record, samples[i + 1])) continue;
      slices_.end_thread();
      if (i + 1 == samples.size() || samples[i + 1].process != record.process)
        end_process(record.process);
    }
  }

 private:
  static bool is_same_thread(const SampleRecord& a, const SampleRecord& b) {
    return a.process == b.process && a.thread == b.thread;
  }

  Scalar pid_of(std::uint32_t process) const {
    if (process == 0) return context_.pid;
    Scalar pid;
    pid.number = process;
    return pid;
  }

  void begin_thread(const SampleRecord& record) {
    slices_.begin_thread(pid_of(record.process), static_cast<std::int64_t>(record.thread),
                         record.process == 0 ? name_of_thread(record.thread) : std::string_view());
  }

  void end_process(std::uint32_t process) {
    const bool is_worker = std::exchange(is_worker_, false);
    if (process == 0) return;
    TraceBuilder& builder = context_.builder;
    const Scalar pid = pid_of(process);
    builder.set_process_name(
        pid,
        builder.intern(fmt::format(
            "{} {}", is_worker ? kLoaderWorkerName : std::string_view("child process"), process)));
    builder.set_process_labels(pid, builder.intern(kChildProcessLabel));
    builder.set_process_sort_index(pid, process);
  }

  void add(const SampleRecord& record) {
    const auto first = context_.time_ns(record.begin_tsc), last = context_.time_ns(record.end_tsc);
    if (!first || !last || *last < *first || record.samples == 0)
      return context_.builder.stats().count(ImportIssue::kBadTime);
    const std::vector<SampleFrame>& stack = stack_of(record.node);
    if (stack.empty()) return context_.builder.stats().count(ImportIssue::kMissingField);
    is_worker_ = is_worker_ || is_worker(stack);
    slices_.add({.first_ns = *first,
                 .last_ns = *last,
                 .period_ns = record.period_ns,
                 .samples = record.samples,
                 .on_cpu = (record.flags & spool::kOnCpu) != 0 ? record.samples : 0,
                 .cpu_known = (record.flags & spool::kCpuTimeKnown) != 0,
                 .others_waited = (record.flags & spool::kOthersWaited) != 0 ? record.samples : 0,
                 .collecting = (record.flags & spool::kCollected) != 0 ? record.samples : 0,
                 .frames = stack});
  }

  bool is_worker(const std::vector<SampleFrame>& stack) const {
    return std::any_of(stack.begin(), stack.end(), [this](const SampleFrame& frame) {
      return is_loader_worker_loop(context_.builder.text(frame.function));
    });
  }

  std::string_view name_of_thread(std::uint64_t thread) const {
    for (const SpoolThread& known : context_.index.threads)
      if (known.os_tid == thread) return known.name;
    return {};
  }

  // Outermost frame first; empty: a node is lost.
  const std::vector<SampleFrame>& stack_of(std::uint32_t node) {
    const auto [known, is_new] = stacks_.try_emplace(node);
    if (is_new && !read_stack(node, &known->second)) known->second.clear();
    return known->second;
  }
  bool read_stack(std::uint32_t node, std::vector<SampleFrame>* out) {
    const SpoolIndex& index = context_.index;
    while (node != 0) {
      codec::SampleNode frame;
      if (out->size() > codec::kMaxStackFrames || node >= index.texts.size() ||
          !index.has_text[node] || !codec::decode_sample_node(index.texts[node], &frame))
        return false;
      out->push_back({context_.name_of(frame.function), frame.line});
      node = frame.caller;
    }
    std::reverse(out->begin(), out->end());
    return true;
  }

  const SampleRowsContext& context_;
  SampleSlices slices_;
  std::unordered_map<std::uint32_t, std::vector<SampleFrame>> stacks_;  // by node
  bool is_worker_ = false;                                              // the process at hand
};

}  // namespace

void add_sample_rows(const SampleRowsContext& context, std::vector<SampleRecord> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const SampleRecord& a, const SampleRecord& b) {
                     return std::tie(a.process, a.thread, a.begin_tsc) <
                            std::tie(b.process, b.thread, b.begin_tsc);
                   });
  SampleReader(context).run(samples);
}

}  // namespace lanescope::format
