// Each test runs in a child, whose end says what became of the signal.
#include "lanescope/record/bus_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <functional>

namespace lanescope::record {
namespace {

constexpr std::size_t kBytes = 8 * 4096;
constinit std::atomic<std::uint32_t> recording{1};
constinit BusGuard tested_guard{&recording};
void on_bus(int signal, siginfo_t* info, void* context) {
  tested_guard.handle(signal, info, context);
}

// A mapping whose file is cut.
volatile char* cut_mapping() {
  char path[] = "/tmp/lanescope_bus_XXXXXX";
  const int fd = mkstemp(path);
  unlink(path);
  if (ftruncate(fd, kBytes) != 0) abort();
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (ftruncate(fd, 0) != 0) abort();
  close(fd);
  return static_cast<volatile char*>(at);
}
volatile char* watched_cut_mapping() {
  volatile char* at = cut_mapping();
  tested_guard.add(const_cast<char*>(at), kBytes);
  return at;
}

// The child's status; each sanitizer's own handler is out of the way.
int status_of(const std::function<void()>& body) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGBUS, SIG_DFL);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}
void expect(bool what, int line) {
  if (what) return;
  fprintf(stderr, "line %d\n", line);
  _exit(1);
}
#define EXPECT_IN_CHILD(what) expect(what, __LINE__)
bool died_of_bus(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS; }

