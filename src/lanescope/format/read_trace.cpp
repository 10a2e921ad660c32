#include "lanescope/format/read_trace.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "lanescope/base/share_work.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/known_files.h"

namespace lanescope::format {
namespace {

// Returns the bytes that detection read, then the rest of the source.
class PeekedSource final : public codec::UnpackedSource {
 public:
  explicit PeekedSource(std::unique_ptr<codec::UnpackedSource> source)
      : source_(std::move(source)) {}

  // The first `want` bytes, fewer at the end. Before the first read().
  Result<std::string_view> peek(std::size_t want) {
    std::size_t filled = head_.size();
    head_.resize(std::max(want, filled));
    while (filled < want) {
      LANESCOPE_TRY(const std::size_t count, source_->read(std::span(head_).subspan(filled)));
      if (count == 0) break;
      filled += count;
    }
    head_.resize(filled);
    return std::string_view(head_);
  }
  Result<std::size_t> read(std::span<char> into) override {
    if (at_ == head_.size()) return source_->read(into);
    const std::size_t count = head_.copy(into.data(), into.size(), at_);
    at_ += count;
    return count;
  }
  std::uint64_t done_bytes() const override { return source_->done_bytes(); }
  std::uint64_t total_bytes() const override { return source_->total_bytes(); }
  codec::Packing packing() const override { return source_->packing(); }
  const codec::UnpackReport& report() const override { return source_->report(); }
  std::uint64_t unpacked_bytes() const override { return source_->unpacked_bytes(); }

 private:
  std::unique_ptr<codec::UnpackedSource> source_;
  std::string head_;
  std::size_t at_ = 0;
};

Error no_trace(PeekedSource& source, std::string_view name, std::string_view head) {
  const KnownFile known = known_file(head, name);
  std::string message = std::string(name) + ": expected " + formats_text() + ", found ";
  const bool packed = source.packing() != codec::Packing::kPlain;
  if (packed && head.empty())
    message += std::string("a ") + codec::packing_name(source.packing()) + " file without content";
  else
    message += known.found;
  if (packed) {
    if (!head.empty()) message += std::string(", ") + codec::packing_name(source.packing());
    message += source.report().damage ? ": " + source.report().damage_reason
               : head.empty()         ? ""
                                      : " packed";
  }
  message += "; " + known.advice;
  return {head.empty() || source.report().damage ? Errc::kCorruptInput : Errc::kUnsupported,
          std::move(message), 0};
}

// `path`: of a regular file; `bytes`: of an input in memory.
Result<Trace> read_source(std::unique_ptr<codec::ByteSource> packed, std::string_view name,
                          const std::filesystem::path* path, std::string_view bytes,
                          const ReadOptions& options) {
  codec::UnpackOptions unpack;
  unpack.max_ratio = options.max_expansion_ratio;
  unpack.threads = options.threads == 0 ? usual_threads() : options.threads;
  LANESCOPE_TRY(auto unpacked, codec::open_unpacked(std::move(packed), unpack));
  PeekedSource source(std::move(unpacked));
  LANESCOPE_TRY(std::string_view head, source.peek(kFormatHeadBytes));
  if (const TraceFormat* const format = find_format(head)) {
    TraceInput input{source, name};
    if (source.packing() == codec::Packing::kPlain) {
      input.path = path;
      input.bytes = bytes;
    }
    Result<Trace> trace = format->read(input, options);
    // Only its first bytes are those of the format.
    if (trace || !trace.error().message.empty()) return trace;
  }
  LANESCOPE_TRY(head, source.peek(kKnownFileHeadBytes));
  return no_trace(source, name, head);
}

// A directory means the one recording in it.
Result<std::filesystem::path> only_spool_in(const std::filesystem::path& directory) {
  LANESCOPE_TRY(const auto spools, find_spools(directory));
  if (spools.size() == 1) return spools.front();
  std::string message = directory.string();
  message += ": expected a trace file or a directory with one recording (.lspool), found ";
  message += spools.empty() ? "a directory without any" : std::to_string(spools.size());
  if (!spools.empty()) message += " recordings; name one of them:";
  for (std::size_t i = 0; i < spools.size() && i < 8; ++i)
    message.append(1, ' ').append(spools[i].filename().string());
  return Error{Errc::kInvalidArgument, message};
}

}  // namespace

Result<Trace> read_trace(const std::filesystem::path& path, const ReadOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    LANESCOPE_TRY(const auto spool, only_spool_in(path));
    return read_trace(spool, options);
  }
  LANESCOPE_TRY(auto file, codec::open_file(path));
  // Only a regular file can be read twice.
  const bool is_regular = std::filesystem::is_regular_file(path, error);
  return read_source(std::move(file), path.string(), is_regular ? &path : nullptr, {}, options);
}

Result<Trace> read_trace_bytes(std::string_view bytes, const ReadOptions& options,
                               std::string_view name) {
  return read_source(codec::memory_source(bytes), name, nullptr, bytes, options);
}

}  // namespace lanescope::format
