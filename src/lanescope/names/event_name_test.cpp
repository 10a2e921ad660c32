#include "lanescope/names/event_name.h"

#include <gtest/gtest.h>

#include <string>

#include "lanescope/names/events/operator_rows.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::names {
namespace {

std::string detail(const EventName& name, std::string_view key) {
  for (const auto& [each, value] : name.details)
    if (each == key) return value;
  return "-";
}

TEST(EventNameTest, OperatorsSayWhatTheyDoAndWhatTheyCost) {
  const EventName mm = explain_event_name("aten::addmm");
  EXPECT_EQ(mm.kind, EventKind::kOperator);
  EXPECT_EQ(mm.text, "matrix product plus a bias");
  EXPECT_TRUE(mm.cpu_waits.starts_with("no"));
  EXPECT_NE(mm.gpu_work.find("GEMM"), std::string::npos);
  EXPECT_EQ(detail(mm, "python"), "torch.addmm");
  EXPECT_EQ(mm.group, "aten::addmm");

  const EventName scalar = explain_event_name("aten::_local_scalar_dense");
  EXPECT_TRUE(scalar.cpu_waits.starts_with("yes"));
  EXPECT_EQ(scalar.rule, "host-sync");

  const EventName overloaded = explain_event_name("aten::add.Tensor");
  EXPECT_EQ(overloaded.text, "sum");
  EXPECT_EQ(detail(overloaded, "overload"), "Tensor");
}

TEST(EventNameTest, ViewsAreSaidToMoveNoData) {
  for (const char* view :
       {"aten::t", "aten::transpose", "aten::view", "aten::expand", "aten::as_strided",
        "aten::slice", "aten::select", "aten::split", "aten::chunk", "aten::narrow",
        "aten::squeeze", "aten::unsqueeze", "aten::permute", "aten::detach", "aten::unbind",
        "aten::_unsafe_view", "aten::alias"}) {
    const EventName name = explain_event_name(view);
    EXPECT_EQ(name.gpu_work, "none: a view of the same memory, no data moves") << view;
    EXPECT_EQ(name.cpu_waits, "no") << view;
  }
}

TEST(EventNameTest, OperatorsWithoutARowGetTheTruthThatHoldsForAll) {
  const EventName atan = explain_event_name("aten::atan2_");
  EXPECT_EQ(atan.kind, EventKind::kOperator);
  EXPECT_NE(atan.what.find("ATen operator"), std::string::npos);
  EXPECT_NE(atan.what.find("changes its input"), std::string::npos);
  EXPECT_EQ(detail(atan, "python"), "torch.Tensor.atan2_");
  EXPECT_EQ(explain_event_name("aten::__ior__").what.find("changes its input"), std::string::npos);
  const EventName pool = explain_event_name("aten::avg_pool3d_backward");
  EXPECT_NE(pool.what.find("gradients"), std::string::npos);
  EXPECT_EQ(explain_event_name("aten::_foreach_addcmul_").text, "addcmul of a list of tensors");
  EXPECT_EQ(detail(explain_event_name("aten::linalg_qr"), "python"), "torch.linalg.qr");
  EXPECT_EQ(explain_event_name("prims::mul").text, "mul (prims)");
  EXPECT_FALSE(explain_event_name("vllm::all_reduce").may_be_kernel);
  EXPECT_TRUE(explain_event_name("vllm::act_and_mul_kernel").may_be_kernel);
  // nn.functional.unfold is aten::im2col's.
  EXPECT_EQ(detail(explain_event_name("aten::unfold"), "python"), "torch.Tensor.unfold");
}

TEST(EventNameTest, EachRowOfTheOperatorTableIsFoundAndSaysSomething) {
  std::size_t rows = 0;
  using namespace events;  // NOLINT
  for (const auto& table : {product_operators(), view_operators(), memory_operators(),
                            arithmetic_operators(), layer_operators()}) {
    for (const OperatorRow& row : table) {
      ++rows;
      EXPECT_EQ(find_operator_row(row.name), &row) << row.name << " is there twice";
      EXPECT_FALSE(row.text.empty()) << row.name;
      EXPECT_LE(row.text.size(), 60u) << row.name;
      EXPECT_TRUE(row.what.ends_with('.') || row.what.ends_with('?')) << row.name;
    }
  }
  EXPECT_GE(rows, 300u);
}

TEST(EventNameTest, BackwardNodesNameTheirOperator) {
  const EventName addmm = explain_event_name("AddmmBackward0");
  EXPECT_EQ(addmm.kind, EventKind::kBackward);
  EXPECT_EQ(detail(addmm, "operator"), "aten::addmm");
  EXPECT_EQ(addmm.text, "backward of matrix product plus a bias");
  EXPECT_EQ(detail(explain_event_name("MaxPool2DWithIndicesBackward0"), "operator"),
            "aten::max_pool2d_with_indices");
  EXPECT_EQ(detail(explain_event_name("ToCopyBackward0"), "operator"), "aten::_to_copy");
  EXPECT_EQ(detail(explain_event_name("LogSoftmaxBackward0"), "operator"), "aten::_log_softmax");
  EXPECT_EQ(detail(explain_event_name("NllLossBackward0"), "operator"), "aten::nll_loss_forward");
  EXPECT_EQ(detail(explain_event_name("ClampBackward1"), "operator"), "aten::clamp");
  EXPECT_EQ(detail(explain_event_name("MulBackwardAutogradNestedTensor0"), "operator"),
            "aten::mul");
  // torch 1.8, or a class of the program: unknown.
  const EventName gather = explain_event_name("GatherBackward");
  EXPECT_EQ(detail(gather, "function"), "Gather");
  EXPECT_EQ(detail(gather, "operator"), "-");
  EXPECT_NE(gather.what.find("old versions of torch"), std::string::npos);
  // A back end's own node: the name says no more.
  EXPECT_EQ(detail(explain_event_name("NpuDropoutBackward0"), "function"), "NpuDropout");

  const EventName engine =
      explain_event_name("autograd::engine::evaluate_function: AddmmBackward0");
  EXPECT_EQ(engine.kind, EventKind::kAutogradEngine);
  EXPECT_EQ(engine.text, "backward pass runs backward of matrix product plus a bias");
  EXPECT_EQ(detail(engine, "node"), "AddmmBackward0");
  EXPECT_EQ(explain_event_name("torch::autograd::AccumulateGrad").kind, EventKind::kAutogradEngine);
  EXPECT_EQ(detail(explain_event_name("torch::autograd::CppNode<mine::Op>"), "function"),
            "mine::Op");
}

TEST(EventNameTest, CallsOfCudaHipAndTheDriverAreTold) {
  const EventName capturing = explain_event_name("cudaStreamIsCapturing");
  EXPECT_EQ(capturing.kind, EventKind::kRuntimeCall);
  EXPECT_EQ(capturing.cpu_waits, "no");
  EXPECT_EQ(explain_event_name("cudaStreamIsCapturing_ptsz").text, capturing.text);
  EXPECT_EQ(explain_event_name("hipLaunchKernel").gpu_work, "one kernel");
  EXPECT_EQ(explain_event_name("hipMemcpyAsync").gpu_work, "one copy");
  EXPECT_EQ(explain_event_name("cuLaunchKernelEx").kind, EventKind::kDriverCall);
  EXPECT_EQ(explain_event_name("cudaStreamGetCaptureInfo_v2").kind, EventKind::kRuntimeCall);
  const EventName wait = explain_event_name("cudaDeviceSynchronize");
  EXPECT_EQ(wait.kind, EventKind::kSynchronisation);
  EXPECT_TRUE(wait.cpu_waits.starts_with("yes"));
  EXPECT_EQ(explain_event_name("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags").rule,
            "occupancy-query");
  // No row: explained by its first word.
  EXPECT_EQ(explain_event_name("cudaGraphKernelNodeSetParams").what,
            "A call of the CUDA runtime about CUDA graphs.");
  EXPECT_EQ(explain_event_name("hipModuleLaunchCooperativeKernel").text,
            "call about starting work");
  EXPECT_EQ(explain_event_name("urEnqueueKernelLaunch").gpu_work, "one kernel");
  EXPECT_EQ(detail(explain_event_name("Dequeue@aclnnMm"), "call"), "aclnnMm");
}

TEST(EventNameTest, RowsOfRecordingAreTold) {
  const EventName request = explain_event_name("Activity Buffer Request");
  EXPECT_EQ(request.kind, EventKind::kProfilerOverhead);
  EXPECT_EQ(request.rule, "profiler-stall");
  for (const char* name : {"Buffer Flush", "Resource", "Instrumentation"})
    EXPECT_EQ(explain_event_name(name).kind, EventKind::kProfilerOverhead) << name;
  for (const char* name :
       {"Lazy Function Loading", "Command Buffer Full", "Runtime Triggered Module Loading"})
    EXPECT_EQ(explain_event_name(name).kind, EventKind::kDriverOverhead) << name;
  for (const char* name : {"Context Sync", "Stream Wait Event", "Event Sync", "Stream Sync"})
    EXPECT_EQ(explain_event_name(name).kind, EventKind::kSynchronisation) << name;
  EXPECT_TRUE(explain_event_name("Stream Wait Event").cpu_waits.starts_with("no"));
  for (const char* name :
       {"PyTorch Profiler (0)", "Record Window End", "Iteration Start: PyTorch Profiler"})
    EXPECT_EQ(explain_event_name(name).kind, EventKind::kRecordMark) << name;
  EXPECT_EQ(explain_event_name("PyTorch Profiler (3)").group, "PyTorch Profiler (*)");
  EXPECT_EQ(explain_event_name("[memory]").kind, EventKind::kMemory);
  EXPECT_EQ(explain_event_name("ac2g").kind, EventKind::kFlow);
  EXPECT_EQ(explain_event_name("fwdbwd").kind, EventKind::kFlow);
}

TEST(EventNameTest, NumbersOfACompiledRegionAreExplained) {
  const EventName region = explain_event_name("Torch-Compiled Region: 2/1");
  EXPECT_EQ(region.kind, EventKind::kCompiledCode);
  EXPECT_EQ(region.text, "compiled function 2, version 1");
  EXPECT_EQ(detail(region, "function"), "2");
  EXPECT_EQ(detail(region, "version"), "1");
  EXPECT_EQ(region.rule, "recompiles");
  EXPECT_EQ(region.group, "Torch-Compiled Region: *");
  EXPECT_EQ(explain_event_name("Torch-Compiled Region: 0/0").rule, "graph-breaks");
  EXPECT_EQ(detail(explain_event_name("Torch-Compiled Region: !3/0/1"), "compiled_autograd"), "3");
  EXPECT_EQ(detail(explain_event_name("Torch-Compiled Region: 0/0_1"), "version"), "0");
  EXPECT_EQ(detail(explain_event_name("## Call CompiledFxGraph fabc12 ##"), "key"), "fabc12");
  EXPECT_EQ(explain_event_name("## Call CompiledFxGraph fabc12 ##").group,
            "## Call CompiledFxGraph * ##");
  EXPECT_EQ(explain_event_name("_compile.compile_inner (dynamo_timed)").kind,
            EventKind::kCompiling);
  EXPECT_EQ(explain_event_name("_compile.compile_inner").kind, EventKind::kCompiling);
  EXPECT_EQ(explain_event_name("_compile.compile_inner").rule, "recompiles");
  EXPECT_EQ(explain_event_name("CachingAutotuner.benchmark_all_configs (dynamo_timed)").rule,
            "triton-autotune");
  EXPECT_EQ(explain_event_name("gc_data: compile_id=0/1").group, "gc_data: *");
  for (const char* name :
       {"TorchDynamo Cache Lookup", "Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue"})
    EXPECT_EQ(explain_event_name(name).kind, EventKind::kCompiledCode) << name;
  EXPECT_EQ(explain_event_name("PythonDispatchMode").kind, EventKind::kOperator);
  const EventName triton = explain_event_name("triton_poi_fused_add_relu_0");
  EXPECT_EQ(triton.kind, EventKind::kCompiledCode);
  EXPECT_TRUE(triton.may_be_kernel);
}

TEST(EventNameTest, CollectivesAndDdpAreTold) {
  EXPECT_EQ(explain_event_name("record_param_comms").kind, EventKind::kCollective);
  const EventName reduce = explain_event_name("nccl:all_reduce");
  EXPECT_EQ(reduce.kind, EventKind::kCollective);
  EXPECT_NE(reduce.what.find("each gets the result"), std::string::npos);
  EXPECT_FALSE(reduce.may_be_kernel);
  EXPECT_NE(explain_event_name("c10d::_allgather_base_").what.find("tensors of all"),
            std::string::npos);
  EXPECT_NE(explain_event_name("c10d::reduce_scatter_").what.find("one part"), std::string::npos);
  EXPECT_TRUE(explain_event_name("gloo:all_reduce").gpu_work.starts_with("none with CPU tensors"));
  EXPECT_EQ(explain_event_name("c10d::barrier").gpu_work, "");
  EXPECT_NE(explain_event_name("symm_mem::fused_all_gather_matmul").what.find("matrix product"),
            std::string::npos);
  EXPECT_EQ(explain_event_name("nccl:send 0->1").kind, EventKind::kCollective);
  EXPECT_EQ(explain_event_name("torch::distributed::reducer::mul_out").kind,
            EventKind::kCollective);
  EXPECT_EQ(explain_event_name("DistributedDataParallel.forward").kind, EventKind::kTrainingLoop);
  EXPECT_EQ(detail(explain_event_name("FSDP::all_gather (layers.3)"), "module"), "layers.3");
  EXPECT_EQ(explain_event_name("FSDP::forward_prefetch for layers.4").group,
            "FSDP::forward_prefetch for *");
}

TEST(EventNameTest, TheTrainingLoopIsTold) {
  const EventName step = explain_event_name("ProfilerStep#17");
  EXPECT_EQ(step.kind, EventKind::kTrainingLoop);
  EXPECT_EQ(detail(step, "step"), "17");
  EXPECT_EQ(step.group, "ProfilerStep#*");
  EXPECT_EQ(explain_event_name("ProfilerStep*").kind, EventKind::kTrainingLoop);
  EXPECT_EQ(detail(explain_event_name("Optimizer.step#AdamW.step"), "optimizer"), "AdamW");
  EXPECT_EQ(explain_event_name("Optimizer.zero_grad#SGD.zero_grad").rule, "zero-grad-fills");
  const EventName batch =
      explain_event_name("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  EXPECT_EQ(batch.rule, "dataloader-wait");
  EXPECT_NE(batch.what.find("no worker processes"), std::string::npos);
}

TEST(EventNameTest, FramesOfPythonAreCutIntoFileLineAndFunction) {
  const EventName frame = explain_event_name("lib/train.py(34): forward");
  EXPECT_EQ(frame.kind, EventKind::kPythonFrame);
  EXPECT_EQ(detail(frame, "file"), "lib/train.py");
  EXPECT_EQ(detail(frame, "line"), "34");
  EXPECT_EQ(detail(frame, "function"), "forward");
  EXPECT_EQ(detail(explain_event_name("<frozen os>(680): __getitem__"), "file"), "<frozen os>");
  const EventName built_in =
      explain_event_name("<built-in method linear of type object at 0x7f806c57acc0>");
  EXPECT_EQ(detail(built_in, "function"), "linear");
  EXPECT_EQ(detail(built_in, "object"), "type");
  EXPECT_EQ(built_in.group, "<built-in method linear of type object at *>");
  EXPECT_EQ(detail(explain_event_name("<built-in function len>"), "function"), "len");
  EXPECT_EQ(detail(explain_event_name("nn.Module: Conv2d_4"), "class"), "Conv2d");
  EXPECT_EQ(explain_event_name("nn.Module: Conv2d_4").group, "nn.Module: Conv2d_*");
}

TEST(EventNameTest, NearMissesStayUnknown) {
  for (const char* name : {"",
                           " ",
                           "Request",
                           "activity buffer request",
                           "Activity Buffer Request ",
                           "ProfilerStep",
                           "ProfilerStep#",
                           "ProfilerStep#x",
                           "ProfilerStep#1 ",
                           "Torch-Compiled Region: ",
                           "Torch-Compiled Region: a/b",
                           "Torch-Compiled Region: 1",
                           "Torch-Compiled Region: 1/",
                           "## Call CompiledFxGraph",
                           "cudaBananas",
                           "cudalaunch",
                           "cuda",
                           "hip",
                           "hippo",
                           "cu",
                           "cube",
                           "custom_op",
                           "cumsum",
                           "aten::",
                           "aten",
                           "aten::mm extra",
                           "aten::mm.",
                           "aten::1mm",
                           "mine::op",
                           "MyBackward",
                           "Backward0",
                           "backward",
                           "swishBackward0",
                           "AddmmBackward0x",
                           "train.py(34)",
                           "train.py(x): forward",
                           "train.py(34): ",
                           "(34): forward",
                           "train.txt(34): forward",
                           "<built-in method >",
                           "<built-in function >",
                           "nn.Module: ",
                           "nn.Module: Linear",
                           "nn.Module: _3",
                           "nccl:",
                           "nccl:frobnicate",
                           "c10d::check_for_nan",
                           "gloo: all_reduce",
                           "Optimizer.step#",
                           "Optimizer.step#.step",
                           "Optimizer.step#AdamW",
                           "enumerate(DataLoader)#",
                           "PyTorch Profiler",
                           "PyTorch Profiler (x)",
                           "Iteration Start: ",
                           "triton_",
                           "triton_poi",
                           "triton_mm",
                           "autograd::engine::evaluate_function: ",
                           "torch::autograd::CppNode<>",
                           "FSDP::nothing",
                           "gc",
                           "dynamo",
                           "(dynamo_timed)",
                           " (dynamo_timed)",
                           "_data: compile_id=0",
                           "memory",
                           "forward",
                           "Dequeue@",
                           "aclnn",
                           "matmul_add",
                           "graph_x_inductor_wrapper_call"}) {
    const EventName out = explain_event_name(name);
    EXPECT_FALSE(out.known()) << '"' << name << "\" is taken for " << event_kind_name(out.kind);
    EXPECT_EQ(out.text, name);
  }
}

TEST(EventNameTest, KernelsAreNotTakenForEvents) {
  for (const char* name :
       {"ampere_sgemm_128x64_nn", "void at::native::vectorized_elementwise_kernel<4, float>(int)",
        "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT", "Memcpy HtoD (Pageable -> Device)",
        "Memset (Device)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)",
        "Cijk_Ailk_Bljk_BBS_BH_MT128x64x32", "cunn_SoftMaxForward", "cudnn::bn_fw_tr_1C11",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<64> >(Flash_fwd_params)"})
    EXPECT_FALSE(explain_event_name(name).known()) << name;
}

TEST(EventNameTest, TheCategoryOfATraceTellsMore) {
  const EventName range = explain_event_name("matmul_add", CategoryKind::kUserAnnotation);
  EXPECT_EQ(range.kind, EventKind::kAnnotation);
  EXPECT_TRUE(range.by_category);
  EXPECT_EQ(explain_event_name("step 12 of 40", CategoryKind::kUserAnnotation).group,
            "step * of *");
  EXPECT_EQ(detail(explain_event_name("fb::thing", CategoryKind::kCpuOp), "library"), "fb");
  EXPECT_EQ(explain_event_name("gc", CategoryKind::kCpuOp).kind, EventKind::kCompiling);
  const EventName swish = explain_event_name("SwishBackward", CategoryKind::kCpuOp);
  EXPECT_EQ(swish.kind, EventKind::kBackward);
  EXPECT_TRUE(swish.by_category);
  EXPECT_FALSE(explain_event_name("whatever", CategoryKind::kCpuOp).known());
  EXPECT_EQ(explain_event_name("INVALID", CategoryKind::kRuntime).text, "API call without a name");
  EXPECT_FALSE(explain_event_name("cudaLaunchKernel", CategoryKind::kRuntime).by_category);
}

TEST(EventNameTest, AnyBytesAreAName) {
  const std::string parts[] = {"aten::",
                               "Backward0",
                               "autograd::engine::evaluate_function: ",
                               "ProfilerStep#",
                               "cuda",
                               "<",
                               ">",
                               "(1): ",
                               ".py",
                               "\xff\xfe",
                               "\x1b[2J",
                               "0x",
                               "Torch-Compiled Region: ",
                               "/",
                               "_data: ",
                               "nn.Module: ",
                               "nccl:",
                               "compile_id=",
                               " (dynamo_timed)",
                               "::",
                               "9"};
  std::string grown;
  for (std::size_t i = 0; i < 400; ++i) {
    grown += parts[(i * 7 + i / 3) % std::size(parts)];
    const EventName name = explain_event_name(grown);
    EXPECT_LE(name.text.size(), kLongestText);
    for (std::size_t cut = 0; cut < grown.size() && cut < 24; ++cut)
      explain_event_name(std::string_view(grown).substr(cut));
  }
  for (const std::string& part : parts) {
    std::string many;
    while (many.size() < 300'000) many += part;
    const EventName name = explain_event_name(many);
    EXPECT_LE(name.text.size(), kLongestText);
    EXPECT_LE(name.group.size(), 80u * 1024);
  }
  const EventName zero = explain_event_name(std::string_view("aten::m\0m", 9));
  EXPECT_FALSE(zero.known());
}

TEST(EventNameTest, EveryCutOfANameIsRead) {
  for (const std::string name :
       {"autograd::engine::evaluate_function: torch::autograd::CppNode<a::b<c> >",
        "<built-in method view of Tensor object at 0x7f7fdff18cd0>",
        "entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/1",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"})
    for (std::size_t end = 0; end <= name.size(); ++end)
      EXPECT_LE(explain_event_name(std::string_view(name).substr(0, end)).text.size(),
                kLongestText);
}

TEST(EventNameTest, TextIsCutAtWholeCharacters) {
  std::string name = "nn.Module: ";
  for (int i = 0; i < 100; ++i) name += "\u00e9";
  name += "_1";
  const EventName out = explain_event_name(name);
  ASSERT_TRUE(out.known());
  EXPECT_LE(out.text.size(), kLongestText);
  EXPECT_TRUE(out.text.ends_with("\u00e9...")) << out.text;
}

}  // namespace
}  // namespace lanescope::names
