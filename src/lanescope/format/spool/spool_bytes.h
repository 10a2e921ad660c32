// Reads bytes of a recording at any offset, from a file or from memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "lanescope/base/result.h"

namespace lanescope::format {

// Reads a file and never maps it, because its writer may shorten it meanwhile. Any thread.
class SpoolBytes {
 public:
  virtual ~SpoolBytes() = default;
  virtual std::uint64_t size() const = 0;
  // Bytes read; fewer than asked for at the end.
  virtual std::size_t read(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

// kIo: it cannot be opened, or is not a regular file.
Result<std::unique_ptr<SpoolBytes>> open_spool_file(const std::filesystem::path& path);
// Borrows the bytes.
std::unique_ptr<SpoolBytes> spool_bytes_of(std::string_view bytes);

}  // namespace lanescope::format
