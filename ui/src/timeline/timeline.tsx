// The lanes of one trace: a canvas that stays in place while the list of lanes scrolls below it, and labels as text next to it.
import { effect, useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { formatBytes, formatCount, formatShare, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { choose, listMoreLanes, toggleExpanded, toggleFold, togglePin } from "../state/actions/lane_choice.ts";
import { stepText } from "../state/actions/moving.ts";
import { useStore } from "../state/context.ts";
import type { LitSlice, TraceView } from "../state/store.ts";
import { Axis } from "./axis.tsx";
import { listenOnAxis } from "./axis_pointer.ts";
import { Painter } from "./draw.ts";
import { axisHeight, drawAxis } from "./draw_axis.ts";
import type { Hit } from "./hit.ts";
import { visibleBoxes, type LaneBox } from "./layout.ts";
import { EventMirror } from "./mirror.tsx";
import { inksOf, paletteFor } from "./palette.ts";
import { listen, litOfHit } from "./pointer.ts";
import { gatherScene, layoutOf } from "./scene.ts";

const roomForButton = 58; // pixels that a label needs for its two lines and a button below them

interface Tip { x: number; y: number; title: string; lines: string[] }

export function Timeline({ view, title }: { view: TraceView; title: string | null }) {
  const store = useStore();
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const axis = useRef<HTMLCanvasElement>(null);
  const size = useSignal({ width: 800, height: 400, ratio: 1 });
  const scrollTop = useSignal(0);
  const hover = useSignal<LitSlice | null>(null);
  const tip = useSignal<Tip | null>(null);
  const layout = useComputed(() => layoutOf(view, store, size.value.height));
  const inks = useMemo(() => ({ light: inksOf(paletteFor(false)), dark: inksOf(paletteFor(true)) }), []);

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const measure = () => {
      const lanes = canvas.current?.parentElement;
      if (lanes === null || lanes === undefined) return;
      size.value = { width: Math.max(50, lanes.clientWidth), height: Math.max(40, element.clientHeight), ratio: devicePixelRatio || 1 };
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // Draws at most once a frame, whatever changed.
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d", { alpha: false });
    const axisCtx = axis.current?.getContext("2d", { alpha: false });
    if (element === null || ctx === null || ctx === undefined || axisCtx === null || axisCtx === undefined) return;
    let painter: Painter | null = null;
    let paintedDark: boolean | null = null;
    let asked = 0;
    const draw = () => {
      asked = 0;
      const { width, height, ratio } = size.peek();
      fitCanvas(element, width * ratio, height * ratio);
      fitCanvas(axisCtx.canvas, width * ratio, axisHeight * ratio);
      if (painter === null || paintedDark !== store.dark.peek()) {
        paintedDark = store.dark.peek();
        painter = new Painter(ctx, paintedDark ? inks.dark : inks.light, () => document.createElement("canvas"));
      }
      // Not the scroller's scrollTop: at its end the canvas is pushed up by what follows the lanes.
      const scene = gatherScene(store, view, layout.peek(), { width, height, ratio, scrollTop: element.offsetTop }, hover.peek());
      painter.paint(scene);
      drawAxis(axisCtx, paletteFor(paintedDark === true), { width, ratio }, store.viewport.shown.peek(), view.offset, store.viewport.traceSpan);
      const near = visibleBoxes(scene.layout, scene.scrollTop, height, height).slice(0, 400);
      view.frames.want(scene.window, width * ratio, near.map((box) => box.lane.lane));
    };
    const stop = effect(() => {
      void store.dark.value;
      void hover.value;
      void scrollTop.value;
      gatherScene(store, view, layout.value, { ...size.value, scrollTop: 0 }, null); // reads every signal that a picture depends on
      if (asked === 0) asked = requestAnimationFrame(draw);
    });
    return () => {
      stop();
      cancelAnimationFrame(asked);
    };
  }, [view]);

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    return listen(store, view, {
      canvas: element,
      layout: () => layout.peek(),
      scrollTop: () => element.offsetTop,
      hover: (hit, x, y) => {
        hover.value = hit === null ? null : litOfHit(hit);
        tip.value = hit === null ? null : tipOf(hit, x, y);
      },
    });
  }, [view]);

  useEffect(() => (axis.current === null ? undefined : listenOnAxis(store, axis.current)), [view]);

  // What was selected comes into view.
  useEffect(() => effect(() => {
    const wanted = view.scrollTo.value;
    const element = scroller.current;
    if (wanted === null || element === null) return;
    const box = layout.value.boxes.find((each) => each.lane.lane === wanted.lane);
    if (box === undefined) return;
    const top = box.y + Math.min(wanted.row, box.rows - 1) * box.rowHeight;
    if (top < element.scrollTop + 4 || top + box.rowHeight > element.scrollTop + element.clientHeight - 8) {
      element.scrollTop = Math.max(0, top - element.clientHeight / 3);
    }
    view.scrollTo.value = null;
  }), [view]);

  const tipOf = (hit: Hit, x: number, y: number): Tip => {
    const folded = hit.entry.folded[hit.index];
    const kind = hit.entry.kinds[hit.index];
    if (hit.box.lane.kind === "idle") {
      return { x, y, title: `GPU idle for ${formatTime(hit.dur)}`, lines: [store.meta.causes.find((each) => each.cause === kind)?.text ?? ""] };
    }
    if (hit.box.lane.kind === "steps") return { x, y, title: stepTitle(view, hit.entry.slice[hit.index]), lines: [`on the CPU ${formatTime(hit.dur)}`] };
    const name = view.names.short(hit.entry.name[hit.index]);
    if (folded > 1) {
      return { x, y, title: `${formatCount(folded)} events here, too short to draw`, lines: [`the longest: ${name}`, `busy ${formatShare(hit.entry.coverage[hit.index] / 255)} of ${formatTime(hit.dur)}`] };
    }
    return { x, y, title: name, lines: [`${formatTime(hit.dur)}${kind < store.meta.kinds.length ? ` · ${store.meta.kinds[kind]?.title ?? ""}` : ""}`] };
  };

  const boxes = visibleBoxes(layout.value, scrollTop.value, size.value.height, 200);
  return (
    <section class="timeline" aria-label={title === null ? "Timeline" : `Timeline of ${title}`}>
      {title !== null && <div class="timeline-head"><div class="timeline-title" title={title}>{title}</div><LanesMore view={view} /></div>}
      <Axis width={size.value.width} canvas={axis} />
      <div class="lanes-scroll" ref={scroller} tabIndex={0} role="group" aria-label="Lanes. Up and down choose a lane, Enter selects an event, period and comma step through events."
        onScroll={(event) => { scrollTop.value = event.currentTarget.scrollTop; }}>
        <div class="lanes" style={{ height: `${Math.max(layout.value.height, 40)}px` }}>
          <div class="lane-labels">
            {boxes.map((box) => <LaneLabel key={box.lane.lane} view={view} box={box} />)}
          </div>
          <div class="lane-canvas">
            <canvas ref={canvas} aria-hidden="true" style={{ width: `${size.value.width}px`, height: `${size.value.height}px` }} />
          </div>
        </div>
        {tip.value !== null && (
          <div class={`tip ${tip.value.x > size.value.width - 300 ? "tip-left" : ""}`} aria-hidden="true"
            style={{ left: `${tip.value.x}px`, top: `${tip.value.y + (canvas.current?.offsetTop ?? 0) + 16}px` }}>
            <b>{tip.value.title}</b>
            {tip.value.lines.map((line) => <span key={line}>{line}</span>)}
          </div>
        )}
      </div>
      {title === null && <LanesMore view={view} />}
      {view.frames.error.value !== null && <p class="problem" role="alert">{view.frames.error.value}</p>}
      <EventMirror view={view} />
    </section>
  );
}

