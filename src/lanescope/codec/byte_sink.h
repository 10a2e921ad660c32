// Where bytes go: a file that appears only when it is complete, or a string; packed on the way when
// the name asks for it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/codec/unpack.h"

namespace lanescope::codec {

// One writer, one thread. Without finish() nothing of a file stays behind.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Result<void> write(std::string_view bytes) = 0;
  virtual Result<void> finish() = 0;
  virtual std::uint64_t written_bytes() const = 0;  // on disk, after packing
};

// Writes "<path>.partial-<pid>" beside `path` and renames it in finish(), so a reader never sees
// half a file and a full disk leaves the old one. A path that is no regular file (a pipe,
// /dev/stdout) is written directly. kIo: the system's reason.
Result<std::unique_ptr<ByteSink>> create_file(const std::filesystem::path& path);
std::unique_ptr<ByteSink> string_sink(std::string& out);

// ".gz" and ".zst" at the end of the name, in any case; everything else is plain.
Packing packing_of_name(const std::filesystem::path& path);
// Packs into `sink`; one gzip member or zstd frame. `level` 0 is the default (about zlib's 1 for
// gzip with ISA-L, else zlib 4; zstd 3). kUnavailable: this build has no zstd.
Result<std::unique_ptr<ByteSink>> pack_into(std::unique_ptr<ByteSink> sink, Packing packing,
                                            int level = 0);

}  // namespace lanescope::codec
