// The peer of guest.py: emits LTTng-UST events and counts each one, after it, where a
// kill cannot reach.
//
//   lttng_counter THREADS EVENTS RATE
//     EVENTS   how many each thread writes; 0: for ever
//     RATE     how many each thread writes a second; 0: as many as it can
//
// The counters are 8 numbers in the file that RELIABILITY_COUNTERS names; thread k counts in number
// k modulo 8. Prints "ready" when the threads begin and "done" after them.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lttng_events.h"

enum { kSlots = 8, kBatch = 100 };

static _Atomic uint64_t* counters;
static uint64_t events, rate;
static pthread_barrier_t barrier;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void* emit(void* argument) {
  const unsigned int slot = (unsigned int)(uintptr_t)argument;
  pthread_barrier_wait(&barrier);
  const uint64_t begun = now_ns();
  for (uint64_t number = 1; events == 0 || number <= events; ++number) {
    lttng_ust_tracepoint(reliability, done, slot, number);
    atomic_fetch_add_explicit(&counters[slot % kSlots], 1, memory_order_relaxed);
    if (rate != 0 && number % kBatch == 0) {
      const uint64_t due = begun + number * 1000000000u / rate, now = now_ns();
      if (due > now) usleep((useconds_t)((due - now) / 1000));
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* path = getenv("RELIABILITY_COUNTERS");
  const int file = path == NULL ? -1 : open(path, O_RDWR);
  if (argc != 4 || file < 0) {
    fprintf(stderr, "expected THREADS EVENTS RATE, and a file in RELIABILITY_COUNTERS\n");
    return 2;
  }
  const unsigned int threads = (unsigned int)atoi(argv[1]);
  events = strtoull(argv[2], NULL, 10);
  rate = strtoull(argv[3], NULL, 10);
  counters = mmap(NULL, kSlots * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  pthread_t* ids = calloc(threads, sizeof(pthread_t));
  if (counters == MAP_FAILED || ids == NULL || pthread_barrier_init(&barrier, NULL, threads) != 0)
    return 2;
  for (unsigned int k = 0; k < threads; ++k) {
    if (pthread_create(&ids[k], NULL, emit, (void*)(uintptr_t)k) != 0) return 2;
    if (k + 2 == threads || threads == 1) {  // the last thread opens the barrier
      puts("ready");
      fflush(stdout);
    }
  }
  for (unsigned int k = 0; k < threads; ++k) pthread_join(ids[k], NULL);
  puts("done");
  return 0;
}
