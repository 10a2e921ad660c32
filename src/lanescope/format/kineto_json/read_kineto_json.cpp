// Problem: gigabytes of JSON, nearly always clean, sometimes cut or wrong anywhere. Idea: a window
// slides over the text (text_window.h). The list of events has the hot loop (event_list.h); here is
// what is around it: the keys of the object, metadata, and what follows the document.
#include "lanescope/format/kineto_json/read_kineto_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/json_escape.h"
#include "lanescope/base/share_work.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/format/kineto_json/document_text.h"
#include "lanescope/format/kineto_json/event_list.h"
#include "lanescope/format/kineto_json/json_walk.h"
#include "lanescope/format/kineto_json/not_a_trace.h"
#include "lanescope/format/lost_entry.h"

namespace lanescope::format {
namespace {

// Counts each whole document after the first one; counts anything else there once.
class RestScanner {
 public:
  void scan(std::string_view text, std::uint64_t offset, ImportStats& stats) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (in_string_) {
        if (c == '"' && !escaped_) in_string_ = false;
        escaped_ = c == '\\' && !escaped_;
      } else if (c == '"' && depth_ > 0) {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        if (depth_++ == 0) stats.count(ImportIssue::kSecondDocument, offset + i);
      } else if ((c == '}' || c == ']') && depth_ > 0) {
        --depth_;
      } else if (depth_ == 0 && !JsonWalk::is_blank(c) && !has_other_) {
        has_other_ = true;
        stats.count(ImportIssue::kTrailingBytes, offset + i);
      }
    }
  }

 private:
  std::size_t depth_ = 0;
  bool in_string_ = false, escaped_ = false, has_other_ = false;
};

class DocumentReader {
 public:
  DocumentReader(codec::UnpackedSource& source, std::string_view name, const ReadOptions& options)
      : source_(source),
        name_(name),
        threads_(options.threads == 0 ? usual_threads() : options.threads),
        text_(source, options, builder_.stats()),
        window_(text_.window()),
        events_(text_, builder_, options) {}

  Result<Trace> run() {
    text_.grow();
    if (window_.text().starts_with("\xef\xbb\xbf")) window_.consume(3);  // a byte order mark
    const int first = text_.next();
    if (first == '[') {
      window_.consume(1);
      events_.read(true);
      is_closed_ = events_.is_closed();
    } else if (first == '{') {
      window_.consume(1);
      read_object();
    }
    skip_rest();
    if (window_.failed()) return window_.error();
    const bool is_profile = take_waiting();
    const DocumentParts parts{first, has_events_ || is_profile, events_.has_event(),
                              builder_.event_count(), keys_};
    if (const auto why = why_no_trace(parts, stats()))
      return Error{Errc::kCorruptInput, std::string(name_) + ": " + *why, 0};
    finish_stats();
    events_.finish();
    return std::move(builder_).finish(threads_);
  }

 private:
  ImportStats& stats() { return builder_.stats(); }

  void read_object() {
    for (;;) {
      const int c = text_.next();
      if (c == DocumentText::kEnd) return text_.count_cut();
      if (c == '}') {
        is_closed_ = true;
        return window_.consume(1);
      }
      if (c == ',') {
        window_.consume(1);
      } else if (c != '"' || !read_entry()) {
        if (!skip_to_events()) return;
      }
    }
  }

  // False: not understood; the window did not move, or is at its end.
  bool read_entry() {
    const codec::MendResult key = text_.mend();
    if (key.status != codec::MendStatus::kDone) return lost_entry(key);
    std::string plain;
    if (!unescape_json(std::string_view(text_.mended()).substr(1, text_.mended().size() - 2),
                       plain))
      return false;
    text_.count(key.mends);
    window_.consume(key.used);
    int c = text_.next();
    if (c != ':') text_.count(ImportIssue::kSyntax);
    for (bool first = true; c == ':'; c = text_.next(), first = false) {
      if (!first) text_.count(ImportIssue::kSyntax);
      window_.consume(1);
    }
    if (plain == "traceEvents" && c == '[') {
      window_.consume(1);
      has_events_ = true;
      add_waiting();
      events_.read(false);
      return true;
    }
    keys_.push_back(plain.substr(0, 64));
    if (c == DocumentText::kEnd) return true;
    const codec::MendResult value = text_.mend();
    if (value.status != codec::MendStatus::kDone) return lost_entry(value);
    text_.count(value.mends);
    window_.consume(value.used);
    if (plain == "baseTimeNanoseconds")
      read_base_time();
    else if (plain == "traceEvents")  // not a list
      text_.count(ImportIssue::kMetadataLost);
    else if (!take_lost_entry(plain, text_.mended(), &stats()))
      add_entry(plain);
    return true;
  }

