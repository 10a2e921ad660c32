// How Python reports calls and returns: up to 3.11 by the profile hook of each thread
// (profile_hook.cpp), from 3.12 on by callbacks of sys.monitoring, which lanescope/_frames.py sets
// (monitoring_hook.cpp). All of it with the GIL.
#pragma once
#include <Python.h>

namespace lanescope::python::frames {

// Threads that have another hook keep it; `foreign`, if not null, counts them. From 3.12 on nothing.
void hook_all_threads(int* foreign);
// Returns in how many threads somebody else had removed our hook.
int unhook_all_threads();
// A new dict, by the names of sys.monitoring.events; empty up to 3.11. Null: Python has an error set.
PyObject* frame_callbacks();

}  // namespace lanescope::python::frames
