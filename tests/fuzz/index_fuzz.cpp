// Index files. An input is a JSON trace, whose index must give the same Trace, or the bytes of an
// index. Those are also tried with checksums made right, as a hostile writer would make them: what
// is then accepted must be safe to write, to analyse and to print. An index may have lanes, which are
// used only where they are exactly those of its trace.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check_trace.h"
#include "fuzz_support.h"
#include "json_mutator.h"
#include "lanescope/explain/facts.h"
#include "lanescope/format/index_file/index_helpers_test.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/trace_text.h"
#include "lanescope/view/frame.h"
#include "lanescope/view/kept_lanes.h"

namespace lanescope::fuzz {
namespace {

using namespace format::testing_index;

// Another number in a row, another row over this one, or another length of a section.
void change_section(std::string& text, const format::IndexSection& section, Random& random) {
  const std::size_t size = section.row_count * section.row_bytes;
  if (section.row_bytes == 0 || size / section.row_bytes != section.row_count || size == 0 ||
      section.offset > text.size() || size > text.size() - section.offset)
    return;
  char* const rows = text.data() + section.offset;
  const std::size_t row_bytes = std::min<std::size_t>(section.row_bytes, size);
  char* const row = rows + random.below(size / row_bytes) * row_bytes;
  if (random.one_in(4)) {
    std::memmove(row, rows + random.below(size / row_bytes) * row_bytes, row_bytes);
    return;
  }
  const std::uint64_t value = random.one_in(2) ? random.below(40) : random.edge();
  const std::size_t width = std::min<std::size_t>(row_bytes, random.pick({1, 2, 4, 8}));
  std::memcpy(row + random.below(row_bytes / width) * width, &value, width);
}

// An index with the lanes of its trace, as `lanescope index` writes it. Nothing: its times cannot be
// one recording.
std::optional<std::string> text_with_lanes(const Trace& trace) {
  const auto facts = explain::gather_facts(trace);
  if (!facts) return std::nullopt;
  const view::Lanes lanes(*facts);
  const view::KeptLanes made = view::keep_lanes(lanes);
  std::vector<format::KeptSection> kept;
  for (const view::LaneSection& section : made.sections)
    kept.push_back({std::string(section.name), section.row_bytes, section.rows});
  return index_text(trace, {}, kept);
}

std::string mutate_index(std::string_view input, Random& random) {
  if (!format::is_index(input)) {
    if (random.one_in(3)) return mutate_json(input, random);
    const auto trace = format::read_trace_bytes(input, small_reads());
    if (!trace) return mutate_json(input, random);
    const auto text = random.one_in(2) ? text_with_lanes(*trace) : std::nullopt;
    return text ? *text : index_text(*trace);
  }
  std::string text(input);
  const auto sections = head_of(text).sections;
  for (std::size_t edits = 1 + random.below(4); edits > 0 && !sections.empty(); --edits) {
    const std::size_t number = random.below(sections.size());
    if (!random.one_in(16)) {
      change_section(text, sections[number], random);
      continue;
    }
    const std::uint64_t value = random.edge();
    const std::size_t field = 24 + 8 * random.below(3);  // offset, row_count, row_bytes
    std::memcpy(
        text.data() + sizeof(format::IndexHeader) + number * sizeof(format::IndexSection) + field,
        &value, sizeof(value));
  }
  if (random.one_in(32)) text.resize(random.below(text.size()));
  return text;
}

// Lanes in an index. What is not exactly what the trace gives is not used; what is, answers alike.
void check_lanes(const Trace& trace, const std::vector<format::KeptSection>& kept,
                 const std::shared_ptr<const void>& owner) {
  std::vector<view::LaneSection> sections;
  for (const format::KeptSection& each : kept)
    sections.push_back({each.name, each.row_bytes, each.rows});
  const auto facts = explain::gather_facts(trace);
  if (!facts) return;
  const view::Lanes made(*facts);
  const auto get_facts = [&]() -> const explain::Facts& { return *facts; };
  const auto taken = view::lanes_from(trace, get_facts, sections, owner);
  if (!view::are_sections_of(sections, made)) return;
  require(taken != nullptr, "lanes of a known form are taken");
  view::FrameRequest frame{
      0, std::max<std::int64_t>(1, made.end_ns() - made.origin_ns()), 1, {}, 0};
  frame.step_ns = std::max<std::int64_t>(1, frame.t1_ns / 1000);
  for (std::uint32_t i = 0; i < std::min<std::size_t>(made.lanes().size(), 64); ++i)
    frame.lanes.push_back(i);
  const auto a = view::make_frame(made, frame), b = view::make_frame(*taken, frame);
  require(a.has_value() == b.has_value(), "both draw it, or none does");
  if (a) require_equal(*a, *b, "kept lanes draw the same");
}

void check_bytes(std::string_view text) {
  const format::IndexBytes bytes = index_bytes(text);
  std::vector<format::KeptSection> kept;
  const auto trace = format::read_index(bytes, format::IndexCheck::kAll, &kept);
  if (trace && !kept.empty()) check_lanes(*trace, kept, bytes.owner);
  if (!trace) return require(!trace.error().message.empty(), "an error says what was found");
  const std::string written = format::kineto_json_text(*trace);
  require(format::read_trace_bytes(written, small_reads()).has_value(), "its JSON can be read",
          written);
  check_analyses(*trace, choice_of(text));
}

void check_index_of(const Trace& trace) {
  const std::string text = index_text(trace);
  const auto check =
      choice_of(text) % 2 == 0 ? format::IndexCheck::kAll : format::IndexCheck::kHeader;
  const auto again = read_text(text, check);
  require(again.has_value(), "what was read has an index",
          again ? std::string_view() : again.error().message);
  require_equal(testing::trace_text(trace), testing::trace_text(*again), "an index says the same");
  require_equal(text, index_text(*again), "an index of it is the same");
  if (const auto with_lanes = text_with_lanes(trace)) check_bytes(*with_lanes);
}

}  // namespace
}  // namespace lanescope::fuzz

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_index)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const std::string_view input = fuzz::view(data, size);
  if (!format::is_index(input)) {
    const auto trace = format::read_trace_bytes(input, fuzz::small_reads());
    if (trace) fuzz::check_index_of(*trace);
    return 0;
  }
  fuzz::check_bytes(input);
  std::string sealed(input);
  format::testing_index::seal(sealed);
  fuzz::check_bytes(sealed);
  return 0;
}
