// Packets of a Perfetto trace that go to a sink in large pieces, and the texts that were written
// once and are numbers from then on.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/fields.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// One thread; borrows both. A failed write is kept, and finish() returns it.
class PacketOutput {
 public:
  PacketOutput(const Trace& trace, codec::ByteSink& sink) : trace_(trace), sink_(sink) {}

  // A packet of the one sequence that has all events.
  void packet(std::string_view fields) {
    head_.clear();
    codec::WireWriter writer(head_);
    writer.integer(pftrace::kSequenceId, 1);
    writer.integer(pftrace::kSequenceFlags,
                   is_first_ ? pftrace::kFlagCleared : pftrace::kFlagNeedsState);
    is_first_ = false;
    if (!interned_.empty()) writer.bytes(pftrace::kInternedData, interned_);
    interned_.clear();
    add(fields);
  }
  // If the sequence of the events also described a thread, Perfetto would take it for the thread of them all, and note it as an
  // argument of each event that is on no thread. So tracks are described in another sequence.
  void track_packet(std::string_view fields) {
    head_.clear();
    codec::WireWriter(head_).integer(pftrace::kSequenceId, 2);
    add(fields);
  }
  // The number of that text in its list (kEventNames, ...). The first time, the next packet carries the text.
  std::uint64_t iid(pftrace::InternedData list, StringId text) {
    const std::size_t at = list == pftrace::kEventNames        ? 0
                           : list == pftrace::kEventCategories ? 1
                           : list == pftrace::kAnnotationNames ? 2
                                                               : kTexts;
    return iid_in(list, iids_[at], last_iids_[at], text, false);
  }
  // The same for the text of a JSON list. It has another number than a string of the same text.
  std::uint64_t list_iid(StringId text) {
    return iid_in(pftrace::kAnnotationTexts, list_iids_, last_iids_[kTexts], text, true);
  }
  Result<void> finish() {
    flush();
    return std::move(status_);
  }
  bool failed() const { return !status_.has_value(); }
  std::uint64_t bytes() const { return flushed_ + buffer_.size(); }

 private:
  static constexpr std::size_t kFlushBytes = 1 << 20, kTexts = 3;
  std::uint64_t iid_in(pftrace::InternedData list, std::vector<std::uint32_t>& iids,
                       std::uint32_t& last_iid, StringId text, bool is_list) {
    if (iids.empty()) iids.resize(trace_.strings().size());
    std::uint32_t& iid = iids[raw(text)];
    if (iid != 0) return iid;
    iid = ++last_iid;
    entry_.clear();
    codec::WireWriter writer(entry_);
    writer.integer(pftrace::kIid, iid);
    writer.bytes(pftrace::kText, codec::valid_utf8(trace_.text(text)));
    if (is_list) writer.integer(pftrace::kOwnField, pftrace::kOwnIsList);
    codec::WireWriter(interned_).bytes(list, entry_);
    return iid;
  }
  void add(std::string_view fields) {
    codec::WireWriter out(buffer_);
    out.varint(pftrace::kPacket << 3U | 2U);
    out.varint(head_.size() + fields.size());
    buffer_ += head_;
    buffer_ += fields;
    if (buffer_.size() >= kFlushBytes) flush();
  }
  void flush() {
    if (!failed()) status_ = sink_.write(buffer_);
    flushed_ += buffer_.size();
    buffer_.clear();
  }
  const Trace& trace_;
  codec::ByteSink& sink_;
  std::array<std::vector<std::uint32_t>, 4> iids_;  // of each list, by text; 0: not written yet
  std::vector<std::uint32_t> list_iids_;
  std::array<std::uint32_t, 4> last_iids_{};
  std::string buffer_, head_, interned_, entry_;
  std::uint64_t flushed_ = 0;
  bool is_first_ = true;
  Result<void> status_;
};

}  // namespace lanescope::format
