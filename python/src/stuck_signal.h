// Ends a program whose Python handler for a signal cannot run.
//
// Problem: `lanescope record` closes its recording in a Python handler of SIGTERM. Python runs
// handlers only between two instructions of the main thread, so a program that hangs in C code
// would no longer end with SIGTERM. Idea: a C handler in front of Python's starts a timer. If
// Python's handler has not begun when the timer ends, the signal gets its default action.
#pragma once

namespace lanescope::python {

// For a signal that has a Python handler; replaces what an earlier call did. False: the system has
// no timer for it, and nothing changed. A forked child ends at once, as it would without us.
bool end_if_handler_is_stuck(int signal, double seconds);
// Python's handler runs: stops the timer.
void handler_has_begun();

}  // namespace lanescope::python
