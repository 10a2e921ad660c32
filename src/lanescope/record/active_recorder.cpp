#include "lanescope/record/active_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lanescope/record/gpu_source.h"
#include "lanescope/record/leftovers.h"
#include "lanescope/record/new_spool.h"
#include "lanescope/record/shared_range.h"
#include "lanescope/record/thread_writer.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

// ---- All process-wide state of lanescope ----

extern "C" {
constinit std::atomic<std::uint32_t> lanescope_recording{0};
constinit std::atomic<std::uint32_t> lanescope_record_options{0};
constinit std::atomic<std::uint64_t> lanescope_short_operator_ticks{0};
__thread LanescopeWriter* lanescope_thread_writer = nullptr;
constinit std::atomic<const LanescopeRangeListeners*> lanescope_range_listeners{nullptr};
}

namespace lanescope::record {
namespace {

__thread bool thread_ended = false;  // its writer is gone; it gets no other one
constinit std::atomic<std::uint64_t> drops_without_writer{0};  // relaxed: a sum
constinit std::atomic<ActiveRecorder*> active{nullptr};  // release when made, acquire when used
// Dumps that a signal asked for. Relaxed: only a number, and the handler must be able to count
// at any moment.
constinit std::atomic<std::uint32_t> dump_signals{0};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
void count_dump_signal(int) { dump_signals.fetch_add(1, std::memory_order_relaxed); }
constinit BusGuard bus_guard{&lanescope_recording};
void on_bus_fault(int signal, siginfo_t* info, void* context) {
  bus_guard.handle(signal, info, context);
}
pthread_once_t process_once = PTHREAD_ONCE_INIT;
pthread_key_t writer_key;
bool has_writer_key = false, has_membarrier = false;

InternTable& texts() {
  static InternTable* const table = new InternTable();  // threads may outlive static destructors
  return *table;
}

void end_thread(void* writer) {
  thread_ended = true;
  lanescope_thread_writer = nullptr;
  ActiveRecorder::instance().remove_writer(static_cast<LanescopeWriter*>(writer));
  munmap(writer, sizeof(LanescopeWriter));
}

// These three functions hold the locks across fork(), which clang's check cannot follow.
void before_fork() LANESCOPE_NO_THREAD_SAFETY {
  ActiveRecorder::instance().lock_for_fork();
  texts().lock_for_fork();
}

void after_fork_in_parent() LANESCOPE_NO_THREAD_SAFETY {
  texts().unlock_in_parent();
  ActiveRecorder::instance().unlock_in_parent();
}

// The child takes no part in its parent's recording: recording is off, and the child gets a
// new recorder that is not started. The old one stays untouched: its threads and mappings do
// not exist here.
void after_fork_in_child() LANESCOPE_NO_THREAD_SAFETY {
  lanescope_recording.store(0, std::memory_order_relaxed);  // relaxed: the child has one thread
  lanescope_record_options.store(0, std::memory_order_relaxed);
  lanescope_short_operator_ticks.store(0, std::memory_order_relaxed);
  lanescope_thread_writer = nullptr;
  bus_guard.forget_all();
  if (has_writer_key) pthread_setspecific(writer_key, nullptr);
  drops_without_writer.store(0, std::memory_order_relaxed);
  texts().unlock_in_child();
  ActiveRecorder* const parent = active.load(std::memory_order_relaxed);
  auto* own = new (std::nothrow) ActiveRecorder();
  if (own && parent) own->start_in_child(*parent);
  if (own) active.store(own, std::memory_order_release);
}

void at_exit() {
  const std::string path = finish_all_sessions();
  if (!path.empty())
    fprintf(stderr,
            "lanescope: the program ended while a profiler recorded; what it saw is in %s\n",
            path.c_str());
}

void set_up_process() {
  has_writer_key = pthread_key_create(&writer_key, end_thread) == 0;
  has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  texts();
  active.store(new ActiveRecorder(), std::memory_order_release);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  atexit(at_exit);
}

void sleep_us(long microseconds) {
  const timespec time{0, microseconds * 1000};
  nanosleep(&time, nullptr);
}

// After this, every thread sees our earlier stores before its next load, and we see all
// its earlier stores.
void fence_all_threads() {
  if (has_membarrier && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return;
  sleep_us(
      10'000);  // stores leave a core's buffer within microseconds; nothing better without the call
}

const char* signal_name(int signal) {
  if (signal == SIGUSR1) return "SIGUSR1";
  return signal == SIGUSR2 ? "SIGUSR2" : "a signal";
}

void copy_name(char (&to)[64], const char* from) { snprintf(to, sizeof to, "%s", from); }

void name_this_thread(spool::ThreadSlot* slot) {
  char name[64] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  copy_name(slot->name, name);
}

spool::ChunkHeader* chunk_of(LanescopeWriter* writer) {
  return reinterpret_cast<spool::ChunkHeader*>(reinterpret_cast<std::byte*>(writer->first) -
                                               spool::kChunkHeaderBytes);
}

void detach_chunk(LanescopeWriter* writer, ChunkPool& pool) {
  if (writer->first) pool.add_full(chunk_of(writer));
  writer->first = nullptr;
  writer->count = writer->capacity = 0;
  writer->used = nullptr;
  writer->slot = nullptr;
  writer->owner = nullptr;
  ++writer->sequence;  // tokens of that chunk no longer match
}

constexpr std::size_t kMaxSources = 16;
constexpr std::size_t kMaxNotes = 64;

}  // namespace

SpoolName::SpoolName(std::string where, bool is_temporary)
    : path(std::move(where)), temporary(is_temporary), pid(getpid()) {}

SpoolName::~SpoolName() {
  if (temporary && pid == getpid()) unlink(path.c_str());
}

ActiveRecorder& ActiveRecorder::instance() {
  pthread_once(&process_once, set_up_process);
  return *active.load(std::memory_order_acquire);
}

void ActiveRecorder::start_in_child(const ActiveRecorder& parent) {
  sources_ = parent.sources_;
  for (Source& source : sources_) source.prepared = source.running = false;
  // the child's copies of Recorder objects find no session here
  next_session_ = parent.next_session_ + 1;
}

// ---- Sessions ----

ActiveRecorder::Session* ActiveRecorder::find(std::uint32_t session) {
  for (const auto& candidate : sessions_)
    if (candidate->id == session) return candidate.get();
  return nullptr;
}

Result<std::uint32_t> ActiveRecorder::open_session(const RecorderOptions& options,
                                                   std::shared_ptr<SpoolName>* name) {
  if (options.max_bytes < (1u << 20))
    return Error{
        Errc::kInvalidArgument,
        fmt::format("a recording needs at least 1 MiB, max_bytes is {}", options.max_bytes)};
  if (options.last_ns < 0)
    return Error{Errc::kInvalidArgument,
                 fmt::format("a ring keeps a time of more than 0; last_ns is {}", options.last_ns)};
  if (options.budget_ratio != 0 && !(options.budget_ratio >= 0.001 && options.budget_ratio <= 0.5))
    return Error{Errc::kInvalidArgument,
                 fmt::format("a budget is 0.001 to 0.5 of the time; budget_ratio is {}",
                             options.budget_ratio)};
  const MutexLock lock(control_);
  const bool joins_no_ring = spool_ && !spool_->ring().is_on() && options.last_ns != 0;
  if (!spool_) {
    SpoolOptions settings{.path = {},
                          .max_bytes = options.max_bytes,
                          .ready_chunks = options.ready_chunks,
                          .disk_reserve_bytes = options.disk_reserve_bytes,
                          .guard = &bus_guard,
                          .ring = options.last_ns != 0,
                          .on_check = []() noexcept { instance().check_cost(); }};
    if (options.dump_signal != 0)
      settings.dumps = {&dump_signals, signal_name(options.dump_signal), options.quiet_dumps};
    settings.dumps.quiet = options.quiet_dumps;
    settings.dumps.flush_sources = [] { instance().flush_sources(); };
    bus_guard.install(on_bus_fault);
    LANESCOPE_TRY(spool_, create_new_spool(options, settings, &texts()));
    name_ = std::make_shared<SpoolName>(spool_->path(), options.temporary);
    if (options.temporary) {
      if (!std::exchange(looked_for_leftovers_, true))
        remove_old_temporary_spools(name_->path.substr(0, name_->path.rfind('/')));
      std::erase_if(temporary_names_, [](const auto& known) { return known.expired(); });
      temporary_names_.push_back(name_);
    }
    writable_.store(spool_.get(), std::memory_order_release);
    const MutexLock gate(source_gate_);
    source_spool_ = spool_.get();
  }
  auto session = std::make_unique<Session>();
  session->id = next_session_++;
  session->options = options.options;
  session->budget_ratio = options.budget_ratio;
  if (options.budget_ratio != 0) {
    session->options |= LANESCOPE_RECORD_MEASURE;
    if (!budget_)
      budget_.emplace(options.budget_ratio,
                      (options.options & (LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_FLOPS)) != 0,
                      (options.options & (LANESCOPE_RECORD_STACK | LANESCOPE_RECORD_MODULES)) != 0);
  }
  session->activities = options.activities;
  session->last_ns = options.last_ns;
  *name = name_;
  sessions_.push_back(std::move(session));
  if (joins_no_ring)
    note(*sessions_.back(),
         "shares the file of a recording that keeps everything: the file grows until both end");
  if (options.dump_signal != 0) arm_dump_signal(*sessions_.back(), options.dump_signal);
  return sessions_.back()->id;
}

void ActiveRecorder::prepare(std::uint32_t id) {
  const MutexLock lock(control_);
  if (Session* session = find(id)) prepare_session(*session);
}

void ActiveRecorder::prepare_session(Session& session) {
  if (session.prepared) return;
  session.prepared = true;
  spool_->prepare();
  if (session.activities & LANESCOPE_ACTIVITY_CUDA)
    if (const std::string problem = load_gpu_source(); !problem.empty())
      note(session, "cupti: " + problem);
  std::vector<Source> sources;
  {
    const MutexLock lock(registry_);
    sources = sources_;
  }
  for (const Source& source : sources) {
    if (source.prepared || !(source.table->activities & session.activities)) continue;
    char line[512] = "";
    const bool fine =
        !source.table->prepare ||
        source.table->prepare(source.table->self, session.options, line, sizeof line) == 0;
    if (!fine || line[0]) note(session, fmt::format("{}: {}", source.table->name, line));
    const MutexLock lock(registry_);
    for (Source& mine : sources_)
      if (mine.table == source.table) mine.prepared = fine;
  }
}

void ActiveRecorder::start_sources(Session& session) {
  std::vector<Source> sources;
  {
    const MutexLock lock(registry_);
    sources = sources_;
  }
  for (const Source& source : sources) {
    if (source.running || !(source.table->activities & session.activities)) continue;
    char line[512] = "";
    int failed = 0;
    if (!source.prepared &&
        source.table->prepare)  // failed before, or registered after the warm-up
      failed = source.table->prepare(source.table->self, session.options, line, sizeof line);
    if (failed == 0 && source.table->start)
      failed = source.table->start(source.table->self, session.options, line, sizeof line);
    if (failed != 0 || line[0]) note(session, fmt::format("{}: {}", source.table->name, line));
    const MutexLock lock(registry_);
    for (Source& mine : sources_)
      if (mine.table == source.table) mine.prepared = mine.running = failed == 0;
  }
}

void ActiveRecorder::stop_sources() {
  std::vector<Source> sources;
  {
    const MutexLock lock(registry_);
    sources = sources_;
    for (Source& source : sources_) source.running = false;
  }
  for (const Source& source : sources)
    if (source.running && source.table->stop) source.table->stop(source.table->self);
}

void ActiveRecorder::note(Session& session, std::string line) {
  if (session.notes.size() >= kMaxNotes ||
      std::find(session.notes.begin(), session.notes.end(), line) != session.notes.end())
    return;
  spool::Record record;
  record.kind = static_cast<std::uint8_t>(spool::RecordKind::kSourceNote);
  record.begin_tsc = ticks();
  record.name = texts().intern_for_spool(line);
  record.b = session.id;
  if (spool_) spool_->write_control(record);
  session.notes.push_back(std::move(line));
}

void ActiveRecorder::mark_window(spool::RecordKind kind, const Session& session) {
  spool::Record record;
  record.kind = static_cast<std::uint8_t>(kind);
  record.begin_tsc = ticks();
  record.a = session.windows - 1;
  record.b = session.id;
  record.c = session.options;
  if (kind == spool::RecordKind::kWindowStop) {
    spool_->ring().window_closed(session.id, record.begin_tsc);
  } else {
    record.d = static_cast<std::uint64_t>(session.last_ns);
    const double rate = static_cast<double>(spool_->file().header().ticks_per_second) * 1e-9;
    const auto last_ticks = static_cast<std::uint64_t>(static_cast<double>(session.last_ns) * rate);
    spool_->ring().window_opened(
        {session.id, session.windows - 1, record.begin_tsc, 0, last_ticks});
  }
  spool_->write_control(record);
}

// Takes a signal only when the program has no handler for it.
void ActiveRecorder::arm_dump_signal(Session& session, int signal) {
  struct sigaction known {};
  if (sigaction(signal, nullptr, &known) != 0) {
    return note(session, fmt::format("signal {} cannot make dumps: {}", signal, strerror(errno)));
  }
  if (!(known.sa_flags & SA_SIGINFO) && known.sa_handler == count_dump_signal) return;
  if ((known.sa_flags & SA_SIGINFO) || known.sa_handler != SIG_DFL) {
    return note(session, fmt::format("{} makes no dumps: the program has its own handler for it",
                                     signal_name(signal)));
  }
  struct sigaction ours {};
  ours.sa_handler = count_dump_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &ours, nullptr);
}

// The note when a ring holds less than was asked for.
std::string ActiveRecorder::short_ring_note(const Session& session) {
  const auto covered = spool_->ring().covered(session.id, ticks());
  const std::uint64_t lost =
      spool_->file().header().ring_lost_until.load(std::memory_order_relaxed);
  if (session.last_ns == 0 || !covered || lost == 0) return "";
  const double rate = static_cast<double>(spool_->file().header().ticks_per_second);
  const double seconds = static_cast<double>(*covered) / rate;
  const double wanted = static_cast<double>(session.last_ns) * 1e-9;
  if (seconds >= wanted * 0.999) return "";
  return fmt::format("{}: holds the last {:.3g} s of the {:.3g} s asked for; more did not fit: {}",
                     spool_->path(), seconds, wanted, spool_->refusal());
}

void ActiveRecorder::flush_sources() {
  std::vector<Source> sources;
  {
    const MutexLock lock(registry_);
    sources = sources_;
  }
  for (const Source& source : sources)
    if (source.running && source.table->flush) source.table->flush(source.table->self);
}

Result<void> ActiveRecorder::dump(const std::string& of, const std::string& path) {
  const MutexLock lock(control_);
  if (!spool_ || spool_->path() != of)
    return Error{Errc::kUnavailable, fmt::format("this recording is over; read {}", of)};
  LANESCOPE_TRY_VOID(spool_->dumper().dump(path, "the program asked for it"));
  return {};
}

std::uint64_t ActiveRecorder::request_dump(std::uint32_t id, std::string why,
                                           std::uint64_t replaces) {
  const MutexLock lock(control_);
  return find(id) ? spool_->dumper().request(std::move(why), replaces) : 0;
}

std::vector<std::string> ActiveRecorder::dumps(const std::string& of) {
  const MutexLock lock(control_);
  if (spool_ && spool_->path() == of) return spool_->dumper().paths();
  return last_dumps_.first == of ? last_dumps_.second : std::vector<std::string>();
}

bool ActiveRecorder::is_live_ring(const std::string& of) {
  const MutexLock lock(control_);
  return spool_ && spool_->path() == of && spool_->ring().is_on();
}

void ActiveRecorder::forget(std::uint32_t id) {
  const MutexLock lock(control_);
  if (spool_) spool_->ring().forget(id);
}

void ActiveRecorder::update_options() {
  std::uint32_t options = 0;
  for (const auto& session : sessions_)
    if (session->open) options |= session->options;
  lanescope_record_options.store(thinned(options), std::memory_order_relaxed);
  lanescope_short_operator_ticks.store(short_operator_ticks(), std::memory_order_relaxed);
}

Result<void> ActiveRecorder::start(std::uint32_t id) {
  const MutexLock lock(control_);
  Session* session = find(id);
  if (!session)
    return Error{Errc::kUnavailable, "this recording is over; open a new one to record again"};
  if (session->open) return {};
  prepare_session(*session);
  session->open = true;
  ++session->windows;
  start_sources(*session);
  update_options();
  spool_->set_window_open(true);
  spool_->write_anchor();
  mark_window(spool::RecordKind::kWindowStart, *session);
  // Release: pairs with the acquire of RecordingScope, so threads see what changed in their writers
  // while nothing was recorded.
  if (open_windows_++ == 0) lanescope_recording.store(next_window_++, std::memory_order_release);
  // After the store: a fault before it would have switched recording off too early.
  if (spool_->file().is_cut()) lanescope_recording.store(0, std::memory_order_relaxed);
  follow_budget();
  if (budget_is_open_) judge_cost();
  return {};
}

void ActiveRecorder::stop(std::uint32_t id) {
  const MutexLock lock(control_);
  if (Session* session = find(id)) stop_session(*session);
}

void ActiveRecorder::stop_session(Session& session) {
  if (!session.open) return;
  session.open = false;
  const bool last = --open_windows_ == 0;
  if (last) {
    lanescope_recording.store(0, std::memory_order_seq_cst);
    const MutexLock lock(registry_);
    wait_until_outside();
  }
  follow_budget();
  mark_window(spool::RecordKind::kWindowStop, session);
  update_options();
  if (last) {
    stop_sources();
    spool_->set_window_open(false);
  } else {
    flush_sources();  // the sources go on for other sessions; what is finished belongs to
                      // this one, too
  }
  spool_->write_anchor();
  note_file_loss(session);
  name_threads();
  flush_drops();
}

std::vector<std::string> ActiveRecorder::close(std::uint32_t id) {
  const MutexLock lock(control_);
  Session* session = find(id);
  return session ? close_session(*session) : std::vector<std::string>();
}

// Notes that another program cut or deleted the file.
void ActiveRecorder::note_file_loss(Session& session) {
  SpoolFile& file = spool_->file();
  file.check_for_cut();
  if (file.is_cut())
    note(session,
         fmt::format("{}: this file was cut while it was written, or its disk failed; the "
                     "recording ended there. Leave the file alone while the program records",
                     spool_->path()));
  else if (file.is_deleted())
    note(session, fmt::format("{}: this file was deleted while it was written; what was recorded "
                              "is lost. Leave the file alone while the program records",
                              spool_->path()));
}

std::vector<std::string> ActiveRecorder::close_session(Session& session) {
  stop_session(session);
  std::vector<Source> sources;
  {
    const MutexLock lock(registry_);
    sources = sources_;
  }
  for (const Source& source : sources) {
    char line[512] = "";
    if (source.prepared && source.table->cost_line &&
        source.table->cost_line(source.table->self, line, sizeof line) == 0 && line[0])
      note(session, fmt::format("{}: {}", source.table->name, line));
  }
  note_file_loss(session);
  // A ring always reaches its limit; what counts is the time that it holds.
  if (spool_->ring().is_on() && session.last_ns != 0) {
    if (std::string line = short_ring_note(session); !line.empty()) note(session, std::move(line));
    if (const std::uint64_t lost = spool_->ring().lost_open_ranges(); lost != 0)
      note(session,
           fmt::format("{} ranges were open for longer than the ring reaches, more at once "
                       "than it keeps; they are not in the result",
                       lost));
  } else if (const std::string refusal = spool_->refusal(); !refusal.empty()) {
    note(session, fmt::format("{}: could not grow: {}; records that came later were dropped",
                              spool_->path(), refusal));
  }
  std::vector<std::string> notes = std::move(session.notes);
  std::erase_if(sessions_, [&](const auto& candidate) { return candidate.get() == &session; });
  if (sessions_.empty()) finish_spool();
  return notes;
}

std::string ActiveRecorder::close_all() {
  const MutexLock lock(control_);
  std::string path;
  if (spool_) {
    path = name_->path;
    name_->temporary = false;
  }
  while (!sessions_.empty()) close_session(*sessions_.back());
  // Temporary results that nobody can ask for any more.
  for (const auto& known : temporary_names_)
    if (const auto name = known.lock(); name && name->temporary) {
      name->temporary = false;
      unlink(name->path.c_str());
    }
  temporary_names_.clear();
  return path;
}

void ActiveRecorder::finish_spool() {
  bool all_outside = true;
  {
    const MutexLock gate(source_gate_);
    source_spool_ = nullptr;
  }
  {
    const MutexLock lock(registry_);
    all_outside = wait_until_outside();
    writable_.store(nullptr, std::memory_order_release);
    for (LanescopeWriter* writer : writers_) {
      if (writer->owner != spool_.get()) continue;
      if (writer->busy.load(std::memory_order_acquire) == 0) detach_chunk(writer, spool_->pool());
    }
  }
  flush_drops();
  budget_.reset();
  budget_version_ = 0;
  budget_written_ns_ = budget_began_ns_ = 0;
  last_stats_ = {};
  spool_->thread_totals(&last_stats_.dropped_records, &last_stats_.depth_overflow,
                        &last_stats_.threads);
  last_stats_.dropped_records += spool_->drops_without_thread() + spool_->activity_drops();
  spool_->finish(!all_outside);
  last_stats_.file_bytes = spool_->bytes();
  last_stats_.lost_open_ranges = spool_->ring().lost_open_ranges();
  last_dumps_ = {spool_->path(), spool_->dumper().paths()};
  name_.reset();
  if (all_outside)
    spool_.reset();
  else
    static_cast<void>(spool_.release());  // a stopped thread may still write there
}

// True: no thread is between its check of lanescope_recording and its last store.
bool ActiveRecorder::wait_until_outside() {
  fence_all_threads();
  bool all_outside = true;
  for (LanescopeWriter* writer : writers_) {
    if (writer == lanescope_thread_writer) continue;
    for (int tries = 0; writer->busy.load(std::memory_order_acquire) != 0; ++tries) {
      if (tries == 20'000) {  // a second: suspended by a debugger or a signal
        all_outside = false;
        break;
      }
      sleep_us(50);
    }
  }
  return all_outside;
}

// Threads get their names after they start, so read the names late.
void ActiveRecorder::name_threads() {
  const MutexLock lock(registry_);
  for (const LanescopeWriter* writer : writers_) {
    if (!writer->slot) continue;
    char path[64], name[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", writer->slot->os_tid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t got = read(file, name, sizeof name - 1);
    ::close(file);
    if (got <= 1) continue;
    name[got - 1] = 0;  // the newline
    copy_name(writer->slot->name, name);
  }
}

void ActiveRecorder::flush_drops() {
  if (const std::uint64_t drops = drops_without_writer.exchange(0, std::memory_order_relaxed))
    spool_->count_drops_without_thread(drops);
}

Result<void> ActiveRecorder::add_metadata(std::uint32_t id, std::string_view key,
                                          std::string_view json) {
  if (key.size() > spool::kMaxTextBytes || json.size() > Recorder::kMaxMetadataBytes)
    return Error{Errc::kLimit, fmt::format("metadata of {} bytes; at most {} fit", json.size(),
                                           Recorder::kMaxMetadataBytes)};
  const MutexLock lock(control_);
  if (!find(id)) return Error{Errc::kUnavailable, "this recording is over"};
  spool::Record record;
  record.kind = static_cast<std::uint8_t>(spool::RecordKind::kMetadata);
  record.begin_tsc = ticks();
  record.name = texts().intern(key);
  record.c = texts().intern_for_spool(json, Recorder::kMaxMetadataBytes);
  record.b = id;
  spool_->write_control(record);
  return {};
}

bool ActiveRecorder::is_open(std::uint32_t id) {
  const MutexLock lock(control_);
  const Session* session = find(id);
  return session && session->open;
}

std::uint32_t ActiveRecorder::window_count(std::uint32_t id) {
  const MutexLock lock(control_);
  const Session* session = find(id);
  return session ? session->windows : 0;
}

RecorderStats ActiveRecorder::stats() {
  const MutexLock lock(control_);
  if (!spool_) return last_stats_;
  RecorderStats stats;
  spool_->thread_totals(&stats.dropped_records, &stats.depth_overflow, &stats.threads);
  stats.dropped_records += spool_->drops_without_thread() + spool_->activity_drops();
  stats.file_bytes = spool_->bytes();
  stats.lost_open_ranges = spool_->ring().lost_open_ranges();
  return stats;
}

std::vector<std::string> ActiveRecorder::notes(std::uint32_t id) {
  const MutexLock lock(control_);
  const Session* session = find(id);
  return session ? session->notes : std::vector<std::string>();
}

// ---- Sources ----

int ActiveRecorder::register_source(const LanescopeActivitySource* source) {
  if (!source || source->abi != LANESCOPE_RECORD_ABI) return 1;
  const MutexLock lock(registry_);
  for (const Source& known : sources_)
    if (strcmp(known.table->name, source->name) == 0) return 3;
  if (sources_.size() == kMaxSources) return 2;
  sources_.push_back({source});
  return 0;
}

void ActiveRecorder::unregister_source(const LanescopeActivitySource* source) {
  const MutexLock control(control_);
  bool running = false;
  {
    const MutexLock lock(registry_);
    for (const Source& known : sources_) running |= known.table == source && known.running;
    std::erase_if(sources_, [&](const Source& known) { return known.table == source; });
  }
  if (running && source->stop) source->stop(source->self);
}

// Control records of session 0 count for every session.
constexpr std::uint32_t kEverySession = 0;

std::uint32_t ActiveRecorder::source_write(const spool::Record* records,
                                           std::uint32_t count) noexcept {
  static thread_local bool bus_unblocked = false;  // a source's own thread
  if (!bus_unblocked) unblock_bus_fault();
  bus_unblocked = true;
  const MutexLock gate(source_gate_);
  return source_spool_ ? source_spool_->write_activities(records, count) : 0;
}

void ActiveRecorder::source_count_drops(std::uint64_t count) noexcept {
  const MutexLock gate(source_gate_);
  if (source_spool_) source_spool_->count_activity_drops(count);
}

bool ActiveRecorder::source_metadata(std::string_view key, std::string_view json) {
  if (key.size() > spool::kMaxTextBytes || json.size() > Recorder::kMaxMetadataBytes) return false;
  const MutexLock gate(source_gate_);
  if (!source_spool_) return false;
  spool::Record record;
  record.kind = static_cast<std::uint8_t>(spool::RecordKind::kMetadata);
  record.begin_tsc = ticks();
  record.name = texts().intern(key);
  record.c = texts().intern_for_spool(json, Recorder::kMaxMetadataBytes);
  record.b = kEverySession;
  source_spool_->write_control(record);
  return true;
}

// ---- Threads ----

void ActiveRecorder::add_writer(LanescopeWriter* writer) {
  const MutexLock lock(registry_);
  writers_.push_back(writer);
}

void ActiveRecorder::remove_writer(LanescopeWriter* writer) {
  const MutexLock lock(registry_);
  std::erase(writers_, writer);
  ended_cost_.add(writer->cost);
  Spool* const spool = writable_.load(std::memory_order_acquire);
  if (!spool || writer->owner != spool) return;
  if (writer->slot) name_this_thread(writer->slot);
  detach_chunk(writer, spool->pool());
}

bool ActiveRecorder::next_chunk(LanescopeWriter* writer) noexcept {
  Spool* const spool = writable_.load(std::memory_order_acquire);
  if (!spool) return false;
  if (writer->owner != spool) {
    if (getpid() != pid_)
      return false;  // a child whose fork ran no handlers: the chunks are not mapped here
    std::uint32_t number = 0;
    spool::ThreadSlot* slot = spool->new_thread(&number);
    if (!slot) return false;
    slot->os_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    slot->torch_tid = writer->torch_tid;
    slot->has_torch_tid = writer->has_torch_tid;
    name_this_thread(slot);
    writer->slot = slot;
    writer->thread_number = number;
    writer->owner = spool;
    writer->chunks = 0;
  }
  spool::ChunkHeader* chunk = spool->take_for_thread(writer->chunks);
  if (!chunk) return false;
  ++writer->chunks;
  if (writer->first) spool->pool().add_full(chunk_of(writer));
  SpoolFile::claim(chunk, spool::ChunkKind::kRecords, writer->thread_number, ++writer->sequence);
  writer->first = reinterpret_cast<spool::Record*>(reinterpret_cast<std::byte*>(chunk) +
                                                   spool::kChunkHeaderBytes);
  writer->count = 0;
  writer->capacity = chunk->place != 0 ? spool::kRecordsPerSmallChunk : spool::kRecordsPerChunk;
  writer->used = &chunk->used;
  return true;
}

std::string finish_all_sessions() { return ActiveRecorder::instance().close_all(); }

}  // namespace lanescope::record

// ---- The plain-C border ----

using lanescope::record::ActiveRecorder;

extern "C" {

std::uint32_t lanescope_record_abi() noexcept { return LANESCOPE_RECORD_ABI; }

LanescopeWriter* lanescope_attach_thread() noexcept {
  namespace record = lanescope::record;
  if (lanescope_thread_writer) return lanescope_thread_writer;
  if (record::thread_ended) {
    lanescope_count_drop();
    return nullptr;
  }
  try {
    ActiveRecorder& recorder = ActiveRecorder::instance();
    void* at = mmap(nullptr, sizeof(LanescopeWriter), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      lanescope_count_drop();
      return nullptr;
    }
    madvise(at, sizeof(LanescopeWriter), MADV_WIPEONFORK);
    auto* writer = new (at) LanescopeWriter();
    record::unblock_bus_fault();
    recorder.add_writer(writer);
    if (record::has_writer_key) pthread_setspecific(record::writer_key, writer);
    lanescope_thread_writer = writer;
    return writer;
  } catch (...) {  // no memory
    lanescope_count_drop();
    return nullptr;
  }
}

bool lanescope_next_chunk(LanescopeWriter* writer) noexcept {
  return ActiveRecorder::instance().next_chunk(writer);
}

void lanescope_count_drop() noexcept {
  lanescope::record::drops_without_writer.fetch_add(1, std::memory_order_relaxed);
}

std::uint32_t lanescope_intern(const char* text, std::size_t size, const char** stored) noexcept {
  return lanescope::record::texts().intern({text, size}, stored);
}

void lanescope_set_torch_thread(std::uint64_t torch_tid) noexcept {
  LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer) writer = lanescope_attach_thread();
  if (!writer) return;
  writer->torch_tid = torch_tid;
  writer->has_torch_tid = 1;
  const lanescope::record::RecordingScope inside(writer);  // the slot goes away with the spool
  if (!inside.ok() || !writer->slot) return;
  writer->slot->torch_tid = torch_tid;
  writer->slot->has_torch_tid = 1;
}

int lanescope_register_source(const LanescopeActivitySource* source) noexcept {
  try {
    return ActiveRecorder::instance().register_source(source);
  } catch (...) {
    return 2;
  }
}

void lanescope_unregister_source(const LanescopeActivitySource* source) noexcept {
  try {
    ActiveRecorder::instance().unregister_source(source);
  } catch (...) {
  }
}

std::uint32_t lanescope_source_write(const void* records, std::uint32_t count) noexcept {
  return ActiveRecorder::instance().source_write(
      static_cast<const lanescope::spool::Record*>(records), count);
}

void lanescope_source_count_drops(std::uint64_t count) noexcept {
  ActiveRecorder::instance().source_count_drops(count);
}

int lanescope_source_metadata(const char* key, const char* json) noexcept {
  try {
    return key && json && ActiveRecorder::instance().source_metadata(key, json) ? 0 : 1;
  } catch (...) {
    return 1;
  }
}

}  // extern "C"
