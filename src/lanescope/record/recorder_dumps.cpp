// Dumps of a recording that goes on, and what its ring holds.
#include <fmt/format.h>

#include "lanescope/record/active_recorder.h"
#include "lanescope/record/tick_clock.h"

namespace lanescope::record {

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
  return fmt::format("{}: holds the last {:.3g} s of the {:.3g} s requested; more did not fit: {}",
                     spool_->path(), seconds, wanted, spool_->refusal());
}

void ActiveRecorder::note_ring_loss(Session& session) {
  if (std::string line = short_ring_note(session); !line.empty()) note(session, std::move(line));
  if (const std::uint64_t lost = spool_->ring().lost_open_ranges(); lost != 0)
    note(session, fmt::format("{} ranges were open for longer than the ring reaches, more at once "
                              "than it keeps; they are not in the result",
                              lost));
}

}  // namespace lanescope::record
