// One reader for each family of event names. A reader fills in what is known about the name. It returns false if the name is not of
// its family.
#pragma once
#include <string_view>

#include "lanescope/names/event_name.h"

namespace lanescope::names::events {

bool read_training_name(std::string_view name, EventName& out);    // ProfilerStep#3, FSDP::...
bool read_overhead_name(std::string_view name, EventName& out);    // Buffer Flush, [memory], ac2g
bool read_sync_name(std::string_view name, EventName& out);        // Stream Sync, ...
bool read_collective_name(std::string_view name, EventName& out);  // c10d::, nccl:, DDP
bool read_compile_name(std::string_view name, EventName& out);     // Torch-Compiled Region: 0/0
// For events of the operator category only: also knows compile stages whose names are ordinary words.
bool read_compile_stage(std::string_view name, EventName& out);
bool read_autograd_name(std::string_view name, EventName& out);  // AddmmBackward0
// For events of the operator category only: "SwishBackward", a class of the program.
bool read_function_backward(std::string_view name, EventName& out);
bool read_operator_name(std::string_view name, EventName& out);    // aten::mm, prims::, vllm::
bool read_cuda_call_name(std::string_view name, EventName& out);   // cudaMalloc, hip..., cu...
bool read_other_call_name(std::string_view name, EventName& out);  // Level Zero, CANN
bool read_frame_name(std::string_view name, EventName& out);       // train.py(34): forward

// What an operator computes, in a few words: "matrix product" for "aten::mm". Empty: not in the table.
std::string_view operator_in_short(std::string_view name_without_namespace);

}  // namespace lanescope::names::events
