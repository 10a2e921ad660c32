// Where bytes go: a file that appears only when it is complete, or a string. Names like x.gz and
// x.zst are packed on the way.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/codec/unpack.h"

namespace lanescope::codec {

// One writer, one thread. Without finish() no part of a file remains.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Result<void> write(std::string_view bytes) = 0;
  virtual Result<void> finish() = 0;
  virtual std::uint64_t written_bytes() const = 0;  // on disk, after packing
};

// Writes "<path>.partial-<number>" next to `path` and renames it in finish(): a reader never sees
// half a file, and after a full disk the old file is still there. The number is the thread's id, so
// several threads and processes may write one path; the last to finish wins. A path that is not a
// regular file (a pipe, /dev/stdout) is written directly. `withheld`: permission bits that the file
// does not get. kIo: the system's reason.
Result<std::unique_ptr<ByteSink>> create_file(const std::filesystem::path& path,
                                              unsigned withheld = 0);
std::unique_ptr<ByteSink> string_sink(std::string& out);

// From the end of the name: ".gz" or ".zst", in upper or lower case; everything else is plain.
Packing packing_of_name(const std::filesystem::path& path);
// Packs into `sink`; one gzip member or zstd frame. `level` 0 is the default (about zlib's 1 for
// gzip with ISA-L, else zlib 4; zstd 3). kUnavailable: this build has no zstd.
Result<std::unique_ptr<ByteSink>> pack_into(std::unique_ptr<ByteSink> sink, Packing packing,
                                            int level = 0);

}  // namespace lanescope::codec
