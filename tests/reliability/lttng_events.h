// The one event of lttng_counter.c, in the form that LTTng-UST's headers include several times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER reliability

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_events.h"

#if !defined(RELIABILITY_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RELIABILITY_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

// clang-format off
LTTNG_UST_TRACEPOINT_EVENT(
    reliability, done,
    LTTNG_UST_TP_ARGS(unsigned int, slot, uint64_t, number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(unsigned int, slot, slot)
        lttng_ust_field_integer(uint64_t, number, number)))
// clang-format on

#endif  // RELIABILITY_LTTNG_EVENTS_H

#include <lttng/tracepoint-event.h>
