#include "lanescope/record/recorder.h"

#include "lanescope/record/active_recorder.h"

namespace lanescope::record {

struct Recorder::State {
  std::uint32_t session = 0;
  std::shared_ptr<SpoolName> name;
  // For when the session is over.
  std::uint32_t windows = 0;
  std::vector<std::string> last_notes;
  std::vector<std::string> last_dumps;
  RecorderStats last_stats;
};

Recorder::Recorder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Recorder::~Recorder() {
  close();
  ActiveRecorder::instance().forget(state_->session);
}

Result<std::unique_ptr<Recorder>> Recorder::open(const RecorderOptions& options) {
  auto state = std::make_unique<State>();
  LANESCOPE_TRY(state->session, ActiveRecorder::instance().open_session(options, &state->name));
  return std::unique_ptr<Recorder>(new Recorder(std::move(state)));
}

void Recorder::prepare() { ActiveRecorder::instance().prepare(state_->session); }
Result<void> Recorder::start() { return ActiveRecorder::instance().start(state_->session); }
void Recorder::stop() { ActiveRecorder::instance().stop(state_->session); }

void Recorder::rest() {
  state_->windows = window_count();
  if (auto notes = ActiveRecorder::instance().rest(state_->session); !notes.empty())
    state_->last_notes = std::move(notes);
  state_->last_dumps = dumps();
  if (!is_over()) state_->last_stats = stats();
}

void Recorder::close() {
  if (is_over()) return;
  state_->windows = window_count();
  if (auto notes = ActiveRecorder::instance().close(state_->session); !notes.empty())
    state_->last_notes = std::move(notes);
  state_->last_dumps = dumps();  // including those under way
  state_->last_stats = ActiveRecorder::instance().stats();
}

Result<void> Recorder::dump(const std::string& path) {
  return ActiveRecorder::instance().dump(state_->name->path, path);
}
std::uint64_t Recorder::request_dump(std::string why, std::uint64_t replaces) {
  return ActiveRecorder::instance().request_dump(state_->session, std::move(why), replaces);
}
std::vector<std::string> Recorder::dumps() const {
  auto dumps = ActiveRecorder::instance().dumps(state_->name->path);
  return dumps.empty() ? state_->last_dumps : dumps;
}
bool Recorder::is_live_ring() const {
  return ActiveRecorder::instance().is_live_ring(state_->name->path);
}

Result<void> Recorder::add_metadata_json(std::string_view key, std::string_view json) {
  return ActiveRecorder::instance().add_metadata(state_->session, key, json);
}
const std::string& Recorder::spool_path() const { return state_->name->path; }
std::uint32_t Recorder::session() const { return state_->session; }
std::uint32_t Recorder::window_count() const {
  const std::uint32_t windows = ActiveRecorder::instance().window_count(state_->session);
  return windows != 0 ? windows : state_->windows;
}
bool Recorder::is_open() const { return ActiveRecorder::instance().is_open(state_->session); }
bool Recorder::is_over() const { return ActiveRecorder::instance().is_over(state_->session); }
RecorderStats Recorder::stats() const {
  return is_over() ? state_->last_stats : ActiveRecorder::instance().stats();
}
std::vector<std::string> Recorder::notes() const {
  auto notes = ActiveRecorder::instance().notes(state_->session);
  return notes.empty() ? state_->last_notes : notes;
}

}  // namespace lanescope::record
