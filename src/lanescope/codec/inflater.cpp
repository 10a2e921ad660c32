#include "lanescope/codec/inflater.h"

#include <algorithm>
#include <iterator>

#include "lanescope/codec/compression.h"

namespace lanescope::codec {
namespace {

#if LANESCOPE_HAS_ISAL
class GzipInflater final : public Inflater {
 public:
  GzipInflater() : state_(std::make_unique<inflate_state>()) { reset(); }
  // ISA-L takes a distance to before the member for one into its own buffer. Without the texts of
  // earlier members there, what a damaged member gives does not depend on them.
  void reset() override {
    std::fill(std::begin(state_->tmp_out_buffer), std::end(state_->tmp_out_buffer), '\0');
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;  // header, trailer and checksum are read and verified
  }
  InflateStep step(std::string_view packed, std::span<char> into) override {
    state_->next_in = input_bytes(packed.data());
    state_->avail_in = capped(packed.size());
    state_->next_out = bytes(into.data());
    state_->avail_out = capped(into.size());
    const auto in_before = state_->avail_in, out_before = state_->avail_out;
    const int status = isal_inflate(state_.get());
    InflateStep step;
    step.used = in_before - state_->avail_in;
    step.made = out_before - state_->avail_out;
    // The trailer was read, right or wrong.
    step.checksum_is_wrong = status == ISAL_INCORRECT_CHECKSUM;
    if (status < 0 && !step.checksum_is_wrong)
      step.error = "the gzip stream is damaged";
    else
      step.member_ended = step.checksum_is_wrong || state_->block_state == ISAL_BLOCK_FINISH;
    return step;
  }

 private:
  std::unique_ptr<inflate_state> state_;  // 85 KB
};
#else
class GzipInflater final : public Inflater {
 public:
  GzipInflater() { ok_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }
  GzipInflater(const GzipInflater&) = delete;
  GzipInflater& operator=(const GzipInflater&) = delete;
  ~GzipInflater() override { inflateEnd(&stream_); }
  void reset() override {
    ok_ = inflateReset(&stream_) == Z_OK;
    left_of_trailer_ = 0;
  }
  InflateStep step(std::string_view packed, std::span<char> into) override {
    InflateStep step;
    if (!ok_) {
      step.error = "zlib could not start";
      return step;
    }
    if (left_of_trailer_ > 0) {
      step.used = std::min(left_of_trailer_, packed.size());
      left_of_trailer_ -= step.used;
      step.member_ended = step.checksum_is_wrong = left_of_trailer_ == 0;
      return step;
    }
    stream_.next_in = input_bytes(packed.data());
    stream_.avail_in = capped(packed.size());
    stream_.next_out = bytes(into.data());
    stream_.avail_out = capped(into.size());
    const auto in_before = stream_.avail_in, out_before = stream_.avail_out;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    step.used = in_before - stream_.avail_in;
    step.made = out_before - stream_.avail_out;
    step.member_ended = status == Z_STREAM_END;
    if (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR) return step;
    // The trailer is the CRC and the size, 4 bytes each. zlib stops after the one that is wrong.
    const std::string_view why = stream_.msg ? stream_.msg : "";
    if (why == "incorrect data check")
      left_of_trailer_ = 4;
    else if (why == "incorrect length check")
      step.member_ended = step.checksum_is_wrong = true;
    else
      step.error = "the gzip stream is damaged";
    return step;
  }

 private:
  z_stream stream_{};
  std::size_t left_of_trailer_ = 0;  // of a member whose checksum is wrong
  bool ok_ = false;
};
#endif

#if LANESCOPE_HAS_ZSTD
// libzstd forgets what a call has written when that call finds a wrong checksum. So with `by_units` a call gets no more input than
// what libzstd asks for next: a block, or the checksum alone.
class ZstdInflater final : public Inflater {
 public:
  ZstdInflater(int most_window_log, bool by_units)
      : stream_(ZSTD_createDStream()), by_units_(by_units) {
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, most_window_log);
    reset();
  }
  ZstdInflater(const ZstdInflater&) = delete;
  ZstdInflater& operator=(const ZstdInflater&) = delete;
  ~ZstdInflater() override { ZSTD_freeDStream(stream_); }
  void reset() override {
    constexpr std::size_t kFirstBytes = 5;  // of a frame's header, as ZSTD_initDStream() returns
    ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only);
    wanted_ = kFirstBytes;
    may_hold_text_ = false;
  }
  InflateStep step(std::string_view packed, std::span<char> into) override {
    if (by_units_) packed = packed.substr(0, may_hold_text_ ? 0 : wanted_);
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    const std::size_t status = ZSTD_decompressStream(stream_, &out, &in);
    InflateStep step;
    step.used = in.pos;
    step.made = out.pos;
    may_hold_text_ = out.pos == out.size;
    const ZSTD_ErrorCode error = ZSTD_getErrorCode(status);
    if (error == ZSTD_error_checksum_wrong && by_units_) {
      step.used = packed.size();
      step.member_ended = step.checksum_is_wrong = true;
    } else if (error == ZSTD_error_frameParameter_windowTooLarge) {
      step.error = "its window is over 128 MB (zstd --long); pack it again without --long";
    } else if (ZSTD_isError(status)) {
      step.error = "the zstd stream is damaged";
    } else {
      step.member_ended = status == 0;
      wanted_ = status;
    }
    return step;
  }

 private:
  ZSTD_DStream* stream_;
  bool by_units_;
  std::size_t wanted_ = 0;      // the next input that libzstd asks for
  bool may_hold_text_ = false;  // the last call filled its output
};
#endif

}  // namespace

std::unique_ptr<Inflater> gzip_inflater() { return std::make_unique<GzipInflater>(); }

std::unique_ptr<Inflater> zstd_inflater() {
#if LANESCOPE_HAS_ZSTD
  return std::make_unique<ZstdInflater>(27, true);  // what zstd itself takes as the most
#else
  return nullptr;
#endif
}

std::unique_ptr<Inflater> part_inflater(Packing packing) {
#if LANESCOPE_HAS_ZSTD
  if (packing == Packing::kZstd) return std::make_unique<ZstdInflater>(25, false);
#endif
  return packing == Packing::kGzip ? gzip_inflater() : nullptr;
}

}  // namespace lanescope::codec
