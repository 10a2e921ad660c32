// The list of events of a document: "traceEvents", or the bare array.
//
// The fast reader takes everything up to the last event that ends in the window. After a refusal,
// the rest of that window goes event by event through the repair. Other threads read windows ahead
// (events_ahead.h) as long as there is no refusal. Cost: one pass; a refusal costs the slow path for
// one window.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lanescope/format/kineto_json/document_text.h"
#include "lanescope/format/kineto_json/event_reader.h"
#include "lanescope/format/kineto_json/event_sink.h"
#include "lanescope/format/kineto_json/events_ahead.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// One thread, with those that it starts. Borrows all that it is given.
class EventList {
 public:
  EventList(DocumentText& text, TraceBuilder& builder, const ReadOptions& options);

  // From after the opening bracket to after the closing one. A bare array may end without it.
  void read(bool is_bare);
  bool has_event() const { return has_event_; }
  bool is_closed() const { return is_closed_; }  // its closing bracket was there
  // The document is a .cpuprofile file instead: `json` is an object with its entries.
  void add_profile_file(std::string_view json) { sink_.add_profile_file(json); }
  // Adds what waits for later events. Call once, at the end of the document.
  void finish() { sink_.finish(threads_); }

 private:
  // Where read() is.
  struct ArrayPlace {
    bool after_event = false, after_comma = false;
    std::uint64_t careful_until = 0;  // up to there event by event
  };
  enum class Ahead : std::uint8_t {
    kAsGuessed,   // nothing is open any more, and the window is where it was
    kWentBack,    // to the end of the first piece that ended in another way
    kArrayEnded,  // the same, and there the array has ended
  };
  // After the first few megabytes, and after six times as many: how much is to come, when all of the text is like them.
  void expect_rows();
  // Reads up to the last event that ends in the window, or lets other threads do it. False: the
  // array has ended.
  bool read_window(ArrayPlace& place);
  // Goes on after what was read of the window's first `size` bytes. False: the array has ended.
  bool use(const EventReader::Outcome& outcome, std::size_t size, ArrayPlace& place);
  // Adds what other threads have read, or goes back to where their guess was wrong.
  Ahead finish_ahead(ArrayPlace& place);
  Ahead go_back(EventsAhead::WrongGuess wrong, ArrayPlace& place);
  // After a `]`: if another event follows, which no strict file has, the bracket is a stray one.
  bool has_more_events();
  // Skips something that is not an object among the events. True: it was a whole value.
  bool skip_element(int c);
  // Reads one event with repair. False: end of the text. `exhausted`: do not search lost text again.
  bool read_carefully(bool exhausted);

  DocumentText& text_;
  TextWindow& window_;
  const std::size_t window_bytes_;
  EventSink sink_;
  EventReader events_;
  const unsigned threads_;
  EventsAhead ahead_;
  ArrayPlace before_ahead_;                    // where the first open piece was handed out
  std::uint64_t expect_at_;                    // the offset of the next expect_rows()
  std::uint64_t alone_windows_, alone_until_;  // no reading ahead before
  bool is_bare_ = false, has_event_ = false, is_closed_ = false;
};

}  // namespace lanescope::format
