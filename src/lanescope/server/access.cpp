#include "lanescope/server/access.h"

#include <sys/random.h>

#include <algorithm>
#include <array>

#include "lanescope/base/check.h"

namespace lanescope::server {

std::string make_token() {
  std::array<unsigned char, 16> bits{};
  LANESCOPE_CHECK(getentropy(bits.data(), bits.size()) == 0);
  std::string token;
  for (const unsigned char each : bits) {
    token += "0123456789abcdef"[each >> 4];
    token += "0123456789abcdef"[each & 15];
  }
  return token;
}

bool equal_secret(std::string_view given, std::string_view expected) {
  // The length is no secret. `volatile` keeps the loop from ending early.
  if (given.size() != expected.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    difference = static_cast<unsigned char>(difference | (given[i] ^ expected[i]));
  return difference == 0;
}

bool is_loopback_host(std::string_view host) {
  const std::size_t name_end = host.starts_with('[') ? host.find(']') : host.find(':');
  std::string_view name = host.substr(0, name_end);
  std::string_view rest = name_end == host.npos ? std::string_view() : host.substr(name_end);
  if (host.starts_with('[')) {
    if (name_end == host.npos) return false;
    name = host.substr(1, name_end - 1);
    rest.remove_prefix(1);
    if (name != "::1") return false;
  } else if (name != "127.0.0.1" && name != "localhost") {
    return false;
  }
  if (rest.empty()) return true;
  rest.remove_prefix(1);
  return !rest.empty() && rest.size() <= 5 &&
         std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_own_origin(std::string_view origin, std::string_view host) {
  constexpr std::string_view kScheme = "http://";
  return origin.empty() || (origin.starts_with(kScheme) && origin.substr(kScheme.size()) == host);
}

Access check_access(std::string_view host, std::string_view origin, std::string_view given_token,
                    std::string_view token, bool needs_token) {
  if (!is_loopback_host(host)) return Access::kForeignHost;
  if (!is_own_origin(origin, host)) return Access::kForeignOrigin;
  if (needs_token && !equal_secret(given_token, token)) return Access::kNoToken;
  return Access::kGranted;
}

}  // namespace lanescope::server
