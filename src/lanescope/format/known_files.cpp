// Idea: first the bytes that a format begins with, then what is typical of its content, and only
// then the file's name. Each row says what to do instead, because the reader of the message holds
// the wrong file.
#include "lanescope/format/known_files.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lanescope::format {
namespace {

constexpr const char* kUnpack = "unpack it and give the trace that is inside";
constexpr const char* kUnpackOnce = "unpack it once first";
constexpr const char* kGiveTrace =
    "give the trace that the profiler exported, for example with prof.export_chrome_trace()";
constexpr const char* kRecordAgain =
    "record the program with torch.profiler or lanescope record, and give that trace";
constexpr const char* kNsight =
    "open it with Nsight Systems; for lanescope, give the file of nsys export --type sqlite, not "
    "packed, or record the program with torch.profiler or lanescope record";
constexpr const char* kRocm =
    "on ROCm, record with torch.profiler: lanescope reads the trace that it exports";

struct Magic {
  std::size_t at;
  std::string_view bytes;
  const char* found;
  const char* advice;
};
constexpr Magic kMagics[] = {
    {0, {"\x1f\x8b", 2}, "gzip inside gzip", kUnpackOnce},
    {0, {"\x28\xb5\x2f\xfd", 4}, "zstd inside a compressed file", kUnpackOnce},
    {0, {"\xfd\x37zXZ\0", 6}, "an xz file", kUnpack},
    {0, {"BZh", 3}, "a bzip2 file", kUnpack},
    {0, {"\x04\x22\x4d\x18", 4}, "an lz4 file", kUnpack},
    {0, {"7z\xbc\xaf\x27\x1c", 6}, "a 7z archive", kUnpack},
    {257, {"ustar", 5}, "a tar archive", kUnpack},
    {0,
     {"NVR\0", 4},
     "a report of Nsight Compute (.ncu-rep)",
     "open it with Nsight Compute; lanescope reads timelines of torch.profiler and its own"},
    {0, {"PERFILE2", 8}, "a recording of Linux perf (perf.data)", kRecordAgain},
    {0, {"\x93NUMPY", 6}, "a NumPy array (.npy)", kGiveTrace},
    {0, {"\x89HDF\r\n\x1a\n", 8}, "an HDF5 file", kGiveTrace},
    {0, {"PAR1", 4}, "a Parquet file", kGiveTrace},
    {0,
     {"LSINDEX\n", 8},
     "an index of lanescope",
     "give the trace that it is of: the same name without .lanescope"},
    {0,
     {"\x7f\x45LF", 4},
     "a program (ELF)",
     "record it: lanescope record -- PROGRAM; then give the trace that it leaves"},
    {0, {"\x89PNG", 4}, "a PNG picture", kGiveTrace},
    {0, {"%PDF", 4}, "a PDF document", kGiveTrace},
};

bool is_blank_byte(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 && !is_blank_byte(c); }
bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<KnownFile> by_magic(std::string_view head) {
  for (const Magic& magic : kMagics)
    if (head.size() >= magic.at + magic.bytes.size() &&
        head.substr(magic.at, magic.bytes.size()) == magic.bytes)
      return KnownFile{magic.found, magic.advice};
  return std::nullopt;
}

std::optional<KnownFile> zip_archive(std::string_view head) {
  if (!head.starts_with("PK\x03\x04") && !head.starts_with("PK\x05\x06")) return std::nullopt;
  const std::string_view first_name = head.substr(std::min<std::size_t>(30, head.size()), 64);
  if (contains(first_name, ".npy")) return KnownFile{"a NumPy archive (.npz)", kGiveTrace};
  if (contains(first_name, "data.pkl"))
    return KnownFile{"a file of torch.save (a zip archive)", kGiveTrace};
  return KnownFile{"a zip archive", kUnpack};
}

// The first tables that the schema names, as far as the head has it: "users, orders". They are a
// stranger's, so only plain names are shown.
std::string table_names(std::string_view head) {
  constexpr std::string_view kCreate = "CREATE TABLE ";
  constexpr std::size_t kMostTables = 5, kLongest = 40;
  std::string names;
  std::size_t count = 0;
  for (std::size_t at = head.find(kCreate); at != std::string_view::npos && count < kMostTables;
       at = head.find(kCreate, at)) {
    at += kCreate.size();
    std::string_view name = head.substr(at, kLongest + 2);
    if (!name.empty() && (name[0] == '"' || name[0] == '\'' || name[0] == '`'))
      name.remove_prefix(1);
    const auto is_plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto length = static_cast<std::size_t>(
        std::find_if_not(name.begin(), name.end(), is_plain) - name.begin());
    if (length == 0 || length > kLongest) continue;
    names.append(names.empty() ? "" : ", ").append(name.substr(0, length));
    ++count;
  }
  return names;
}

// The schema names the tables; that of a large export is not on the first page.
std::optional<KnownFile> sqlite_database(std::string_view head) {
  if (!head.starts_with(std::string_view("SQLite format 3\0", 16))) return std::nullopt;
  if (contains(head, "rocpd_")) return KnownFile{"an SQLite database of rocprof (rocpd)", kRocm};
  if (contains(head, "CUPTI_ACTIVITY_KIND") || contains(head, "NSYS"))
    return KnownFile{"an SQLite database of Nsight Systems", kNsight};
  if (contains(head, "CANN_API") || contains(head, "RANK_DEVICE_MAP"))
    return KnownFile{"an SQLite database of the Ascend PyTorch Profiler (.db)",
                     "give the trace_view.json of the same recording"};
  if (contains(head, "CREATE TABLE \"stack_frame\"") || contains(head, "CREATE TABLE stack_frame"))
    return KnownFile{"an SQLite database that lanescope convert wrote (tables of a trace)",
                     "ask it with sqlite3; for lanescope, give the trace that it was made from"};
  const std::string tables = table_names(head);
  return KnownFile{
      tables.empty()
          ? "an SQLite database that is not known to be a profiler's"
          : "an SQLite database that is not known to be a profiler's (tables " + tables + ")",
      "lanescope reads those that nsys export --type sqlite writes; " + std::string(kRecordAgain)};
}

std::optional<KnownFile> pickle(std::string_view head) {
  if (head.size() < 2 || head[0] != '\x80' || head[1] < 2 || head[1] > 5) return std::nullopt;
  if (contains(head.substr(0, 256), "segments") || contains(head, "device_traces"))
    return KnownFile{"a memory snapshot of PyTorch (a pickle)",
                     "open it at pytorch.org/memory_viz; for lanescope memory, record with "
                     "profile_memory=True and give that trace"};
  return KnownFile{"a Python pickle", kGiveTrace};
}

// --- protobuf

// Nothing: no varint of at most 10 bytes.
std::optional<std::uint64_t> take_varint(std::string_view* text) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < text->size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>((*text)[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    text->remove_prefix(i + 1);
    return value;
  }
  return std::nullopt;
}

// A tag of field 1 or 2 with a length, and bytes that no text has.
bool looks_like_protobuf(std::string_view head) {
  const std::string_view first = head.substr(0, 64);
  return head.size() > 2 && (head[0] == '\x0a' || head[0] == '\x12') &&
         std::any_of(first.begin(), first.end(), is_control);
}

// An XSpace is a list of planes (field 1) with a name (field 2) such as "/host:CPU".
bool is_xplane(std::string_view head) {
  return head.starts_with('\x0a') &&
         (contains(head.substr(0, 64), "/host:") || contains(head.substr(0, 64), "/device:") ||
          contains(head.substr(0, 64), "Task Environment"));
}

// Messages with their length in front; the first one has only the schema's version: "0.0.4".
bool is_chakra(std::string_view head) {
  std::string_view rest = head;
  const auto size = take_varint(&rest);
  return size && *size < 256 && rest.starts_with('\x0a') && rest.size() > 5 && rest[1] >= 5 &&
         static_cast<std::uint64_t>(rest[1]) + 2 <= *size && rest[2] >= '0' && rest[2] <= '9' &&
         rest[3] == '.';
}

std::optional<KnownFile> protobuf(std::string_view head) {
  if (is_xplane(head))
    return KnownFile{"an XPlane of JAX or TensorFlow (.xplane.pb, protobuf)",
                     "give the trace.json.gz that is next to it, if there is one"};
  if (is_chakra(head))
    return KnownFile{"a Chakra execution trace (.et, protobuf; it has no times of its own)",
                     kRecordAgain};
  if (looks_like_protobuf(head))
    return KnownFile{"binary data that looks like protobuf, and not like a Perfetto trace",
                     kGiveTrace};
  if (contains(head.substr(0, 64), "brain.Event:"))
    return KnownFile{"an event file of TensorBoard (tfevents)", kGiveTrace};
  return std::nullopt;
}

std::optional<KnownFile> by_name(std::string_view name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  if (ends(".nsys-rep") || ends(".qdrep") || ends(".qdstrm"))
    return KnownFile{"a report of Nsight Systems (by its name)", kNsight};
  if (ends(".pftrace") || ends(".perfetto-trace"))
    return KnownFile{"a file with the name of a Perfetto trace that does not begin like one",
                     "record it again, or give the JSON that the profiler exported"};
  return std::nullopt;
}

// --- text

std::optional<KnownFile> html_page(std::string_view text) {
  std::string lower(text.substr(0, 16));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (!lower.starts_with("<!doctype") && !lower.starts_with("<html")) return std::nullopt;
  if (contains(text.substr(0, 512), "Memory Timeline"))
    return KnownFile{"a memory timeline of torch (HTML with a picture)",
                     "look at it in a browser; lanescope memory reads the trace of the same run"};
  return KnownFile{"an HTML page (a failed download?)", kGiveTrace};
}

std::optional<KnownFile> rocprof_table(std::string_view line) {
  for (const char* column :
       {"\"Start_Timestamp\"", "\"TotalDurationNs\"", "\"Agent_Id\"", "\"KernelName\""})
    if (contains(line, column)) return KnownFile{"a table of rocprof (CSV)", kRocm};
  return std::nullopt;
}

KnownFile other_bytes(std::string_view head) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string bytes;
  for (const char c : head.substr(0, 8)) {
    bytes += bytes.empty() ? "" : " ";
    bytes.push_back(kHex[static_cast<unsigned char>(c) >> 4]);
    bytes.push_back(kHex[static_cast<unsigned char>(c) & 15]);
  }
  return {"binary data (first bytes " + bytes + ")", kGiveTrace};
}

