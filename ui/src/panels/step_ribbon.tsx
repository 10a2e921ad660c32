// One bar a step, as high as the step is long, so that the odd one stands out. Very many steps share bars: the longest is shown.
import { useComputed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { plural } from "../base/format.ts";
import { median } from "../base/numbers.ts";
import { goToStep, nextStep, stepInView, stepLength, stepText } from "../state/actions/moving.ts";
import { useStore } from "../state/context.ts";

const mostBars = 160;

export interface StepBar { first: number; last: number; longest: number; share: number; odd: boolean; steady: boolean }

export function stepBars(steps: readonly { dur_ns: number; steady?: boolean }[]): StepBar[] {
  if (steps.length === 0) return [];
  const each = Math.ceil(steps.length / mostBars);
  const steady = steps.filter((step) => step.steady !== false);
  const typical = median((steady.length > 0 ? steady : steps).map((step) => step.dur_ns));
  // One start-up step of a thousand times the length must not flatten all others.
  const top = Math.min(Math.max(...steps.map((step) => step.dur_ns)), typical * 2.5);
  const bars: StepBar[] = [];
  for (let first = 0; first < steps.length; first += each) {
    const last = Math.min(steps.length, first + each) - 1;
    let longest = first;
    for (let index = first; index <= last; index += 1) if (steps[index].dur_ns > steps[longest].dur_ns) longest = index;
    const dur = steps[longest].dur_ns;
    bars.push({ first, last, longest, share: Math.min(1, dur / Math.max(1, top)), odd: dur > typical * 1.25, steady: steps[longest].steady !== false });
  }
  return bars;
}

export function StepRibbon() {
  const store = useStore();
  const steps = store.main.meta.steps;
  const bars = useMemo(() => stepBars(steps.map((step) => ({ dur_ns: stepLength(step), steady: step.steady }))), [steps]);
  // Only when another step comes into view is the ribbon made anew.
  const inView = useComputed(() => {
    void store.viewport.shown.value;
    return stepInView(store);
  });
  if (steps.length === 0) return null;
  const now = inView.value;
  const typical = store.main.meta.typical_step ?? null;
  const step = now >= 0 ? steps[now] : undefined;
  return (
    <div class="ribbon">
      <div class="wall-caption">
        <span>{plural(steps.length, "step")}{step !== undefined && <> · in view: {stepText(step)}</>}</span>
        <span class="ribbon-buttons">
          {typical !== null && <button type="button" class="small" onClick={() => goToStep(store, steps[typical])}>{steps.length > 1 ? "typical step" : "the step"}</button>}
          {steps.length > 1 && <button type="button" class="small" aria-label="previous step" onClick={() => nextStep(store, -1)}>←</button>}
          {steps.length > 1 && <button type="button" class="small" aria-label="next step" onClick={() => nextStep(store, 1)}>→</button>}
        </span>
      </div>
      <div class="ribbon-bars" role="group" aria-label="steps">
        {bars.map((bar) => (
          <button key={bar.first} type="button" tabIndex={-1} class={`ribbon-bar ${now >= bar.first && now <= bar.last ? "now" : ""} ${bar.odd ? "odd" : ""} ${bar.steady ? "" : "unsteady"}`}
            aria-label={`${stepText(steps[bar.longest])}${bar.odd ? ", longer than usual" : ""}`}
            title={`${stepText(steps[bar.longest])}${bar.steady ? "" : " (not counted in means)"}`}
            onClick={() => goToStep(store, steps[bar.longest])}>
            <span style={{ height: `${Math.max(8, bar.share * 100)}%` }} />
          </button>
        ))}
      </div>
      {bars.some((bar) => bar.odd || !bar.steady) && (
        <p class="ribbon-key faint">
          {bars.some((bar) => bar.odd) && <span><span class="ribbon-sample odd" aria-hidden="true" /> longer than usual</span>}
          {bars.some((bar) => !bar.steady && !bar.odd) && <span><span class="ribbon-sample unsteady" aria-hidden="true" /> start-up, not in the mean</span>}
        </p>
      )}
    </div>
  );
}
