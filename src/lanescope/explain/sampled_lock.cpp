#include "lanescope/explain/sampled_lock.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace lanescope::explain {
namespace {

using analysis::Window;

// The track of a thread's samples has the text "N sampled" where others have the number.
std::optional<std::int64_t> sampled_thread(const Trace& trace, SliceId slice) {
  const Scalar& tid = trace.track(slice).tid;
  if (!tid.is_text) return std::nullopt;
  const std::string_view text = trace.text(tid.text);
  std::int64_t thread = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), thread);
  if (error != std::errc()) return std::nullopt;
  return thread;
}

std::int64_t integer_of(const Trace& trace, SliceId slice, std::string_view key) {
  const ArgsView args = trace.slice_args(slice);
  for (std::size_t i = 0; i < args.size(); ++i)
    if (trace.text(args.field(i).key) == key)
      return std::clamp<std::int64_t>(args.integer(&args.field(i)).value_or(0), 0, INT32_MAX);
  return 0;
}

std::int64_t overlap_ns(std::span<const Window> stretches, std::int64_t start_ns,
                        std::int64_t end_ns) {
  std::int64_t inside = 0;
  for (auto each = std::upper_bound(
           stretches.begin(), stretches.end(), start_ns,
           [](std::int64_t time, const Window& stretch) { return time < stretch.end_ns; });
       each != stretches.end() && each->start_ns < end_ns; ++each)
    inside += std::min(each->end_ns, end_ns) - std::max(each->start_ns, start_ns);
  return inside;
}

// Samples of one kind, by thread and function.
class HolderSums {
 public:
  void add(std::int64_t thread, SliceId slice, StringId function, double samples) {
    if (samples <= 0) return;
    all_ += samples;
    threads_[thread] += samples;
    Function& found = functions_[{thread, raw(function)}];
    found.samples += samples;
    if (samples > found.most) {
      found.most = samples;
      found.longest = slice;
    }
  }
  LockHolder result(const Trace& trace) const {
    LockHolder holder;
    holder.samples = std::llround(all_);
    const auto thread =
        std::max_element(threads_.begin(), threads_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (thread == threads_.end()) return holder;
    holder.thread = thread->first;
    holder.of_thread = std::llround(thread->second);
    const Function* most = nullptr;
    for (const auto& [key, function] : functions_) {
      if (key.first != holder.thread || (most && function.samples <= most->samples)) continue;
      most = &function;
      holder.function = trace.text(StringId{key.second});
    }
    holder.of_function = std::llround(most->samples);
    holder.longest = most->longest;
    return holder;
  }

 private:
  struct Function {
    double samples = 0, most = 0;
    SliceId longest = kNone<SliceId>;
  };
  double all_ = 0;
  std::map<std::int64_t, double> threads_;
  std::map<std::pair<std::int64_t, std::uint32_t>, Function> functions_;
};

}  // namespace

std::optional<SampledLock> find_sampled_lock(const Trace& trace, TrackId thread,
                                             std::span<const Window> stretches) {
  if (thread == kNone<TrackId> || trace.track(thread).tid.is_text) return std::nullopt;
  const std::int64_t own = trace.track(thread).tid.number;
  double looked = 0;
  HolderSums others_held, collecting;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    if (trace.kind(slice) != CategoryKind::kPythonSample) continue;
    const std::int64_t start_ns = trace.start_ns(slice), end_ns = trace.end_ns(slice);
    const std::int64_t inside_ns = overlap_ns(stretches, start_ns, end_ns);
    const auto at = sampled_thread(trace, slice);
    if (inside_ns <= 0 || !at) continue;
    const double part = static_cast<double>(inside_ns) / static_cast<double>(end_ns - start_ns);
    const auto samples = [&](std::string_view key) {
      return part * static_cast<double>(integer_of(trace, slice, key));
    };
    const StringId function = trace.slices().name[i];
    if (*at == own) looked += samples("Self samples");
    if (*at != own)
      others_held.add(*at, slice, function, samples("Others waited for the GIL samples"));
    collecting.add(*at, slice, function, samples("Collecting garbage samples"));
  }
  if (looked <= 0) return std::nullopt;
  return SampledLock{std::llround(looked), others_held.result(trace), collecting.result(trace)};
}

}  // namespace lanescope::explain
