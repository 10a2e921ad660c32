// The GPU is idle while Gloo or MPI run collectives of its tensors on the CPU.
#include <optional>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/gloo_waits.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

std::optional<GlooWaits> measure_host_collectives(const Facts& facts) {
  return gloo_waits_matter(facts) ? std::optional(gloo_waits(facts)) : std::nullopt;
}

// Each micro batch sends all gradients: the last one would be enough.
void tell_sends_of_micro_batches(const Facts& facts, const GlooWaits& found, std::uint64_t sends,
                                 Finding& finding) {
  finding.brief =
      say(facts, "The GPU waits while {} sends gradients, after each of {} micro batches",
          {text(found.library), count(sends)});
  finding.action =
      say("Send them once per step: model.no_sync() for all micro batches but the last");
  finding.try_next.insert(
      finding.try_next.begin(),
      "gradients are added up until the optimizer's step: run all micro batches "
      "but the last under model.no_sync()");
  finding.at_stake_ns = facts.per_step(found.early_waiting_ns);
  finding.at_stake_ratio = share_of(found.early_waiting_ns, facts.wall.partition.wall_ns);
  finding.arithmetic.push_back(say(
      facts,
      "at stake: {} [per step] of it, in collectives that begin before the last forward pass of "
      "their step",
      {ns(finding.at_stake_ns)}));
  finding.arithmetic.push_back(
      say(facts, "{} [collective|collectives] for {} forward passes of DistributedDataParallel",
          {count(found.count), count(found.forwards)}));
}

Finding tell_host_collectives(const Facts& facts, const GlooWaits& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict =
      say(facts,
          "The GPU waits {} [per step] ({}) while {} runs collectives on the CPU: {} "
          "[collective|collectives] [in {} steps].",
          {ns(facts.per_step(found.waiting_ns)), ratio(found.waiting_ns, wall_ns),
           text(found.library), count(found.count), count(facts.selection.steady.size())});
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, wall_ns);
  finding.arithmetic.push_back(say(
      facts,
      "{} [per step] in such collectives, in {} of which the GPU is idle and no other thread is "
      "in an operator or a call",
      {ns(facts.per_step(found.time_ns)), ns(facts.per_step(found.waiting_ns))}));
  finding.evidence.push_back({found.longest, say("the longest of {}", {count(found.count)})});
  finding.try_next = {
      "where each rank has a GPU of its own, use NCCL: init_process_group(\"nccl\") sends tensors "
      "of the GPU without the CPU",
      "see whether a rank comes late: the same collective is shorter in the trace of the rank that "
      "comes last (lanescope ranks FOLDER)"};
  finding.brief =
      say(facts, "The GPU waits while {} runs collectives, {} [time|times] [in {} steps]",
          {text(found.library), count(found.count), count(facts.selection.steady.size())});
  finding.action = say("Use NCCL (init_process_group(\"nccl\")), where each rank has its own GPU");
  if (found.forwards > 0) {  // of DistributedDataParallel
    finding.action =
        say("Use NCCL (init_process_group(\"nccl\")), where each rank has its own GPU; else send "
            "gradients of float32 as bf16 (bf16_compress_hook)");
    finding.try_next.push_back(
        "model.register_comm_hook(None, bf16_compress_hook), of "
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks, sends half of the bytes of "
        "float32 gradients; they are rounded to 8 bits of precision on the way");
  }
  if (const std::uint64_t sends = found.sends_per_step(facts); sends > 0)
    tell_sends_of_micro_batches(facts, found, sends, finding);
  for (const char* covered : {"python-hole", "gpu-idle"})
    finding.explains.push_back({covered, facts.per_step(found.waiting_ns)});
  finding.confidence = facts.confidence();
  finding.sample_count = found.count;
  finding.sample_noun = "collective";
  return finding;
}

}  // namespace

extern constinit const Rule host_collectives_rule = {
    .id = "host-collectives",
    .question = "does the GPU wait for collectives on the CPU (Gloo, MPI)?",
    .meant_by = "gloo mpi no_sync",
    .order = 51,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_host_collectives, tell_host_collectives>,
    .survives_cut = false,
};

}  // namespace lanescope::explain::rules
