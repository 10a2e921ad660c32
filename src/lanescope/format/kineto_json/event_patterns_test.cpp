// The tree itself, and that events read by way of it are what they are without it.
#include "lanescope/format/kineto_json/event_patterns.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <random>
#include <string>

#include "lanescope/codec/json_index.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

// {"ph":"X","ts":5,"args":{"a":1}}, its two values at the bytes and tokens counted here by hand.
constexpr std::string_view kEvent = R"({"ph":"X","ts":5,"args":{"a":1}})";
EventDraft two_values() {
  EventDraft draft;
  draft.phase = 'X';
  draft.values = {
      {ValueSlot::kTime, ArgKey::kCount, kNone<StringId>, 15, 16, 7, 8},
      {ValueSlot::kArg, ArgKey::kCount, StringId{3}, 29, 30, 14, 15},
  };
  return draft;
}
std::string padded(std::string_view text) {
  return std::string(text).append(codec::kJsonPadding, ' ');
}

TEST(EventPatternsTest, AnEventIsItsTextBetweenValues) {
  EventPatterns patterns;
  patterns.learn(two_values(), kEvent, 0, 32, 0, 17);
  const std::string other = padded(R"({"ph":"X","ts":7.125,"args":{"a":"b"}})");
  const char* const text = other.data();

  const std::uint32_t first = patterns.find(EventPatterns::kRoot, text, 38);
  ASSERT_NE(first, EventPatterns::kRoot);
  EXPECT_EQ(patterns.edge(first).size, 15u);   // {"ph":"X","ts":
  EXPECT_EQ(patterns.edge(first).tokens, 7u);  // { "ph" : "X" , "ts" :
  EXPECT_EQ(patterns.edge(first).slot, ValueSlot::kTime);
  const std::uint32_t second = patterns.find(first, text + 20, 18);
  ASSERT_NE(second, EventPatterns::kRoot);
  EXPECT_EQ(patterns.edge(second).size, 13u);   // ,"args":{"a":
  EXPECT_EQ(patterns.edge(second).tokens, 6u);  // , "args" : { "a" :
  EXPECT_EQ(patterns.edge(second).key, StringId{3});
  const std::uint32_t end = patterns.find(second, text + 36, 2);
  ASSERT_NE(end, EventPatterns::kRoot);
  EXPECT_EQ(patterns.edge(end).slot, ValueSlot::kEnd);
  EXPECT_EQ(patterns.finish(end).phase, 'X');
  EXPECT_EQ(patterns.find(second, text + 36, 1), EventPatterns::kRoot);  // cut before the last }
}

TEST(EventPatternsTest, OtherTextHasNoEdge) {
  EventPatterns patterns;
  patterns.learn(two_values(), kEvent, 0, 32, 0, 17);
  for (const char* text :
       {R"({"ph":"X","dur":7})", R"({"ph":"B","ts":7})", R"({ "ph":"X","ts":7})", "{}"})
    EXPECT_EQ(patterns.find(EventPatterns::kRoot, padded(text).data(), 18), EventPatterns::kRoot)
        << text;
}

TEST(EventPatternsTest, TheMemoryIsBoundedWhateverIsLearned) {
  EventPatterns patterns;
  EventDraft draft = two_values();
  const auto event = [](std::uint32_t i) {
    return std::string(R"({"ph":"X","ts":5,"args":{")")
        .append(std::to_string(100000 + i))
        .append(R"(":1}})");
  };
  draft.values[1].begin = 34, draft.values[1].end = 35;
  // Each adds two edges: its own key and its own end.
  constexpr std::uint32_t kEvents = 5 * EventPatterns::kMaxEdges;
  for (std::uint32_t i = 0; i < kEvents; ++i) patterns.learn(draft, event(i), 0, 37, 0, 17);
  std::uint32_t known = 0;
  for (std::uint32_t i = 0; i < kEvents; ++i) {
    const std::string text = padded(event(i));
    const std::uint32_t first = patterns.find(EventPatterns::kRoot, text.data(), 37);
    ASSERT_NE(first, EventPatterns::kRoot);
    known += patterns.find(first, text.data() + 16, 21) != EventPatterns::kRoot;
  }
  EXPECT_GT(known, 0u);
  EXPECT_LE(known, EventPatterns::kMaxEdges / 2);
}

TEST(EventPatternsTest, LearningWithoutUseStopsAndIsTriedAgainLater) {
  EventPatterns patterns;
  int drafts = 0;
  while (patterns.wants_draft()) ++drafts;
  EXPECT_GT(drafts, 100);
  EXPECT_LT(drafts, 10000);
  int refused = 1;
  while (!patterns.wants_draft()) ++refused;
  EXPECT_GT(refused, drafts);
}

// Random events of a few kinds, most of them plain, some odd in one value.
class RandomEvents {
 public:
  explicit RandomEvents(unsigned seed) : random_(seed) {}
  void set_odd(bool odd) { odd_ = odd; }