  // Entries of a .cpuprofile file, and all after them, wait until it is clear whether the document is one: it has no events.
  static bool is_of_profile(std::string_view key) {
    return key == "nodes" || key == "samples" || key == "timeDeltas" || key == "startTime" ||
           key == "endTime";
  }
  void add_entry(const std::string& key) {
    if (!has_events_ && (!waiting_.empty() || is_of_profile(key)))
      waiting_.emplace_back(key, text_.mended());
    else
      builder_.add_metadata(key, text_.mended());
  }
  void add_waiting() {
    for (const auto& [key, json] : waiting_) builder_.add_metadata(key, json);
    waiting_.clear();
  }
  // True: the document is a .cpuprofile file, and was added.
  bool take_waiting() {
    const auto has = [this](std::string_view wanted) {
      return std::any_of(waiting_.begin(), waiting_.end(),
                         [&](const auto& entry) { return entry.first == wanted; });
    };
    const bool is_profile = has("nodes") && has("samples") && has("timeDeltas");
    std::string json = "{";
    if (is_profile) {
      for (auto& [key, value] : waiting_) {
        if (is_of_profile(key))
          json.append(json.size() > 1 ? ",\"" : "\"").append(key).append("\":").append(value);
        else
          builder_.add_metadata(key, value);
        value = {};
      }
      events_.add_profile_file(json.append("}"));
      waiting_.clear();
    }
    add_waiting();
    return is_profile;
  }
  bool lost_entry(const codec::MendResult& result) {
    text_.count(ImportIssue::kMetadataLost);
    if (window_.at_end() && result.used >= window_.text().size()) text_.count_cut();
    return false;
  }
  void read_base_time() {
    std::string_view text = text_.mended();
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    const codec::Decimal base = codec::parse_decimal(text, 0);
    if (base.status != codec::DecimalStatus::kOk) return text_.count(ImportIssue::kBadTime);
    builder_.set_base_time_ns(base.value);
    builder_.add_metadata("baseTimeNanoseconds", std::to_string(base.value));
  }

  // After metadata that was not understood: goes on to the events, if they are still to come.
  bool skip_to_events() {
    constexpr std::string_view kKey = "\"traceEvents\"";
    if (window_.text().empty()) return false;
    text_.count(ImportIssue::kSyntax);
    for (;;) {
      const std::size_t at = has_events_ ? std::string_view::npos : window_.text().find(kKey);
      if (at != std::string_view::npos) {
        window_.consume(at);
        return true;
      }
      const std::size_t size = window_.text().size();
      window_.consume(size < kKey.size() || window_.at_end() ? size : size - kKey.size());
      if (!text_.grow()) {
        window_.consume(window_.text().size());
        return false;
      }
    }
  }

  // Reads what follows the trace; a packed stream has its checksum at the very end.
  void skip_rest() {
    RestScanner rest;
    do {
      rest.scan(window_.text(), window_.offset(), stats());
      window_.consume(window_.text().size());
    } while (text_.grow() && !window_.failed());
  }

  void finish_stats() {
    const codec::UnpackReport& report = source_.report();
    // Of a stream that ends after the text's last bracket, only the checksum is missing.
    if (report.damage && !is_closed_) stats().count(ImportIssue::kTruncatedStream, *report.damage);
    if (report.wrong_checksum || (report.damage && is_closed_))
      stats().count(ImportIssue::kWrongChecksum,
                    report.wrong_checksum ? *report.wrong_checksum : *report.damage);
    if (report.trailing) stats().count(ImportIssue::kTrailingBytes, window_.offset());
    stats().input_bytes = source_.total_bytes() != 0 ? source_.total_bytes() : source_.done_bytes();
    stats().unpacked_bytes = source_.unpacked_bytes();
  }

  codec::UnpackedSource& source_;
  std::string_view name_;
  unsigned threads_;
  TraceBuilder builder_;
  DocumentText text_;
  TextWindow& window_;
  EventList events_;
  std::vector<std::string> keys_;
  std::vector<std::pair<std::string, std::string>> waiting_;
  bool has_events_ = false, is_closed_ = false;  // closed: the last bracket was there
};

}  // namespace

bool looks_like_kineto_json(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const auto next = [&](std::size_t from) {
    from = head.find_first_not_of(" \t\r\n", from);
    return from == std::string_view::npos ? head.size() : from;
  };
  const std::size_t first = next(0);
  if (first == head.size() || (head[first] != '{' && head[first] != '[')) return false;
  const std::size_t second = next(first + 1);
  if (head[first] == '{' || second == head.size() || head[second] != '[') return true;
  const std::size_t third = next(second + 1);
  return third == head.size() ||
         std::string_view("0123456789-]").find(head[third]) == std::string_view::npos;
}

Result<Trace> read_kineto_json(codec::UnpackedSource& source, std::string_view name,
                               const ReadOptions& options) {
  return DocumentReader(source, name, options).run();
}

}  // namespace lanescope::format