KnownFile text_file(std::string_view head) {
  std::string_view text = head;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty() && is_blank_byte(text[0])) text.remove_prefix(1);
  if (text.empty()) return {"nothing but blanks", kRecordAgain};
  if (text[0] == '[')  // an array of events would have been read
    return {"a JSON array of lists of numbers (torch's export_memory_timeline writes such)",
            "give the trace of the same run to lanescope memory: prof.export_chrome_trace(), "
            "recorded with profile_memory=True"};
  if (const auto page = html_page(text)) return *page;
  const std::string_view start = text.substr(0, 64);
  if (std::any_of(start.begin(), start.end(), is_control)) return other_bytes(head);
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (const auto table = rocprof_table(line)) return *table;
  return {"text that is not JSON: \"" + std::string(line.substr(0, 40)) + "\"", kGiveTrace};
}

}  // namespace

KnownFile known_file(std::string_view head, std::string_view name) {
  if (head.empty())
    return {"an empty file (0 bytes)",
            "the program may have ended before its export was complete; record it again"};
  for (const auto known : {by_magic, zip_archive, sqlite_database, pickle})
    if (auto file = known(head)) return *std::move(file);
  auto named = by_name(name);
  if (auto file = protobuf(head)) {
    const bool is_certain = !contains(file->found, "looks like");
    return is_certain || !named ? *std::move(file) : *std::move(named);
  }
  if (named) return *std::move(named);
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    return {"UTF-16 text", "store it as UTF-8"};
  return text_file(head);
}

std::optional<KnownFile> known_json_object(std::span<const std::string> keys) {
  const auto has = [&](std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  if (has("nodes") && (has("schema") || has("start_ts")))
    return KnownFile{
        "a PyTorch or Chakra execution trace (operators as graph nodes, without times)",
        kRecordAgain};
  if (has("rocprofiler-sdk-tool")) return KnownFile{"the JSON of rocprofv3", kRocm};
  if (has("segments") && has("device_traces"))
    return KnownFile{"a memory snapshot of PyTorch",
                     "open it at pytorch.org/memory_viz; for lanescope memory, record with "
                     "profile_memory=True and give that trace"};
  if (has("$schema") && has("profiles"))
    return KnownFile{"a profile of speedscope", "open it at speedscope.app"};
  return std::nullopt;
}

}  // namespace lanescope::format
