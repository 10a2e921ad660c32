// Reads pieces of the text on all cores, ahead of their turn.
//
// Problem: one core parses a gigabyte of JSON a second, and the others idle. Idea: the caller cuts
// the text into pieces that each should end after an event and its comma, and goes on as if they
// did. Threads read the pieces into batches; the caller's thread adds the batches to the trace in
// the order of the file, so the trace is the same as with one thread. A piece that nobody has begun
// when its turn comes goes to the trace without a batch. The first piece that ends in
// another way (damage, the end of the list) ends the guess: the caller gets all pieces from there
// on back, and goes on after the last event of that piece. What threads have read of later pieces
// is then lost, at most kPiecesPerThread pieces a thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lanescope/format/kineto_json/event_batch.h"
#include "lanescope/format/kineto_json/event_reader.h"
#include "lanescope/format/kineto_json/text_window.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::format {

// Used by one thread; starts its threads with the first piece. Borrows builder, sink and reader.
class EventsAhead {
 public:
  static constexpr std::size_t kPiecesPerThread = 3;

  // `direct` adds to the builder. `threads`: all that read, the caller's among them. Of the options: `shares` and
  // `learn_patterns`.
  EventsAhead(TraceBuilder& builder, EventSink& sink, EventReader& direct, unsigned threads,
              const ReadOptions& options);
  EventsAhead(const EventsAhead&) = delete;
  EventsAhead& operator=(const EventsAhead&) = delete;
  ~EventsAhead();

  // A piece that did not end as guessed. Its events are already added.
  struct WrongGuess {
    EventReader::Outcome outcome;
    std::size_t size = 0;           // of the piece
    std::vector<TextPiece> pieces;  // this one and all after it, for TextWindow::restore()
    bool is_first = false;          // no guess came before it since the last finish() or WrongGuess
  };
  // Takes the next piece, and adds what is ready. Waits, or reads itself, while too many are open.
  std::optional<WrongGuess> submit(TextPiece text);
  // Adds all pieces.
  std::optional<WrongGuess> finish();
  bool is_empty() const { return open_.empty(); }
  // The offset at which the first piece begins that is not added yet; `otherwise` if there is none.
  std::uint64_t added_until(std::uint64_t otherwise) const {
    return open_.empty() ? otherwise : open_.front()->text.offset;
  }

  // A buffer to fill: that of a piece that has been added, or a new one.
  std::vector<char> spare_buffer();

 private:
  // A thread's texts, shapes and patterns, and their numbers in the trace (the caller's alone).
  struct Reader {
    explicit Reader(bool learns) : events(texts, learns) {}
    TraceBuilder texts;
    EventReader events;
    BatchAdder adder;
  };
  enum class State : std::uint8_t { kWaiting, kBeingRead, kRead };
  struct Piece {
    TextPiece text;
    State state = State::kWaiting;
    bool is_first = false;
    std::shared_ptr<Reader> reader;  // who read it
    EventBatch batch;
    EventReader::Outcome outcome;
    std::exception_ptr failure;
  };

  void start_threads();
  void work();
  void read(Piece& piece, std::shared_ptr<Reader>& reader) const;
  void count(std::atomic<std::uint64_t> ReadShares::*who) {
    if (shares_) (shares_->*who).fetch_add(1, std::memory_order_relaxed);
  }
  // With the lock. The pieces of one thread are in the order of the file.
  Piece* take_waiting(std::size_t at);
  bool take_first();  // for the caller; false: another thread has it
  std::optional<WrongGuess> add_first();
  std::optional<WrongGuess> end_first();  // it is added
  WrongGuess give_back(EventReader::Outcome outcome);

  TraceBuilder& builder_;
  EventSink& sink_;
  EventReader& direct_;
  const unsigned thread_count_;
  ReadShares* const shares_;
  const bool learns_;
  std::deque<std::unique_ptr<Piece>> open_;  // in the order of the file; the caller's alone
  std::vector<std::unique_ptr<Piece>> free_;
  std::shared_ptr<Reader> own_reader_;
  bool guessed_ = false;

  std::mutex mutex_;  // guards all below, and the state of pieces
  std::condition_variable has_work_, has_result_;
  std::deque<Piece*> waiting_;
  std::size_t left_ = 0;  // how many at the front of waiting_ are left to the caller
  std::size_t being_read_ = 0;
  std::uint32_t generation_ = 0;  // threads forget their texts when it changes
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lanescope::format
