// What the torch observer adds to one operator, against an empty RecordFunction callback in
// the same run.
//
// Each round runs the same loop with no callback, with an empty global callback, and with lanescope
// recording, in this order; what counts is the median over rounds of the difference inside a round,
// so that a slow moment of the machine hits both sides. An operator is begin + end of one range.
//   torch_observer_cost [rounds [iterations]]
#ifndef NDEBUG
#define NDEBUG  // as the released torch was built; at::RecordFunction depends on it
#endif
#include <time.h>

#include <ATen/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "lanescope/record/recorder.h"
#include "lanescope/record_torch/torch_observer.h"

namespace {

using lanescope::record::Recorder;
using lanescope::record::RecorderOptions;

struct Quartiles {
  double low, median, high;
};
Quartiles quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
  };
  return {at(0.25), at(0.5), at(0.75)};
}

// CPU time of this thread: what other programs on the machine take does not count, page faults
// of ours do.
double thread_cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
template <typename Body>
double ns_per_call(const Body& body, int iterations) {
  const double begin = thread_cpu_ns();
  for (int i = 0; i < iterations; ++i) body();
  return (thread_cpu_ns() - begin) / iterations;
}

class EmptyCallback {
 public:
  EmptyCallback()
      : handle_(at::addGlobalCallback(at::RecordFunctionCallback(
            [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
              return nullptr;
            },
            [](const at::RecordFunction&, at::ObserverContext*) {}))) {}
  ~EmptyCallback() { at::removeCallback(handle_); }
  EmptyCallback(const EmptyCallback&) = delete;
  EmptyCallback& operator=(const EmptyCallback&) = delete;

 private:
  at::CallbackHandle handle_;
};

std::unique_ptr<Recorder> open_recorder(std::uint32_t options) {
  RecorderOptions recorder_options;
  recorder_options.options = options;
  auto recorder = Recorder::open(recorder_options);
  if (!recorder) {
    std::fprintf(stderr, "torch_observer_cost: %s\n", recorder.error().message.c_str());
    std::exit(1);
  }
  (*recorder)->prepare();
  return *std::move(recorder);
}

template <typename Body>
void measure(const char* subject, const char* what, std::uint32_t options, const Body& body,
             int rounds, int iterations) {
  std::vector<double> none, empty, added;
  auto recorder = open_recorder(options);
  ns_per_call(body, iterations);
  for (int round = 0; round < rounds; ++round) {
    none.push_back(ns_per_call(body, iterations));
    {
      const EmptyCallback callback;
      empty.push_back(ns_per_call(body, iterations));
    }
    if (!recorder->start()) std::exit(1);
    added.push_back(ns_per_call(body, iterations) - empty.back());
    recorder->stop();
  }
  const std::uint64_t dropped = recorder->stats().dropped_records;
  recorder->close();
  std::filesystem::remove(recorder->spool_path());
  const Quartiles bare = quartiles(none), hook = quartiles(empty), ours = quartiles(added);
  std::printf("%-26s %-12s %9.1f %9.1f %9.1f  [%.1f .. %.1f]%s\n", subject, what, bare.median,
              hook.median, ours.median, ours.low, ours.high,
              dropped == 0 ? "" : "  records were dropped");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 101;
  const int iterations = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5000;
  char line[256] = "";
  if (lanescope_torch_observer_install(line, sizeof line) != 0) {
    std::fprintf(stderr, "torch_observer_cost: %s\n", line);
    return 1;
  }
  const c10::InferenceMode no_autograd;
  const at::Tensor one = at::ones({1});
  std::printf("ns of CPU time an operator, median of %d rounds of %d; torch %s\n", rounds,
              iterations, lanescope_torch_observer_built_for());
  std::printf("%-26s %-12s %9s %9s %9s\n", "", "", "no hook", "empty", "added  [quartiles]");
  const auto both = [&](const char* subject, const auto& body) {
    measure(subject, "", 0, body, rounds, iterations);
    measure(subject, "with shapes", LANESCOPE_RECORD_SHAPES, body, rounds, iterations);
  };
  both("a bare at::RecordFunction",
       [] { RECORD_FUNCTION("bench::operator", c10::ArrayRef<const c10::IValue>{}); });
  both("aten::alias, 1 element", [&] { const at::Tensor view = one.alias(); });
  both("aten::add, 1 element", [&] { const at::Tensor sum = at::add(one, one); });
  std::printf(
      "\"added\": by lanescope over an empty global callback in the same round; target <= 50 "
      "ns.\n");
  return 0;
}
