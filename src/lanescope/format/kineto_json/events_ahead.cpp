#include "lanescope/format/kineto_json/events_ahead.h"

#include <system_error>
#include <utility>

namespace lanescope::format {
namespace {

// A thread whose texts take more starts again without them: they are in the trace as well.
constexpr std::size_t kMostTextsBytes = 16u << 20;
// With so many pieces waiting, the second of two threads leaves the first one to the caller: what goes from core to core takes
// time, and a piece that the caller reads in its turn does not. With fewer, the caller has other work: unpacking.
constexpr std::size_t kEnoughToLeave = 4;

}  // namespace

EventsAhead::EventsAhead(TraceBuilder& builder, EventSink& sink, EventReader& direct,
                         unsigned threads, const ReadOptions& options)
    : builder_(builder),
      sink_(sink),
      direct_(direct),
      thread_count_(threads),
      shares_(options.shares),
      learns_(options.learn_patterns) {}

EventsAhead::~EventsAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    waiting_.clear();
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The caller's thread reads, too, so any number of them is enough.
void EventsAhead::start_threads() {
  if (!threads_.empty()) return;
  try {
    while (threads_.size() + 1 < thread_count_) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // the system has no more threads for us
  }
}

void EventsAhead::read(Piece& piece, std::shared_ptr<Reader>& reader) const {
  try {
    if (!reader || reader->texts.strings().memory_bytes() > kMostTextsBytes)
      reader = std::make_shared<Reader>(learns_);
    piece.reader = reader;
    reader->events.fill(piece.batch);
    piece.outcome = reader->events.read_events(piece.text.text(), piece.text.offset);
    piece.batch.end();
  } catch (...) {
    piece.failure = std::current_exception();
  }
}

EventsAhead::Piece* EventsAhead::take_waiting(std::size_t at) {
  Piece* const piece = waiting_[at];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  piece->state = State::kBeingRead;
  ++being_read_;
  return piece;
}

void EventsAhead::work() {
  std::shared_ptr<Reader> reader;
  std::uint32_t generation = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return stop_ || waiting_.size() > left_; });
    if (stop_) return;
    if (thread_count_ == 2 && left_ == 0 && waiting_.size() >= kEnoughToLeave) left_ = 1;
    Piece* const piece = take_waiting(left_);
    if (generation != generation_) reader.reset();
    generation = generation_;
    lock.unlock();
    read(*piece, reader);
    count(&ReadShares::by_others);
    lock.lock();
    piece->state = State::kRead;
    --being_read_;
    has_result_.notify_one();
  }
}

std::vector<char> EventsAhead::spare_buffer() {
  return free_.empty() ? std::vector<char>() : std::move(free_.back()->text.buffer);
}

std::optional<EventsAhead::WrongGuess> EventsAhead::submit(TextPiece text) {
  start_threads();
  std::unique_ptr<Piece> piece;
  if (free_.empty()) {
    piece = std::make_unique<Piece>();
  } else {
    piece = std::move(free_.back());
    free_.pop_back();
  }
  piece->text = std::move(text);
  piece->state = State::kWaiting;
  piece->is_first = !std::exchange(guessed_, true);
  open_.push_back(std::move(piece));
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(open_.back().get());
  }
  has_work_.notify_one();
  for (;;) {
    const bool full = open_.size() >= kPiecesPerThread * thread_count_;
    bool is_read = false;
    if (!full) {
      const std::lock_guard lock(mutex_);
      is_read = open_.front()->state == State::kRead;
    }
    if (!full && !is_read) return std::nullopt;
    if (auto wrong = add_first()) return wrong;
    if (open_.empty()) return std::nullopt;
  }
}

std::optional<EventsAhead::WrongGuess> EventsAhead::finish() {
  while (!open_.empty())
    if (auto wrong = add_first()) return wrong;
  guessed_ = false;
  return std::nullopt;
}

// All before the first piece are added. If nobody reads it yet, it needs no batch: its events go to the trace at once.
bool EventsAhead::take_first() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty() || waiting_.front() != open_.front().get()) return false;
  waiting_.pop_front();
  left_ = 0;
  return true;
}

// Reads pieces while the first one is not ready, so that this core does not idle either.
std::optional<EventsAhead::WrongGuess> EventsAhead::add_first() {
  Piece& first = *open_.front();
  if (take_first()) {
    first.outcome = direct_.read_events(first.text.text(), first.text.offset);
    count(&ReadShares::by_caller);
    return end_first();
  }
  {
    std::unique_lock lock(mutex_);
    while (first.state != State::kRead) {
      if (waiting_.empty()) {
        has_result_.wait(lock);
        continue;
      }
      Piece* const piece = take_waiting(0);
      left_ = 0;
      lock.unlock();
      read(*piece, own_reader_);
      count(&ReadShares::by_caller);
      lock.lock();
      piece->state = State::kRead;
      --being_read_;
    }
  }
  if (first.failure) std::rethrow_exception(first.failure);
  first.reader->adder.add(first.batch, first.text.text(), first.text.offset, builder_, sink_);
  first.reader.reset();
  return end_first();
}

std::optional<EventsAhead::WrongGuess> EventsAhead::end_first() {
  const EventReader::Outcome outcome = open_.front()->outcome;
  if (outcome.stop != EventReader::Stop::kEnd || !outcome.after_comma) return give_back(outcome);
  free_.push_back(std::move(open_.front()));
  open_.pop_front();
  return std::nullopt;
}

// What threads have met in the pieces that come back is not in the trace, so they forget all.
EventsAhead::WrongGuess EventsAhead::give_back(EventReader::Outcome outcome) {
  {
    std::unique_lock lock(mutex_);
    waiting_.clear();
    left_ = 0;
    has_result_.wait(lock, [this] { return being_read_ == 0; });
    ++generation_;
  }
  own_reader_.reset();
  WrongGuess wrong;
  wrong.outcome = outcome;
  wrong.size = open_.front()->text.size;
  wrong.is_first = open_.front()->is_first;
  for (std::unique_ptr<Piece>& piece : open_) {
    wrong.pieces.push_back(std::move(piece->text));
    piece->text = {};
    piece->reader.reset();
    piece->failure = nullptr;
    free_.push_back(std::move(piece));
  }
  open_.clear();
  guessed_ = false;
  return wrong;
}

}  // namespace lanescope::format