  // `blanks` come after the first bracket.
  std::string event(const std::string& blanks) {
    std::string text = "{" + blanks;
    const std::string arrow =
        pick({R"("ph":"s")", R"("ph":"f","bp":"e")", R"("ph":"t")", R"("ph": "b")"});
    switch (below(5)) {
      case 0:
        return text + arrow + R"(,"id":)" + scalar() + place() + R"(,"cat":"ac2g","name":)" +
               name() + "}";
      case 1:
        return text + R"("ph":"X","name":)" + name() + R"(,"cat":"kernel")" + place() +
               R"(,"dur":)" + time() + args(9) + "}";
      case 2:
        return text + R"("ph":"i","s":")" + pick({"g", "t"}) + R"(","name":)" + name() + place() +
               "}";
      case 3:
        return text + R"("ph":")" + pick({"C", "M", "B", "E", "?"}) + R"(","name":)" + name() +
               place() + args(3) + "}";
      default:
        return text + R"("ph":"X","cat":"cpu_op","name":)" + name() + place() + R"(,"dur":)" +
               time() + args(odd() ? 40 : 4) + pick({"", "", "", R"(,"tts":5)"}) + "}";
    }
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::string pick(std::initializer_list<const char*> all) {
    return all.begin()[below(all.size())];
  }
  bool odd() { return below(40) == 0 && odd_; }
  std::string name() {
    if (odd()) return pick({R"("a\u00e9\n")", R"("\ud800")", "7", "null", "\"\"", "\"\xc3\""});
    return pick({"\"aten::mm\"", "\"aten::add\"", "\"void kernel<(int)8>(float*)\""});
  }
  std::string scalar() {
    if (odd()) return pick({"-5", "7.0", "\"stream 7\"", "null", "99999999999", "007", "1.5"});
    return pick({"1", "20", "1156", "890633"});
  }
  std::string time() {
    if (odd())
      return pick({"-1.5", "1.2345", "\"12\"", "1e3", "null", "NaN", "5 ", "99999999999999999.5",
                   "01.5", "1.", "12345678901234.567"});
    return std::to_string(1000 + below(9000)) + pick({".125", ".5", "", ".25", ".000"});
  }
  std::string value() {
    if (odd())
      return pick({"NaN", "[1,]", "[1,[2,{}]]", "-0", "18446744073709551615", "00", "1e400",
                   "\"b\\\\\"", "{\"x\":1}", "-12", "\"\"", "4 ", "12345678901234567890123"});
    return pick({"0", "7", "12345678", "123456789", "5000000000", "0.060606", "0.727273", "true",
                 "null", "\"float\"", "[4, 2, 1]", "[128, 1, 1]"});
  }
  std::string place() {
    std::string text = R"(,"pid":)";
    text.append(scalar()).append(R"(,"tid":)").append(scalar()).append(R"(,"ts":)");
    return text.append(time());
  }
  std::string args(std::size_t limit) {
    if (odd())
      return pick({R"(,"args":{})", R"(,"args":null)", R"(,"args":{"a":1},"args":{"b":2})"});
    std::string text = R"(,"args":{)";
    const std::size_t count = 1 + below(2) * (limit - 1);
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text += ",";
      if (odd())
        text += pick({R"("k\u0031":)", R"("twice":)", "\"\":"});
      else
        text.append("\"key")
            .append(std::to_string(i))
            .append("\":")
            .append(pick({"", "", "", " "}));
      text += value();
    }
    return text + "}";
  }

  std::mt19937 random_;
  bool odd_ = true;
};

// `number` in blanks: no two events start alike, so none is known from one before it.
std::string own_blanks(unsigned number) {
  std::string blanks;
  for (int i = 0; i < 6; ++i, number /= 4) blanks += " \t\n\r"[number % 4];
  return blanks;
}

// Metadata events keep the blanks that the file had.
std::string without_blanks(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (!std::strchr(" \t\n\r", c)) out += c;
  return out;
}

TEST(EventPatternsTest, EventsKnownFromOthersAreReadAsIfTheyWereNot) {
  // After a plain beginning, a few odd ones: the first that is no JSON sends the rest of its
  // window the careful way. Then long ones, of several windows.
  for (unsigned seed = 0; seed < unsigned{testing::rounds(3000)}; ++seed) {
    const bool is_long = seed % 500 == 499;
    std::string alike = "[", apart = "[";
    RandomEvents first(seed), second(seed);
    for (unsigned i = 0; i < (is_long ? 1500 : 24); ++i) {
      first.set_odd(is_long || i > 16);
      second.set_odd(is_long || i > 16);
      if (i > 0) alike += ",", apart += ",";
      alike += first.event("");
      apart += second.event(own_blanks(i));
    }
    const auto known = read_trace_bytes(alike + "]"), unknown = read_trace_bytes(apart + "]");
    ASSERT_TRUE(known && unknown) << seed;
    ReadOptions in_full;
    in_full.learn_patterns = false;
    const auto full = read_trace_bytes(alike + "]", in_full);
    ASSERT_TRUE(full) << seed;
    EXPECT_EQ(testing::trace_text(*known), testing::trace_text(*full)) << seed;
    EXPECT_EQ(without_blanks(testing::trace_text(*known)),
              without_blanks(testing::trace_text(*unknown)))
        << seed;
    ASSERT_EQ(known->strings().size(), unknown->strings().size()) << seed;
    for (std::uint32_t i = 0; i < known->strings().size(); ++i)  // in the order of the file
      ASSERT_EQ(without_blanks(known->text(StringId{i})),
                without_blanks(unknown->text(StringId{i})))
          << seed;
    for (std::size_t i = 0; i < kImportIssueCount; ++i) {
      const auto issue = static_cast<ImportIssue>(i);
      EXPECT_EQ(known->import_stats()[issue].count, unknown->import_stats()[issue].count) << i;
    }
  }
}

}  // namespace
}  // namespace lanescope::format
