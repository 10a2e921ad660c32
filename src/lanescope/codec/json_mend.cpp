// Problem: a reader that stops at the first stray quote loses a whole trace for one bad kernel
// name. Idea: rewrite value by value with a parser that knows where it is (key, colon, value, after
// a value). Where strict JSON cannot go on, it chooses the reading that lets it go on. Example:
// {"name": "a "b" c", "v": nan,} comes out as {"name": "a \"b\" c", "v": null}.
#include "lanescope/codec/json_mend.h"

#include <cstring>

#include "lanescope/base/json_escape.h"
#include "lanescope/codec/json_event_bounds.h"
#include "lanescope/codec/json_mend_token.h"
#include "lanescope/codec/json_string_end.h"
#include "lanescope/codec/json_text.h"

namespace lanescope::codec {
namespace {

constexpr std::size_t kNone = std::string_view::npos;
constexpr std::size_t kMaxDepth = 512;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

class Mender {
 public:
  Mender(std::string_view text, bool at_end, std::string& out)
      : text_(text), at_end_(at_end), out_(out) {}

  MendResult run() {
    out_.clear();
    State state = State::kValue;
    bool fresh = false;  // directly after an opening bracket
    for (;;) {
      if (state == State::kDone) return done(MendStatus::kDone);
      copy_blanks();
      if (at_ >= text_.size()) return done(out_of_text());
      const char c = text_[at_];
      Step step{};
      switch (state) {
        case State::kValue:
          step = value(c, fresh);
          break;
        case State::kKey:
          step = key(c, fresh);
          break;
        case State::kColon:
          step = colon(c);
          break;
        case State::kAfterValue:
          step = after_value(c);
          break;
        case State::kDone:
          break;
      }
      if (step.status != MendStatus::kDone) return done(step.status);
      state = step.next;
      fresh = step.fresh;
    }
  }

 private:
  enum class State : std::uint8_t { kValue, kKey, kColon, kAfterValue, kDone };
  struct Step {
    State next = State::kDone;
    bool fresh = false;
    MendStatus status = MendStatus::kDone;
  };
  static Step go(State next, bool fresh = false) { return {next, fresh, MendStatus::kDone}; }
  static Step stop(MendStatus status) { return {State::kDone, false, status}; }
  MendStatus out_of_text() const { return at_end_ ? MendStatus::kBroken : MendStatus::kNeedMore; }
  MendResult done(MendStatus status) const { return {status, at_, mends_}; }

  bool in_object() const { return !open_.empty() && open_.back() == '{'; }
  JsonContext context() const { return {text_, at_end_, open_}; }
  bool in_array() const { return !open_.empty() && open_.back() == '['; }

  void copy_blanks() {
    const std::size_t from = at_;
    at_ = skip_blanks(text_, at_);
    out_.append(text_, from, at_ - from);
  }
  void take() { out_.push_back(text_[at_++]); }
  void syntax() { mends_.add(Mend::kSyntax, at_); }
  void comma() {
    last_comma_ = out_.size();
    out_.push_back(',');
  }
  void drop_comma() {
    if (last_comma_ == kNone) return;
    out_.erase(last_comma_, 1);
    last_comma_ = kNone;
    syntax();
  }
  void close_top() {
    out_.push_back(open_.back() == '{' ? '}' : ']');
    open_.pop_back();
  }
  Step closed() const { return go(open_.empty() ? State::kDone : State::kAfterValue); }
  // The value ends before text_[at_], although brackets are open.
  Step close_all() {
    syntax();
    while (!out_.empty() && is_json_blank(out_.back())) out_.pop_back();
    while (!open_.empty()) close_top();
    return go(State::kDone);
  }
  Step null_value() {
    syntax();
    out_ += "null";
    return go(State::kAfterValue);
  }

  Step value(char c, bool fresh) {
    switch (c) {
      case '{':
      case '[':
        if (open_.size() >= kMaxDepth) return stop(MendStatus::kBroken);
        open_.push_back(c);
        take();
        return go(c == '{' ? State::kKey : State::kValue, true);
      case '"':
        return string(false);
      case ']':
        if (!in_array()) return in_object() ? null_value() : stop(MendStatus::kBroken);
        if (!fresh) drop_comma();
        ++at_;
        close_top();
        return closed();
      case '}':
        return in_object() ? null_value() : stop(MendStatus::kBroken);
      case ',':
        if (in_object()) return null_value();
        if (open_.empty()) return stop(MendStatus::kBroken);
        syntax();
        ++at_;
        return go(State::kValue, fresh);
      case ':':
        syntax();
        ++at_;
        return go(State::kValue, fresh);
      default:
        return scalar();
    }
  }

