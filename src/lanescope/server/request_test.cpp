#include "lanescope/server/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lanescope::server {
namespace {

using ::testing::ElementsAre;

TEST(RequestTest, HasNumbersTextsFlagsAndLists) {
  const auto request = Request::parse(
      R"({"t0": 1.9, "t1": -3, "text": "a\u00e4", "descending": false, "lanes": [0, 4294967295]})");
  ASSERT_TRUE(request);
  EXPECT_EQ(*request->needed("t0", 0, 10), 1);
  EXPECT_EQ(*request->needed("t1", -10, 10), -3);
  EXPECT_EQ(*request->text("text", ""), "a\xC3\xA4");
  EXPECT_FALSE(*request->flag("descending", true));
  EXPECT_THAT(*request->list("lanes", 2), ElementsAre(0u, 4294967295u));
  EXPECT_EQ(*request->number("absent", 0, 1), std::nullopt);
  EXPECT_TRUE(request->list("absent", 0)->empty());
}

TEST(RequestTest, RefusesWhatItCannotMean) {
  for (const char* body :
       {"", "[]", "3", "{", "{\"a\":1}x", "{\"a\":[1.5]}", "{\"a\":[-1]}", "{\"a\":[4294967296]}",
        "{\"a\":[\"x\"]}", "{\"a\":\"\xff\"}", "{\"notes\":[{\"t_ns\":1}]}", "{\"notes\":[1]}"})
    EXPECT_FALSE(Request::parse(body)) << body;
  EXPECT_FALSE(Request::parse("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"));
  EXPECT_FALSE(Request::parse(std::string(kMostRequestBytes + 1, ' ')));
  const auto request = Request::parse(R"({"t0": 11, "big": 1e300, "text": 3, "lanes": [1, 2, 3]})");
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->needed("t0", 0, 10));
  EXPECT_FALSE(request->needed("big", INT64_MIN, INT64_MAX));
  EXPECT_FALSE(request->needed("absent", 0, 1));
  EXPECT_FALSE(request->text("text", ""));
  EXPECT_FALSE(request->list("lanes", 2));
  EXPECT_FALSE(request->notes());
}

TEST(RequestTest, NotesHaveATimeAndAText) {
  const auto request = Request::parse(
      R"({"notes": [{"t_ns": 5, "text": "here", "lane": 2}, {"t_ns": 6.5, "text": "", "slice": -1}]})");
  ASSERT_TRUE(request);
  const auto notes = *request->notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].text, "here");
  EXPECT_EQ(notes[0].lane, 2u);
  EXPECT_EQ(notes[1].time_ns, 6);
  EXPECT_EQ(notes[1].slice, std::nullopt);
}

}  // namespace
}  // namespace lanescope::server
