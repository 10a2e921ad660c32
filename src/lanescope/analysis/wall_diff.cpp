// Problem: "which kernels got slower" does not say why the step did: sums over kernels are not the
// wall, and idle time belongs to no kernel. Idea: one identity, per trace and step,
//   wall = kernels added up + overlap (<= 0) + exposed communication + exposed copies + idle,
// taken twice and subtracted. Kernels are matched first, so that each difference has
// a row. Example:
//   A: mm 2 x 10 us, add 5 us, idle 5 us, wall 30
//   B: mm 3 x 12 us, fused_add 4 us, idle 2 us, wall 42
//   -> mm: one call more +10, three calls 2 longer +6; add -> fused_add -1; idle -3; sum +12
// Whole nanoseconds: each part is the difference of two rounded-down running sums. So each part is
// less than 1 ns off, and the parts add up to the wall rounded down.
#include "lanescope/analysis/wall_diff.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::analysis {
namespace {

// In the name of a fused kernel, aten::add_ and add.Tensor are "add".
std::string short_operator(std::string_view op) {
  const std::size_t colons = op.rfind("::");
  if (colons != std::string_view::npos) op.remove_prefix(colons + 2);
  op = op.substr(0, op.find('.'));
  while (op.size() > 1 && op.ends_with('_')) op.remove_suffix(1);
  return std::string(op);
}

class Matcher {
 public:
  Matcher(const StepCosts& a, const StepCosts& b)
      : a_(a), b_(b), taken_a_(a.work.size()), taken_b_(b.work.size()) {
    for (std::size_t i = 0; i < a.work.size(); ++i)
      if (a.work[i].work == WorkClass::kCompute) left_a_.push_back(i);
    for (std::size_t i = 0; i < b.work.size(); ++i)
      if (b.work[i].work == WorkClass::kCompute) left_b_.push_back(i);
  }

  std::vector<KernelDiff> run() {
    using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
    match(MatchKind::kSame, true,
          [](const WorkGroup& each) { return Key(each.name, each.op, each.dims); });
    match(MatchKind::kSame, false, [](const WorkGroup& each) { return Key(each.name, "", ""); });
    match(MatchKind::kChanged, true, [](const WorkGroup& each) {
      return Key(each.op, each.dims, each.op.empty() ? "" : ".");
    });
    match(MatchKind::kChanged, false,
          [](const WorkGroup& each) { return Key(each.op, "", each.op.empty() ? "" : "."); });
    match_fused();
    for (const std::size_t each : left_a_) put(MatchKind::kGone, {each}, {});
    for (const std::size_t each : left_b_) put(MatchKind::kNew, {}, {each});
    return std::move(result_);
  }

 private:
  // Groups with equal keys on both sides become one row. Keys without the operator that they
  // need match nothing.
  template <typename KeyOf>
  void match(MatchKind kind, bool same_shapes, KeyOf key_of) {
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>,
             std::pair<std::vector<std::size_t>, std::vector<std::size_t>>>
        sides;
    const auto usable = [&](const auto& key) {
      return kind != MatchKind::kChanged || !std::get<2>(key).empty();
    };
    for (const std::size_t each : left_a_)
      if (const auto key = key_of(a_.work[each]); usable(key)) sides[key].first.push_back(each);
    for (const std::size_t each : left_b_)
      if (const auto key = key_of(b_.work[each]); usable(key)) sides[key].second.push_back(each);
    for (auto& [key, pair] : sides) {
      if (pair.first.empty() || pair.second.empty()) continue;
      put(kind, std::move(pair.first), std::move(pair.second), same_shapes);
    }
    drop_taken();
  }

  void drop_taken() {
    std::erase_if(left_a_, [&](std::size_t i) { return taken_a_[i]; });
    std::erase_if(left_b_, [&](std::size_t i) { return taken_b_[i]; });
  }

  // Words to match kernels by: for a fused kernel the operators in its name, for others the
  // operator that launched it. `parts`: the operators that this operator combines.
  struct Words {
    std::vector<std::string> words;
    bool fused = false;
    std::vector<std::string> parts = {};
  };
  static Words words_of(const WorkGroup& group) {
    names::KernelName name = names::parse_kernel_name(group.name);
    if (!name.fused.empty()) return {std::move(name.fused), true};
    if (group.op.empty()) return {};
    std::string word = short_operator(group.op);
    // A compiler's _to_copy and clone run as aten::copy_ in eager code.
    if (word == "copy") return {{"copy", "_to_copy", "clone"}, false};
    std::vector<std::string> parts = parts_of(word);
    std::vector<std::string> words = {word};
    if (word.starts_with("_foreach_")) words.emplace_back("_foreach");
    return {std::move(words), false, std::move(parts)};
  }
  static std::vector<std::string> parts_of(std::string_view word) {
    if (word == "addmm") return {"mm", "add"};
    if (word == "baddbmm") return {"bmm", "add"};
    if (word.starts_with("_scaled_dot_product") || word.starts_with("_flash_attention") ||
        word.starts_with("_efficient_attention"))
      return {"bmm", "_softmax"};
    if (word.starts_with("_fused_")) return {"_foreach"};  // optimizers
    return {};
  }

