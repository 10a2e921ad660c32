#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/analysis/roofline.h"
#include "lanescope/analysis/trace_info.h"
#include "lanescope/base/json_value.h"
#include "lanescope/explain/facts.h"
#include "lanescope/report/dispatch_tree_text.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/key_averages_table.h"
#include "lanescope/report/roofline_text.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/trace_info_text.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::report {
namespace {

using analysis::KeyAverage;
using analysis::KeyAverages;
using testing::Sketch;

KeyAverage row(const char* name, double cpu_us) {
  KeyAverage result;
  result.name = name;
  result.count = 1;
  result.cpu_time_total_us = result.self_cpu_time_total_us = cpu_us;
  return result;
}

TEST(TextFormatTest, TimesTakeTheUnitThatFits) {
  EXPECT_EQ(format_time_us(0), "0.000us");
  EXPECT_EQ(format_time_us(999.9994), "999.999us");
  EXPECT_EQ(format_time_us(1000), "1.000ms");
  EXPECT_EQ(format_time_us(1e6), "1.000s");
  EXPECT_EQ(format_time_us(-5000), "-5000.000us");  // torch's rule looks at the signed number
  EXPECT_EQ(format_time_ns(-5'000'000), "-5.000ms");
}

TEST(TextFormatTest, BytesAre1024BasedAndSigned) {
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(-2048), "-2.00 KB");
  EXPECT_EQ(format_bytes(3ll << 30), "3.00 GB");
  EXPECT_EQ(format_size(3ll << 30), "3.00 GiB");
  EXPECT_EQ(format_size(-2048), "-2.00 KiB");
  EXPECT_EQ(format_size(1934ll << 30), "1.89 TiB");
  EXPECT_EQ(format_size(12), "12 B");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(12), "12");
}

TEST(TextFormatTest, WidthsCountCodePoints) {
  EXPECT_EQ(text_length("gr\xC3\xBCn"), 4u);
  EXPECT_EQ(text_prefix("gr\xC3\xBCn", 3), "gr\xC3\xBC");
  EXPECT_EQ(text_suffix("gr\xC3\xBCn", 2), "\xC3\xBCn");
  EXPECT_EQ(pad_left("\xC3\xBC", 3), "  \xC3\xBC");
  EXPECT_EQ(shorten("abcdefgh", 6), "abc...");
}

TEST(TextFormatTest, WhatActsOnATerminalBecomesAQuestionMark) {
  EXPECT_EQ(one_line("a\nb\x1B[31m\x7F\t"), "a?b?[31m??");
  EXPECT_EQ(one_line("\xC2\x9B"  // U+009B, the C1 form of ESC [
                     "2J\x9B"),
            "?2J?");
  EXPECT_EQ(one_line("a\xE2\x80\xAE"  // U+202E turns the direction of writing
                     "b\xE2\x81\xA6\xE2\x80\xA8\xD8\x9C"),
            "a?b???");
  EXPECT_EQ(one_line("gr\xC3\xBCn \xE8\xA1\x8C\xF0\x9F\x9A\x80 \xE9"),  // also Latin-1
            "gr\xC3\xBCn \xE8\xA1\x8C\xF0\x9F\x9A\x80 \xE9");
  EXPECT_EQ(one_line("\xE2\x80"), "\xE2?");  // cut short
  EXPECT_EQ(wrapped("1. ", "bad\nname \x1B[2J"), "1. bad?name ?[2J\n");
}

TEST(JsonWriterTest, WritesTheEnvelopeAndEscapes) {
  JsonWriter json("table");
  json.text("na\"me", "a\\b\n\x01\xFFz")
      .integer("count", -3)
      .real("ratio", std::nan(""))
      .begin_array("rows");
  json.integer({}, std::numeric_limits<std::uint64_t>::max()).end_array();
  const std::string text = json.take();
  const auto value = parse_json(text);
  ASSERT_TRUE(value) << text;
  EXPECT_EQ(value->find("lanescope")->find("schema")->integer, 1);
  EXPECT_EQ(value->find("lanescope")->find("command")->text, "table");
  EXPECT_EQ(value->find("na\"me")->text, "a\\b\n\x01\xEF\xBF\xBDz");
  EXPECT_EQ(value->find("ratio")->kind, JsonValue::Kind::kNull);
  EXPECT_NE(text.find("18446744073709551615"), std::string::npos);
}

