#include "lanescope/explain/questions.h"

#include <gmock/gmock.h>

#include "lanescope/explain/run_rules.h"

namespace lanescope::explain {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(QuestionsTest, TheVeryQuestionOfARuleIsThatRule) {
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(is_question(rule->question)) << rule->id;
    EXPECT_FALSE(is_question(rule->id));
    EXPECT_THAT(rules_for_question(rule->question).ids, ElementsAre(rule->id));
  }
  EXPECT_THAT(rules_for_question("Why is the FIRST step slow").ids, ElementsAre("slow-first-step"));
}

TEST(QuestionsTest, OtherWordsFindTheRulesThatShareMost) {
  const struct {
    const char *question, *rule;
  } kRows[] = {
      {"what bound this step", "host-bound"},
      {"what bound this step", "gpu-bound"},
      {"CPU overhead or GPU compute?", "host-bound"},
      {"CPU overhead or GPU compute?", "gpu-bound"},
      {"am I CPU-bound or GPU-bound", "host-bound"},
      {"why is my GPU idle", "gpu-idle"},
      {"low GPU utilization", "gpu-idle"},
      {"what did torch.compile fuse", "compiled-code"},
      {"what makes the first step so slow?", "slow-first-step"},
      {"which copy should not be there", "exposed-copy"},
      {"which copies should not be there", "exposed-copy"},
      {"which copy should not be there", "pageable-copy"},
      {"which sync should not be there", "host-sync"},
      {"which synchronization should not be there", "host-sync"},
      {"which cudaDeviceSynchronize should not be there: a needless synchronize?", "host-sync"},
      {"why am I out of memory", "memory-limit"},
      {"OOM!  why?", "memory-growth"},
      {"is there a memory leak", "memory-growth"},
      {"is my data loader slow", "dataloader-wait"},
      {"why does step time vary?", "uneven-steps"},
      {"should I use cudagraphs or not", "graph-opportunity"},
      {"why did it recompile", "recompiles"},
      {"host to device transfers", "exposed-copy"},
      {"what is aten::addmm", "matmul-chain"},
      {"is the all reduce hidden?", "first-collective"},
      {"why is my optimizer slow?", "optimizer-share"},
      {"why is my optimizer slow?", "optimizer-loop"},
      {"do I need more workers?", "dataloader-wait"},
      {"why are there gaps between kernels?", "gpu-idle"},
      {"why does cudaMemcpyAsync take so long?", "pageable-copy"},
      {"why does cudaMemcpyAsync take so long?", "exposed-copy"},
      {"why hipMemcpyAsync", "exposed-copy"},
      {"what is hipStreamSynchronize doing?", "host-sync"},
      {"who calls hipFree", "allocator-calls"},
      {"what is Self against total?", "self-total"},
      {"why does the backward pass take longer?", "backward-gap"},
  };
  for (const auto& row : kRows) {
    const AskedRules asked = rules_for_question(row.question);
    EXPECT_FALSE(asked.all) << row.question;
    EXPECT_THAT(asked.ids, Contains(row.rule)) << row.question;
    EXPECT_THAT(asked.ids, SizeIs(::testing::Le(5)));
  }
}

// What newcomers ask, in words that no rule has in its question.
TEST(QuestionsTest, QuestionsOfNewcomersFindTheRuleThatIsMeant) {
  const struct {
    const char *question, *rule;
  } kRows[] = {
      {"do I use tensor cores?", "half-off-tensor-cores"},
      {"do I use tensor cores?", "fp32-matmul"},
      {"why is the last step slow", "uneven-steps"},
      {"what happened in step 7?", "long-step"},
      {"can I trust this trace?", "lost-events"},
      {"is the recording complete?", "damaged-file"},
      {"how much memory?", "memory-peak"},
      {"how much VRAM do I need?", "memory-peak"},
      {"is adam slow?", "optimizer-loop"},
      {"is my learning rate scheduler slow?", "optimizer-share"},
      {"is my batch size too small?", "few-blocks"},
      {"what is the slowest kernel?", "hotspot-kernel"},
      {"is the GPU fully used?", "gpu-idle"},
      {"is my loss function expensive?", "logits-loss"},
      {"is python slow?", "host-bound"},
      {"what does cudaMalloc do here?", "allocator-calls"},
      {"what is cudaLaunchKernel?", "tiny-kernels"},
      {"is .item() a problem?", "host-sync"},
      {"is num_workers too low?", "dataloader-wait"},
      {"should I use channels last?", "conv-layout"},
      {"are the ranks balanced?", "communication-bound"},
      {"which kernels should I fuse?", "unfused-chain"},
      {"is pytorch compile working?", "compiled-code"},
  };
  for (const auto& row : kRows) {
    const AskedRules asked = rules_for_question(row.question);
    EXPECT_FALSE(asked.all) << row.question;
    EXPECT_THAT(asked.ids, Contains(row.rule)) << row.question;
    EXPECT_THAT(asked.ids, SizeIs(::testing::Le(5)));
  }
  EXPECT_THAT(rules_for_question("is my loss function expensive?").ids,
              ::testing::Not(Contains("lost-events")));
  EXPECT_THAT(rules_for_question("do I use tensor cores?").ids,
              ::testing::Not(Contains("graph-opportunity")));
}

TEST(QuestionsTest, AQuestionAboutEverythingAsksAll) {
  for (const char* question :
       {"what should I fix first?", "what to fix first and how much that gives", "why is it slow?",
        "How do I make it faster", "where does the time go?", "what takes most of the time",
        "why is inference slow?", "how long is a step?"}) {
    const AskedRules asked = rules_for_question(question);
    EXPECT_TRUE(asked.all) << question;
    EXPECT_THAT(asked.ids, IsEmpty());
  }
  EXPECT_FALSE(rules_for_question("what makes the first step slow").all);
}

TEST(QuestionsTest, WordsOfNoRuleFindNone) {
  for (const char* question : {"quux frobnicate", "why is it so?", " ? "}) {
    const AskedRules asked = rules_for_question(question);
    EXPECT_FALSE(asked.all) << question;
    EXPECT_THAT(asked.ids, IsEmpty()) << question;
  }
}

}  // namespace
}  // namespace lanescope::explain
