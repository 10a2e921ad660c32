// Draws whole programs for tests: one CPU thread that works, launches and waits, and one GPU that
// runs what was launched. Each call moves the CPU's clock; the times of the GPU follow from that. A
// test that needs events at exact times draws them with sketch().
//
//   ProgramSketch program;
//   for (int i = 0; i < 4; ++i)
//     program.step()                        // ProfilerStep#1, #2, ...
//         .begin("forward")                 // a range of the program
//         .launch({.us = 40})               // an operator of 10 us; its kernel runs for 40
//         .end()
//         .wait("aten::item")               // an operator that waits for the GPU
//         .pass(500)                        // Python code without an event
//         .end();                           // of the step
//   const Trace trace = program.trace();
//
// Tests of kernels want a GPU that never waits, operators in operators, and shapes:
//
//   program.steps(4, [](ProgramSketch& p) {
//     p.begin_op("aten::addmm", {.input_dims = "[[64, 64], [64, 64]]"});
//     p.copy(20, 8'192).kernel("nvjet", 180, grid(132)).end();
//   });
//
// Times are microseconds; the CPU's clock begins at 1000. Not thread-safe. trace() may be called once.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/testing/sketch.h"

namespace lanescope::testing {

// How a kernel is launched: blocks, threads of a block, registers of a thread.
Fields grid(std::int64_t blocks, std::int64_t threads = 256, std::int64_t registers = 32);

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
  // A copy by an operator: "Memcpy HtoD (Pageable -> Device)".
  static Work memcpy(std::string_view name, std::int64_t us, std::string_view op = "aten::copy_");

  // Ranges. end() ends what was begun last, a range, a step or an operator.
  ProgramSketch& begin(std::string_view name);
  ProgramSketch& step();
  ProgramSketch& end();
  // Each step is `body`, and 1 us more.
  ProgramSketch& steps(int count, const std::function<void(ProgramSketch&)>& body);

  // What the CPU does on its own: nothing that an event shows, an operator, a call, a stop for the
  // profiler.
  ProgramSketch& pass(std::int64_t us);
  ProgramSketch& cpu_op(std::string_view name, std::int64_t us);
  ProgramSketch& call(std::string_view name, std::int64_t us = 1);
  ProgramSketch& overhead(std::string_view name, std::int64_t us);
  // The CPU waits until the GPU is done, and 2 us more. `stack` as with_stack records
  // it: innermost first.
  ProgramSketch& wait(std::string_view op = "aten::item", std::string_view stack = {});

  // GPU work at the cost of a usual launch: an operator, 6 us longer than its call. The work begins
  // 2 us after the call, or when the GPU is free.
  ProgramSketch& launch(const Work& work);

  // GPU work at the least cost, for a CPU that stays ahead: a call of 1 us. The work begins 1 us
  // after the call, or when the GPU is free.
  ProgramSketch& kernel(std::string_view name, std::int64_t us, const Fields& launch = grid(1320));
  ProgramSketch& copy(std::int64_t us, std::int64_t size_bytes,
                      std::string_view name = "Memcpy DtoD (Device -> Device)");
  // An operator around such calls and others: 1 us before the first and 1 us after the last.
  ProgramSketch& begin_op(std::string_view name, const Fields& inputs = {});
  // An operator with one kernel in it.
  ProgramSketch& op(std::string_view name, const Fields& inputs, std::string_view kernel_name,
                    std::int64_t us, const Fields& launch = grid(1320));

  std::int64_t cpu_us() const { return cpu_; }
  std::int64_t gpu_us() const { return gpu_; }
  Sketch& sketch() { return sketch_; }
  static std::int64_t at(std::int64_t us) { return us * 1000; }  // in the sketch's ns

  Trace trace() { return sketch_.trace(); }

 private:
  struct Open {
    std::string name;
    std::int64_t start;
    bool is_op = false;
    Fields inputs = {};
  };
  void enqueue(std::string_view category, std::string_view name, std::int64_t earliest,
               std::int64_t us, const Fields& fields);
  ProgramSketch& cheap_work(std::string_view category, std::string_view name, std::int64_t us,
                            Fields fields);
  Sketch sketch_;
  std::vector<Open> open_;
  std::int64_t cpu_ = 1000, gpu_ = 0, other_gpu_ = 0, correlation_ = 0, step_ = 0;
};

}  // namespace lanescope::testing
