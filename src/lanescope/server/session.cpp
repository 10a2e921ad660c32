#include "lanescope/server/session.h"

#include <array>
#include <charconv>
#include <new>

#include "lanescope/server/answers.h"
#include "lanescope/server/notes.h"
#include "lanescope/server/saved_page.h"

namespace lanescope::server {
namespace {

// cpp-httplib compresses text/* and a bare application/json with brotli at its slowest when a browser offers
// it: 650 KB took 5.2 s instead of 0.04 s. These types it leaves alone; nothing is gained on one machine.
constexpr char kJson[] = "application/json; charset=utf-8", kBytes[] = "application/octet-stream";
constexpr std::uint64_t kGenerationOfRanks = 1;
constexpr std::size_t kMostGaps = 10'000, kUsualGaps = 500;

Reply failure(int status, std::string_view message) { return {status, kJson, error_json(message)}; }

Reply reply_of(Answer answer, const char* type) {
  if (!answer)
    return failure(
        answer.error().code == Errc::kInvalidArgument || answer.error().code == Errc::kLimit ? 400
                                                                                             : 500,
        answer.error().message);
  return {200, type, std::move(*answer)};
}

// The value of `key` in "a=1&b=2"; empty: none.
std::string_view query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t equals = pair.find('=');
    if (equals != pair.npos && pair.substr(0, equals) == key) return pair.substr(equals + 1);
  }
  return {};
}

// `otherwise` where the query has no such number.
std::size_t query_number(std::string_view query, std::string_view key, std::size_t otherwise) {
  const std::string_view text = query_value(query, key);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? value
                                                                                   : otherwise;
}

struct Question {
  std::string_view target;
  Answer (*answer)(const TraceState&, const Request&);
  const char* type;
};
constexpr std::array kQuestions{
    Question{"/api/frame", frame_answer, kBytes},
    Question{"/api/steps", steps_answer, kJson},
    Question{"/api/names", names_answer, kJson},
    Question{"/api/event", event_answer, kJson},
    Question{"/api/at", at_answer, kJson},
    Question{"/api/area", area_answer, kJson},
    Question{"/api/search", search_answer, kJson},
    Question{"/api/table", table_answer, kJson},
    Question{"/api/flame", flame_answer, kJson},
    Question{"/api/lanes", lanes_answer, kJson},
    Question{"/api/gap", gap_answer, kJson},
    Question{"/api/perfetto", perfetto_answer, kJson},
};

}  // namespace

Session::Session(Traces traces, std::string version, bool is_live, std::shared_ptr<RankSet> ranks)
    : version_(std::move(version)),
      ranks_(std::move(ranks)),
      traces_(std::move(traces)),
      is_live_(is_live) {}

Session::Now Session::now() const {
  const std::lock_guard lock(mutex_);
  return {traces_, generation_, is_live_};
}

// A trace of another rank does not grow.
Result<Session::Now> Session::now_of(std::string_view rank) const {
  Now now = this->now();
  if (rank.empty()) return now;
  if (!ranks_) return Error{Errc::kInvalidArgument, "there is one trace, and no ranks"};
  if (ranks_->path_of(rank) == now.traces[0]->path()) return now;  // it is open already
  auto state = ranks_->open(rank);
  if (!state) return state.error();
  return Now{{std::move(*state)}, kGenerationOfRanks, false};
}

void Session::replace(std::shared_ptr<const TraceState> trace, bool is_live) {
  const std::lock_guard lock(mutex_);
  traces_[0] = std::move(trace);
  is_live_ = is_live;
  ++generation_;
  changed_.notify_all();
}

