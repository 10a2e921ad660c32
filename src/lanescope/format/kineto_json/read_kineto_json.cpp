// Problem: gigabytes of JSON, nearly always clean, sometimes cut or wrong anywhere. Idea: a window
// slides over the text. The fast reader takes everything up to the last event that ends in it.
// After a refusal, the rest of that window goes event by event through the repair. Other threads
// read windows ahead (events_ahead.h) as long as there is no refusal; what one thread does is the
// reference, and many do the same. Cost: one pass; a refusal costs the slow path for one window.
#include "lanescope/format/kineto_json/read_kineto_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/json_escape.h"
#include "lanescope/base/usable_cores.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/codec/json_event_bounds.h"
#include "lanescope/codec/json_mend.h"
#include "lanescope/format/kineto_json/event_reader.h"
#include "lanescope/format/kineto_json/events_ahead.h"
#include "lanescope/format/kineto_json/json_walk.h"
#include "lanescope/format/kineto_json/text_window.h"
#include "lanescope/format/known_files.h"
#include "lanescope/format/lost_entry.h"

namespace lanescope::format {
namespace {

constexpr int kEnd = -1;
constexpr unsigned kMostThreads = 8;        // one thread adds what all others read
constexpr std::uint64_t kAloneWindows = 4;  // a short text is read before threads have started

unsigned thread_count(const ReadOptions& options) {
  if (options.threads != 0) return options.threads;
  return std::min(usable_cores(), kMostThreads);
}

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
        options_(options),
        window_(source, options.window_bytes, static_cast<std::size_t>(options.max_event_bytes)),
        sink_(builder_),
        events_(builder_, sink_),
        threads_(thread_count(options)),
        ahead_(builder_, sink_, threads_, options.shares),
        alone_until_(kAloneWindows * options.window_bytes) {}

  Result<Trace> run() {
    grow();
    if (window_.text().starts_with("\xef\xbb\xbf")) window_.consume(3);  // a byte order mark
    const int first = next();
    if (first == '[') {
      window_.consume(1);
      bare_array_ = true;
      read_array();
    } else if (first == '{') {
      window_.consume(1);
      read_object();
    }
    skip_rest();
    if (window_.failed()) return window_.error();
    if (auto error = no_trace(first)) return *std::move(error);
    finish_stats();
    sink_.finish();
    return std::move(builder_).finish();
  }

 private:
  ImportStats& stats() { return builder_.stats(); }
  void truncated() {
    if (stats()[ImportIssue::kTruncatedFile].count == 0) count(ImportIssue::kTruncatedFile);
  }
  void count(ImportIssue issue) { stats().count(issue, window_.offset()); }

  bool grow() {
    const bool grown = window_.grow();
    if (options_.progress) options_.progress(source_.done_bytes(), source_.total_bytes());
    return grown;
  }

