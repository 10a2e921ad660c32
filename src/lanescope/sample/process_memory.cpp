#include "lanescope/sample/process_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostPieces = 256;  // of one call; the kernel takes 1024

}  // namespace

RunningProcess::~RunningProcess() {
  if (file_ >= 0) close(file_);
}

void RunningProcess::read(std::span<MemoryPiece> pieces) {
  for (MemoryPiece& piece : pieces) piece.ok = false;
  while (!pieces.empty()) {
    const std::size_t count = std::min(pieces.size(), kMostPieces);
    if (use_file_)
      read_file(pieces.first(count));
    else
      read_some(pieces.first(count));
    pieces = pieces.subspan(count);
  }
}

// The call stops at the first piece that it cannot read in full; the pieces after it get another
// call.
void RunningProcess::read_some(std::span<MemoryPiece> pieces) {
  std::array<iovec, kMostPieces> here, there;
  while (!pieces.empty()) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      here[i] = {pieces[i].to, pieces[i].size};
      there[i] = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(pieces[i].address)),
                  pieces[i].size};
    }
    ssize_t got =
        process_vm_readv(pid_, here.data(), pieces.size(), there.data(), pieces.size(), 0);
    if (got < 0 && errno != EFAULT) {
      refusal_ = errno;
      if (errno != ENOSYS && !(errno == EPERM && pid_ == getpid())) return;
      use_file_ = true;
      return read_file(pieces);
    }
    got = std::max<ssize_t>(got, 0);
    std::size_t done = 0;
    for (; done < pieces.size() && static_cast<std::size_t>(got) >= pieces[done].size; ++done) {
      got -= static_cast<ssize_t>(pieces[done].size);
      pieces[done].ok = true;
    }
    pieces = pieces.subspan(std::min(done + 1, pieces.size()));
  }
}

void RunningProcess::read_file(std::span<MemoryPiece> pieces) {
  if (file_ < 0) file_ = open(fmt::format("/proc/{}/mem", pid_).c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) {
    refusal_ = errno;
    return;
  }
  refusal_ = 0;
  for (MemoryPiece& piece : pieces)
    piece.ok = piece.address <= INT64_MAX &&
               pread(file_, piece.to, piece.size, static_cast<off_t>(piece.address)) ==
                   static_cast<ssize_t>(piece.size);
}

}  // namespace lanescope::sample
