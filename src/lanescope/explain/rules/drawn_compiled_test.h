// Draws programs of torch.compile: broken, compiling, and with the layers around a call.
#pragma once

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

// A step of two pieces: a graph, then .item() and 50 us of Python before the next launch. The GPU
// is done at 19 us of the step, and its next work is launched at 79 us: 60 us in between.
inline testing::ProgramSketch with_break(bool inside) {
  testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("Torch-Compiled Region: 0/0").begin("## Call CompiledFxGraph fabc ##");
    program.launch({}).end();
    if (!inside) program.end();
    program.wait("aten::item").begin("Torch-Compiled Region: 1/0").pass(50).launch({}).end();
    if (inside) program.end();
    program.end();
  }
  return program;
}

// In one of four steps, or of so many, 3 ms of compiling between two launches.
inline testing::ProgramSketch compiling_in(int compiled_step, int steps = 4) {
  testing::ProgramSketch program;
  for (int i = 1; i <= steps; ++i) {
    program.step().launch({});
    if (i == compiled_step) {
      program.begin("_compile.compile_inner (dynamo_timed)").pass(1000);
      program.begin("dynamo_data: compile_id=2/1").pass(1).end().pass(1999).end();
    }
    program.launch({}).end();
  }
  return program;
}

// A lookup of 20 us and a region that launches after 30 more.
inline testing::ProgramSketch compiled_call(std::int64_t kernel_us) {
  testing::ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().begin("TorchDynamo Cache Lookup").pass(20).end();
    program.begin("Torch-Compiled Region: 0/0").pass(10).begin("## Call CompiledFxGraph fa ##");
    program.pass(20).launch({.us = kernel_us}).end().end().end();
  }
  return program;
}

}  // namespace lanescope::explain
