// Decides which requests are answered: only those of the page that this program opened. docs/decisions/viewer.md#security
#pragma once
#include <string>
#include <string_view>

namespace lanescope::server {

// 128 random bits from the operating system, as 32 hex digits. Ends the program if there are none.
std::string make_token();

// Compares in a time that does not depend on where the texts differ.
bool equal_secret(std::string_view given, std::string_view expected);

// "127.0.0.1:8080", "localhost", "[::1]:80": names that can only mean this machine, with any port,
// because ssh forwards other ports. A request with another name may come from a foreign site that made
// its own name point to this machine.
bool is_loopback_host(std::string_view host);

// The page's own origin: "http://" and the Host of the same request. Also true if `origin` is
// empty: then no other page made the request.
bool is_own_origin(std::string_view origin, std::string_view host);

enum class Access : unsigned char { kGranted, kForeignHost, kForeignOrigin, kNoToken };
// `needs_token`: false for the page itself, which gets the token only by being loaded.
Access check_access(std::string_view host, std::string_view origin, std::string_view given_token,
                    std::string_view token, bool needs_token);

}  // namespace lanescope::server
