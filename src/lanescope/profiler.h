// The only header that a program needs to profile itself and to read the results: Profiler, RecordFunction,
// LANESCOPE_RECORD_FUNCTION.
#pragma once
#include "lanescope/profiler/profiler.h"