  // The next character that is not blank, without consuming it; kEnd: none.
  int next() {
    for (;;) {
      const std::string_view text = window_.text();
      std::size_t at = 0;
      while (at < text.size() &&
             (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
        ++at;
      window_.consume(at);
      if (at < text.size()) return static_cast<unsigned char>(text[at]);
      if (!grow() && window_.text().empty()) return kEnd;
    }
  }

  // Repairs the current value into mended_, reading on as far as needed.
  codec::MendResult mend() {
    for (;;) {
      const codec::MendResult result = codec::mend_json(window_.text(), window_.at_end(), mended_);
      work_ += result.used;
      if (result.status != codec::MendStatus::kNeedMore || !grow()) return result;
    }
  }
  void count_mends(const codec::Mends& mends) {
    static constexpr std::pair<codec::Mend, ImportIssue> kIssues[] = {
        {codec::Mend::kText, ImportIssue::kUnescapedText},
        {codec::Mend::kUtf8, ImportIssue::kInvalidUtf8},
        {codec::Mend::kNotANumber, ImportIssue::kNotANumber},
        {codec::Mend::kSyntax, ImportIssue::kSyntax},
    };
    for (const auto& [mend, issue] : kIssues)
      if (mends[mend].count > 0)
        stats().count(issue, window_.offset() + mends[mend].first, mends[mend].count);
  }

  void read_object() {
    for (;;) {
      const int c = next();
      if (c == kEnd) return truncated();
      if (c == '}') return window_.consume(1);
      if (c == ',') {
        window_.consume(1);
      } else if (c != '"' || !read_entry()) {
        if (!skip_to_events()) return;
      }
    }
  }

  // False: not understood; the window did not move, or is at its end.
  bool read_entry() {
    const codec::MendResult key = mend();
    if (key.status != codec::MendStatus::kDone) return lost_entry(key);
    std::string plain;
    if (!unescape_json(std::string_view(mended_).substr(1, mended_.size() - 2), plain))
      return false;
    count_mends(key.mends);
    window_.consume(key.used);
    int c = next();
    if (c != ':') count(ImportIssue::kSyntax);
    for (bool first = true; c == ':'; c = next(), first = false) {
      if (!first) count(ImportIssue::kSyntax);
      window_.consume(1);
    }
    if (plain == "traceEvents" && c == '[') {
      window_.consume(1);
      has_events_ = true;
      read_array();
      return true;
    }
    keys_.push_back(plain.substr(0, 64));
    if (c == kEnd) return true;
    const codec::MendResult value = mend();
    if (value.status != codec::MendStatus::kDone) return lost_entry(value);
    count_mends(value.mends);
    window_.consume(value.used);
    if (plain == "baseTimeNanoseconds")
      read_base_time();
    else if (plain == "traceEvents")  // not a list
      count(ImportIssue::kMetadataLost);
    else if (!take_lost_entry(plain, mended_, &stats()))
      builder_.add_metadata(plain, mended_);
    return true;
  }
  bool lost_entry(const codec::MendResult& result) {
    count(ImportIssue::kMetadataLost);
    if (window_.at_end() && result.used >= window_.text().size()) truncated();
    return false;
  }
  void read_base_time() {
    std::string_view text = mended_;
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    const codec::Decimal base = codec::parse_decimal(text, 0);
    if (base.status != codec::DecimalStatus::kOk) return count(ImportIssue::kBadTime);
    builder_.set_base_time_ns(base.value);
    builder_.add_metadata("baseTimeNanoseconds", std::to_string(base.value));
  }

  // After metadata that was not understood: goes on to the events, if they are still to come.
  bool skip_to_events() {
    constexpr std::string_view kKey = "\"traceEvents\"";
    if (window_.text().empty()) return false;
    count(ImportIssue::kSyntax);
    for (;;) {
      const std::size_t at = has_events_ ? std::string_view::npos : window_.text().find(kKey);
      if (at != std::string_view::npos) {
        window_.consume(at);
        return true;
      }
      const std::size_t size = window_.text().size();
      window_.consume(size < kKey.size() || window_.at_end() ? size : size - kKey.size());
      if (!grow()) {
        window_.consume(window_.text().size());
        return false;
      }
    }
  }

  // Where read_array() is.
  struct ArrayPlace {
    bool after_event = false, after_comma = false;
    std::uint64_t careful_until = 0;  // up to there event by event
  };

  void read_array() {
    const std::uint64_t work_before = work_, offset_before = window_.offset();
    ArrayPlace place;
    for (;;) {
      const int c = next();
      if (c != '{') {  // only events are read ahead
        if (const Ahead ahead = finish_ahead(place); ahead == Ahead::kWentBack)
          continue;
        else if (ahead == Ahead::kArrayEnded)
          return;
      }
      if (c == kEnd) {  // a bare array may end without its bracket
        if (!bare_array_) truncated();
        return;
      }
      if (c == ']') {
        if (place.after_comma) count(ImportIssue::kSyntax);
        window_.consume(1);
        if (!has_more_events()) return;
        place.after_event = true;
        continue;
      }
      if (c == ',') {
        if (!place.after_event) count(ImportIssue::kSyntax);
        window_.consume(1);
        place.after_event = false;
        place.after_comma = true;
        continue;
      }
      // A missing comma, or a bracket too many.
      if (place.after_event) count(ImportIssue::kSyntax);
      if (c != '{') {
        place.after_event = skip_element(c) || place.after_event;
        place.after_comma = false;
      } else if (window_.offset() < place.careful_until) {
        const std::uint64_t budget = 16 * (window_.offset() - offset_before) + (4u << 20);
        if (!read_carefully(work_ - work_before > budget)) return;
        place.after_event = true;
        place.after_comma = false;
      } else if (!read_window(place)) {
        return;
      }
    }
  }

  // Once, after the first few megabytes: how much is to come, when all of the text is like them.
  void expect_rows() {
    constexpr std::uint64_t kEnough = 4u << 20;
    const std::uint64_t added = ahead_.added_until(window_.offset());
    if (has_expected_ || added < kEnough || source_.done_bytes() == 0) return;
    has_expected_ = true;
    const double packed =
        static_cast<double>(source_.total_bytes()) / static_cast<double>(source_.done_bytes());
    const double all = packed * static_cast<double>(source_.unpacked_bytes());
    constexpr double kMargin = 1.03;
    // A plain file is as large as it says, and a packed one may lie; who lies gets no more than this.
    constexpr double kMostOfPlain = 32e6, kMostOfPacked = 16e6;  // rows
    if (all > static_cast<double>(added))
      sink_.expect(kMargin * all / static_cast<double>(added),
                   source_.packing() == codec::Packing::kPlain ? kMostOfPlain : kMostOfPacked);
  }

  // Reads up to the last event that ends in the window, or lets other threads do it. False: the
  // array has ended.
  bool read_window(ArrayPlace& place) {
    expect_rows();
    const std::string_view text = window_.text();
    const std::size_t size = window_.at_end() ? text.size() : codec::find_last_event_end(text);
    // The rest of an event after a window that was handed out: what is open stays open.
    if (size == 0 && text.size() < 4 * std::size_t{options_.window_bytes} && grow()) return true;
    const bool ahead =
        threads_ > 1 && size > 0 && !window_.at_end() && window_.offset() >= alone_until_;
    if (!ahead) {
      const Ahead finished = finish_ahead(place);
      if (finished != Ahead::kAsGuessed) return finished == Ahead::kWentBack;
    }
    if (size == 0) {
      // One very long event, or a writer whose events start with another key: searching again
      // for each would be quadratic.
      if (text.size() >= 4 * std::size_t{options_.window_bytes} || !grow())
        place.careful_until = window_.offset() + text.size();
      return true;
    }
    if (!ahead)
      return use(events_.read_events(text.substr(0, size), window_.offset()), size, place);
    if (ahead_.is_empty()) before_ahead_ = place;
    auto wrong = ahead_.submit(window_.detach(size, ahead_.spare_buffer()));
    place.after_event = false;
    place.after_comma = true;
    return !wrong || go_back(*std::move(wrong), place) == Ahead::kWentBack;
  }

  // Goes on after what was read of the window's first `size` bytes. False: the array has ended.
  bool use(const EventReader::Outcome& outcome, std::size_t size, ArrayPlace& place) {
    if (outcome.stop == EventReader::Stop::kRefused) place.careful_until = window_.offset() + size;
    if (outcome.used > 0) {
      place.after_event = !outcome.after_comma;
      place.after_comma = outcome.after_comma;
      has_event_ = true;
    }
    window_.consume(outcome.used);
    if (outcome.stop == EventReader::Stop::kArrayEnd) {
      if (!has_more_events()) return false;
      place.after_event = true;
    }
    return true;
  }

  enum class Ahead : std::uint8_t {
    kAsGuessed,   // nothing is open any more, and the window is where it was
    kWentBack,    // to the end of the first piece that ended in another way
    kArrayEnded,  // the same, and there the array has ended
  };
  Ahead finish_ahead(ArrayPlace& place) {
    const bool was_empty = ahead_.is_empty();
    auto wrong = ahead_.finish();  // ends the guess also where all of it is added already
    if (was_empty) return Ahead::kAsGuessed;
    if (!wrong) {
      has_event_ = true;
      return Ahead::kAsGuessed;
    }
    return go_back(*std::move(wrong), place);
  }
  Ahead go_back(EventsAhead::WrongGuess wrong, ArrayPlace& place) {
    has_event_ = has_event_ || !wrong.is_first;
    place = wrong.is_first ? before_ahead_ : ArrayPlace{false, true, 0};
    window_.restore(std::move(wrong.pieces));
    // Where damage is frequent, guessing is a waste.
    if (wrong.outcome.stop == EventReader::Stop::kRefused) {
      alone_windows_ = std::min<std::uint64_t>(alone_windows_ * 2, 1024);
      alone_until_ = window_.offset() + alone_windows_ * options_.window_bytes;
    }
    return use(wrong.outcome, wrong.size, place) ? Ahead::kWentBack : Ahead::kArrayEnded;
  }

  // After a `]`: if another event follows, which no strict file has, the bracket is a stray one.
  bool has_more_events() {
    constexpr std::size_t kLookahead = 256;
    if (window_.text().size() < kLookahead) grow();
    const std::string_view text = window_.text().substr(0, kLookahead);
    const std::size_t comma = text.find_first_not_of(" \t\r\n");
    if (comma == std::string_view::npos || text[comma] != ',') return false;
    const std::size_t brace = text.find_first_not_of(" \t\r\n", comma + 1);
    if (brace == std::string_view::npos || codec::find_event_start(text, brace) != brace)
      return false;
    count(ImportIssue::kSyntax);
    return true;
  }

  // Skips something that is not an object among the events. True: it was a whole value.
  bool skip_element(int c) {
    const std::size_t inner = window_.text().find_first_not_of(" \t\r\n", 1);
    if (c == '[' && inner != std::string_view::npos &&
        codec::find_event_start(window_.text().substr(0, inner + 256), inner) == inner) {
      count(ImportIssue::kSyntax);  // a stray bracket before an event
      window_.consume(1);
      return false;
    }
    if (c != '}') {
      const codec::MendResult result = mend();
      if (result.status == codec::MendStatus::kDone) {
        count(ImportIssue::kEventLost);
        window_.consume(result.used);
        return true;
      }
    }
    count(ImportIssue::kSyntax);
    const std::size_t start = codec::find_event_start(window_.text(), 1);
    window_.consume(c == '}' ? 1 : std::min(start, window_.text().size()));
    return false;
  }

  // Reads one event with repair. False: end of the text. `exhausted`: do not search
  // lost text again.
  bool read_carefully(bool exhausted) {
    const codec::MendResult result = mend();
    if (result.status == codec::MendStatus::kDone) {
      if (events_.read_mended(mended_, window_.offset())) {
        count_mends(result.mends);
        has_event_ = true;
      } else {
        count(ImportIssue::kEventLost);
      }
      window_.consume(result.used);
      return true;
    }
    count(ImportIssue::kEventLost);
    const bool cut = window_.at_end() && result.used >= window_.text().size();
    std::size_t from = exhausted ? std::max<std::size_t>(result.used, 1) : 1;
    for (;;) {
      const std::string_view text = window_.text();
      const std::size_t start = codec::find_event_start(text, std::min(from, text.size()));
      if (start != std::string_view::npos) {
        window_.consume(start);
        return true;
      }
      // An event start can cross the end of the window; its first key and what is before
      // it are short.
      constexpr std::size_t kOverlap = 256;
      if (window_.at_end() || text.size() < kOverlap) {
        window_.consume(text.size());
      } else {
        window_.consume(text.size() - kOverlap);
        from = 0;
      }
      if (!grow()) {
        window_.consume(window_.text().size());
        if (cut || !bare_array_) truncated();
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
    } while (grow() && !window_.failed());
  }

  static constexpr const char* kGiveExport =
      "give the trace that the profiler exported, for example with prof.export_chrome_trace()";
  static constexpr const char* kCutExport =
      "the export or a copy was cut short: export or copy it again";

  std::optional<Error> no_trace(int first) {
    const std::string expected =
        "expected a PyTorch or Chrome trace (JSON with traceEvents, or an "
        "array of events), found ";
    const auto error = [&](const std::string& found) {
      return Error{Errc::kCorruptInput, std::string(name_) + ": " + expected + found, 0};
    };
    if (first == '[') {
      if (has_event_ || builder_.event_count() > 0) {
        // Any list of records is an array of objects; in a trace, at least one has a phase
        // and a time.
        const std::uint64_t strangers =
            stats()[ImportIssue::kMissingField].count + stats()[ImportIssue::kUnknownPhase].count;
        if (strangers == 0 || strangers < builder_.event_count()) return std::nullopt;
        return error(
            "a JSON array of objects that are no events (an event has "
            "a \"ph\" and a \"ts\")");
      }
      if (stats()[ImportIssue::kEventLost].count + stats()[ImportIssue::kSyntax].count == 0)
        return std::nullopt;
      return error(std::string("a JSON array without a single event; ") + kGiveExport);
    }
    if (first == '{') {
      if (has_events_) return std::nullopt;
      const bool cut = stats()[ImportIssue::kTruncatedFile].count > 0;
      const auto has = [&](std::string_view key) {
        return std::find(keys_.begin(), keys_.end(), key) != keys_.end();
      };
      if (has("traceEvents")) return error("a traceEvents that is not an array");
      if (const auto known = known_json_object(keys_))
        return error(known->found + "; " + known->advice);
      std::string keys;
      for (std::size_t i = 0; i < std::min<std::size_t>(keys_.size(), 6); ++i)
        keys += (i ? ", " : "") + keys_[i];
      if (keys_.size() > 6) keys += ", ...";
      return error(std::string("a JSON object without traceEvents (") +
                   (cut ? "the text ends early; " : "") +
                   (keys.empty() ? "no keys" : "its keys: " + keys) + "); " +
                   (cut ? kCutExport : kGiveExport));
    }
    return error("text that is no JSON object or array");
  }
  void finish_stats() {
    const codec::UnpackReport& report = source_.report();
    if (report.damage) stats().count(ImportIssue::kTruncatedStream, *report.damage);
    if (report.trailing) stats().count(ImportIssue::kTrailingBytes, window_.offset());
    stats().input_bytes = source_.total_bytes() != 0 ? source_.total_bytes() : source_.done_bytes();
    stats().unpacked_bytes = source_.unpacked_bytes();
  }

  codec::UnpackedSource& source_;
  std::string_view name_;
  const ReadOptions& options_;
  TraceBuilder builder_;
  TextWindow window_;
  EventSink sink_;
  EventReader events_;
  const unsigned threads_;
  EventsAhead ahead_;
  ArrayPlace before_ahead_;  // where the first open piece was handed out
  std::uint64_t alone_windows_ = kAloneWindows, alone_until_;  // no reading ahead before
  std::string mended_;
  std::vector<std::string> keys_;
  std::uint64_t work_ = 0;  // bytes that the repair read
  bool bare_array_ = false, has_events_ = false, has_event_ = false, has_expected_ = false;
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
