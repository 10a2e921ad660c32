// The plain-C functions of record_abi.h and activity_source.h. Nothing is thrown out of them.
#include "lanescope/record/record_abi.h"

#include "lanescope/record/active_recorder.h"
#include "lanescope/record/activity_source.h"
#include "lanescope/record/process_state.h"
#include "lanescope/record/thread_writer.h"

namespace record = lanescope::record;

extern "C" {

std::uint32_t lanescope_record_abi() noexcept { return LANESCOPE_RECORD_ABI; }

LanescopeWriter* lanescope_attach_thread() noexcept {
  return lanescope_thread_writer ? lanescope_thread_writer : record::attach_this_thread();
}

bool lanescope_next_chunk(LanescopeWriter* writer) noexcept {
  return record::ActiveRecorder::instance().writers().next_chunk(writer);
}

void lanescope_count_drop() noexcept { record::count_drop_without_writer(); }

std::uint32_t lanescope_intern(const char* text, std::size_t size, const char** stored) noexcept {
  return record::process_texts().intern({text, size}, stored);
}

void lanescope_set_torch_thread(std::uint64_t torch_tid) noexcept {
  LanescopeWriter* writer = lanescope_thread_writer;
  if (!writer) writer = lanescope_attach_thread();
  if (!writer) return;
  writer->torch_tid = torch_tid;
  writer->has_torch_tid = 1;
  const record::RecordingScope inside(writer);  // the slot goes away with the spool
  if (!inside.ok() || !writer->slot) return;
  writer->slot->torch_tid = torch_tid;
  writer->slot->has_torch_tid = 1;
}

int lanescope_register_source(const LanescopeActivitySource* source) noexcept {
  try {
    return record::ActiveRecorder::instance().sources().add(source);
  } catch (...) {
    return 2;
  }
}

void lanescope_unregister_source(const LanescopeActivitySource* source) noexcept {
  try {
    record::ActiveRecorder::instance().remove_source(source);
  } catch (...) {
  }
}

std::uint32_t lanescope_source_write(const void* records, std::uint32_t count) noexcept {
  return record::ActiveRecorder::instance().sources().write(
      static_cast<const lanescope::spool::Record*>(records), count);
}

void lanescope_source_count_drops(std::uint64_t count) noexcept {
  record::ActiveRecorder::instance().sources().count_drops(count);
}

int lanescope_source_metadata(const char* key, const char* json) noexcept {
  try {
    return key && json && record::ActiveRecorder::instance().sources().write_metadata(key, json)
               ? 0
               : 1;
  } catch (...) {
    return 1;
  }
}

}  // extern "C"
