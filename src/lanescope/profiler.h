// The one header a program needs to record and read itself: Profiler, RecordFunction,
// LANESCOPE_RECORD_FUNCTION.
#pragma once
#include "lanescope/profiler/profiler.h"
