// Memory of a process, read so that a bad address is an error and never a crash.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace lanescope::sample {

// One piece to read. `ok` says afterwards whether all of it was read.
struct MemoryPiece {
  std::uint64_t address = 0;
  void* to = nullptr;
  std::size_t size = 0;
  bool ok = false;
};

class ProcessMemory {
 public:
  virtual ~ProcessMemory() = default;
  // Reads each piece, or leaves its `ok` false and its bytes undefined. The process runs meanwhile,
  // so two pieces may show two different moments. One thread at a time.
  virtual void read(std::span<MemoryPiece> pieces) = 0;
  bool read(std::uint64_t address, void* to, std::size_t size) {
    MemoryPiece piece{address, to, size};
    read({&piece, 1});
    return piece.ok;
  }
};

// A process that runs: this one or another. Uses process_vm_readv(), one system call for many
// pieces; where the kernel refuses that (ENOSYS, a filter), /proc/PID/mem, one call per piece.
class RunningProcess final : public ProcessMemory {
 public:
  explicit RunningProcess(pid_t pid) : pid_(pid) {}
  ~RunningProcess() override;
  RunningProcess(const RunningProcess&) = delete;
  RunningProcess& operator=(const RunningProcess&) = delete;
  using ProcessMemory::read;
  void read(std::span<MemoryPiece> pieces) override;
  // The errno of the last refusal that concerns the whole process (EPERM, ESRCH); 0: none.
  int refusal() const { return refusal_; }

 private:
  void read_some(std::span<MemoryPiece> pieces);
  void read_file(std::span<MemoryPiece> pieces);

  pid_t pid_;
  int file_ = -1;
  bool use_file_ = false;
  int refusal_ = 0;
};

}  // namespace lanescope::sample
