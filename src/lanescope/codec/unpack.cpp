// Problem: gzip and zstd streams arrive whole, cut, damaged or with padding after them, and the
// text before the damage is still a trace. Idea: one input window, refilled when the decoder has
// used it up; decoders differ only in one step.
#include "lanescope/codec/unpack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "lanescope/codec/inflater.h"

namespace lanescope::codec {
namespace {

constexpr std::size_t kInputBytes = 256 * 1024;

// The packed bytes; peek() shows the next ones.
class Input {
 public:
  explicit Input(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), buffer_(bytes_for(source_->total_bytes())) {}

  // The next bytes, at least `want` unless the source ends earlier.
  Result<std::string_view> peek(std::size_t want) {
    while (end_ - begin_ < want && !source_ended_) {
      if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
      }
      LANESCOPE_TRY(const std::size_t count, source_->read(std::span(buffer_).subspan(end_)));
      if (count == 0) source_ended_ = true;
      end_ += count;
    }
    return std::string_view(buffer_.data() + begin_, end_ - begin_);
  }
  void consume(std::size_t count) {
    begin_ += count;
    consumed_ += count;
  }
  std::uint64_t consumed_bytes() const { return consumed_; }
  const ByteSource& source() const { return *source_; }
  ByteSource& source() { return *source_; }

 private:
  // Small inputs need a small window; 0: a pipe of unknown size.
  static std::size_t bytes_for(std::uint64_t total) {
    if (total == 0 || total > kInputBytes) return kInputBytes;
    return std::max<std::size_t>(static_cast<std::size_t>(total), 64);
  }

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t consumed_ = 0;
  bool source_ended_ = false;
};

class PlainSource final : public UnpackedSource {
 public:
  explicit PlainSource(Input input) : input_(std::move(input)) {}
  Result<std::size_t> read(std::span<char> into) override {
    if (head_left_) {  // first the bytes that detection read, then straight to the caller
      LANESCOPE_TRY(const std::string_view head, input_.peek(1));
      const std::size_t count = std::min(head.size(), into.size());
      std::memcpy(into.data(), head.data(), count);
      input_.consume(count);
      head_left_ = count < head.size();
      unpacked_ += count;
      if (count > 0 || into.empty()) return count;
    }
    LANESCOPE_TRY(const std::size_t count, input_.source().read(into));
    unpacked_ += count;
    return count;
  }
  std::uint64_t done_bytes() const override { return unpacked_; }
  std::uint64_t total_bytes() const override { return input_.source().total_bytes(); }
  Packing packing() const override { return Packing::kPlain; }
  const UnpackReport& report() const override { return report_; }
  std::uint64_t unpacked_bytes() const override { return unpacked_; }

 private:
  Input input_;
  UnpackReport report_;
  std::uint64_t unpacked_ = 0;
  bool head_left_ = true;
};

class PackedSource final : public UnpackedSource {
 public:
  PackedSource(Input input, Packing packing, std::unique_ptr<Inflater> inflater,
               const UnpackOptions& options)
      : input_(std::move(input)),
        packing_(packing),
        inflater_(std::move(inflater)),
        options_(options) {}

  Result<std::size_t> read(std::span<char> into) override {
    std::size_t filled = 0;
    while (filled < into.size() && !ended_) {
      LANESCOPE_TRY(const std::string_view packed, input_.peek(1));
      const InflateStep step = inflater_->step(packed, into.subspan(filled));
      input_.consume(step.used);
      filled += step.made;
      unpacked_ += step.made;
      if (step.error != nullptr) {
        damaged(step.error);
      } else if (step.member_ended) {
        LANESCOPE_TRY_VOID(next_member());
      } else if (packed.empty() && step.made == 0) {
        damaged("the stream ends early");
      }
      if (unpacked_ > options_.free_bytes &&
          unpacked_ / options_.max_ratio > input_.consumed_bytes())
        return Error{Errc::kLimit,
                     "expected at most " + std::to_string(options_.max_ratio) +
                         " times the packed size, found " + std::to_string(unpacked_) +
                         " bytes unpacked from " + std::to_string(input_.consumed_bytes()),
                     unpacked_};
    }
    return filled;
  }
  std::uint64_t done_bytes() const override { return input_.consumed_bytes(); }
  std::uint64_t total_bytes() const override { return input_.source().total_bytes(); }
  Packing packing() const override { return packing_; }
  const UnpackReport& report() const override { return report_; }
  std::uint64_t unpacked_bytes() const override { return unpacked_; }

 private:
  void damaged(const char* reason) {
    report_.damage = unpacked_;
    report_.damage_reason = reason;
    ended_ = true;
  }
  Result<void> next_member() {
    LANESCOPE_TRY(const std::string_view rest, input_.peek(4));
    if (rest.empty()) {
      ended_ = true;
    } else if (detect_packing(rest) == packing_) {
      inflater_->reset();
    } else {
      report_.trailing = input_.consumed_bytes();
      ended_ = true;
    }
    return {};
  }

  Input input_;
  Packing packing_;
  std::unique_ptr<Inflater> inflater_;
  UnpackOptions options_;
  UnpackReport report_;
  std::uint64_t unpacked_ = 0;
  bool ended_ = false;
};

}  // namespace

const char* packing_name(Packing packing) {
  return packing == Packing::kGzip ? "gzip" : packing == Packing::kZstd ? "zstd" : "plain";
}

Packing detect_packing(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return Packing::kGzip;
  if (head.starts_with("\x28\xb5\x2f\xfd")) return Packing::kZstd;
  // A skippable frame may come first: 0x184D2A5? in little endian.
  if (head.size() >= 4 && (head[0] & '\xf0') == '\x50' && head.substr(1, 3) == "\x2a\x4d\x18")
    return Packing::kZstd;
  return Packing::kPlain;
}

Result<std::unique_ptr<UnpackedSource>> open_unpacked(std::unique_ptr<ByteSource> packed,
                                                      const UnpackOptions& options) {
  Input input(std::move(packed));
  LANESCOPE_TRY(const std::string_view head, input.peek(4));
  const Packing packing = detect_packing(head);
  if (packing == Packing::kPlain)
    return std::unique_ptr<UnpackedSource>(std::make_unique<PlainSource>(std::move(input)));
  std::unique_ptr<Inflater> inflater =
      packing == Packing::kGzip ? gzip_inflater() : zstd_inflater();
  if (!inflater)
    return Error{Errc::kUnavailable,
                 "found a zstd file, but this lanescope was built without libzstd"};
  return std::unique_ptr<UnpackedSource>(
      std::make_unique<PackedSource>(std::move(input), packing, std::move(inflater), options));
}

}  // namespace lanescope::codec
