// One bar a step, as high as the step is long, so that the odd one stands out. Very many steps share bars: the longest is shown.
import { useComputed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { plural } from "../base/format.ts";
import { median } from "../base/numbers.ts";
import { goToStep, nextStep, stepInView, stepLength, stepText } from "../state/actions/moving.ts";
import { useStore } from "../state/context.ts";
import type { Step, TraceMeta } from "../api/types.ts";

const mostBars = 160;

export interface StepBar { first: number; last: number; longest: number; share: number; odd: boolean; steady: boolean }

export function stepBars(steps: readonly { dur_ns: number; steady?: boolean }[]): StepBar[] {
  if (steps.length === 0) return [];
  const each = Math.ceil(steps.length / mostBars);
  const steady = steps.filter((step) => step.steady !== false);
  const typical = median((steady.length > 0 ? steady : steps).map((step) => step.dur_ns));
  // One start-up step of a thousand times the length must not flatten all others.
  const top = Math.min(steps.reduce((most, step) => Math.max(most, step.dur_ns), 0), typical * 2.5);
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

// A bar with the step that it shows: the longest of those that share it.
export type RibbonBar = StepBar & { step: Step };

export function ribbonBars(meta: TraceMeta): RibbonBar[] {
  if (meta.bars === undefined) {
    const { steps } = meta;
    return stepBars(steps.map((step) => ({ dur_ns: stepLength(step), steady: step.steady }))).map((bar) => ({ ...bar, step: steps[bar.longest] }));
  }
  // Very many steps: the engine chose the longest of each bar. The typical step is that of median length.
  const shown = meta.bars.map((bar) => bar.longest[0]);
  const each = meta.steps_per_bar ?? 1;
  const typical = meta.typical?.[0] === undefined ? median(shown.map(stepLength)) : stepLength(meta.typical[0]);
  const top = Math.min(shown.reduce((most, step) => Math.max(most, stepLength(step)), 0), typical * 2.5);
  return shown.map((step, at) => ({
    first: at * each, last: Math.min(meta.step_count ?? Infinity, (at + 1) * each) - 1, longest: step.index, step,
    share: Math.min(1, stepLength(step) / Math.max(1, top)), odd: stepLength(step) > typical * 1.25, steady: step.steady !== false,
  }));
}

export function StepRibbon() {
  const store = useStore();
  const { steps, meta } = store.main;
  const bars = useMemo(() => ribbonBars(meta), [meta]);
  // Only when another step comes into view is the ribbon made anew.
  const inView = useComputed(() => {
    void store.viewport.shown.value;
    void store.main.steps.version.value;
    return stepInView(store);
  });
  if (steps.count === 0) return null;
  const now = inView.value;
  const { typical } = steps;
  const step = now >= 0 ? steps.at(now) : undefined;
  return (
    <div class="ribbon">
      <div class="wall-caption">
        <span>{plural(steps.count, "step")}{step !== undefined && <> · in view: {stepText(step)}</>}</span>
        <span class="ribbon-buttons">
          {typical !== undefined && <button type="button" class="small" onClick={() => goToStep(store, typical)}>{steps.count > 1 ? "typical step" : "the step"}</button>}
          {steps.count > 1 && <button type="button" class="small" aria-label="previous step" onClick={() => nextStep(store, -1)}>←</button>}
          {steps.count > 1 && <button type="button" class="small" aria-label="next step" onClick={() => nextStep(store, 1)}>→</button>}
        </span>
      </div>
      <div class="ribbon-bars" role="group" aria-label="steps">
        {bars.map((bar) => (
          <button key={bar.first} type="button" tabIndex={-1} class={`ribbon-bar ${now >= bar.first && now <= bar.last ? "now" : ""} ${bar.odd ? "odd" : ""} ${bar.steady ? "" : "unsteady"}`}
            aria-label={`${stepText(bar.step)}${bar.odd ? ", longer than usual" : ""}`}
            title={`${stepText(bar.step)}${bar.steady ? "" : " (not counted in means)"}`}
            onClick={() => goToStep(store, bar.step)}>
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
