#include "lanescope/testing/program_sketch.h"

#include <algorithm>
#include <utility>

namespace lanescope::testing {

Fields grid(std::int64_t blocks, std::int64_t threads, std::int64_t registers) {
  return {.grid = "[" + std::to_string(blocks) + ", 1, 1]",
          .block = "[" + std::to_string(threads) + ", 1, 1]",
          .registers = registers,
          .shared_bytes = 0};
}

ProgramSketch::Work ProgramSketch::memcpy(std::string_view name, std::int64_t us,
                                          std::string_view op) {
  return {.name = name, .us = us, .op = op, .category = "gpu_memcpy", .call = "cudaMemcpyAsync"};
}

ProgramSketch& ProgramSketch::begin(std::string_view name) {
  open_.push_back({.name = std::string(name), .start = cpu_});
  return *this;
}

ProgramSketch& ProgramSketch::step() { return begin("ProfilerStep#" + std::to_string(++step_)); }

ProgramSketch& ProgramSketch::end() {
  const Open open = std::move(open_.back());
  open_.pop_back();
  if (open.is_op) {
    ++cpu_;
    sketch_.op(open.name, at(open.start), at(cpu_ - open.start), open.inputs);
  } else {
    sketch_.annotation(open.name, at(open.start), at(cpu_ - open.start));
  }
  return *this;
}

ProgramSketch& ProgramSketch::steps(int count, const std::function<void(ProgramSketch&)>& body) {
  for (int i = 0; i < count; ++i) {
    step();
    body(*this);
    pass(1).end();
  }
  return *this;
}

ProgramSketch& ProgramSketch::pass(std::int64_t us) {
  cpu_ += us;
  return *this;
}

ProgramSketch& ProgramSketch::cpu_op(std::string_view name, std::int64_t us) {
  sketch_.op(name, at(cpu_), at(us));
  return pass(us);
}

ProgramSketch& ProgramSketch::call(std::string_view name, std::int64_t us) {
  sketch_.runtime(name, at(cpu_), at(us));
  return pass(us);
}

ProgramSketch& ProgramSketch::overhead(std::string_view name, std::int64_t us) {
  sketch_.overhead(name, at(cpu_), at(us));
  return pass(us);
}

ProgramSketch& ProgramSketch::wait(std::string_view op, std::string_view stack) {
  const std::int64_t end = std::max(cpu_ + 2, std::max(gpu_, other_gpu_)) + 2;
  sketch_.op(op, at(cpu_), at(end - cpu_ + 1), {.call_stack = std::string(stack)});
  sketch_.runtime("cudaStreamSynchronize", at(cpu_ + 1), at(end - cpu_ - 1));
  cpu_ = end + 1;
  return *this;
}

ProgramSketch& ProgramSketch::launch(const Work& work) {
  const std::int64_t call_start = cpu_ + 3, op_us = work.call_us + 6;
  sketch_.op(work.op, at(cpu_), at(op_us), {.input_dims = std::string(work.dims)});
  sketch_.runtime(work.call, at(call_start), at(work.call_us), {.correlation = ++correlation_});
  enqueue(work.category, work.name, call_start + work.call_us + 2, work.us,
          {.stream = work.stream,
           .correlation = correlation_,
           .bytes = 1'000'000,
           .collective = std::string(work.collective),
           .elements = work.elements});
  return pass(op_us);
}

ProgramSketch& ProgramSketch::kernel(std::string_view name, std::int64_t us, const Fields& launch) {
  return cheap_work("kernel", name, us, launch);
}

ProgramSketch& ProgramSketch::copy(std::int64_t us, std::int64_t size_bytes,
                                   std::string_view name) {
  return cheap_work("gpu_memcpy", name, us, {.bytes = size_bytes});
}

ProgramSketch& ProgramSketch::begin_op(std::string_view name, const Fields& inputs) {
  open_.push_back({.name = std::string(name), .start = cpu_, .is_op = true, .inputs = inputs});
  return pass(1);
}

ProgramSketch& ProgramSketch::op(std::string_view name, const Fields& inputs,
                                 std::string_view kernel_name, std::int64_t us,
                                 const Fields& launch) {
  return begin_op(name, inputs).kernel(kernel_name, us, launch).end();
}

void ProgramSketch::enqueue(std::string_view category, std::string_view name, std::int64_t earliest,
                            std::int64_t us, const Fields& fields) {
  std::int64_t& gpu = fields.stream == 7 ? gpu_ : other_gpu_;
  const std::int64_t start = std::max(earliest, gpu);
  sketch_.slice(category, name, at(start), at(us), fields);
  gpu = start + us;
}

ProgramSketch& ProgramSketch::cheap_work(std::string_view category, std::string_view name,
                                         std::int64_t us, Fields fields) {
  fields.correlation = ++correlation_;
  sketch_.runtime("cudaLaunchKernel", at(cpu_), at(1), {.correlation = correlation_});
  enqueue(category, name, cpu_ + 2, us, fields);
  return pass(1);
}

}  // namespace lanescope::testing