TEST(TableTest, UnknownSortKeysAreRefusedWithTheValidOnes) {
  const auto text = key_averages_text({}, {.sort_by = "cuda_tme"});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::kInvalidArgument);
  EXPECT_NE(text.error().message.find("'cuda_tme'"), std::string::npos);
  EXPECT_NE(text.error().message.find("self_cuda_time_total"), std::string::npos);
  for (const std::string_view key : table_sort_keys())
    EXPECT_TRUE(key_averages_text({}, {.sort_by = std::string(key)})) << key;
  EXPECT_FALSE(key_averages_text({}, {.max_name_column_width = 0}));
  EXPECT_FALSE(parse_time_unit("ns"));
}

TEST(TableTest, NoRowsGiveNoText) { EXPECT_EQ(*key_averages_text({}), ""); }

TEST(TableTest, EqualValuesKeepTheirOrderAndTheLimitCountsPrintedRows) {
  KeyAverages table;
  table.rows = {row("first", 2), row("second", 2), row("third", 5)};
  table.rows[2].is_top_level = table.rows[1].is_top_level = true;
  const std::string text = *key_averages_text(table, {.sort_by = "cpu_time_total", .row_limit = 2});
  EXPECT_LT(text.find("third"), text.find("first"));
  EXPECT_EQ(text.find("second"), std::string::npos);
  const std::string top =
      *key_averages_text(table, {.row_limit = 2, .top_level_events_only = true});
  EXPECT_EQ(top.find("first"), std::string::npos);
  EXPECT_NE(top.find("third"), std::string::npos);
  EXPECT_NE(text.find("Self CPU time total: 9.000us\n"),
            std::string::npos);  // of all rows, printed or not
}

TEST(TableTest, WithStacksAndFlopsTorchSwapsTwoColumns) {
  KeyAverages table;
  table.with_flops = true;
  table.rows = {row("aten::mm", 1)};
  table.rows[0].flops = 2'500'000;
  table.rows[0].stack = {"model.py(3): forward"};
  const std::string torch = *key_averages_text(table);
  EXPECT_LT(torch.find("Source Location"), torch.find("Total MFLOPs"));
  EXPECT_LT(torch.find("2.500"), torch.find("model.py"));  // the values are the other way round
  table.style = analysis::TableStyle::kLanescope;
  const std::string ours = *key_averages_text(table);
  EXPECT_LT(ours.find("Total MFLOPs"), ours.find("Source Location"));
}

TEST(TableTest, NamesOfStrangersKeepTheirLineAndLeaveTheTerminalAlone) {
  KeyAverages table;
  table.rows = {row("evil\x1B[2J\nname", 1), row("plain", 1)};
  table.rows[0].overload_name = "over\x07load";
  table.rows[0].input_shapes = "[[1\r]]";
  table.rows[0].stack = {"a.py(1): f", "b.py(2): \x1B]0;title\x07"};
  for (const analysis::TableStyle style :
       {analysis::TableStyle::kTorch, analysis::TableStyle::kLanescope}) {
    table.style = style;
    const std::string text = *key_averages_text(table);
    for (const char c : text) ASSERT_TRUE(c == '\n' || c >= ' ') << text;
    for (const char* shown :
         {"evil?[2J?name", "over?load", "[[1?]]", "b.py(2): ?]0;title?", "plain"})
      EXPECT_NE(text.find(shown), std::string::npos) << shown << text;
  }
}

TEST(InfoTextTest, ValuesOfStrangersStayOnTheirLine) {
  analysis::TraceInfo info = analysis::compute_trace_info(Sketch().trace());
  info.producer = "a\x1B[2J";
  info.producer_evidence = {"b\nc"};
  info.recorded_with = {"d\re"};
  const std::string text = trace_info_text(info);
  EXPECT_NE(text.find("written by  a?[2J; signs: b?c\n"), std::string::npos) << text;
  EXPECT_NE(text.find("d?e\n"), std::string::npos) << text;
}

