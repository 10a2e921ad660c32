// Fields after torch/csrc/distributed/c10d/FlightRecorder.hpp of torch 2.13 (dump version 2.10) and
// torch/distributed/flight_recorder/components/types.py. Older versions (from 2.0) lack some fields; the
// pickle has stack frames, which JSON has not.
#include "lanescope/ranks/flight_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "lanescope/base/json_value.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/pickle_reader.h"

namespace lanescope::ranks {
namespace {

constexpr std::size_t kLongestText = 200, kMostFrames = 64, kMostSizes = 64, kMostMembers = 16'384;
constexpr std::int64_t kMostElementsOfCall = std::int64_t{1} << 48;

// One value of a dump, whatever its form; "no value" is a value.
class JsonView {
 public:
  explicit JsonView(const JsonValue* value) : value_(value) {}
  JsonView find(std::string_view key) const {
    return JsonView(value_ == nullptr ? nullptr : value_->find(key));
  }
  bool is_list() const { return value_ != nullptr && value_->is_array(); }
  std::size_t size() const { return is_list() ? value_->items.size() : 0; }
  JsonView at(std::size_t i) const { return JsonView(&value_->items[i]); }
  std::optional<std::int64_t> integer() const {
    return value_ == nullptr ? std::nullopt : value_->integer;
  }
  std::optional<bool> boolean() const {
    if (value_ == nullptr || value_->kind != JsonValue::Kind::kBool) return std::nullopt;
    return value_->boolean;
  }
  std::string text() const { return value_ == nullptr ? std::string() : value_->text; }
  template <class Visit>
  void each_member(Visit visit) const {
    if (value_ != nullptr)
      for (const auto& [key, member] : value_->members) visit(key, JsonView(&member));
  }

 private:
  const JsonValue* value_;
};

class PickleView {
 public:
  PickleView(const PickleData* data, std::optional<PickleId> id) : data_(data), id_(id) {}
  PickleView find(std::string_view key) const {
    return {data_, id_ ? data_->find(*id_, key) : std::nullopt};
  }
  bool is_list() const { return id_ && (*data_)[*id_].kind == PickleNode::Kind::kList; }
  std::size_t size() const { return is_list() ? (*data_)[*id_].items.size() : 0; }
  PickleView at(std::size_t i) const { return {data_, (*data_)[*id_].items[i]}; }
  std::optional<std::int64_t> integer() const {
    if (!id_ || (*data_)[*id_].kind != PickleNode::Kind::kInteger) return std::nullopt;
    return (*data_)[*id_].integer;
  }
  std::optional<bool> boolean() const {
    if (!id_ || (*data_)[*id_].kind != PickleNode::Kind::kBool) return std::nullopt;
    return (*data_)[*id_].integer != 0;
  }
  std::string text() const { return id_ ? (*data_)[*id_].text : std::string(); }
  template <class Visit>
  void each_member(Visit visit) const {
    if (!id_ || (*data_)[*id_].kind != PickleNode::Kind::kDict) return;
    const auto& items = (*data_)[*id_].items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      visit((*data_)[items[i]].text, PickleView(data_, items[i + 1]));
  }

