#include "lanescope/explain/owner_advice.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/loop_remedies.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

// The row of an operator that holds a quarter of a loop or range, where no row asks for the inputs
// or the surroundings of the call: of a part there is only its name. Null: none.
const rules::OperatorAdvice* known_part(const Facts& facts, const Owner& owner) {
  for (const OwnerPart& part : owner.parts) {
    if (part.time_ns * 4 < owner.total_ns) break;
    for (const rules::OperatorAdvice& row : rules::operator_advice())
      if (row.op == part.name && !row.fits && !row.unless &&
          (facts.main_device || !row.is_of_gpu) && row.kernel.empty() && row.unless_in.empty() &&
          a_step(facts, std::max<std::uint64_t>(1, owner.rounds)) >=
              static_cast<std::uint64_t>(row.least_calls))
        return &row;
  }
  return nullptr;
}

// The row of an operator that takes most of the longest call, where that call is one of a large part:
// aten::_linalg_svd in aten::linalg_matrix_norm. Null: none.
const rules::OperatorAdvice* known_inside_part(const Facts& facts, const Owner& owner) {
  const Trace& trace = *facts.trace;
  const rules::OperatorAdvice* found = nullptr;
  std::int64_t found_ns = 0;
  for (SliceId slice = cpu_side(facts, owner.example); slice != kNone<SliceId>;
       slice = facts.nesting.parent[raw(slice)]) {
    if (trace.kind(slice) != CategoryKind::kCpuOp) continue;
    const rules::OperatorAdvice* row = rules::advice_for_call(facts, slice);
    if (row && row->kernel.empty() && row->unless_in.empty() && row->least_calls == 1) {
      found = row;
      found_ns = trace.dur_ns(slice);
    }
    if (std::any_of(owner.parts.begin(), owner.parts.end(), [&](const OwnerPart& part) {
          return part.name == trace.name(slice) && part.time_ns * 4 >= owner.total_ns;
        }))
      return found_ns * 2 > trace.dur_ns(slice) ? found : nullptr;
  }
  return nullptr;
}

bool has_category(const Trace& trace, CategoryKind kind) {
  return std::any_of(trace.categories().begin(), trace.categories().end(),
                     [&](const Category& each) { return each.kind == kind; });
}

// Was with_stack on? Its frames are events, or texts of the operators.
bool has_stacks(const Trace& trace) {
  if (has_category(trace, CategoryKind::kPythonFunction)) return true;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp &&
        trace.slice_args(SliceId{i}).text(ArgKey::kCallStack))
      return true;
  return false;
}

// For one operator whose shapes are known: the share of what the GPU can do that its kernels reach.
// Else 0.
double reached_of_limit(const Owner& owner) {
  const OwnerWork& work = owner.work;
  if (mechanism_of(owner) != Mechanism::kGpuWork || !is_one_operator(owner) ||
      !is_most(work.rated_ns, work.gpu_ns))
    return 0;
  return work.rated_floor_ns / static_cast<double>(work.rated_ns);
}

// Kernels near what the GPU can do: faster ones are not to be had.
Sentence remedy_near_the_limit(const Owner& owner) {
  constexpr double kNear = 0.7;
  const OwnerWork& work = owner.work;
  if (reached_of_limit(owner) < kNear) return {};
  // Attention and products read caches and weights of their own, whatever their neighbours are.
  if (is_most(work.rated_by_memory_ns, work.rated_ns) &&
      (rules::is_product(owner.name) || owner.name.find("attention") != std::string::npos))
    return say(
        "{} is as fast as memory allows: only less data helps (leave out rows that nothing needs, "
        "shorter or smaller inputs, smaller types)",
        {name(owner.name)});
  return is_most(work.rated_by_memory_ns, work.rated_ns)
             ? say("{} is as fast as memory allows: only less data helps (fewer rows, smaller "
                   "types, or fusing it with its neighbours)",
                   {name(owner.name)})
             : say("{} is near the GPU's peak: only less work helps (fewer rows, or a type with "
                   "fewer bits)",
                   {name(owner.name)});
}