std::uint64_t Session::wait_for_change(std::uint64_t known, std::chrono::milliseconds longest,
                                       std::string_view rank) {
  std::unique_lock lock(mutex_);
  ++open_pages_;
  had_page_ = true;
  // A page that shows another rank has nothing to wait for; it only says that it is open.
  const bool is_of_rank = !rank.empty() && ranks_ && ranks_->path_of(rank) != traces_[0]->path();
  changed_.wait_for(lock, longest,
                    [&] { return (!is_of_rank && generation_ != known) || ending_; });
  --open_pages_;
  last_page_ = std::chrono::steady_clock::now();
  return is_of_rank ? known : generation_;
}

std::optional<std::chrono::milliseconds> Session::time_without_page() const {
  const std::lock_guard lock(mutex_);
  if (!had_page_ || open_pages_ > 0) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               last_page_);
}

void Session::wake_all() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

Reply Session::answer(std::string_view method, std::string_view target, std::string_view query,
                      std::string_view body, std::optional<std::uint64_t> generation,
                      std::string_view rank) {
  try {
    return route(method, target, query, body, generation, rank);
  } catch (const std::bad_alloc&) {
    return failure(500, "the answer needs more memory than there is; choose a smaller area");
  }
}

Reply Session::route(std::string_view method, std::string_view target, std::string_view query,
                     std::string_view body, std::optional<std::uint64_t> generation,
                     std::string_view rank) {
  const Result<Now> asked = now_of(rank);
  if (!asked) return failure(400, asked.error().message);
  const Now& now = *asked;
  const Traces& traces = now.traces;
  if (target == "/api/meta" && method == "GET") {
    std::vector<const TraceState*> all;
    for (const auto& trace : traces) all.push_back(trace.get());
    return {200, kJson, meta_answer(all, now.generation, now.is_live, version_, ranks_.get())};
  }
  if (generation && *generation != now.generation && target != "/api/notes")
    return failure(409, "the trace has grown meanwhile; ask /api/meta again");
  if (method == "GET") {
    const std::size_t number = query_number(query, "trace", 0);
    if (number >= traces.size()) return failure(400, "there is no such trace");
    const TraceState& state = *traces[number];
    if (target == "/api/explain") return {200, kJson, explain_answer(state)};
    if (target == "/api/tour") return {200, kJson, tour_answer(state)};
    if (target == "/api/memory") return {200, kJson, memory_answer(state)};
    if (target == "/api/notes") return reply_of(read_notes(state.path()), kJson);
    if (target == "/api/gaps") {
      const std::size_t limit = std::min(query_number(query, "limit", kUsualGaps), kMostGaps);
      return {200, kJson, gaps_answer(state, query_value(query, "sort") != "time", limit)};
    }
    if (target == "/api/ranks") {
      if (!ranks_) return failure(400, "there is one trace; a folder with several ranks has more");
      return reply_of(ranks_->job_answer(), kJson);
    }
    if (target == "/api/compare") {
      if (traces.size() < 2)
        return failure(
            400, "there is one trace, and so nothing to compare; lanescope view A B opens two");
      return reply_of(compare_answer(*traces[0], *traces[1]), kJson);
    }
    return failure(404, "there is no such question");
  }
  if (method != "POST") return failure(405, "expected GET or POST");
  const Result<Request> request = Request::parse(body);
  if (!request) return failure(400, request.error().message);
  const auto number = request->number("trace", 0, static_cast<std::int64_t>(traces.size()) - 1);
  if (!number) return failure(400, number.error().message);
  const TraceState& state = *traces[static_cast<std::size_t>(number->value_or(0))];
  for (const Question& question : kQuestions)
    if (question.target == target) return reply_of(question.answer(state, *request), question.type);
  if (target == "/api/save") {
    const auto span = span_of(state, *request);
    if (!span) return failure(400, span.error().message);
    return reply_of(saved_page(state, *span, version_), kBytes);
  }
  if (target == "/api/notes") {
    const auto notes = request->notes();
    if (!notes) return failure(400, notes.error().message);
    return reply_of(write_notes(state.path(), *notes), kJson);
  }
  return failure(404, "there is no such question");
}

}  // namespace lanescope::server
