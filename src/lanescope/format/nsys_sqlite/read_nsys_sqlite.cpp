// Field tables (columns vary by version; what is missing is NULL):
//   StringIds                        id, value
//   CUPTI_ACTIVITY_KIND_KERNEL       start, end, deviceId, streamId, correlationId, demangledName, ...
//   CUPTI_ACTIVITY_KIND_MEMCPY       ..., bytes, copyKind, srcKind, dstKind
//   CUPTI_ACTIVITY_KIND_MEMSET       ..., bytes, memKind
//   CUPTI_ACTIVITY_KIND_SYNCHRONIZATION  start, end, deviceId, streamId, correlationId, syncType
//   CUPTI_ACTIVITY_KIND_RUNTIME      start, end, globalTid, correlationId, nameId
//   NVTX_EVENTS                      start, end, eventType, text, textId, globalTid
// A globalTid has the tid in its lowest 24 bits and the pid in the next 24.
#include "lanescope/format/nsys_sqlite/read_nsys_sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/codec/json_text.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {
namespace {

constexpr std::array kTables{"CUPTI_ACTIVITY_KIND_KERNEL",  "CUPTI_ACTIVITY_KIND_MEMCPY",
                             "CUPTI_ACTIVITY_KIND_MEMSET",  "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                             "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"};

// NVTX_EVENTS.eventType
constexpr std::int64_t kMark = 34, kPushPop = 59, kStartEnd = 60;

std::string_view copy_direction(std::int64_t kind) {  // CUpti_ActivityMemcpyKind
  constexpr std::array<std::string_view, 11> kNames{"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                    "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind > 0 && kind < std::ssize(kNames) ? kNames[static_cast<std::size_t>(kind)] : "";
}

// "cudaLaunchKernel_v7000" is cudaLaunchKernel in other traces.
std::string_view without_version(std::string_view name) {
  const std::size_t at = name.rfind("_v");
  if (at == std::string_view::npos || at + 2 == name.size()) return name;
  const std::string_view digits = name.substr(at + 2);
  // Names of the driver end in _v2 by themselves.
  const bool is_version =
      digits.size() >= 4 &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_version ? name.substr(0, at) : name;
}

Scalar number(std::int64_t value) { return {false, value, kNone<StringId>}; }

class Reader {
 public:
  explicit Reader(SqliteFile& file) : file_(file) {}
  Result<Trace> read(std::uint64_t file_bytes) {
    builder_.stats().input_bytes = builder_.stats().unpacked_bytes = file_bytes;
    read_texts();
    read_session();
    read_gpus();
    read_kernels();
    read_copies();
    read_sets();
    read_waits();
    read_calls();
    read_ranges();
    read_names();
    return std::move(builder_).finish();
  }

 private:
  using Take = std::function<void(const SqliteRow&)>;
  using Labels = std::unordered_map<std::int64_t, std::string>;

  void rows(const char* table, std::initializer_list<const char*> columns, const Take& take) {
    if (!file_.for_each_row(table, columns, take)) builder_.stats().count(ImportIssue::kEventLost);
  }

  void read_texts() {
    rows("StringIds", {"id", "value"}, [&](const SqliteRow& row) {
      if (const auto id = row.integer(0))
        texts_.try_emplace(*id, clean_text(row.text(1).value_or("")));
    });
  }
  // SQLite keeps any bytes as text.
  StringId clean_text(std::string_view text) {
    if (codec::is_utf8(text)) return builder_.intern(text);
    bool replaced = false;
    const std::string clean = codec::valid_utf8(text, &replaced);
    if (replaced) builder_.stats().count(ImportIssue::kInvalidUtf8);
    return builder_.intern(clean);
  }
  Labels labels(const char* table) {
    Labels found;
    rows(table, {"id", "label"}, [&](const SqliteRow& row) {
      if (row.integer(0) && row.text(1))
        found.try_emplace(*row.integer(0), codec::valid_utf8(*row.text(1)));
    });
    return found;
  }
  StringId text(std::optional<std::int64_t> id) {
    const auto found = id ? texts_.find(*id) : texts_.end();
    if (found != texts_.end()) return found->second;
    builder_.stats().count(ImportIssue::kMissingName);
    return builder_.intern("");
  }

  void read_session() {
    rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&](const SqliteRow& row) {
      if (const auto ns = row.integer(0)) builder_.set_base_time_ns(*ns);
    });
  }

  void read_gpus() {
    std::string json;
    rows("TARGET_INFO_GPU",
         {"cuDevice", "id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"},
         [&](const SqliteRow& row) {
           const auto id = row.integer(0) ? row.integer(0) : row.integer(1);
           if (!id || !row.text(2)) return;
           std::string name;
           const std::string_view model = *row.text(2);  // points into the row
           for (const char c : model)  // a name with other signs is no name of a GPU
             if (c >= ' ' && c <= '~' && c != '"' && c != '\\') name += c;
           json +=
               fmt::format("{}{{\"id\": {}, \"name\": \"{}\"", json.empty() ? "" : ", ", *id, name);
           constexpr std::array kKeys{"totalGlobalMem", "numSms", "computeMajor", "computeMinor"};
           for (int i = 0; i < std::ssize(kKeys); ++i)
             if (const auto value = row.integer(3 + i))
               json += fmt::format(", \"{}\": {}", kKeys[static_cast<std::size_t>(i)], *value);
           json += "}";
         });
    if (!json.empty()) builder_.add_metadata("deviceProperties", "[" + json + "]");
    builder_.add_metadata("recordedBy", "\"Nsight Systems\"");
  }

  // Arguments of the event that is read now.
  void arg(const char* name, std::optional<std::int64_t> value) {
    if (!value) return;
    const Key& key = key_of(name);
    builder_.args().add_int(key.text, key.known, *value);
  }
  // A literal of the code, so its place tells it. Each row has several.
  struct Key {
    const char* name;
    StringId text;
    ArgKey known;
  };
  const Key& key_of(const char* name) {
    for (const Key& key : keys_)
      if (key.name == name) return key;
    keys_.push_back({name, builder_.intern(name), arg_key(name)});
    return keys_.back();
  }
  CategoryId category_of(const char* name) {
    for (const auto& [known, category] : categories_)
      if (known == name) return category;
    return categories_.emplace_back(name, builder_.category(name)).second;
  }
  void dims(const char* name, const SqliteRow& row, int first) {
    const auto x = row.integer(first), y = row.integer(first + 1), z = row.integer(first + 2);
    if (!x || !y || !z) return;
    const StringId json = builder_.intern(fmt::format("[{}, {}, {}]", *x, *y, *z));
    const Key& key = key_of(name);
    builder_.args().add_json(key.text, key.known, json);
  }

  // Columns 0 to 5: start, end, device, stream, correlation, context.
  template <typename AddArgs>
  void add_device_slice(const SqliteRow& row, const char* category, StringId name,
                        const AddArgs& add_args) {
    const auto start = row.integer(0), end = row.integer(1);
    std::int64_t dur = 0;
    if (!start || !end || __builtin_sub_overflow(*end, *start, &dur)) return lose();
    builder_.args().begin();
    arg("device", row.integer(2));
    arg("context", row.integer(5));
    // Waits for all streams of a context are on none: -1, as torch.profiler writes it.
    const auto stream = row.integer(3) == std::int64_t{UINT32_MAX} ? -1 : row.integer(3);
    arg("stream", stream);
    arg("correlation", row.integer(4));
    add_args();
    const ArgsId args = builder_.args().end();
    const TrackId track =
        builder_.stream_track(number(row.integer(2).value_or(0)), number(stream.value_or(0)));
    builder_.add_slice(track, category_of(category), name, *start, dur, args);
  }
  void lose() {
    builder_.skip_event();
    builder_.stats().count(ImportIssue::kEventLost);
  }

  void read_kernels() {
    rows(kTables[0],
         {"start", "end", "deviceId", "streamId", "correlationId", "contextId", "demangledName",
          "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
          "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId"},
         [&](const SqliteRow& row) {
           const StringId name = text(row.integer(6) ? row.integer(6) : row.integer(7));
           add_device_slice(row, "kernel", name, [&] {
             arg("registers per thread", row.integer(14));
             std::int64_t shared = 0;
             if (row.integer(15) && row.integer(16) &&
                 !__builtin_add_overflow(*row.integer(15), *row.integer(16), &shared))
               arg("shared memory", shared);
             dims("grid", row, 8);
             dims("block", row, 11);
             if (row.integer(17).value_or(0) != 0) arg("graph node id", row.integer(17));
           });
         });
  }

  void read_copies() {
    const Labels kinds = labels("ENUM_CUDA_MEM_KIND");
    rows(kTables[1],
         {"start", "end", "deviceId", "streamId", "correlationId", "contextId", "bytes", "copyKind",
          "srcKind", "dstKind"},
         [&](const SqliteRow& row) {
           std::string name = "Memcpy";
           if (const auto way = copy_direction(row.integer(7).value_or(0)); !way.empty())
             name.append(" ").append(way);
           const auto from = kinds.find(row.integer(8).value_or(-1));
           const auto to = kinds.find(row.integer(9).value_or(-1));
           if (from != kinds.end() && to != kinds.end())
             name += " (" + from->second + " -> " + to->second + ")";
           add_device_slice(row, "gpu_memcpy", builder_.intern(name),
                            [&] { arg("bytes", row.integer(6)); });
         });
  }

  void read_sets() {
    const Labels kinds = labels("ENUM_CUDA_MEM_KIND");
    rows(kTables[2],
         {"start", "end", "deviceId", "streamId", "correlationId", "contextId", "bytes", "memKind"},
         [&](const SqliteRow& row) {
           const auto kind = kinds.find(row.integer(7).value_or(-1));
           const std::string name =
               kind == kinds.end() ? "Memset" : "Memset (" + kind->second + ")";
           add_device_slice(row, "gpu_memset", builder_.intern(name),
                            [&] { arg("bytes", row.integer(6)); });
         });
  }

  void read_waits() {
    const Labels types = labels("ENUM_CUPTI_SYNC_TYPE");
    rows(kTables[3],
         {"start", "end", "deviceId", "streamId", "correlationId", "contextId", "syncType"},
         [&](const SqliteRow& row) {
           const auto type = types.find(row.integer(6).value_or(-1));
           const std::string name = type == types.end() ? "Synchronize" : type->second;
           add_device_slice(row, "cuda_sync", builder_.intern(name), [] {});
         });
  }

  TrackId thread_of(std::int64_t global) {
    const std::int64_t known = global & 0xFFFFFFFFFFFF;
    if (!last_thread_ || last_thread_->first != known)
      last_thread_.emplace(known, builder_.thread_track(number((global >> 24) & 0xFFFFFF),
                                                        number(global & 0xFFFFFF)));
    return last_thread_->second;
  }
  struct Call {
    StringId name;
    bool is_driver;
  };
  Call call_of(std::optional<std::int64_t> id) {
    const auto known = id ? calls_.find(*id) : calls_.end();
    if (known != calls_.end()) return known->second;
    const std::string name(without_version(builder_.text(text(id))));
    const Call call{builder_.intern(name), name.starts_with("cu") && !name.starts_with("cuda")};
    // One that is missing is counted each time.
    if (id && texts_.contains(*id)) calls_.emplace(*id, call);
    return call;
  }

  void read_calls() {
    rows(kTables[4], {"start", "end", "globalTid", "correlationId", "nameId"},
         [&](const SqliteRow& row) {
           const auto start = row.integer(0), end = row.integer(1), thread = row.integer(2);
           std::int64_t dur = 0;
           if (!start || !end || !thread || __builtin_sub_overflow(*end, *start, &dur))
             return lose();
           const Call call = call_of(row.integer(4));
           builder_.args().begin();
           arg("correlation", row.integer(3));
           const ArgsId args = builder_.args().end();
           builder_.add_slice(thread_of(*thread),
                              category_of(call.is_driver ? "cuda_driver" : "cuda_runtime"),
                              call.name, *start, dur, args);
         });
  }

  void read_ranges() {
    struct Open {
      TrackId track;
      StringId name;
      std::int64_t start;
    };
    std::vector<Open> open;
    std::int64_t last = INT64_MIN;
    rows(kTables[5], {"start", "end", "eventType", "text", "textId", "globalTid"},
         [&](const SqliteRow& row) {
           const std::int64_t type = row.integer(2).value_or(0);
           if (type != kMark && type != kPushPop && type != kStartEnd) return;  // a domain, a name
           const auto start = row.integer(0), end = row.integer(1), thread = row.integer(5);
           std::int64_t dur = 0;
           if (!start || !thread || (end && __builtin_sub_overflow(*end, *start, &dur)))
             return lose();
           const StringId name = row.text(3) ? clean_text(*row.text(3)) : text(row.integer(4));
           const CategoryId category = category_of("user_annotation");
           last = std::max(last, end.value_or(*start));
           const TrackId track =
               type == kStartEnd
                   ? builder_.async_track(number((*thread >> 24) & 0xFFFFFF), "user_annotation",
                                          number(*thread & 0xFFFFFF))
                   : thread_of(*thread);
           if (type == kMark)
             builder_.add_instant(track, category, name, *start, 't', kNone<ArgsId>);
           else if (end)
             builder_.add_slice(track, category, name, *start, dur, kNone<ArgsId>);
           else
             open.push_back({track, name, *start});
         });
    for (const Open& range : open) {  // they last until the last range ends
      builder_.stats().count(ImportIssue::kOpenRange);
      std::int64_t dur = 0;
      if (__builtin_sub_overflow(last, range.start, &dur)) dur = 0;
      builder_.add_slice(range.track, builder_.category("user_annotation"), range.name, range.start,
                         std::max<std::int64_t>(dur, 0), kNone<ArgsId>);
    }
  }

  // Only of threads and processes with events: an export names all that ran on the machine.
  void read_names() {
    std::unordered_map<std::int64_t, TrackId> threads;   // by the low 48 bits of a globalTid
    std::unordered_map<std::int64_t, Scalar> processes;  // by pid
    for (std::size_t i = 0; i < builder_.tracks().size(); ++i) {
      const TrackId id{static_cast<std::uint32_t>(i)};
      const Track& track = builder_.tracks()[i];
      if (track.kind != TrackKind::kThread) continue;
      const Scalar pid = builder_.process_of(id).pid;
      threads.emplace(pid.number << 24 | track.tid.number, id);
      processes.emplace(pid.number, pid);
    }
    rows("ThreadNames", {"globalTid", "nameId"}, [&](const SqliteRow& row) {
      const auto found = threads.find(row.integer(0).value_or(-1) & 0xFFFFFFFFFFFF);
      if (found != threads.end() && row.integer(1))
        builder_.set_track_name(found->second, text(row.integer(1)));
    });
    rows("PROCESSES", {"pid", "name"}, [&](const SqliteRow& row) {
      const auto found = processes.find(row.integer(0).value_or(-1));
      if (found != processes.end() && row.text(1))
        builder_.set_process_name(found->second, clean_text(*row.text(1)));
    });
  }

  SqliteFile& file_;
  TraceBuilder builder_;
  std::unordered_map<std::int64_t, StringId> texts_;
  std::unordered_map<std::int64_t, Call> calls_;  // by the number of the text
  std::optional<std::pair<std::int64_t, TrackId>> last_thread_;
  std::vector<Key> keys_;
  std::vector<std::pair<const char*, CategoryId>> categories_;
};

}  // namespace

bool is_nsys_export(const SqliteFile& file) {
  return std::any_of(kTables.begin(), kTables.end(),
                     [&](const char* table) { return file.has_table(table); });
}

Result<Trace> read_nsys_sqlite(SqliteFile& file, std::uint64_t file_bytes) {
  return Reader(file).read(file_bytes);
}

}  // namespace lanescope::format
