// The browser of the machine, and the signals that end a command that serves a page.
#pragma once
#include <string>

#include "lanescope/cli/output.h"
#include "lanescope/server/http_server.h"

namespace lanescope::cli {

// Starts the browser and does not wait for it. False: there is none.
bool open_browser(const std::string& url);
// Prints the address, and what to do with it. `opened`: a browser shows it.
void announce(const server::HttpServer& http, bool opened, Output& output);

// From then on, Ctrl-C and similar signals do not kill the process: is_ending() reports them.
void end_on_signals();
bool is_ending();

}  // namespace lanescope::cli
