// What a rule's file includes: how a rule is declared, what rules need and what they share.
// docs/rules/<id>.md says what each rule looks at and where its limits are.
#pragma once
#include "lanescope/explain/rule.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/memory_common.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/explain/sentences.h"