// 600 ns of 2 x 400; a row whose calls lie inside each other has the share of the outer ones.
TEST(TableTest, SharesOfTheLanescopeStyleAreOfAWholeThatHoldsThem) {
  KeyAverages table;
  table.style = analysis::TableStyle::kLanescope;
  table.device = "cuda";
  table.rows = {row("outer", 10)};
  table.rows[0].cpu_time_total_us = 17;
  table.rows[0].cpu_time_union_ns = 10'000;
  table.rows[0].device_time_total_us = 1;
  table.device_busy_ns = 600'000;
  table.window_ns = 100'000;
  table.device_window_ns = 400'000;
  table.device_count = 2;
  const std::string text = *key_averages_text(table);
  EXPECT_NE(
      text.find("CUDA busy: 600.000us of 2 times 400.000us (the 100.000us window, and the work "
                "after it) (75.00%)"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("170.00%"), std::string::npos) << text;
  table.style = analysis::TableStyle::kTorch;
  EXPECT_NE(key_averages_text(table)->find("170.00%"), std::string::npos);  // as torch
}

TEST(TableTest, CsvQuotesWhatNeedsIt) {
  KeyAverages table;
  table.rows = {row("a \"b\", c", 1)};
  EXPECT_NE(key_averages_csv(table)->find("\r\n\"a \"\"b\"\", c\",,,,0,0,0,1,"), std::string::npos);
}

TEST(TreeTextTest, RowsOverTheLimitAreCounted) {
  const Trace trace = std::move(Sketch().op("a", 0, 10).op("b", 20, 10).op("c", 40, 10)).trace();
  const auto tree = analysis::compute_dispatch_tree(trace);
  ASSERT_TRUE(tree);
  const std::string text = dispatch_tree_text(*tree, {.max_rows = 1});
  EXPECT_NE(text.find("... 2 more rows"), std::string::npos) << text;
  EXPECT_EQ(text.find("\033["), std::string::npos);
  EXPECT_NE(dispatch_tree_text(*tree, {.color = true}).find("\033[1ma\033[0m"), std::string::npos);
}

// 3 x 64 MiB in 10 us are 20 TB/s; an H200's memory gives 4.8.
TEST(RooflineTextTest, SaysWhenARowIsFasterThanTheMemory) {
  const auto text = [](std::int64_t kernel_ns) {
    Sketch sketch;
    sketch.metadata("deviceProperties",
                    R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0,
                         "numSms": 132}])");
    sketch
        .op("aten::add", 0, 9000,
            {.input_dims = "[[4096, 4096], [4096, 4096]]", .input_types = R"(["float", "float"])"})
        .runtime("cudaLaunchKernel", 1000, 5000, {.correlation = 1})
        .kernel("add", 10'000, kernel_ns, {.correlation = 1});
    const Trace trace = sketch.trace();
    const auto facts = explain::gather_facts(trace);
    return roofline_text(
        *facts,
        analysis::compute_roofline(trace, facts->links, facts->nesting, facts->device().timeline,
                                   facts->steady_windows),
        10);
  };
  const std::string fast = text(10'000), slow = text(100'000);
  EXPECT_NE(fast.find("> peak"), std::string::npos) << fast;
  EXPECT_NE(fast.find("1 of the memory calls (10.000us) ran above the memory's peak"),
            std::string::npos)
      << fast;
  EXPECT_EQ(slow.find("peak:"), std::string::npos) << slow;
  EXPECT_NE(slow.find("41.9%"), std::string::npos) << slow;  // 201.3 MB / 4.8 TB/s = 41.9 us
}

// A few rules are named, many are counted.
TEST(ExplanationTextTest, EndsWithWhatElseWasChecked) {
  using State = explain::RuleRun::State;
  const Trace trace = Sketch().op("aten::mm", 0, 100).trace();
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  explain::Explanation explanation;
  const auto add = [&](const std::string& id, State state, const char* missing = "",
                       const char* covered_by = "") {
    explanation.runs.push_back({id, id + "?", state, missing, covered_by});
  };
  add("a", State::kCovered, "", "b");
  add("c", State::kQuiet);
  add("d", State::kNotChecked, "x");
  add("e", State::kNotChecked, "y");
  add("f", State::kNotChecked, "x");
  const std::string some = explanation_text(*facts, explanation);
  EXPECT_TRUE(
      some.ends_with("\nWhat else was checked\n"
                     "  part of another finding: a (by b)\n"
                     "  no issue, or below the threshold: c\n"
                     "  not checked: d, f; needs x\n"
                     "  not checked: e; needs y\n"))
      << some;
  for (int i = 0; i < 20; ++i) add("g" + std::to_string(i), State::kQuiet);
  const std::string many = explanation_text(*facts, explanation, {.markdown = true});
  EXPECT_TRUE(
      many.ends_with("\n## What else was checked\n\n"
                     "- part of another finding: a (by b)\n"
                     "- no issue, or below the threshold: 21 rules\n"
                     "- not checked: d, f; needs x\n"
                     "- not checked: e; needs y\n"
                     "- lanescope explain --all names every rule\n"))
      << many;
}

TEST(InfoTextTest, SaysWhatItDoesNotKnow) {
  const std::string text = trace_info_text(analysis::compute_trace_info(Sketch().trace()));
  EXPECT_NE(text.find("written by  unknown\n"), std::string::npos) << text;
  EXPECT_NE(text.find("steps       none"), std::string::npos);
  EXPECT_TRUE(parse_json(trace_info_json(analysis::compute_trace_info(Sketch().trace()))));
}

}  // namespace
}  // namespace lanescope::report
