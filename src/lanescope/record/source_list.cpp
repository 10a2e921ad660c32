#include "lanescope/record/source_list.h"

#include <fmt/format.h>
#include <string.h>

#include "lanescope/record/bus_guard.h"

namespace lanescope::record {
namespace {

constexpr std::size_t kMaxSources = 16;
// Control records of session 0 count for every session.
constexpr std::uint32_t kEverySession = 0;

// What a source writes for the user.
struct Line {
  char text[512] = "";
  bool is_empty() const { return text[0] == 0; }
};

std::string with_name(const LanescopeActivitySource& source, const Line& line) {
  return fmt::format("{}: {}", source.name, line.text);
}

}  // namespace

int SourceList::add(const LanescopeActivitySource* source) {
  if (!source || source->abi != LANESCOPE_RECORD_ABI) return 1;
  const MutexLock lock(mutex_);
  for (const Source& known : sources_)
    if (strcmp(known.table->name, source->name) == 0) return 3;
  if (sources_.size() == kMaxSources) return 2;
  sources_.push_back({source});
  return 0;
}

void SourceList::remove(const LanescopeActivitySource* source) {
  bool running = false;
  {
    const MutexLock lock(mutex_);
    for (const Source& known : sources_) running |= known.table == source && known.running;
    std::erase_if(sources_, [&](const Source& known) { return known.table == source; });
  }
  if (running && source->stop) source->stop(source->self);
}

std::vector<SourceList::Source> SourceList::sources() {
  const MutexLock lock(mutex_);
  return sources_;
}

void SourceList::update(const Source& changed) {
  const MutexLock lock(mutex_);
  for (Source& mine : sources_)
    if (mine.table == changed.table) mine = changed;
}

void SourceList::prepare(std::uint32_t activities, std::uint32_t options, const Note& note) {
  for (Source source : sources()) {
    const LanescopeActivitySource& table = *source.table;
    if (source.prepared || !(table.activities & activities)) continue;
    Line line;
    source.prepared =
        !table.prepare || table.prepare(table.self, options, line.text, sizeof line.text) == 0;
    if (!source.prepared || !line.is_empty()) note(with_name(table, line));
    update(source);
  }
}

void SourceList::start(std::uint32_t activities, std::uint32_t options, const Note& note) {
  for (Source source : sources()) {
    const LanescopeActivitySource& table = *source.table;
    if (source.running || !(table.activities & activities)) continue;
    Line line;
    int failed = 0;
    if (!source.prepared && table.prepare)  // failed before, or registered after the warm-up
      failed = table.prepare(table.self, options, line.text, sizeof line.text);
    if (failed == 0 && table.start)
      failed = table.start(table.self, options, line.text, sizeof line.text);
    if (failed != 0 || !line.is_empty()) note(with_name(table, line));
    source.prepared = source.running = failed == 0;
    update(source);
  }
}

void SourceList::stop(std::uint32_t activities) {
  std::vector<Source> stopped;
  {
    const MutexLock lock(mutex_);
    for (Source& source : sources_) {
      if (!source.running || !(source.table->activities & activities)) continue;
      stopped.push_back(source);
      source.running = false;
    }
  }
  for (const Source& source : stopped)
    if (source.table->stop) source.table->stop(source.table->self);
}

bool SourceList::is_running(std::uint32_t activities) {
  const MutexLock lock(mutex_);
  for (const Source& source : sources_)
    if (source.running && (source.table->activities & activities)) return true;
  return false;
}

void SourceList::flush() {
  for (const Source& source : sources())
    if (source.running && source.table->flush) source.table->flush(source.table->self);
}

void SourceList::change(std::uint32_t options) {
  for (const Source& source : sources())
    if (source.running && source.table->change) source.table->change(source.table->self, options);
}

void SourceList::note_costs(const Note& note) {
  for (const Source& source : sources()) {
    const LanescopeActivitySource& table = *source.table;
    Line line;
    if (source.prepared && table.cost_line &&
        table.cost_line(table.self, line.text, sizeof line.text) == 0 && !line.is_empty())
      note(with_name(table, line));
  }
}

void SourceList::set_spool(Spool* spool) {
  const MutexLock lock(gate_);
  spool_ = spool;
}

std::uint32_t SourceList::write(const spool::Record* records, std::uint32_t count) noexcept {
  static thread_local bool bus_unblocked = false;  // a source's own thread
  if (!bus_unblocked) unblock_bus_fault();
  bus_unblocked = true;
  const MutexLock lock(gate_);
  return spool_ ? spool_->write_activities(records, count) : 0;
}

void SourceList::count_drops(std::uint64_t count) noexcept {
  const MutexLock lock(gate_);
  if (spool_) spool_->count_activity_drops(count);
}

bool SourceList::write_metadata(std::string_view key, std::string_view json) {
  if (!Spool::metadata_fits(key, json)) return false;
  const MutexLock lock(gate_);
  if (!spool_) return false;
  spool_->write_metadata(kEverySession, key, json);
  return true;
}

void SourceList::copy_in_child(const SourceList& parent) {
  sources_ = parent.sources_;
  for (Source& source : sources_) source.prepared = source.running = false;
}

}  // namespace lanescope::record
