// One function for each kind of change: it changes the edges of a graph, and notes in changed.applied
// what it did. A count of 0 means that nothing in the trace fits. An error says why the change is
// refused.
#pragma once
#include <cstdint>
#include <optional>

#include "lanescope/analysis/device_work.h"
#include "lanescope/base/result.h"
#include "lanescope/simulate/changed_graph.h"

namespace lanescope::simulate {

// change_scale.cpp: time that takes longer or shorter.
void change_speed(ChangedGraph& changed);
void change_cpu(ChangedGraph& changed);
// Scales GPU work of a class (nothing: of all classes). Work shorter than `least_ns` does not change, and
// no other work becomes shorter than `least_ns`.
void scale_work(ChangedGraph& changed, std::optional<analysis::WorkClass> work_class, double by,
                std::int64_t least_ns);
void change_batch(ChangedGraph& changed);
std::optional<Error> change_gpu(ChangedGraph& changed);

// change_loader.cpp: time in the DataLoader.
void scale_loader(ChangedGraph& changed, double by);
std::optional<Error> change_workers(ChangedGraph& changed);

// change_removal.cpp: work and waits that go away.
void remove_named(ChangedGraph& changed);
void remove_sync(ChangedGraph& changed);

// change_recording.cpp: what recording cost the program.
void remove_profiler(ChangedGraph& changed);

// change_launches.cpp: fewer launches.
void fuse_kernels(ChangedGraph& changed);
std::optional<Error> use_cuda_graph(ChangedGraph& changed);

// change_copies.cpp: copies between CPU and GPU.
void pin_copies(ChangedGraph& changed);
void overlap_copies(ChangedGraph& changed);

}  // namespace lanescope::simulate
