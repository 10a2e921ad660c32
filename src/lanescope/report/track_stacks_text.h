// Writes the tracks of a trace as stacks, in formats of other tools. The text is written in pieces,
// so memory does not grow with it.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "lanescope/model/trace.h"

namespace lanescope::report {

// Takes the next piece of the text. False: it takes no more (a full disk), and the rest is left
// out.
using TextSink = std::function<bool(std::string_view)>;

// "process 566 (python3), thread 566"; "GPU 0, stream 7"; "process 5, async 17 (ranges)". Without
// characters that end a line or a folded frame.
std::string track_label(const Trace& trace, const Track& track);

// "track;outermost;...;innermost nanoseconds" for every track with slices: the self time of a stack
// in whole nanoseconds, added up. Lines of a track are sorted. flamegraph.pl, speedscope and inferno
// read it. docs/definitions/python_samples.md#track-stacks.
void write_folded_tracks(const Trace& trace, const TextSink& sink);

// https://www.speedscope.app/file-format-schema.json: an evented profile for each row of each
// track, in nanoseconds since the first slice begins. Slices that overlap without nesting are on
// further rows, "track (row 2)".
void write_speedscope_tracks(const Trace& trace, const TextSink& sink);

}  // namespace lanescope::report
