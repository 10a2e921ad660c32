// Unpacks members of a gzip or zstd stream on other threads, ahead of their turn.
//
// Problem: one core unpacks only 1 to 4 gigabytes a second, and nothing but the core limits this.
// Idea: the caller cuts the packed bytes where members seem to end, and threads unpack the parts. A
// part counts only if its members end exactly where it ends. The first part begins with the stream,
// so the part after a part that counts begins with a member, and its text is what one thread would
// have unpacked. The caller unpacks all other parts again, as a stream.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "lanescope/codec/inflater.h"

namespace lanescope::codec {

// Members or frames with nothing between them, and their text.
struct MemberPart {
  std::vector<char> packed;
  std::vector<char> text;  // its first text_size bytes; the rest is room for another part
  std::size_t text_size = 0;
  bool is_whole = false;  // each member was complete, its checksum right, and nothing followed
};

// Fills in `text` of part.packed. Not whole: damage, a wrong cut, or more than kMostTextBytes.
inline constexpr std::size_t kMostTextBytes = 32u << 20;
void unpack_part(Packing packing, Inflater& inflater, MemberPart& part);

// Used by one thread; starts its threads with the first part.
class MembersAhead {
 public:
  MembersAhead(Packing packing, unsigned threads);  // besides the caller's
  MembersAhead(const MembersAhead&) = delete;
  MembersAhead& operator=(const MembersAhead&) = delete;
  ~MembersAhead();

  bool is_empty() const { return open_.empty(); }
  // Enough parts are open. Parts with much text count for several, so that all open ones have about
  // 64 MB of it.
  bool is_full() const;
  std::unique_ptr<MemberPart> spare_part();
  void submit(std::unique_ptr<MemberPart> part);
  // The first open part. Waits for it, or unpacks it itself.
  std::unique_ptr<MemberPart> take_first();
  void reuse(std::unique_ptr<MemberPart> part);

 private:
  enum class State : unsigned char { kWaiting, kBeingUnpacked, kDone };
  struct Open {
    std::unique_ptr<MemberPart> part;
    State state = State::kWaiting;
  };
  void start_threads();
  void work();

  const Packing packing_;
  const unsigned thread_count_;
  std::deque<std::unique_ptr<Open>> open_;  // in the order of the stream; the caller's alone
  std::vector<std::unique_ptr<MemberPart>> free_;
  std::unique_ptr<Inflater> own_inflater_;
  std::size_t largest_text_ = 0;

  std::mutex mutex_;  // guards all below, and the state of parts
  std::condition_variable has_work_, has_result_;
  std::deque<Open*> waiting_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lanescope::codec
