#include "lanescope/format/read_trace.h"

#include <memory>
#include <string>
#include <utility>

#include "lanescope/codec/unpack.h"
#include "lanescope/format/kineto_json/read_kineto_json.h"
#include "lanescope/format/sniff.h"
#include "lanescope/format/spool/read_spool.h"

namespace lanescope::format {
namespace {

constexpr const char* kExpected =
    "expected a PyTorch or Chrome trace (.json, .json.gz, .json.zst), found ";

// Returns the bytes that detection read, then the rest of the source.
class PeekedSource final : public codec::UnpackedSource {
 public:
  explicit PeekedSource(std::unique_ptr<codec::UnpackedSource> source)
      : source_(std::move(source)) {}

  Result<std::string_view> peek(std::size_t want) {
    head_.resize(want);
    std::size_t filled = 0;
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

Result<Trace> read_source(std::unique_ptr<codec::ByteSource> packed, std::string_view name,
                          const ReadOptions& options) {
  codec::UnpackOptions unpack;
  unpack.max_ratio = options.max_expansion_ratio;
  LANESCOPE_TRY(auto unpacked, codec::open_unpacked(std::move(packed), unpack));
  PeekedSource source(std::move(unpacked));
  LANESCOPE_TRY(const std::string_view head, source.peek(4096));
  if (auto what = describe_non_json(head)) {
    std::string message = std::string(name) + ": " + kExpected + *what;
    if (source.packing() != codec::Packing::kPlain) {
      message += std::string(", ") + codec::packing_name(source.packing());
      message += source.report().damage ? ": " + source.report().damage_reason : " packed";
    }
    return Error{head.empty() || source.report().damage ? Errc::kCorruptInput : Errc::kUnsupported,
                 std::move(message), 0};
  }
  return read_kineto_json(source, name, options);
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
    return read_spool(spool);
  }
  if (is_spool_file(path)) return read_spool(path);
  LANESCOPE_TRY(auto file, codec::open_file(path));
  return read_source(std::move(file), path.string(), options);
}

Result<Trace> read_trace_bytes(std::string_view bytes, const ReadOptions& options,
                               std::string_view name) {
  if (is_spool(bytes)) return read_spool_bytes(bytes);
  return read_source(codec::memory_source(bytes), name, options);
}

}  // namespace lanescope::format