// A canvas is cleared when its size is set, even to what it is.
function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): void {
  if (canvas.width !== Math.round(width)) canvas.width = Math.round(width);
  if (canvas.height !== Math.round(height)) canvas.height = Math.round(height);
}

// Nothing is hidden without a count, and the count is always in view.
function LanesMore({ view }: { view: TraceView }) {
  const shown = view.shown.value;
  const choice = view.choice.value;
  const isWide = choice.showAll || choice.showQuiet;
  const store = useStore();
  const left = view.meta.lanes_left_out ?? 0;
  if (shown.moreCount + shown.quietCount + shown.filteredCount + left === 0 && !isWide) return null;
  return (
    <div class="lanes-more">
      {shown.moreCount > 0 && <button type="button" onClick={() => choose(view, { showAll: true })}>Show {plural(shown.moreCount, "more lane")}</button>}
      {shown.quietCount > 0 && <button type="button" onClick={() => choose(view, { showQuiet: true })}>Show {plural(shown.quietCount, "quiet lane")}</button>}
      {shown.filteredCount > 0 && <button type="button" onClick={() => choose(view, { filter: "" })}>Show {plural(shown.filteredCount, "lane")} that the filter hides</button>}
      {isWide && <button type="button" onClick={() => choose(view, { showAll: false, showQuiet: false, revealed: new Set() })}>Only the lanes that matter</button>}
      {left > 0 && store.engine.isSaved && <span class="faint">{plural(left, "lane")} with little in them are not in this page</span>}
      {left > 0 && !store.engine.isSaved && <button type="button" onClick={() => void listMoreLanes(store, view)}>List more of {plural(left, "lane")} with little in them</button>}
    </div>
  );
}

