// The flame graph of a lane: who called what, widths are time. Of the area if there is one, else of the window.
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { none, type FlameNode } from "../api/types.ts";
import { formatCount, formatShare, formatTime } from "../base/format.ts";
import { cleanText, fitText } from "../base/text.ts";
import { report } from "../state/actions/say.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import type { TraceView } from "../state/store.ts";
import { sameWindow } from "../state/window.ts";
import { TracePicker, useSettled } from "./common.tsx";

export interface FlameBox { node: number; x: number; width: number; depth: number }

// Children are laid from left to right, largest first; boxes narrower than `least` of the whole are left out.
export function flameBoxes(nodes: readonly FlameNode[], root: number, least = 0.0015): FlameBox[] {
  const children = new Map<number, number[]>();
  nodes.forEach((node, index) => children.set(node.parent, [...(children.get(node.parent) ?? []), index]));
  const boxes: FlameBox[] = [];
  const place = (list: number[], from: number, width: number, total: number, depth: number) => {
    let x = from;
    for (const index of [...list].sort((a, b) => nodes[b].total_ns - nodes[a].total_ns)) {
      const own = total > 0 ? (nodes[index].total_ns / total) * width : 0;
      if (own < least || depth > 200) continue;
      boxes.push({ node: index, x, width: own, depth });
      place(children.get(index) ?? [], x, own, nodes[index].total_ns, depth + 1);
      x += own;
    }
  };
  const top = root >= 0 ? [root] : children.get(-1) ?? [];
  place(top, 0, 1, top.reduce((sum, index) => sum + nodes[index].total_ns, 0), 0);
  return boxes;
}

// Python's stack begins with frames that only call the next one. The graph begins where the time divides.
export function firstFork(nodes: readonly FlameNode[]): number {
  const children = new Map<number, number[]>();
  nodes.forEach((node, index) => {
    const list = children.get(node.parent);
    if (list === undefined) children.set(node.parent, [index]);
    else list.push(index);
  });
  let at = -1;
  let depth = 0;
  for (let list = children.get(-1) ?? []; list.length > 0; depth += 1) {
    const largest = list.reduce((a, b) => (nodes[a].total_ns >= nodes[b].total_ns ? a : b));
    const total = at < 0 ? list.reduce((sum, index) => sum + nodes[index].total_ns, 0) : nodes[at].total_ns;
    if (nodes[largest].total_ns < 0.95 * total) break;
    at = largest;
    list = children.get(at) ?? [];
  }
  return depth > 3 ? at : -1;
}

const lanesToChoose = (view: TraceView) => view.meta.lanes.filter((lane) => ["cpu", "python", "annotation"].includes(lane.kind) && lane.slice_count > 0);

function firstLane(view: TraceView): number {
  const lanes = lanesToChoose(view);
  return (lanes.find((lane) => lane.lane === view.focusLane.peek()) ?? lanes.find((lane) => lane.main === true) ?? lanes[0])?.lane ?? -1;
}

export function FlamePanel() {
  const store = useStore();
  const nodes = useSignal<FlameNode[] | null>(null);
  const root = useSignal(-1);
  const view = store.view(store.panelTrace.value);
  const lanes = lanesToChoose(view);
  const chosen = useSignal(firstLane(view));
  const range = useSignal<[number, number]>([0, 1]);
  const asked = useRef(store.panelTrace.peek());
  const settledArea = useSettled(store.area);
  const again = useSignal(0);
  // It does not follow the window: whoever reads a box would lose it by moving the picture.
  const ofWindow = useComputed(() => settledArea.value?.trace !== store.panelTrace.value);
  const isOld = useComputed(() => {
    const window = store.view(store.panelTrace.value).windowOf(store.viewport.shown.value);
    return ofWindow.value && !sameWindow({ t0: Math.max(0, Math.floor(window.t0)), t1: Math.ceil(window.t1) }, { t0: range.value[0], t1: range.value[1] });
  });
  useSignalEffect(() => {
    void store.meta.generation; // again when the trace has grown
    const trace = store.panelTrace.value;
    const area = settledArea.value;
    void again.value;
    const window = store.view(trace).windowOf(store.viewport.target);
    if (trace !== asked.current) { // lanes of another trace have other numbers
      asked.current = trace;
      chosen.value = firstLane(store.view(trace));
    }
    range.value = area !== null && area.trace === trace ? [area.t0, area.t1] : [Math.max(0, Math.floor(window.t0)), Math.ceil(window.t1)];
    if (chosen.value < 0) return;
    root.value = -1;
    store.engine.flame(trace, range.peek()[0], range.peek()[1], chosen.value).then((answer) => { root.value = firstFork(answer); nodes.value = answer; }, (reason) => report(store, reason));
  });
  if (lanes.length === 0) return <p class="pad">No lane of this trace has events inside events.</p>;
  const list = nodes.value ?? [];
  const boxes = flameBoxes(list, root.value);
  const total = list.filter((node) => node.parent === -1).reduce((sum, node) => sum + node.total_ns, 0);
  const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
  return (
    <div class="panel">
      <div class="panel-tools">
        <TracePicker />
        <label>Lane <select value={chosen.value} onChange={(event) => { chosen.value = Number(event.currentTarget.value); }}>
          {lanes.map((lane) => <option key={lane.lane} value={lane.lane}>{cleanText(lane.title, 60)}{lane.subtitle !== undefined && lane.subtitle !== "" && ` · ${cleanText(lane.subtitle, 40)}`}</option>)}
        </select></label>
        <span class="faint">{formatTime(range.value[1] - range.value[0])}{!ofWindow.value ? " of the area" : isOld.value ? `, from ${formatTime(range.value[0])} on` : " in view"}: calls of one name are joined, and a box is as wide as their time</span>
        {isOld.value && <button type="button" class="small" onClick={() => { again.value += 1; }}>Show what is in view now</button>}
        {root.value >= 0 && <button type="button" class="small" onClick={() => { root.value = -1; }}>Whole graph</button>}
      </div>
      {nodes.value === null && <p class="pad faint">…</p>}
      {nodes.value !== null && boxes.length === 0 && <p class="pad">Nothing of this lane is in that time.</p>}
      <div class="flame" tabIndex={0} role="group" aria-label="flame graph">
        <div class="flame-inner" style={{ height: `${depth * 20}px` }}>
          {boxes.map((box) => {
            const node = list[box.node];
            const name = cleanText(node.short || node.name);
            const text = `${name}: ${formatTime(node.total_ns)}, ${formatShare(node.total_ns / Math.max(1, total))}, own ${formatTime(node.self_ns)}, ${formatCount(node.count)}×`;
            return (
              <button key={box.node} type="button" class={`flame-box kind-${node.kind}`} title={text} aria-label={text}
                style={{ left: `${box.x * 100}%`, width: `${box.width * 100}%`, top: `${box.depth * 20}px` }}
                onClick={() => { if (root.value === box.node && node.longest !== undefined && node.longest !== none) void selectSlice(store, view.index, node.longest, { move: true }); else root.value = box.node; }}>
                {box.width > 0.02 ? fitText(name, Math.floor(box.width * 190)) : ""}
              </button>
            );
          })}
        </div>
      </div>
      <p class="faint hint">Click a box, and it fills the width. Click it again to select its longest event.</p>
    </div>
  );
}
