// Gives the files of a job to the workers one by one. A worker that is ready gets the next file, so
// a large file delays only the worker that reads it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lanescope::ranks_mpi {

// Worker 0 keeps the list and also reads files. Its second thread answers the other workers. Until
// that thread ends, no other thread of worker 0 may call MPI. Every worker makes a FileHandout and
// calls next() until it returns nothing.
class FileHandout {
 public:
  // `order`: in which order the files are given out; indices into a list that all workers have.
  FileHandout(std::uint32_t worker, std::uint32_t workers, std::vector<std::size_t> order);
  ~FileHandout();
  FileHandout(const FileHandout&) = delete;
  FileHandout& operator=(const FileHandout&) = delete;

  // The next file of this worker; nothing: all are given out.
  std::optional<std::size_t> next();

 private:
  void answer_others();
  std::int64_t take(std::uint32_t worker);

  std::uint32_t worker_, workers_;
  std::vector<std::size_t> order_;
  std::atomic<std::size_t> given_{0};
  std::thread answering_;  // worker 0 only
};

// If MPI ends this process because another one was lost, says on standard error what each worker
// was reading. For worker 0, one per process; handles SIGTERM. `paths` must outlive it.
class LostWorkerReport {
 public:
  LostWorkerReport(std::uint32_t workers, const std::vector<std::string>& paths);
  ~LostWorkerReport();
  LostWorkerReport(const LostWorkerReport&) = delete;
  LostWorkerReport& operator=(const LostWorkerReport&) = delete;
};

}  // namespace lanescope::ranks_mpi
