#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/compression.h"

namespace lanescope::codec {
namespace {

constexpr std::size_t kOutputBytes = 256 * 1024;

// What all packers share: pack a piece, pass full output windows on.
class PackedSink : public ByteSink {
 public:
  explicit PackedSink(std::unique_ptr<ByteSink> sink)
      : sink_(std::move(sink)), output_(kOutputBytes) {}
  Result<void> write(std::string_view text) override {
    while (!text.empty()) {  // the C interfaces count in 32 bits
      const std::string_view piece = text.substr(0, INT_MAX);
      LANESCOPE_TRY_VOID(pack(piece, false));
      text.remove_prefix(piece.size());
    }
    return {};
  }
  Result<void> finish() override {
    LANESCOPE_TRY_VOID(pack({}, true));
    return sink_->finish();
  }
  std::uint64_t written_bytes() const override { return sink_->written_bytes(); }

 protected:
  virtual Result<void> pack(std::string_view piece, bool last) = 0;
  std::unique_ptr<ByteSink> sink_;
  std::vector<char> output_;
};

#if LANESCOPE_HAS_ISAL
class GzipSink final : public PackedSink {
 public:
  GzipSink(std::unique_ptr<ByteSink> sink, int level)
      : PackedSink(std::move(sink)), stream_(std::make_unique<isal_zstream>()) {
    constexpr std::array<unsigned, 4> kBufferBytes{ISAL_DEF_LVL0_DEFAULT, ISAL_DEF_LVL1_DEFAULT,
                                                   ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};
    const int isal_level = level == 0 ? 2 : std::clamp(level, 1, 3);
    level_buffer_.resize(kBufferBytes[static_cast<std::size_t>(isal_level)]);
    isal_deflate_init(stream_.get());
    stream_->gzip_flag = IGZIP_GZIP;
    stream_->level = static_cast<unsigned>(isal_level);
    stream_->level_buf = level_buffer_.data();
    stream_->level_buf_size = static_cast<unsigned>(level_buffer_.size());
  }

 private:
  Result<void> pack(std::string_view piece, bool last) override {
    stream_->next_in = input_bytes(piece.data());
    stream_->avail_in = capped(piece.size());
    stream_->end_of_stream = last ? 1 : 0;
    do {
      stream_->next_out = bytes(output_.data());
      stream_->avail_out = static_cast<unsigned>(output_.size());
      if (isal_deflate(stream_.get()) != COMP_OK)
        return Error{Errc::kIo, "gzip compression failed"};
      LANESCOPE_TRY_VOID(sink_->write({output_.data(), output_.size() - stream_->avail_out}));
    } while (stream_->avail_out == 0);
    return {};
  }
  std::unique_ptr<isal_zstream> stream_;
  std::vector<unsigned char> level_buffer_;
};
#else
class GzipSink final : public PackedSink {
 public:
  GzipSink(std::unique_ptr<ByteSink> sink, int level) : PackedSink(std::move(sink)) {
    ok_ = deflateInit2(&stream_, level == 0 ? 4 : std::clamp(level, 1, 9), Z_DEFLATED, 15 + 16, 8,
                       Z_DEFAULT_STRATEGY) == Z_OK;
  }
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;
  ~GzipSink() override { deflateEnd(&stream_); }

 private:
  Result<void> pack(std::string_view piece, bool last) override {
    stream_.next_in = input_bytes(piece.data());
    stream_.avail_in = capped(piece.size());
    do {
      stream_.next_out = bytes(output_.data());
      stream_.avail_out = static_cast<unsigned>(output_.size());
      if (!ok_ || deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
        return Error{Errc::kIo, "gzip compression failed"};
      LANESCOPE_TRY_VOID(sink_->write({output_.data(), output_.size() - stream_.avail_out}));
    } while (stream_.avail_out == 0);
    return {};
  }
  z_stream stream_{};
  bool ok_ = false;
};
#endif

#if LANESCOPE_HAS_ZSTD
class ZstdSink final : public PackedSink {
 public:
  ZstdSink(std::unique_ptr<ByteSink> sink, int level)
      : PackedSink(std::move(sink)), context_(ZSTD_createCCtx()) {
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level == 0 ? 3 : level);
    ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  }
  ZstdSink(const ZstdSink&) = delete;
  ZstdSink& operator=(const ZstdSink&) = delete;
  ~ZstdSink() override { ZSTD_freeCCtx(context_); }

 private:
  Result<void> pack(std::string_view piece, bool last) override {
    ZSTD_inBuffer in{piece.data(), piece.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{output_.data(), output_.size(), 0};
      const std::size_t left =
          ZSTD_compressStream2(context_, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left))
        return Error{Errc::kIo, std::string("zstd compression failed: ") + ZSTD_getErrorName(left)};
      LANESCOPE_TRY_VOID(sink_->write({output_.data(), out.pos}));
      if (last ? left == 0 : in.pos == in.size) return {};
    }
  }
  ZSTD_CCtx* context_;
};
#endif

}  // namespace

Packing packing_of_name(const std::filesystem::path& path) {
  std::string suffix = path.extension().string();
  for (char& c : suffix)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return suffix == ".gz" ? Packing::kGzip : suffix == ".zst" ? Packing::kZstd : Packing::kPlain;
}

Result<std::unique_ptr<ByteSink>> pack_into(std::unique_ptr<ByteSink> sink, Packing packing,
                                            int level) {
  if (packing == Packing::kPlain) return sink;
  if (packing == Packing::kGzip)
    return std::unique_ptr<ByteSink>(std::make_unique<GzipSink>(std::move(sink), level));
#if LANESCOPE_HAS_ZSTD
  return std::unique_ptr<ByteSink>(std::make_unique<ZstdSink>(std::move(sink), level));
#else
  return Error{Errc::kUnavailable, "cannot write .zst: this lanescope was built without libzstd"};
#endif
}

}  // namespace lanescope::codec
