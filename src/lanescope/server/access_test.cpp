#include "lanescope/server/access.h"

#include <gtest/gtest.h>

#include <set>

namespace lanescope::server {
namespace {

TEST(AccessTest, OnlyNamesOfThisMachineAreItsHost) {
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:8080", "localhost", "localhost:1", "[::1]", "[::1]:65535"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"", "evil.example", "evil.example:80", "127.0.0.1.evil.example",
                           "localhost.evil.example:80", "127.0.0.1:", "127.0.0.1:80@evil.example",
                           "127.0.0.1:80:80", "[::1", "[::1]x", "[::2]:80", "0.0.0.0", "127.0.0.2",
                           "LOCALHOST.", "localhost:123456", "::1"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

TEST(AccessTest, AnOriginMustBeThePagesOwn) {
  EXPECT_TRUE(is_own_origin("", "127.0.0.1:80"));  // typed by the user, or from curl
  EXPECT_TRUE(is_own_origin("http://127.0.0.1:80", "127.0.0.1:80"));
  for (const char* origin :
       {"null", "http://127.0.0.1:81", "https://127.0.0.1:80", "http://localhost:80",
        "http://evil.example", "127.0.0.1:80", "http://127.0.0.1:80/"})
    EXPECT_FALSE(is_own_origin(origin, "127.0.0.1:80")) << origin;
}

TEST(AccessTest, QuestionsNeedTheWholeToken) {
  const std::string token = make_token();
  EXPECT_EQ(check_access("127.0.0.1:1", "", token, token, true), Access::kGranted);
  EXPECT_EQ(check_access("127.0.0.1:1", "", "", token, false), Access::kGranted);
  EXPECT_EQ(check_access("127.0.0.1:1", "", "", token, true), Access::kNoToken);
  EXPECT_EQ(check_access("127.0.0.1:1", "", token.substr(1), token, true), Access::kNoToken);
  EXPECT_EQ(check_access("127.0.0.1:1", "", token + "0", token, true), Access::kNoToken);
  EXPECT_EQ(check_access("evil.example", "", token, token, true), Access::kForeignHost);
  EXPECT_EQ(check_access("127.0.0.1:1", "http://evil.example", token, token, true),
            Access::kForeignOrigin);
}

TEST(AccessTest, TokensHave128BitsAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string token = make_token();
    EXPECT_EQ(token.size(), 32u);
    EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(token).second);
  }
}

}  // namespace
}  // namespace lanescope::server
