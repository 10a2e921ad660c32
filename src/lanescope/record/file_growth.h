// Makes a file longer without hiding that somebody else made it shorter.
//
// Problem: a file is cut after its length was checked and before it grows. It then has its old
// length again, with zeroes where data was, and nobody notices. Idea: room is reserved without a
// change of the length, and the file grows by appending: the file system finds the end and writes
// there in one step. The place of the new bytes tells where the end was.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lanescope::record {

// Reserves room on the disk; the length of the file stays. 0 or an errno; EFBIG: over RLIMIT_FSIZE.
// A file system that cannot reserve is no error: it refuses append_zeroes() instead.
int reserve_room(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Appends zeroes, at most 1 MiB. 0 or an errno. ESTALE: the file did not end at
// `end`; what was appended is gone again. On a Linux before 4.16, a cut in the few instructions
// before the growth is not noticed. Moves the descriptor's position. One thread at a time.
int append_zeroes(int fd, std::uint64_t end, std::size_t bytes) noexcept;

}  // namespace lanescope::record
