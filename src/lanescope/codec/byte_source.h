// Where bytes come from: a file or memory, read front to back through the caller's buffer,
// never held whole.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "lanescope/base/result.h"

namespace lanescope::codec {

// One reader, one thread. read() fills at most `into` and says how much; 0 is the end. Short
// reads are normal.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  // For a progress bar: bytes handed out so far, and in total (0: unknown, a pipe).
  virtual std::uint64_t done_bytes() const = 0;
  virtual std::uint64_t total_bytes() const = 0;
};

// A regular file, pipe or device. kIo with the system's reason; a directory is kInvalidArgument.
Result<std::unique_ptr<ByteSource>> open_file(const std::filesystem::path& path);
// Borrows `bytes` for as long as it lives.
std::unique_ptr<ByteSource> memory_source(std::string_view bytes);

}  // namespace lanescope::codec
