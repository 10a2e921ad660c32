// The traces that the page shows, its notes, and how many pages are open. Answers requests; knows
// nothing of HTTP.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/server/rank_set.h"
#include "lanescope/server/trace_state.h"

namespace lanescope::server {

struct Reply {
  int status = 200;
  std::string type, body;
};

// Any thread.
class Session {
 public:
  using Traces = std::vector<std::shared_ptr<const TraceState>>;

  // `version` of lanescope; `is_live`: the trace may still grow.
  // `ranks`: the ranks of the run that the only trace belongs to; nullptr: none are known.
  Session(Traces traces, std::string version, bool is_live,
          std::shared_ptr<RankSet> ranks = nullptr);

  // Replaces the first trace by its grown version, and notifies the pages. `is_live`: it may grow
  // again.
  void replace(std::shared_ptr<const TraceState> trace, bool is_live);

  // `target`: "/api/frame". `query`: what follows the "?", not decoded. `body`: of a POST.
  // `generation`: the one in the /api/meta answer that the page has used. If the trace has grown since
  // then, its lanes and slices have new numbers, so the question gets status 409. `rank`: as
  // RankSet::open() takes it; empty: the trace that was opened.
  Reply answer(std::string_view method, std::string_view target, std::string_view query,
               std::string_view body, std::optional<std::uint64_t> generation = {},
               std::string_view rank = {});

  // Waits until the generation is not `known` any more, at most for `longest`. Returns the current
  // one. While it waits, the page counts as open.
  std::uint64_t wait_for_change(std::uint64_t known, std::chrono::milliseconds longest,
                                std::string_view rank = {});
  // For how long no page has been open. Nothing: a page is open, or none was open yet.
  std::optional<std::chrono::milliseconds> time_without_page() const;
  void wake_all();  // ends all waits, for the end of the program

 private:
  struct Now {
    Traces traces;  // kept while a request is answered
    std::uint64_t generation = 0;
    bool is_live = false;
  };
  Now now() const;
  Result<Now> now_of(std::string_view rank) const;
  Reply route(std::string_view method, std::string_view target, std::string_view query,
              std::string_view body, std::optional<std::uint64_t> generation,
              std::string_view rank);

  const std::string version_;
  const std::shared_ptr<RankSet> ranks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Traces traces_;
  bool is_live_;
  std::uint64_t generation_ = 1;
  std::size_t open_pages_ = 0;
  bool had_page_ = false, ending_ = false;
  std::chrono::steady_clock::time_point last_page_;
};

}  // namespace lanescope::server