// A function that makes cosines and sines again in each call, such as a rotary embedding in each layer: positions are the same.
Sentence remedy_of_angles(const Owner& owner) {
  const auto calls = [&](const char* op) {
    return std::binary_search(owner.function_calls.begin(), owner.function_calls.end(), op);
  };
  if (owner.kind != OwnerKind::kLoop || !calls("aten::cos") || !calls("aten::sin")) return {};
  return say("Make the cosines and sines of {} once, before the loop, if positions stay the same",
             {name(function_first(owner.function))});
}

// The remedy for strided inputs, from the table of operators, for the rounds of a loop, or one call for all rounds. Empty: none is known.
Sentence remedy_text(const Facts& facts, const Owner& owner) {
  if (elements_for_each_used(facts, owner) > 0)
    return say("Store each column contiguously (a tensor of its own, or [columns, rows])");
  if (const rules::OperatorAdvice* row = known_operator(facts, owner)) return say(row->action);
  if (Sentence remedy = remedy_of_angles(owner); !remedy.pattern.empty()) return remedy;
  return remedy_of_loop(facts, owner);
}

}  // namespace

bool is_one_operator(const Owner& owner) {
  return owner.kind == OwnerKind::kOperator ||
         (owner.kind == OwnerKind::kLoop && owner.cell_size == 1);
}

const rules::OperatorAdvice* known_operator(const Facts& facts, const Owner& owner) {
  if (!is_one_operator(owner)) {
    const rules::OperatorAdvice* row = known_part(facts, owner);
    return row ? row : known_inside_part(facts, owner);
  }
  const rules::OperatorAdvice* found = nullptr;
  // From the longest call outwards: the outermost operator with advice decides.
  SliceId slice = cpu_side(facts, owner.example);
  for (; slice != kNone<SliceId>; slice = facts.nesting.parent[raw(slice)]) {
    const std::string_view name = facts.trace->name(slice);
    const bool is_owner = name == owner.name;
    if (!is_owner &&
        std::find(owner.inside.begin(), owner.inside.end(), name) == owner.inside.end())
      continue;
    const rules::OperatorAdvice* row = rules::advice_for_call(facts, slice);
    if (row && row->kernel.empty()) found = row;
    if (is_owner) break;
  }
  return found;
}

bool has_remedy(const Facts& facts, const Owner& owner) {
  return !remedy_text(facts, owner).pattern.empty();
}

bool uses_gpu_well(const Owner& owner) {
  constexpr double kWellUsed = 0.6;
  return reached_of_limit(owner) >= kWellUsed;
}

Sentence advice_text(const Facts& facts, const Owner& owner) {
  if (Sentence remedy = remedy_text(facts, owner); !remedy.pattern.empty()) return remedy;
  if (Sentence limit = remedy_near_the_limit(owner); !limit.pattern.empty()) return limit;
  std::string more = record_more(facts, owner);
  if (more.empty()) return {};
  return say("To learn more: {}", {text(std::move(more))});
}

std::string record_more(const Facts& facts, const Owner& owner) {
  if (!facts.main_device && rules::used_gpu(facts))
    return "record the GPU too (ProfilerActivity.CUDA; lanescope doctor tests it): these calls may "
           "only launch its work or wait for it";
  // Only torch.profiler and lanescope record operators, and stacks with them.
  const bool may_have_stacks = has_category(*facts.trace, CategoryKind::kCpuOp);
  switch (mechanism_of(owner)) {
    case Mechanism::kCode:
      if (owner.kind == OwnerKind::kLine || owner.around_kind == OwnerKind::kLine ||
          !owner.frame.empty() || owner.sampled)
        return {};
      if (has_stacks(*facts.trace)) return "mark parts of it with record_function";
      if (!may_have_stacks) return "mark parts of it with ranges (record_function, NVTX)";
      return "record with_stack=True to see which lines of Python these are, or mark parts of it "
             "with record_function";
    case Mechanism::kCpuWork:
    case Mechanism::kLaunching:
      if (has_stacks(*facts.trace) || !may_have_stacks) return {};
      return "record with_stack=True to see which lines make these calls";
    case Mechanism::kGpuWork:
      if (facts.main_device && !kernel_facts(facts).roofline.has_shapes)
        return "record_shapes=True shows how near these kernels come to the GPU's peak";
      return {};
    case Mechanism::kData:
      return "record the workers too, or time the dataset's __getitem__";
    default:
      return {};
  }
}

}  // namespace lanescope::explain
