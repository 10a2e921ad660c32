// JSON text that grows and goes to a sink in large pieces, with numbers written as Kineto does.
#pragma once
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_sink.h"

namespace lanescope::format {

// One thread; borrows the sink. A failed write is kept: later ones do nothing, and finish() returns
// the first failure.
class JsonOutput {
 public:
  explicit JsonOutput(codec::ByteSink& sink) : sink_(sink) {}
  void add(std::string_view text) { buffer_ += text; }
  void add(char c) { buffer_ += c; }
  std::string& raw() { return buffer_; }
  void add_integer(std::int64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    buffer_.append(digits, static_cast<std::size_t>(end - digits));
  }
  // Nanoseconds as microseconds with three decimals.
  void add_time(std::int64_t ns) {
    char digits[32];
    char* at = digits;
    auto rest = static_cast<std::uint64_t>(ns);
    if (ns < 0) {
      *at++ = '-';
      rest = 0 - rest;
    }
    at = std::to_chars(at, digits + sizeof digits, rest / 1000).ptr;
    const auto decimals = static_cast<unsigned>(rest % 1000);
    *at++ = '.';
    *at++ = static_cast<char>('0' + decimals / 100);
    *at++ = static_cast<char>('0' + decimals / 10 % 10);
    *at++ = static_cast<char>('0' + decimals % 10);
    buffer_.append(digits, static_cast<std::size_t>(at - digits));
  }
  // The shortest text that reads back as the same double, never as an integer. JSON has no NaN;
  // 1e999 is infinite.
  void add_double(double value) {
    if (std::isnan(value)) return add("null");
    if (std::isinf(value)) return add(value < 0 ? "-1e999" : "1e999");
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    const std::string_view text(digits, static_cast<std::size_t>(end - digits));
    add(text);
    if (text.find_first_of(".e") == std::string_view::npos) add(".0");
  }
  // Keeps the comma and the newline after the last event: the end of the list removes them.
  void flush_if_full() {
    if (buffer_.size() >= kFlushBytes) flush(2);
  }
  Result<void> finish() {
    flush(0);
    return std::move(status_);
  }
  bool failed() const { return !status_.has_value(); }
  const Result<void>& status() const { return status_; }
  std::uint64_t text_bytes() const { return flushed_ + buffer_.size(); }

 private:
  static constexpr std::size_t kFlushBytes = 1 << 20;
  void flush(std::size_t kept) {
    const std::string_view out = std::string_view(buffer_).substr(0, buffer_.size() - kept);
    flushed_ += out.size();
    if (!failed()) status_ = sink_.write(out);
    buffer_.erase(0, out.size());
  }
  codec::ByteSink& sink_;
  std::string buffer_;
  std::uint64_t flushed_ = 0;
  Result<void> status_;
};

// The list of events being written; a Trace in pieces has one for all of them.
struct EventsOutput {
  EventsOutput(codec::ByteSink& sink, bool comes_in_pieces)
      : text(sink), in_pieces(comes_in_pieces) {}
  void end_event() {
    text.add("},\n");
    ++events;
  }
  JsonOutput text;
  std::uint64_t events = 0;
  bool in_pieces;
  std::unordered_set<std::string> labels;  // written by earlier pieces
};

}  // namespace lanescope::format