 private:
  const PickleData* data_;
  std::optional<PickleId> id_;
};

std::string short_text(std::string text) {
  if (text.size() > kLongestText) text.resize(kLongestText);
  return text;
}

// "[0, 1, 2]".
std::vector<std::int64_t> ranks_of(std::string_view text) {
  std::vector<std::int64_t> ranks;
  const auto list = parse_json(text);
  if (!list || !list->is_array() || list->items.size() > kMostMembers) return ranks;
  for (const JsonValue& item : list->items)
    if (item.integer && *item.integer >= 0) ranks.push_back(*item.integer);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

// Elements of all tensors: the sum of the products of their sizes.
template <class View>
std::int64_t elements_of(const View& sizes) {
  if (!sizes.is_list() || sizes.size() == 0 || sizes.size() > kMostMembers) return -1;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const View tensor = sizes.at(i);
    std::int64_t product = 1;
    for (std::size_t d = 0; d < std::min(tensor.size(), kMostSizes); ++d) {
      const std::int64_t size = tensor.at(d).integer().value_or(-1);
      if (size < 0 || (size > 0 && product > kMostElementsOfCall / size)) return -1;
      product *= size;
    }
    all += product;
    if (all > kMostElementsOfCall) return -1;
  }
  return all;
}

bool is_torch_frame(std::string_view file) {
  return file.find("/torch/") != std::string_view::npos || file.empty();
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

// "dump_3", "dump_3.json": PyTorch appends the rank to the name that the user chose.
std::optional<std::int64_t> number_at_end(std::string_view name) {
  if (name.ends_with(".json")) name.remove_suffix(5);
  const auto before = name.find_last_not_of("0123456789");
  const std::string_view digits = before == std::string_view::npos ? name : name.substr(before + 1);
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (digits.empty() || digits.size() > 9 || error != std::errc()) return std::nullopt;
  return rank;
}

template <class View>
class DumpReader {
 public:
  DumpReader(View root, std::string file) : root_(root) { dump_.file = std::move(file); }

  Result<FlightDump> run() {
    const View entries = root_.find("entries");
    dump_.version = short_text(root_.find("version").text());
    if (!entries.is_list() && dump_.version.empty())
      return Error{Errc::kCorruptInput,
                   "expected a flight-recorder dump with \"version\" and \"entries\", found other "
                   "data"};
    dump_.rank = rank_in_name(dump_.file);
    if (!dump_.rank) dump_.rank = number_at_end(base_name(dump_.file));
    if (entries.size() > kMostDumpCalls)
      return Error{Errc::kLimit, fmt::format("expected at most {} calls in the dump, found {}",
                                             kMostDumpCalls, entries.size())};
    root_.find("pg_config").each_member([&](const std::string& key, const View& group) {
      const std::vector<std::int64_t> ranks = ranks_of(group.find("ranks").text());
      const std::string description = group.find("desc").text();
      configured_[key] = ranks;
      if (!description.empty()) described_[description] = ranks;
      if (ranks.size() > widest_.size()) widest_ = ranks;
    });
    for (std::size_t i = 0; i < entries.size(); ++i) add(entries.at(i), i == 0);
    return std::move(dump_);
  }

 private:
  std::size_t group_of(const View& entry) {
    const View pair = entry.find("process_group");
    const bool has_two = pair.is_list() && pair.size() == 2;
    std::string name =
        has_two ? pair.at(0).text() : fmt::format("{}", entry.find("pg_id").integer().value_or(-1));
    std::string description = has_two ? pair.at(1).text() : std::string();
    const auto [at, is_new] =
        groups_.try_emplace(std::pair(name, description), dump_.groups.size());
    if (!is_new) return at->second;
    FlightGroup group{short_text(name), short_text(description), {}};
    if (const auto found = configured_.find(name); found != configured_.end())
      group.ranks = found->second;
    else if (const auto by_text = described_.find(description); by_text != described_.end())
      group.ranks = by_text->second;
    else if (description == "default_pg")
      group.ranks = widest_;  // Gloo's configuration has no names
    dump_.groups.push_back(std::move(group));
    return at->second;
  }

  void add(const View& entry, bool is_first) {
    FlightCall call;
    std::string name = entry.find("profiling_name").text();
    if (name.empty() || dump_.groups.size() > kMostMembers) {
      ++dump_.skipped;
      return;
    }
    const bool is_gloo = name.starts_with("gloo:");
    const std::size_t colon = name.find(':');
    call.name = short_text(colon < 12 ? name.substr(colon + 1) : name);
    call.group = group_of(entry);
    call.point_to_point = entry.find("is_p2p").boolean().value_or(false);
    // Before version 2.2 there was one number for both.
    auto sequence = entry.find(call.point_to_point ? "p2p_seq_id" : "collective_seq_id").integer();
    if (!sequence) sequence = entry.find("seq_id").integer();
    call.sequence = sequence.value_or(-1);
    call.in_elements = elements_of(entry.find("input_sizes"));
    call.out_elements = elements_of(entry.find("output_sizes"));
    for (const char* types : {"input_dtypes", "output_dtypes"})
      if (const View list = entry.find(types); call.dtype.empty() && list.size() > 0)
        call.dtype = short_text(list.at(0).text());
    read_state(entry, is_gloo, call);
    call.created_ns = entry.find("time_created_ns").integer().value_or(0);
    call.place = place_of(entry.find("frames"));
    if (is_first) dump_.is_whole = entry.find("record_id").integer().value_or(-1) == 0;
    dump_.calls.push_back(std::move(call));
  }

  // Gloo never says "completed", but retires what has ended. NCCL also retires what the watchdog gave up.
  static void read_state(const View& entry, bool is_gloo, FlightCall& call) {
    const std::string state = entry.find("state").text();
    const bool retired = entry.find("retired").boolean().value_or(false);
    const bool started = entry.find("time_discovered_started_ns").integer().value_or(0) > 0;
    if (state == "completed" || (is_gloo && retired))
      call.state = CallState::kCompleted;
    else if (state == "started" || started)
      call.state = CallState::kStarted;
    call.timed_out = retired && call.state != CallState::kCompleted;
  }

  static std::string place_of(const View& frames) {
    for (std::size_t i = 0; i < std::min(frames.size(), kMostFrames); ++i) {
      const View frame = frames.at(i);
      const std::string file = frame.find("filename").text();
      const auto line = frame.find("line").integer();
      if (is_torch_frame(file) || !line) continue;
      return short_text(
          fmt::format("{} ({}:{})", frame.find("name").text(), base_name(file), *line));
    }
    return {};
  }

  View root_;
  FlightDump dump_;
  std::map<std::string, std::vector<std::int64_t>> configured_, described_;
  std::vector<std::int64_t> widest_;
  std::map<std::pair<std::string, std::string>, std::size_t> groups_;
};

}  // namespace

std::string FlightCall::text() const {
  const std::int64_t most = std::max(in_elements, out_elements);
  if (most < 0) return name;
  return fmt::format("{} of {} {}", name, most, dtype.empty() ? "elements" : dtype);
}

bool looks_like_dump(std::string_view head) {
  if (is_pickle(head)) return true;
  const std::string_view begin = head.substr(0, 4096);
  const auto first = begin.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && begin[first] == '{' &&
         begin.find("\"traceEvents\"") == std::string_view::npos &&
         (begin.find("\"entries\"") != std::string_view::npos ||
          begin.find("\"pg_config\"") != std::string_view::npos ||
          begin.find("\"comm_lib_version\"") != std::string_view::npos);
}

Result<FlightDump> read_flight_dump(std::string_view bytes, std::string file) {
  if (bytes.size() > kMostDumpBytes)
    return Error{Errc::kLimit, fmt::format("expected a dump of at most {} MiB, found {}",
                                           kMostDumpBytes >> 20, bytes.size() >> 20)};
  if (is_pickle(bytes)) {
    const Result<PickleData> read = read_pickle(bytes);
    if (!read) {
      Error error = read.error();
      if (error.code == Errc::kUnsupported)
        error.message += "; write JSON instead: torch._C._distributed_c10d._dump_fr_trace_json()";
      return error;
    }
    const PickleData& data = *read;
    return DumpReader<PickleView>(PickleView(&data, data.root), std::move(file)).run();
  }
  const std::optional<JsonValue> json = parse_json(bytes);
  if (!json)
    return Error{Errc::kCorruptInput, "expected a pickle or JSON, found neither (was it cut?)"};
  return DumpReader<JsonView>(JsonView(&*json), std::move(file)).run();
}

}  // namespace lanescope::ranks
