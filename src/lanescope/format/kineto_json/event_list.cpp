#include "lanescope/format/kineto_json/event_list.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "lanescope/base/usable_cores.h"
#include "lanescope/codec/json_event_bounds.h"

namespace lanescope::format {
namespace {

constexpr unsigned kMostThreads = 8;  // one thread adds what all others read
constexpr std::uint64_t kFirstExpect = 4u << 20;
constexpr std::uint64_t kAloneWindows = 4;  // a short text is read before threads have started

// Of a packed text, as torch.profiler's traces are packed.
bool is_long(const codec::UnpackedSource& source, std::uint64_t bytes) {
  constexpr std::uint64_t kUsualRatio = 10;
  const std::uint64_t packed = source.total_bytes();
  return packed > (source.packing() == codec::Packing::kPlain ? bytes : bytes / kUsualRatio);
}

unsigned thread_count(const ReadOptions& options) {
  if (options.threads != 0) return options.threads;
  return std::min(usable_cores(), kMostThreads);
}

}  // namespace

EventList::EventList(DocumentText& text, TraceBuilder& builder, const ReadOptions& options)
    : text_(text),
      window_(text.window()),
      window_bytes_(options.window_bytes),
      sink_(builder),
      events_(builder, sink_, options.learn_patterns),
      threads_(thread_count(options)),
      ahead_(builder, sink_, events_, threads_, options),
      expect_at_(kFirstExpect),
      alone_windows_(kAloneWindows),
      alone_until_(is_long(text.source(), kAloneWindows * options.window_bytes)
                       ? 0
                       : kAloneWindows * options.window_bytes) {}

void EventList::read(bool is_bare) {
  is_bare_ = is_bare;
  const std::uint64_t work_before = text_.mend_work(), offset_before = window_.offset();
  ArrayPlace place;
  for (;;) {
    const int c = text_.next();
    if (c != '{') {  // only events are read ahead
      if (const Ahead ahead = finish_ahead(place); ahead == Ahead::kWentBack)
        continue;
      else if (ahead == Ahead::kArrayEnded)
        return;
    }
    if (c == DocumentText::kEnd) {  // a bare array may end without its bracket
      if (!is_bare_) text_.count_cut();
      return;
    }
    if (c == ']') {
      if (place.after_comma) text_.count(ImportIssue::kSyntax);
      window_.consume(1);
      if (!has_more_events()) return;
      place.after_event = true;
      continue;
    }
    if (c == ',') {
      if (!place.after_event) text_.count(ImportIssue::kSyntax);
      window_.consume(1);
      place.after_event = false;
      place.after_comma = true;
      continue;
    }
    // A missing comma, or a bracket too many.
    if (place.after_event) text_.count(ImportIssue::kSyntax);
    if (c != '{') {
      place.after_event = skip_element(c) || place.after_event;
      place.after_comma = false;
    } else if (window_.offset() < place.careful_until) {
      const std::uint64_t budget = 16 * (window_.offset() - offset_before) + (4u << 20);
      if (!read_carefully(text_.mend_work() - work_before > budget)) return;
      place.after_event = true;
      place.after_comma = false;
    } else if (!read_window(place)) {
      return;
    }
  }
}

void EventList::expect_rows() {
  const std::uint64_t added = ahead_.added_until(window_.offset());
  if (added < expect_at_ || text_.source().done_bytes() == 0) return;
  const bool is_first = expect_at_ == kFirstExpect;
  const double packed = static_cast<double>(text_.source().total_bytes()) /
                        static_cast<double>(text_.source().done_bytes());
  const double all = packed * static_cast<double>(text_.source().unpacked_bytes());
  constexpr double kMargin = 1.03;
  // A plain file is as large as it says, and a packed one may lie; who lies gets no more than this.
  constexpr double kMostOfPlain = 32e6, kMostOfPacked = 16e6;  // rows
  // The start of a file says little about a long rest, so it gets room for a part of it, and the next look comes before that is
  // full. What it copies then is a sixth.
  constexpr double kPart = 8;
  constexpr std::uint64_t kNextLook = 6;
  const double times = kMargin * all / static_cast<double>(added);
  expect_at_ = times <= kPart ? std::numeric_limits<std::uint64_t>::max() : added * kNextLook;
  if (all <= static_cast<double>(added)) return;
  const double most =
      text_.source().packing() == codec::Packing::kPlain ? kMostOfPlain : kMostOfPacked;
  if (is_first) sink_.expect_in_all(times, most);
  sink_.expect(std::min(times, kPart), most);
}

bool EventList::read_window(ArrayPlace& place) {
  expect_rows();
  const std::string_view text = window_.text();
  const std::size_t size = window_.at_end() ? text.size() : codec::find_last_event_end(text);
  // The rest of an event after a window that was handed out: what is open stays open.
  if (size == 0 && text.size() < 4 * window_bytes_ && text_.grow()) return true;
  const bool ahead =
      threads_ > 1 && size > 0 && !window_.at_end() && window_.offset() >= alone_until_;
  if (!ahead) {
    const Ahead finished = finish_ahead(place);
    if (finished != Ahead::kAsGuessed) return finished == Ahead::kWentBack;
  }
  if (size == 0) {
    // One very long event, or a writer whose events start with another key: searching again
    // for each would be quadratic.
    if (text.size() >= 4 * window_bytes_ || !text_.grow())
      place.careful_until = window_.offset() + text.size();
    return true;
  }
  if (!ahead) return use(events_.read_events(text.substr(0, size), window_.offset()), size, place);
  if (ahead_.is_empty()) before_ahead_ = place;
  auto wrong = ahead_.submit(window_.detach(size, ahead_.spare_buffer()));
  place.after_event = false;
  place.after_comma = true;
  return !wrong || go_back(*std::move(wrong), place) == Ahead::kWentBack;
}

bool EventList::use(const EventReader::Outcome& outcome, std::size_t size, ArrayPlace& place) {
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

EventList::Ahead EventList::finish_ahead(ArrayPlace& place) {
  const bool was_empty = ahead_.is_empty();
  auto wrong = ahead_.finish();  // ends the guess also where all of it is added already
  if (was_empty) return Ahead::kAsGuessed;
  if (!wrong) {
    has_event_ = true;
    return Ahead::kAsGuessed;
  }
  return go_back(*std::move(wrong), place);
}

EventList::Ahead EventList::go_back(EventsAhead::WrongGuess wrong, ArrayPlace& place) {
  has_event_ = has_event_ || !wrong.is_first;
  place = wrong.is_first ? before_ahead_ : ArrayPlace{false, true, 0};
  window_.restore(std::move(wrong.pieces));
  // Where damage is frequent, guessing is a waste.
  if (wrong.outcome.stop == EventReader::Stop::kRefused) {
    alone_windows_ = std::min<std::uint64_t>(alone_windows_ * 2, 1024);
    alone_until_ = window_.offset() + alone_windows_ * window_bytes_;
  }
  return use(wrong.outcome, wrong.size, place) ? Ahead::kWentBack : Ahead::kArrayEnded;
}

bool EventList::has_more_events() {
  constexpr std::size_t kLookahead = 256;
  is_closed_ = true;
  if (window_.text().size() < kLookahead) text_.grow();
  const std::string_view text = window_.text().substr(0, kLookahead);
  const std::size_t comma = text.find_first_not_of(" \t\r\n");
  if (comma == std::string_view::npos || text[comma] != ',') return false;
  const std::size_t brace = text.find_first_not_of(" \t\r\n", comma + 1);
  if (brace == std::string_view::npos || codec::find_event_start(text, brace) != brace)
    return false;
  text_.count(ImportIssue::kSyntax);
  is_closed_ = false;
  return true;
}

bool EventList::skip_element(int c) {
  const std::size_t inner = window_.text().find_first_not_of(" \t\r\n", 1);
  if (c == '[' && inner != std::string_view::npos &&
      codec::find_event_start(window_.text().substr(0, inner + 256), inner) == inner) {
    text_.count(ImportIssue::kSyntax);  // a stray bracket before an event
    window_.consume(1);
    return false;
  }
  if (c != '}') {
    const codec::MendResult result = text_.mend();
    if (result.status == codec::MendStatus::kDone) {
      text_.count(ImportIssue::kEventLost);
      window_.consume(result.used);
      return true;
    }
  }
  text_.count(ImportIssue::kSyntax);
  const std::size_t start = codec::find_event_start(window_.text(), 1);
  window_.consume(c == '}' ? 1 : std::min(start, window_.text().size()));
  return false;
}

bool EventList::read_carefully(bool exhausted) {
  const codec::MendResult result = text_.mend();
  if (result.status == codec::MendStatus::kDone) {
    if (events_.read_mended(text_.mended(), window_.offset())) {
      text_.count(result.mends);
      has_event_ = true;
    } else {
      text_.count(ImportIssue::kEventLost);
    }
    window_.consume(result.used);
    return true;
  }
  text_.count(ImportIssue::kEventLost);
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
    if (!text_.grow()) {
      window_.consume(window_.text().size());
      if (cut || !is_bare_) text_.count_cut();
      return false;
    }
  }
}

}  // namespace lanescope::format
