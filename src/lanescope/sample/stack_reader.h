// The Python stacks of all threads of an interpreter, read from outside of its lock while it runs.
//
// Problem: the interpreter changes its frames while they are read. Idea: read only copies, made by
// reads that cannot crash (process_memory.h), check every pointer, size and type before use, and
// drop a stack that is not whole. From 3.11 on, the frames of a thread lie one after another in the
// interpreter's own memory for frames, so one read copies a whole stack in about a microsecond. So
// all of it is of one moment. Only the innermost frame may be a call or return away from its
// callers.
//
// Cost of a sample of up to 60 threads: one system call for threads, memory of frames and code
// objects that are the same as before (thread_list.h); a second one for what has moved; some more
// for each new code object. Before 3.11, one for each frame.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lanescope/sample/process_memory.h"
#include "lanescope/sample/python_layout.h"

namespace lanescope::sample {

// A function's code: file name as the code object has it, name, first line. UTF-8.
struct SampledFunction {
  std::string file, name;
  int first_line = 0;
};

struct SampledFrame {
  std::uint32_t function = 0;  // StackReader::function()
  int line = 0;                // the line that it is at; if it has none, the function's first line
  bool operator==(const SampledFrame&) const = default;
};

struct SampledStack {
  std::uint64_t thread = 0;          // OS thread id
  std::uint64_t state = 0;           // address of the interpreter's state of the thread
  std::vector<SampledFrame> frames;  // innermost first; empty: the thread runs no Python code
  bool is_cut = false;               // there are more than kMostFrames
};

class StackReader {
 public:
  static constexpr std::size_t kMostFrames = 128, kMostThreads = 1024;

  struct Counts {
    std::uint64_t torn = 0;          // stacks that were dropped, because they were not whole
    std::uint64_t lost_samples = 0;  // the list of threads could not be read
    std::uint64_t lost_threads = 0;  // beyond kMostThreads
  };

  // `interpreter`: the address of a PyInterpreterState. `code_type`: the address of PyCode_Type; 0: takes
  // the type whose name is "code".
  StackReader(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t interpreter,
              std::uint64_t code_type);
  ~StackReader();
  StackReader(const StackReader&) = delete;
  StackReader& operator=(const StackReader&) = delete;

  // One sample of every thread but `skip`. Valid until the next call. Memory is bounded: 8192 code
  // objects are remembered, then all are forgotten.
  // `read_first` is read in the same system call, right before the stacks.
  const std::vector<SampledStack>& sample(std::uint64_t skip = 0,
                                          std::span<MemoryPiece> read_first = {});
  // Valid as long as generation() stays the same; numbers are used again afterwards.
  const SampledFunction& function(std::uint32_t number) const;
  std::uint32_t generation() const;
  const Counts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The address of the interpreter that CPython keeps first in its list; 0: none, or not readable.
std::uint64_t first_interpreter(ProcessMemory& memory, const PythonLayout& layout,
                                std::uint64_t runtime);

}  // namespace lanescope::sample
