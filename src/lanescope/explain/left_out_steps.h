// Sentences about steps that numbers per step leave out.
#pragma once
#include <optional>

#include "lanescope/explain/facts.h"

namespace lanescope::explain {

// "Steps 8 and 9 are left out: ...". If the steps that remain are incomplete too: what is missing.
// Empty pattern: no step was cut, nothing is missing.
Sentence cut_steps_note(const Facts& facts);

// "Step 5 took 12 ms, longer than the other 8 together, and is left out.", or that it was held up. Empty pattern: no step
// is so long.
Sentence long_step_note(const Facts& facts);

// "Long and short steps alternate, every 2 steps (29.4 to 502 ms): the mean is of whole groups of 2." Of fewer than three groups:
// "seem to alternate". Empty pattern: there are no turns.
Sentence turns_note(const Facts& facts);

// "The trace marks no steps: here each forward begins a step, 7 found." Empty
// pattern: steps are marked, or no iterations were found.
Sentence found_iterations_note(const Facts& facts);

// " They may be rounds inside a longer loop: aten::cdist and 4 other operators run once in about 512 of them." For iterations
// between waits of the CPU. Empty pattern: no three operators run at the same, evenly spaced few of the iterations, or
// they come within 256 iterations again and take less than a twentieth of the time, as logging does.
Sentence outer_loop_note(const Facts& facts);

// "Before them, 43.0 ms of other work are recorded once: 12 x 72 operators (aten::linear, ...). The steps may be rounds inside a
// longer loop." Empty pattern: nothing but start-up and usual iterations precedes.
Sentence other_phase_note(const Facts& facts);

// If iterations were found: the time from the first event of their thread to the first iteration
// that is measured, on the CPU.
struct BeforeIterations {
  analysis::Window window;
  // What precedes the first iteration, or that one itself, takes one and a half times as long as is usual, or first uses of
  // libraries and kernels are a tenth of the time. False: these are usual iterations, of which the first has no mark at its
  // begin.
  bool is_start_up = false;
  // No start-up: it holds a loop of the program (Iterations::before), and few first uses.
  bool is_other_phase = false;
};
// Nothing: no iterations were found, or --step chose one. O(slices), the first time.
std::optional<BeforeIterations> time_before_iterations(const Facts& facts);

// "The first 1.1 s, before the iterations that are measured, are start-up: 300 ms inside cuInit."
Sentence start_up_note(const Facts& facts);

}  // namespace lanescope::explain
