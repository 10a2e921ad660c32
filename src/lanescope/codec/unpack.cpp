// Problem: gzip and zstd streams arrive whole, cut, damaged or with padding after them, and the
// text before the damage is still a trace. Idea: one input window, refilled when the decoder has
// used it up; decoders differ only in one step. Where a stream has many members, other threads
// unpack those that come next (members_ahead.h).
#include "lanescope/codec/unpack.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "lanescope/codec/inflater.h"
#include "lanescope/codec/member_cuts.h"
#include "lanescope/codec/members_ahead.h"
#include "lanescope/codec/packed_input.h"

namespace lanescope::codec {
namespace {

class PlainSource final : public UnpackedSource {
 public:
  explicit PlainSource(PackedInput input) : input_(std::move(input)) {}
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
  PackedInput input_;
  UnpackReport report_;
  std::uint64_t unpacked_ = 0;
  bool head_left_ = true;
};

// Reads members as a stream (is_stream_), or takes the text of parts that MembersAhead unpacks. A
// part that is not whole is put back and read as a stream, so one piece of code finds and reports damage.
class PackedSource final : public UnpackedSource {
 public:
  PackedSource(PackedInput input, Packing packing, std::unique_ptr<Inflater> inflater,
               const UnpackOptions& options)
      : input_(std::move(input)),
        packing_(packing),
        inflater_(std::move(inflater)),
        options_(options),
        ahead_(packing, others_of(options.threads)) {}

  Result<std::size_t> read(std::span<char> into) override {
    std::size_t filled = 0;
    while (filled < into.size() && !ended_) {
      if (part_) {
        filled += copy_part(into.subspan(filled));
      } else {
        LANESCOPE_TRY_VOID(is_stream_ ? next_step(into, filled) : next_part());
      }
    }
    return filled;
  }
  std::uint64_t done_bytes() const override { return consumed_; }
  std::uint64_t total_bytes() const override { return input_.source().total_bytes(); }
  Packing packing() const override { return packing_; }
  const UnpackReport& report() const override { return report_; }
  std::uint64_t unpacked_bytes() const override { return unpacked_; }

 private:
  // Parsing takes five times as long as unpacking, so a quarter of the threads is enough.
  static unsigned others_of(unsigned threads) { return std::max(1u, threads / 4); }

  Result<void> next_step(std::span<char> into, std::size_t& filled) {
    LANESCOPE_TRY(const std::string_view packed, input_.peek(1));
    const InflateStep step = inflater_->step(packed, into.subspan(filled));
    input_.consume(step.used);
    consumed_ += step.used;
    filled += step.made;
    unpacked_ += step.made;
    if (step.error != nullptr) {
      damaged(step.error);
    } else if (step.member_ended) {
      if (step.checksum_is_wrong && !report_.wrong_checksum) report_.wrong_checksum = unpacked_;
      LANESCOPE_TRY_VOID(next_member());
    } else if (packed.empty() && step.made == 0) {
      damaged("the stream ends early");
    }
    if (!is_bomb(unpacked_, consumed_)) return {};
    return Error{Errc::kLimit,
                 "expected at most " + std::to_string(options_.max_ratio) +
                     " times the packed size, found " + std::to_string(unpacked_) +
                     " bytes unpacked from " + std::to_string(consumed_),
                 unpacked_};
  }
  bool is_bomb(std::uint64_t unpacked, std::uint64_t consumed) const {
    return unpacked > options_.free_bytes && unpacked / options_.max_ratio > consumed;
  }
  void damaged(const char* reason) {
    report_.damage = unpacked_;
    report_.damage_reason = reason;
    ended_ = true;
  }
  // A member has ended, and all parts are taken.
  Result<void> next_member() {
    LANESCOPE_TRY(const std::string_view rest, input_.peek(4));
    if (rest.empty()) {
      ended_ = true;
    } else if (detect_packing(rest) == packing_) {
      inflater_->reset();
      is_stream_ = options_.threads <= 1 || consumed_ < stream_until_;
    } else {
      report_.trailing = consumed_;
      ended_ = true;
    }
    return {};
  }

  std::size_t copy_part(std::span<char> into) {
    const std::size_t count = std::min(into.size(), part_->text_size - part_at_);
    std::memcpy(into.data(), part_->text.data() + part_at_, count);
    part_at_ += count;
    unpacked_ += count;
    if (part_at_ == part_->text_size) ahead_.reuse(std::exchange(part_, nullptr));
    return count;
  }
  Result<void> next_part() {
    LANESCOPE_TRY_VOID(fill_ahead());
    if (ahead_.is_empty()) return go_on_as_stream();
    std::unique_ptr<MemberPart> part = ahead_.take_first();
    // Stricter than the stream's test at any place in the part.
    if (!part->is_whole || is_bomb(unpacked_ + part->text_size, consumed_)) {
      put_back(std::move(part));
      return go_on_as_stream();
    }
    consumed_ += part->packed.size();
    ++report_.parts_ahead;
    part_ = std::move(part);
    part_at_ = 0;
    return {};
  }
  // At the start of a member, or at the end of all.
  Result<void> go_on_as_stream() {
    LANESCOPE_TRY_VOID(next_member());
    is_stream_ = true;
    return {};
  }
  Result<void> fill_ahead() {
    while (!ahead_.is_full()) {
      LANESCOPE_TRY(const std::string_view head, input_.peek(4));
      if (detect_packing(head) != packing_) return {};
      LANESCOPE_TRY(const std::size_t cut, next_cut());
      if (cut == 0) return {};
      std::unique_ptr<MemberPart> part = ahead_.spare_part();
      input_.take(cut, part->packed);
      ahead_.submit(std::move(part));
    }
    return {};
  }
  // 0: the next member is long, or nothing follows it and nobody else has work.
  Result<std::size_t> next_cut() {
    const std::size_t most = options_.part_bytes * 32;
    for (std::size_t want = options_.part_bytes * 2;; want *= 2) {
      LANESCOPE_TRY(std::string_view packed, input_.peek(want));
      const bool is_rest = packed.size() < want;
      packed = packed.substr(0, want);
      std::size_t cut = find_member_cut(packing_, packed, options_.part_bytes);
      if (cut == 0 && is_rest && packing_ == Packing::kGzip) cut = packed.size();
      if (cut == packed.size() && is_rest && ahead_.is_empty()) return std::size_t{0};
      if (cut > 0 || is_rest || want >= most) return cut;
    }
  }
  // The next guess waits for twice as many bytes as the last one.
  void put_back(std::unique_ptr<MemberPart> part) {
    std::vector<char> packed = std::move(part->packed);
    while (!ahead_.is_empty()) {
      part = ahead_.take_first();
      packed.insert(packed.end(), part->packed.begin(), part->packed.end());
      ahead_.reuse(std::move(part));
    }
    input_.give_back(std::string_view(packed.data(), packed.size()));
    stream_until_ = consumed_ + penalty_bytes_;
    penalty_bytes_ *= 2;
  }

  PackedInput input_;
  Packing packing_;
  std::unique_ptr<Inflater> inflater_;
  UnpackOptions options_;
  UnpackReport report_;
  std::uint64_t unpacked_ = 0, consumed_ = 0;  // of what read() has returned and passed
  bool ended_ = false;

  MembersAhead ahead_;
  std::unique_ptr<MemberPart> part_;  // whole; its text is read from part_at_ on
  std::size_t part_at_ = 0;
  bool is_stream_ = true;  // the first member always: most streams have no other
  std::uint64_t stream_until_ = 0, penalty_bytes_ = 1u << 20;
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
  PackedInput input(std::move(packed));
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
