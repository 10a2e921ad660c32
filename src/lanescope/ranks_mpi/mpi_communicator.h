// The workers of one analysis as the processes of an MPI job.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/ranks/communicator.h"

namespace lanescope::ranks_mpi {

// Starts MPI; the destructor ends it. One per process. When an MPI call fails, MPI ends the job.
class MpiSession {
 public:
  // kUnavailable: this MPI does not support calls from a second thread, and the thread that hands out files needs them.
  static Result<void> start(int* argc, char*** argv);
  static void finish();
  // Ends all processes of the job at once, with this exit code.
  [[noreturn]] static void abort(int code);
};

// All processes of the job. One thread at a time.
class MpiCommunicator final : public ranks::Communicator {
 public:
  MpiCommunicator();
  std::uint32_t worker() const override { return worker_; }
  std::uint32_t workers() const override { return workers_; }
  // MPI_Alltoallv, in pieces of at most kMostBytesAtOnce, so that copies stay small and counts fit into an int. Waits
  // without using the processor, because other workers may still need it.
  std::vector<std::string> exchange(std::vector<std::string> to) override;
  // What this process sent to others.
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  std::uint64_t exchanges() const { return exchanges_; }

  static constexpr std::size_t kMostBytesAtOnce = std::size_t{64} << 20;

 private:
  std::uint32_t worker_ = 0, workers_ = 1;
  std::uint64_t sent_bytes_ = 0, exchanges_ = 0;
};

}  // namespace lanescope::ranks_mpi
