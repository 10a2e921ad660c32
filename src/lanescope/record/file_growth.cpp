#include "lanescope/record/file_growth.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#ifndef RWF_APPEND
#define RWF_APPEND 0x00000010
#endif

namespace lanescope::record {
namespace {

constexpr int kTries = 10;  // after a signal
constexpr std::size_t kPieceBytes = 128 * 1024, kMostPieces = 8;

bool is_unknown(int error) {
  return error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == EINVAL;
}

}  // namespace

int reserve_room(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  rlimit limit{};
  // Growing over RLIMIT_FSIZE would raise SIGXFSZ, which kills.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      offset + bytes > limit.rlim_cur)
    return EFBIG;
  for (int tries = 0; tries < kTries; ++tries) {
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes)) ==
            0 ||
        is_unknown(errno))
      return 0;
    if (errno != EINTR) return errno;
  }
  return EINTR;
}

int append_zeroes(int fd, std::uint64_t end, std::size_t bytes) noexcept {
  // Nobody writes to it; writev() wants it mutable. One page of zeroes in memory stands for all its
  // pages. In pieces of 4 KiB the kernel takes a third longer.
  alignas(4096) static std::byte zeroes[kPieceBytes];
  std::array<iovec, kMostPieces> pieces;
  int count = 0;
  for (std::size_t left = std::min(bytes, kPieceBytes * kMostPieces); left > 0; ++count) {
    const std::size_t size = std::min(left, kPieceBytes);
    pieces[static_cast<std::size_t>(count)] = {zeroes, size};
    left -= size;
  }
  ssize_t written = -1;
  for (int tries = 0; written < 0; ++tries) {
    // The place for a file system that does not know how to append.
    if (lseek(fd, static_cast<off_t>(end), SEEK_SET) < 0) return errno;
    written = pwritev2(fd, pieces.data(), count, -1, RWF_APPEND);
    if (written < 0 && is_unknown(errno)) written = writev(fd, pieces.data(), count);
    if (written < 0 && (errno != EINTR || tries >= kTries)) return errno;
  }
  const off_t after = lseek(fd, 0, SEEK_CUR);
  if (after < written) return EIO;
  const auto at = static_cast<std::uint64_t>(after - written);
  if (at == end && static_cast<std::size_t>(written) == bytes) return 0;
  if (ftruncate(fd, static_cast<off_t>(at)) != 0) return errno;
  return at == end ? ENOSPC : ESTALE;
}

}  // namespace lanescope::record
