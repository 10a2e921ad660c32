#include "lanescope/format/spool/sample_rows.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "lanescope/codec/op_details.h"
#include "lanescope/format/spool/sample_slices.h"

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
      const bool is_first = i == 0 || samples[i - 1].thread != record.thread;
      if (is_first)
        slices_.begin_thread(context_.pid, static_cast<std::int64_t>(record.thread),
                             name_of_thread(record.thread));
      add(record);
      if (i + 1 == samples.size() || samples[i + 1].thread != record.thread) slices_.end_thread();
    }
  }

 private:
  void add(const SampleRecord& record) {
    const auto first = context_.time_ns(record.begin_tsc), last = context_.time_ns(record.end_tsc);
    if (!first || !last || *last < *first || record.samples == 0)
      return context_.builder.stats().count(ImportIssue::kBadTime);
    const std::vector<SampleFrame>& stack = stack_of(record.node);
    if (stack.empty()) return context_.builder.stats().count(ImportIssue::kMissingField);
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
};

}  // namespace

void add_sample_rows(const SampleRowsContext& context, std::vector<SampleRecord> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const SampleRecord& a, const SampleRecord& b) {
                     return std::tie(a.thread, a.begin_tsc) < std::tie(b.thread, b.begin_tsc);
                   });
  SampleReader(context).run(samples);
}

}  // namespace lanescope::format
