#include "lanescope/server/saved_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/tour.h"
#include "lanescope/server/assets.h"
#include "lanescope/view/area.h"

namespace lanescope::server {
namespace {

constexpr std::size_t kWholeTraceSlices = 100'000;
constexpr std::size_t kMostEvents = 400, kMostEventBytes = std::size_t{6} << 20,
                      kNamesWithEvents = 150;
constexpr std::size_t kMostSavedGaps = 10'000;
constexpr std::size_t kMostCounterCells = 4096;

std::string base64(std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// "sha256-..." of a policy, from the digest as hex.
std::string policy_hash(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return "sha256-" + base64(bytes);
}

Result<std::string> gzipped(std::string_view text) {
  std::string packed;
  auto sink = codec::pack_into(codec::string_sink(packed), codec::Packing::kGzip, 6);
  if (!sink) return sink.error();
  if (const auto written = (*sink)->write(text); !written) return written.error();
  if (const auto finished = (*sink)->finish(); !finished) return finished.error();
  sink->reset();
  return packed;
}

void append_number(std::string& out, std::int64_t value) { out += fmt::format("{},", value); }

// Comma-separated numbers with one comma too many, as a JSON list.
std::string list_of(std::string numbers) {
  if (!numbers.empty()) numbers.pop_back();
  return "[" + numbers + "]";
}

class SavedData {
 public:
  SavedData(const TraceState& state, const Span& span)
      : state_(state), trace_(state.trace()), span_(span) {}

  std::string json(std::string_view version) {
    const std::int64_t origin = state_.lanes().origin_ns();
    std::string rows, counters;
    const auto& lanes = state_.lanes().lanes();
    for (std::uint32_t number = 0; number < lanes.size(); ++number) {
      if (lanes[number].kind == view::LaneKind::kCounter) add_counter(number, counters);
      for (std::uint32_t row = 0; row < lanes[number].row_count; ++row) add_row(number, row, rows);
    }
    std::string events = this->events();
    std::string out = fmt::format(R"({{"saved":1,"t0":{},"t1":{},"answers":{{)",
                                  span_.start_ns - origin, span_.end_ns - origin);
    out += "\"/api/meta\":" + meta_answer({&state_}, 1, false, version);
    if (state_.lanes().steps().size() > kMostListedSteps)
      out += ",\"/api/steps\":" + steps_within(state_, span_);
    out += ",\"/api/explain?trace=0\":" + explain_answer(state_);
    out += ",\"/api/gaps?trace=0\":" + gaps_answer(state_, true, kMostSavedGaps);
    out += ",\"/api/tour?trace=0\":" + tour_answer(state_);
    out += ",\"/api/memory?trace=0\":" + memory_answer(state_);
    out += "},\"names\":" + names() + ",\"links\":" + links() +
           ",\"rows\":" + list_of(std::move(rows)) +
           ",\"counters\":" + list_of(std::move(counters)) + ",\"events\":{" + events + "}}";
    return out;
  }

 private:
  void add_row(std::uint32_t number, std::uint32_t row, std::string& rows) {
    const view::Lane& lane = state_.lanes().lanes()[number];
    const view::LevelIndex& index = state_.lanes().index();
    const auto [first, last] = index.range(lane.first_row + row, span_.start_ns, span_.end_ns);
    if (first >= last) return;
    const bool has_slices = view::Lanes::has_slices(lane.kind);
    std::string start, dur, slice, name, kind;
    std::int64_t before = state_.lanes().origin_ns(), id_before = 0;
    for (std::size_t i = first; i < last; ++i) {
      const view::LevelSlice each = index.slice(lane.first_row + row, i);
      append_number(start, each.start_ns - before);
      append_number(dur, each.dur_ns);
      append_number(slice, each.id - id_before);
      before = each.start_ns;
      id_before = each.id;
      if (has_slices) {
        const StringId own = trace_.slices().name[each.id];
        names_.insert(raw(own));
        slices_.push_back(each.id);
        append_number(name, raw(own));
        append_number(kind, static_cast<int>(state_.lanes().kind(SliceId{each.id})));
      } else if (lane.kind == view::LaneKind::kIdle) {
        append_number(kind, static_cast<int>(state_.lanes().idle_cause(each.id)));
      } else {
        append_number(kind, static_cast<int>(view::TimeKind::kAnnotation));
      }
    }
    rows +=
        fmt::format(R"({{"lane":{},"row":{},"start":{},"dur":{},"slice":{},"name":{},"kind":{}}},)",
                    number, row, list_of(std::move(start)), list_of(std::move(dur)),
                    list_of(std::move(slice)), list_of(std::move(name)), list_of(std::move(kind)));
  }

  void add_counter(std::uint32_t number, std::string& counters) const {
    const auto& series = state_.lanes().counter(state_.lanes().lanes()[number]);
    std::int64_t step = 1;
    while ((span_.end_ns - span_.start_ns) / step > static_cast<std::int64_t>(kMostCounterCells))
      step *= 2;
    std::string time, value;
    std::int64_t before = state_.lanes().origin_ns();
    for (const view::CounterCell& cell : series.cells(span_.start_ns, span_.end_ns, step)) {
      append_number(time, cell.start_ns - before);
      if (std::isnan(cell.last))
        value += "null,";  // unknown from here on
      else
        value += fmt::format("{},", cell.largest);
      before = cell.start_ns;
    }
    if (!time.empty())
      counters += fmt::format(R"({{"lane":{},"time":{},"value":{}}},)", number,
                              list_of(std::move(time)), list_of(std::move(value)));
  }

  std::string names() const {
    std::string out;
    for (const std::uint32_t id : names_)
      out += fmt::format(R"({{"id":{},"short":"{}","full":"{}"}},)", id,
                         report::json_escaped(short_name(state_, StringId{id})),
                         report::json_escaped(full_name(state_, StringId{id})));
    return list_of(std::move(out));
  }

  std::string links() {
    std::sort(slices_.begin(), slices_.end());
    std::string out;
    for (const std::uint32_t slice : slices_) {
      const SliceId launch = state_.facts().links.launch_of[slice];
      if (launch == kNone<SliceId> ||
          !std::binary_search(slices_.begin(), slices_.end(), raw(launch)))
        continue;
      append_number(out, raw(launch));
      append_number(out, slice);
    }
    return list_of(std::move(out));
  }

  bool is_inside(SliceId slice) const {
    return slice != kNone<SliceId> && trace_.start_ns(slice) < span_.end_ns &&
           trace_.end_ns(slice) >= span_.start_ns;
  }

  // Full answers for what findings and the tour point to, and for the longest of each name.
  std::string events() const {
    std::vector<SliceId> wanted;
    for (const auto& finding : state_.explanation().findings)
      for (const auto& each : finding.evidence) wanted.push_back(each.slice);
    for (const auto& stop : report::make_tour(state_.lanes(), state_.explanation())) {
      wanted.push_back(stop.slice);
      if (stop.arrow) wanted.push_back(stop.arrow->first);
    }
    view::AreaRequest area{span_.start_ns, span_.end_ns, {}};
    for (std::uint32_t i = 0; i < state_.lanes().lanes().size(); ++i) area.lanes.push_back(i);
    const view::Area sum = view::sum_area(state_.lanes(), area, &state_.facts());
    for (std::size_t i = 0; i < std::min(sum.names.size(), kNamesWithEvents); ++i)
      wanted.push_back(sum.names[i].longest);
    std::set<std::uint32_t> seen;
    std::string out;
    for (const SliceId slice : wanted) {
      if (!is_inside(slice) || seen.size() >= kMostEvents || out.size() > kMostEventBytes ||
          !seen.insert(raw(slice)).second)
        continue;
      out +=
          fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", raw(slice), event_json(state_, slice));
    }
    return out;
  }

  const TraceState& state_;
  const Trace& trace_;
  Span span_;
  std::set<std::uint32_t> names_;
  std::vector<std::uint32_t> slices_;
};

std::size_t slices_within(const TraceState& state, const Span& span) {
  std::size_t count = 0;
  for (std::size_t row = 0; row < state.lanes().index().row_count(); ++row) {
    const auto [first, last] = state.lanes().index().range(row, span.start_ns, span.end_ns);
    count += last - first;
  }
  return count;
}

// Replaces the one element that begins with `begin` and ends with `end`. False: it is not there.
bool replace_element(std::string& html, std::string_view begin, std::string_view end,
                     const std::string& with) {
  const std::size_t from = html.find(begin);
  if (from == std::string::npos) return false;
  const std::size_t to = html.find(end, from);
  if (to == std::string::npos) return false;
  html.replace(from, to + end.size() - from, with);
  return true;
}

}  // namespace

Span usual_saved_span(const TraceState& state) {
  Span whole{state.lanes().origin_ns(), state.lanes().end_ns() + 1, true};
  if (slices_within(state, whole) <= kWholeTraceSlices) return whole;
  if (const auto typical = state.lanes().summary().typical_step) {
    const view::LaneStep& step = state.lanes().steps()[*typical];
    const Span span{
        std::min(step.start_ns, step.device_start_ns),
        std::max(step.start_ns + step.dur_ns, step.device_start_ns + step.device_dur_ns) + 1,
        false};
    if (slices_within(state, span) <= kMostSavedSlices) return span;
  }
  Span begin = whole;
  begin.is_whole = false;
  while (slices_within(state, begin) > kWholeTraceSlices && begin.end_ns - begin.start_ns > 1)
    begin.end_ns = begin.start_ns + (begin.end_ns - begin.start_ns) / 2;
  return begin;
}

Answer saved_page(const TraceState& state, const Span& span, std::string_view version) {
  const Asset* index = nullptr;
  const Asset* script = nullptr;
  const Asset* style = nullptr;
  for (const Asset& asset : page_assets()) {
    if (asset.path == "index.html") index = &asset;
    if (asset.path.ends_with(".js")) script = &asset;
    if (asset.path.ends_with(".css")) style = &asset;
  }
  if (!index || !script || !style)
    return Error{Errc::kUnavailable,
                 "this lanescope was built without its page; install Node.js (Debian: apt-get "
                 "install nodejs npm) and build again"};
  if (const std::size_t count = slices_within(state, span); count > kMostSavedSlices)
    return Error{
        Errc::kLimit,
        fmt::format(
            "the range has {} events, and a page can hold 2,000,000; choose a smaller range",
            count)};
  const Result<std::string> packed = gzipped(SavedData(state, span).json(version));
  if (!packed) return packed.error();
  std::string html(index->bytes);
  const std::string policy = fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; "
      "style-src '{}'; img-src data: blob:; base-uri 'none'; form-action 'none'\">",
      policy_hash(script->sha256), policy_hash(style->sha256));
  const bool whole = replace_element(html, "<link rel=\"stylesheet\"", ">",
                                     policy + "<style>" + std::string(style->bytes) + "</style>") &&
                     replace_element(html, "<script type=\"module\"", "</script>",
                                     "<script type=\"text/plain\" id=\"lanescope-saved\">" +
                                         base64(*packed) + "</script>\n<script type=\"module\">" +
                                         std::string(script->bytes) + "</script>");
  if (!whole)
    return Error{Errc::kUnsupported, "the page of this lanescope has another form than expected"};
  return html;
}

}  // namespace lanescope::server