function stepTitle(view: TraceView, index: number): string {
  const step = view.steps.at(index);
  return step === undefined ? "step" : stepText(step);
}

function LaneLabel({ view, box }: { view: TraceView; box: LaneBox }) {
  const { lane } = box;
  const pinned = view.choice.value.pinned.has(lane.lane);
  const share = lane.busy_ns / Math.max(1, view.meta.span_ns);
  const title = cleanText(lane.title, 80);
  const top = lane.counter?.max ?? 0;
  const amount = lane.kind === "counter" ? plural(lane.slice_count, "value") : `${plural(lane.slice_count, "event")}, busy ${formatTime(lane.busy_ns)}`;
  const details = lane.kind === "counter"
    ? `${lane.subtitle ? `${cleanText(lane.subtitle, 60)}, ` : ""}up to ${lane.counter?.unit === "bytes" ? formatBytes(top) : formatCount(top)}`
    : lane.subtitle !== undefined && lane.subtitle !== "" ? cleanText(lane.subtitle, 80) : `busy ${formatShare(share)}`;
  return (
    <div class={`lane-label ${view.focusLane.value === lane.lane ? "lane-focus" : ""}`} style={{ top: `${box.y}px`, height: `${box.height}px` }}>
      <div class="lane-text" title={`${title}: ${amount}`}>
        <span class="lane-title">{pinned ? "📌 " : ""}{title}</span>
        {box.height >= 30 && (
          <span class={box.height < roomForButton ? "lane-cramped" : "lane-second"}>
            <span class="lane-subtitle">{details}</span>
            {(box.squeezed || view.choice.value.expanded.has(lane.lane)) && (
              <button type="button" class="small lane-rows" title={`all ${lane.rows} rows`} onClick={() => toggleExpanded(view, lane.lane)}>{!box.squeezed ? "Make it thin again" : box.height < roomForButton ? "Enlarge" : `Enlarge its ${lane.rows} rows`}</button>
            )}
          </span>
        )}
      </div>
      <div class="lane-buttons">
        <button type="button" aria-label={`Pin ${title}`} aria-pressed={pinned} title="Pin to the top (Shift T)" onClick={() => togglePin(view, lane.lane)}>⇧</button>
        {lane.rows > 1 && (
          <button type="button" aria-label={`Fold ${title}`} aria-pressed={box.folded} title="Only the first row (Shift F)" onClick={() => toggleFold(view, lane.lane)}>{box.folded ? "▸" : "▾"}</button>
        )}
      </div>
    </div>
  );
}