  Step key(char c, bool fresh) {
    if (c == '"') return string(true);
    if (c == '}') {
      if (!fresh) drop_comma();
      ++at_;
      close_top();
      return closed();
    }
    if (c == ',') {
      syntax();
      ++at_;
      return go(State::kKey, fresh);
    }
    if (c == '{' && !fresh && event_starts_here()) {
      drop_comma();
      return close_all();
    }
    return stop(MendStatus::kBroken);
  }

  Step colon(char c) {
    if (c != ':') return stop(MendStatus::kBroken);
    take();
    return go(State::kValue);
  }

  Step after_value(char c) {
    switch (c) {
      case ',':
        ++at_;
        comma();
        return go(in_object() ? State::kKey : State::kValue);
      case '}':
      case ']': {
        const char opener = c == '}' ? '{' : '[';
        if (open_.back() == opener) {
          ++at_;
          close_top();
          return closed();
        }
        if (open_.find(opener) == std::string::npos) {
          if (c == '}' || open_.size() == 1) return close_all();  // it belongs to the outside
          syntax();  // a `]` inside the args of an event closes nothing
          ++at_;
          return go(State::kAfterValue);
        }
        syntax();
        close_top();
        return go(State::kAfterValue);
      }
      case '{':
        if (event_starts_here() && open_.front() == '{') return close_all();
        if (in_array()) return missing_comma(State::kValue);
        return stop(MendStatus::kBroken);
      case '"':
        if (in_array()) return missing_comma(State::kValue);
        return missing_comma(State::kKey);
      default:
        if (in_array()) return missing_comma(State::kValue);
        return stop(MendStatus::kBroken);
    }
  }
  Step missing_comma(State next) {
    syntax();
    comma();
    return go(next);
  }

  bool event_starts_here() const {
    const std::size_t quote = skip_blanks(text_, at_ + 1);
    return quote < text_.size() && text_[quote] == '"' && starts_event_key(text_, quote);
  }

  Step scalar() {
    const std::size_t from = at_;
    std::size_t end = at_;
    while (end < text_.size() && !std::strchr(",]}:\"[{ \n\r\t", text_[end])) ++end;
    if (end == text_.size() && !at_end_) return stop(MendStatus::kNeedMore);
    // strchr also finds the 0 at the end of its set.
    while (end < text_.size() && text_[end] == '\0') ++end;
    if (end == from) return stop(MendStatus::kBroken);
    token_.write_scalar(from, end);
    at_ = end;
    return go(open_.empty() ? State::kDone : State::kAfterValue);
  }

  Step string(bool is_key) {
    take();
    for (;;) {
      std::size_t run = at_;
      while (run < text_.size() && text_[run] != '"' && text_[run] != '\\' &&
             !is_control(text_[run]) && static_cast<unsigned char>(text_[run]) < 0x80)
        ++run;
      out_.append(text_, at_, run - at_);
      at_ = run;
      if (at_ >= text_.size()) return stop(out_of_text());
      const char c = text_[at_];
      if (c == '"') {
        const QuoteEnds ends = ends_string(context(), at_, is_key);
        if (ends == QuoteEnds::kNeedMore) return stop(MendStatus::kNeedMore);
        if (ends == QuoteEnds::kYes) {
          take();
          return go(is_key ? State::kColon : open_.empty() ? State::kDone : State::kAfterValue);
        }
        if (opens_next_event(text_, at_)) return stop(MendStatus::kBroken);
        mends_.add(Mend::kText, at_);
        at_ = token_.write_character(at_, text_.size());
      } else if (c == '\\') {
        if (!at_end_ && at_ + 12 > text_.size()) return stop(MendStatus::kNeedMore);
        at_ = token_.write_escape(context(), at_, is_key);
      } else if (is_control(c)) {
        mends_.add(Mend::kText, at_);
        at_ = token_.write_character(at_, text_.size());
      } else {
        if (!at_end_ && at_ + 4 > text_.size()) return stop(MendStatus::kNeedMore);
        at_ = token_.write_character(at_, text_.size());
      }
    }
  }

  std::string_view text_;
  bool at_end_;
  std::string& out_;
  std::size_t at_ = 0;
  std::size_t last_comma_ = kNone;
  std::string open_;  // the brackets that are open, outermost first
  Mends mends_;
  TokenMender token_{text_, out_, mends_};
};

}  // namespace

MendResult mend_json(std::string_view text, bool at_end, std::string& out) {
  const MendResult result = Mender(text, at_end, out).run();
  if (result.mends.any())
    out.erase(0, skip_blanks(out, 0));  // blanks between a stray colon and the value
  return result;
}

bool is_strict_json(std::string_view text) {
  std::string out;
  const MendResult result = mend_json(text, true, out);
  return result.status == MendStatus::kDone && result.used == text.size() && !result.mends.any() &&
         out == text;
}

}  // namespace lanescope::codec
