// Draws training loops for the tests of rules: one CPU thread that works, launches and waits, and
// one GPU that runs what was launched. Times in microseconds.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/testing/sketch.h"

namespace lanescope::testing {

class ProgramSketch {
 public:
  // A piece of GPU work: what it is, for how long, and how it was launched.
  struct Work {
    std::string_view name = "gemm";
    std::int64_t us = 10;
    std::string_view op = "aten::mm";
    std::string_view category = "kernel";
    std::string_view call = "cudaLaunchKernel";
    std::int64_t call_us = 4;
    std::int64_t stream = 7;
    std::string_view dims = {};
    std::string_view collective = {};  // "allreduce": of `elements` floats
    std::int64_t elements = 0;
  };

  // The CPU does something that no event shows.
  ProgramSketch& pass(std::int64_t us) {
    cpu_ += us;
    return *this;
  }
  ProgramSketch& cpu_op(std::string_view name, std::int64_t us) {
    sketch_.op(name, at(cpu_), at(us));
    return pass(us);
  }
  ProgramSketch& call(std::string_view name, std::int64_t us) {
    sketch_.runtime(name, at(cpu_), at(us));
    return pass(us);
  }
  // An operator of 6 us with its call. The work begins 2 us after the call, or when the
  // GPU is free.
  ProgramSketch& launch(const Work& work) {
    const std::int64_t id = ++correlation_, op_start = cpu_, call_start = cpu_ + 3;
    const std::int64_t call_end = call_start + work.call_us;
    std::int64_t& gpu = work.stream == 7 ? gpu_ : other_gpu_;
    const std::int64_t start = std::max(call_end + 2, gpu);
    sketch_.op(work.op, at(op_start), at(work.call_us + 6), {.input_dims = std::string(work.dims)});
    sketch_.runtime(work.call, at(call_start), at(work.call_us), {.correlation = id});
    sketch_.slice(work.category, work.name, at(start), at(work.us),
                  {.stream = work.stream,
                   .correlation = id,
                   .bytes = 1'000'000,
                   .collective = std::string(work.collective),
                   .elements = work.elements});
    gpu = start + work.us;
    return pass(work.call_us + 6);
  }
  // The CPU waits until the GPU is done, and 2 us more. `stack` as with_stack records
  // it: innermost first.
  ProgramSketch& wait(std::string_view op = "aten::item", std::string_view stack = {}) {
    const std::int64_t end = std::max(cpu_ + 2, std::max(gpu_, other_gpu_)) + 2;
    sketch_.op(op, at(cpu_), at(end - cpu_ + 1), {.call_stack = std::string(stack)});
    sketch_.runtime("cudaStreamSynchronize", at(cpu_ + 1), at(end - cpu_ - 1));
    cpu_ = end + 1;
    return *this;
  }
  ProgramSketch& overhead(std::string_view name, std::int64_t us) {
    sketch_.overhead(name, at(cpu_), at(us));
    return pass(us);
  }
  ProgramSketch& begin(std::string_view name) {
    open_.push_back({std::string(name), cpu_});
    return *this;
  }
  ProgramSketch& end() {
    sketch_.annotation(open_.back().name, at(open_.back().start), at(cpu_ - open_.back().start));
    open_.pop_back();
    return *this;
  }
  ProgramSketch& step() { return begin("ProfilerStep#" + std::to_string(++step_)); }
  std::int64_t cpu_us() const { return cpu_; }
  std::int64_t gpu_us() const { return gpu_; }
  Sketch& sketch() { return sketch_; }
  static std::int64_t at(std::int64_t us) { return us * 1000; }

  Trace trace() { return sketch_.trace(); }

 private:
  struct Open {
    std::string name;
    std::int64_t start;
  };
  Sketch sketch_;
  std::vector<Open> open_;
  std::int64_t cpu_ = 1000, gpu_ = 0, other_gpu_ = 0, correlation_ = 0, step_ = 0;
};

}  // namespace lanescope::testing