// What a handler that was there before saw.
constinit volatile int seen = 0;
constinit void* volatile seen_address = nullptr;
constinit volatile bool seen_usr1_blocked = false;
void leave(int) {
  seen = seen + 1;
  _exit(7);
}
void note_only(int) { seen = seen + 1; }
void note_info(int, siginfo_t* info, void*) {
  seen = seen + 1;
  seen_address = info->si_addr;
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  seen_usr1_blocked = sigismember(&now, SIGUSR1) == 1;
  // Back to work: the page is there when the instruction runs again.
  mmap(info->si_addr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

TEST(BusGuardTest, AFaultInAWatchedMappingLeavesZeroedMemoryAndNothingElse) {
  EXPECT_EQ(status_of([] {
              tested_guard.install(on_bus);
              volatile char* at = watched_cut_mapping();
              EXPECT_IN_CHILD(recording == 1 && tested_guard.faults() == 0);
              at[5 * 4096 + 3] = 42;
              EXPECT_IN_CHILD(at[5 * 4096 + 3] == 42 && at[0] == 0 && at[kBytes - 1] == 0);
              EXPECT_IN_CHILD(recording == 0 && tested_guard.faults() == 1);
            }),
            0);
}

TEST(BusGuardTest, ManyMappingsAreWatchedAndForgotten) {
  EXPECT_EQ(status_of([] {
              tested_guard.install(on_bus);
              volatile char* all[200];
              for (auto& at : all) at = watched_cut_mapping();
              for (auto& at : all) at[0] = 1;
              EXPECT_IN_CHILD(tested_guard.faults() == 200);
              for (auto& at : all) tested_guard.remove(const_cast<char*>(at));
              volatile char* other = watched_cut_mapping();
              tested_guard.remove(const_cast<char*>(other));
              signal(SIGBUS, leave);
            }),
            0);
  EXPECT_TRUE(died_of_bus(status_of([] {
    tested_guard.install(on_bus);
    volatile char* at = watched_cut_mapping();
    tested_guard.remove(const_cast<char*>(at));
    at[0] = 1;
  })));
}

TEST(BusGuardTest, OtherFaultsEndTheProgramAsWithoutUs) {
  const auto other_fault = [] {
    tested_guard.install(on_bus);
    cut_mapping()[0] = 1;
  };
  EXPECT_TRUE(died_of_bus(status_of(other_fault)));
  EXPECT_TRUE(died_of_bus(status_of([&] {
    signal(SIGBUS, SIG_IGN);  // the kernel heeds that for no fault
    other_fault();
  })));
  EXPECT_TRUE(died_of_bus(status_of([] {
    tested_guard.install(on_bus);
    kill(getpid(), SIGBUS);
    for (;;) pause();
  })));
  EXPECT_TRUE(died_of_bus(status_of([] {
    tested_guard.install(on_bus);
    tested_guard.handle(
        SIGBUS,
        [] {
          static siginfo_t async{};  // memory failed elsewhere, nothing runs again
          async.si_signo = SIGBUS;
          async.si_code = BUS_MCEERR_AO;
          return &async;
        }(),
        nullptr);
  })));
}

TEST(BusGuardTest, ASentSignalThatWasIgnoredStaysIgnored) {
  EXPECT_EQ(status_of([] {
              signal(SIGBUS, SIG_IGN);
              tested_guard.install(on_bus);
              raise(SIGBUS);
              watched_cut_mapping()[0] = 1;
              EXPECT_IN_CHILD(tested_guard.faults() == 1);
            }),
            0);
}

TEST(BusGuardTest, AHandlerThatWasThereGetsAllOthers) {
  EXPECT_EQ(status_of([] {
              signal(SIGBUS, note_only);
              tested_guard.install(on_bus);
              raise(SIGBUS);
              EXPECT_IN_CHILD(seen == 1);
              watched_cut_mapping()[0] = 1;
              EXPECT_IN_CHILD(seen == 1 && tested_guard.faults() == 1);
            }),
            0);
  const int status = status_of([] {
    signal(SIGBUS, leave);
    tested_guard.install(on_bus);
    cut_mapping()[0] = 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(BusGuardTest, AHandlerWithInformationGetsItsAddressAndItsMask) {
  EXPECT_EQ(status_of([] {
              struct sigaction before {};
              before.sa_sigaction = note_info;
              before.sa_flags = SA_SIGINFO;
              sigemptyset(&before.sa_mask);
              sigaddset(&before.sa_mask, SIGUSR1);
              sigaction(SIGBUS, &before, nullptr);
              tested_guard.install(on_bus);
              tested_guard.install(on_bus);  // once only: not after itself
              volatile char* at = cut_mapping();
              at[4096] = 1;
              EXPECT_IN_CHILD(seen == 1 && seen_usr1_blocked && tested_guard.faults() == 0);
              EXPECT_IN_CHILD(seen_address == const_cast<char*>(at) + 4096);
            }),
            0);
}

TEST(BusGuardTest, AHandlerForOnceIsCalledOnce) {
  EXPECT_TRUE(died_of_bus(status_of([] {
    struct sigaction before {};
    before.sa_handler = note_only;
    before.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGBUS, &before, nullptr);
    tested_guard.install(on_bus);
    raise(SIGBUS);
    EXPECT_IN_CHILD(seen == 1);
    watched_cut_mapping()[0] = 1;
    raise(SIGBUS);
    _exit(3);
  })));
}

TEST(BusGuardTest, AChildOfAForkHasNothingWatched) {
  EXPECT_EQ(status_of([] {
              tested_guard.install(on_bus);
              volatile char* at = watched_cut_mapping();
              // Without and with handlers of fork.
              EXPECT_IN_CHILD(died_of_bus(status_of([&] { at[0] = 1; })));
              EXPECT_IN_CHILD(died_of_bus(status_of([&] {
                tested_guard.forget_all();
                at[0] = 1;
              })));
              at[0] = 1;
            }),
            0);
}

TEST(BusGuardTest, AThreadThatBlocksTheSignalCanTakeIt) {
  EXPECT_EQ(status_of([] {
              tested_guard.install(on_bus);
              sigset_t all;
              sigfillset(&all);
              pthread_sigmask(SIG_SETMASK, &all, nullptr);
              unblock_bus_fault();
              watched_cut_mapping()[0] = 1;
              sigset_t now;
              pthread_sigmask(SIG_BLOCK, nullptr, &now);
              EXPECT_IN_CHILD(sigismember(&now, SIGUSR1) == 1);
            }),
            0);
}

}  // namespace
}  // namespace lanescope::record
