#include "lanescope/explain/loop_remedies.h"

#include <gtest/gtest.h>

namespace lanescope::explain {
namespace {

Owner loop_of(std::vector<std::string> cell, std::uint64_t rounds) {
  Owner owner;
  owner.kind = OwnerKind::kLoop;
  owner.cell = std::move(cell);
  owner.cell_size = owner.cell.size();
  owner.rounds = rounds;
  owner.loops = 1;
  return owner;
}

TEST(BackwardOfLoopTest, NodesOfTheLoopsOwnOperatorsInAsManyRounds) {
  Owners owners;
  owners.owners = {loop_of({"aten::pow", "aten::sum", "aten::add_"}, 42),
                   loop_of({"AddmmBackward0", "ReluBackward0"}, 42),
                   loop_of({"PowBackward0", "SumBackward0", "AddBackward0"}, 41)};
  EXPECT_EQ(backward_of_loop(owners, owners.owners[0]), &owners.owners[2]);
  owners.owners[2].rounds = 20;
  EXPECT_EQ(backward_of_loop(owners, owners.owners[0]), nullptr);
}

}  // namespace
}  // namespace lanescope::explain
