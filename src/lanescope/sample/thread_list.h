// The threads of an interpreter, and copies of their states and of the memory that holds their frames.
//
// Problem: the state of a thread says where its frames are, so reading one after the other takes a
// system call for each step. Idea: threads and their memory rarely change, so one call reads all
// states and the memory to which each led the last time. Only what has moved is read again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lanescope/sample/process_memory.h"
#include "lanescope/sample/python_layout.h"
#include "lanescope/sample/stack_reader.h"

namespace lanescope::sample {

struct RawFrame {
  std::uint64_t code = 0, instruction = 0;
  bool operator==(const RawFrame&) const = default;
};

// A thread of the interpreter, what was copied of it last, and what StackReader made of that.
struct Thread {
  std::uint64_t state = 0;  // address
  std::uint64_t next = 0, pthread = 0, id = 0, frame = 0;
  std::vector<unsigned char> state_bytes;
  // The memory for frames: its beginning, and how much of it was copied.
  std::vector<unsigned char> frames;
  std::uint64_t frames_at = 0;
  std::size_t frames_size = 0;
  // What the next read guesses: where the pointer to the frame is, how much memory for frames is worth
  // copying, and a code object whose head is of interest (0: none).
  std::uint64_t cframe = 0, code = 0;
  std::size_t frames_worth = 0;
  std::vector<unsigned char> code_head;
  bool has_code_head = false;

  std::vector<RawFrame> raw, raw_before;  // innermost first
  bool is_cut = false, is_whole = false, was_good = false;
  std::uint32_t trusted = 0;  // samples since all code objects were checked
  // In this sample: how many of the outermost frames are as before; whether the code object at `code` is known.
  std::size_t known_frames = 0;
  bool is_code_known = false;
  SampledStack stack;
};

// One thread uses it.
class ThreadList {
 public:
  ThreadList(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t interpreter);

  // Copies all threads. False: their list could not be read, and there are none. `read_first` is read
  // in the same system call, right before the threads.
  bool read(std::span<MemoryPiece> read_first = {});
  // Copies one of them again. False: it could not be read.
  bool read_again(Thread& thread);
  std::span<const std::unique_ptr<Thread>> threads() const { return threads_; }
  std::uint64_t left_out() const { return left_out_; }  // beyond StackReader::kMostThreads, so far

 private:
  bool read_known(std::span<MemoryPiece> read_first);
  bool walk();
  void take_state(Thread& thread);
  std::uint64_t id_of(std::uint64_t pthread);
  void add_guesses(Thread& thread);
  void take_guesses(Thread& thread, const MemoryPiece*& piece);
  bool read_rest();
  std::uint64_t chunk_of(const Thread& thread, std::size_t* used) const;

  ProcessMemory& memory_;
  const PythonLayout& layout_;
  const std::uint64_t interpreter_;
  std::size_t tid_offset_ = 0;
  std::uint64_t left_out_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<MemoryPiece> pieces_;
  std::vector<Thread*> moved_frame_, moved_chunk_;
};

}  // namespace lanescope::sample