  // A fused kernel of one side and kernels of the other that share an operator belong together, and
  // so do all that share one with any of these: connected components. The same for an operator and
  // those it combines (addmm: mm and add).
  void match_fused() {
    std::vector<Words> words;
    for (const std::size_t each : left_a_) words.push_back(words_of(a_.work[each]));
    for (const std::size_t each : left_b_) words.push_back(words_of(b_.work[each]));
    std::vector<std::size_t> root(words.size());
    std::iota(root.begin(), root.end(), std::size_t{0});
    const auto find = [&](std::size_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    struct Users {
      std::vector<std::size_t> fused[2], plain[2], whole[2];  // of A, of B
    };
    std::map<std::string, Users> by_word;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const int side = i < left_a_.size() ? 0 : 1;
      for (const std::string& word : words[i].words)
        (words[i].fused ? by_word[word].fused : by_word[word].plain)[side].push_back(i);
      for (const std::string& part : words[i].parts) by_word[part].whole[side].push_back(i);
    }
    const auto join = [&](const std::vector<std::size_t>& some,
                          const std::vector<std::size_t>& more) {
      if (some.empty() || more.empty()) return;
      for (const auto* list : {&some, &more})
        for (const std::size_t each : *list) root[find(each)] = find(some.front());
    };
    for (const auto& [word, users] : by_word)
      for (const int side : {0, 1}) {
        join(users.fused[side], users.plain[1 - side]);
        join(users.fused[side], users.fused[1 - side]);
        join(users.whole[side], users.plain[1 - side]);
      }
    std::map<std::size_t, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> parts;
    std::map<std::size_t, bool> a_fused, b_fused;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t part = find(i);
      if (i < left_a_.size()) {
        parts[part].first.push_back(left_a_[i]);
        a_fused[part] |= words[i].fused || !words[i].parts.empty();
      } else {
        parts[part].second.push_back(left_b_[i - left_a_.size()]);
        b_fused[part] |= words[i].fused || !words[i].parts.empty();
      }
    }
    for (auto& [part, sides] : parts) {
      if (sides.first.empty() || sides.second.empty()) continue;
      put(MatchKind::kFused, sides.first, sides.second);
      result_.back().a_is_fused = a_fused[part] && !b_fused[part];
    }
    drop_taken();
  }

  void put(MatchKind kind, std::vector<std::size_t> a, std::vector<std::size_t> b,
           bool same_shapes = true) {
    KernelDiff row;
    row.kind = kind;
    row.same_shapes = same_shapes;
    for (const std::size_t each : a) {
      taken_a_[each] = true;
      row.a_count += a_.work[each].count;
      row.a_total_ns += a_.work[each].time_ns;
    }
    for (const std::size_t each : b) {
      taken_b_[each] = true;
      row.b_count += b_.work[each].count;
      row.b_total_ns += b_.work[each].time_ns;
    }
    row.a = by_time(a_, std::move(a));
    row.b = by_time(b_, std::move(b));
    result_.push_back(std::move(row));
  }

  static std::vector<std::size_t> by_time(const StepCosts& side, std::vector<std::size_t> list) {
    sort_rows(list.begin(), list.end(), [&](std::size_t x, std::size_t y) {
      return side.work[x].time_ns > side.work[y].time_ns;
    });
    return list;
  }

  const StepCosts& a_;
  const StepCosts& b_;
  std::vector<std::size_t> left_a_, left_b_;  // not matched yet, in order
  std::vector<bool> taken_a_, taken_b_;
  std::vector<KernelDiff> result_;
};

// Gives parts of a step whose sum is the running sum rounded down.
class RunningSum {
 public:
  explicit RunningSum(std::int64_t steps) : steps_(std::max<std::int64_t>(1, steps)) {}
  std::int64_t part(Wide total_ns) {
    const Wide before = down();
    sum_ += total_ns;
    return static_cast<std::int64_t>(down() - before);
  }
  std::int64_t down() const {
    const Wide quotient = sum_ / steps_;
    return static_cast<std::int64_t>(sum_ % steps_ < 0 ? quotient - 1 : quotient);
  }

 private:
  Wide steps_, sum_ = 0;
};

WallLevels levels_of(const StepCosts& side, std::vector<KernelDiff>& kernels, bool is_a) {
  RunningSum sum(side.step_count);
  WallLevels levels;
  Wide added_up = 0;
  for (KernelDiff& row : kernels) {
    const std::int64_t total = is_a ? row.a_total_ns : row.b_total_ns;
    added_up += total;
    const std::int64_t part = sum.part(total);
    (is_a ? row.a_ns : row.b_ns) = part;
    levels.kernels_ns += part;
  }
  levels.overlap_ns = sum.part(side.wall.compute_ns - added_up);
  levels.exposed_communication_ns = sum.part(side.wall.exposed_communication_ns);
  levels.exposed_copy_ns = sum.part(side.wall.exposed_copy_ns);
  for (std::size_t i = 0; i < kIdleCauseCount; ++i) levels.idle_ns[i] = sum.part(side.idle[i]);
  levels.wall_ns = sum.down();
  return levels;
}

// (B's calls per step - A's calls per step) x mean time of a call in A, towards zero.
std::int64_t count_effect(const KernelDiff& row, std::int64_t a_steps, std::int64_t b_steps) {
  if (row.a_count == 0) return 0;
  const Wide a_n = std::max<std::int64_t>(1, a_steps), b_n = std::max<std::int64_t>(1, b_steps);
  const Wide calls = Wide{row.b_count} * a_n - Wide{row.a_count} * b_n;
  return static_cast<std::int64_t>(calls * row.a_total_ns / (a_n * b_n * Wide{row.a_count}));
}

// Effects of the same kernels may cancel out and still deserve a line.
std::int64_t size_of(const KernelDiff& row) {
  return std::max(
      {std::llabs(row.delta_ns()), std::llabs(row.count_ns), std::llabs(row.per_call_ns)});
}

}  // namespace

const char* match_kind_name(MatchKind kind) {
  switch (kind) {
    case MatchKind::kSame:
      return "same";
    case MatchKind::kChanged:
      return "changed";
    case MatchKind::kFused:
      return "fused";
    case MatchKind::kNew:
      return "new";
    case MatchKind::kGone:
      return "gone";
  }
  return "";
}

std::int64_t WallEffects::sum_ns() const {
  return std::accumulate(idle_ns.begin(), idle_ns.end(),
                         calls_ns + per_call_ns + changed_ns + fused_ns + new_ns + gone_ns +
                             overlap_ns + exposed_communication_ns + exposed_copy_ns);
}

std::int64_t per_step_ns(std::int64_t total_ns, std::int64_t steps) {
  return total_ns / std::max<std::int64_t>(1, steps);
}

WallDiff compute_wall_diff(const StepCosts& a, const StepCosts& b) {
  WallDiff diff;
  diff.kernels = Matcher(a, b).run();
  diff.a = levels_of(a, diff.kernels, true);
  diff.b = levels_of(b, diff.kernels, false);
  WallEffects& effects = diff.effects;
  for (KernelDiff& row : diff.kernels) {
    switch (row.kind) {
      case MatchKind::kSame:
        row.count_ns = count_effect(row, a.step_count, b.step_count);
        row.per_call_ns = row.delta_ns() - row.count_ns;
        effects.calls_ns += row.count_ns;
        effects.per_call_ns += row.per_call_ns;
        break;
      case MatchKind::kChanged:
        effects.changed_ns += row.delta_ns();
        break;
      case MatchKind::kFused:
        effects.fused_ns += row.delta_ns();
        break;
      case MatchKind::kNew:
        effects.new_ns += row.delta_ns();
        break;
      case MatchKind::kGone:
        effects.gone_ns += row.delta_ns();
        break;
    }
  }
  effects.overlap_ns = diff.b.overlap_ns - diff.a.overlap_ns;
  effects.exposed_communication_ns =
      diff.b.exposed_communication_ns - diff.a.exposed_communication_ns;
  effects.exposed_copy_ns = diff.b.exposed_copy_ns - diff.a.exposed_copy_ns;
  for (std::size_t i = 0; i < kIdleCauseCount; ++i)
    effects.idle_ns[i] = diff.b.idle_ns[i] - diff.a.idle_ns[i];
  sort_rows(diff.kernels.begin(), diff.kernels.end(),
            [](const KernelDiff& x, const KernelDiff& y) { return size_of(x) > size_of(y); });
  return diff;
}

}  // namespace lanescope::analysis
