// What opens over the page: help, commands, the lane finder, data quality.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatCount, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { reveal } from "../state/actions/lane_choice.ts";
import { keyHelp } from "../state/keys.ts";
import { useStore } from "../state/context.ts";
import { Text } from "./common.tsx";

export interface CommandItem { title: string; keys?: string; run: () => void }

export function Overlays({ commands }: { commands: CommandItem[] }) {
  const store = useStore();
  switch (store.overlay.value) {
    case "help": return <HelpOverlay />;
    case "quality": return <QualityOverlay />;
    case "commands": return <Finder title="Commands" items={commands} />;
    case "lanes":
      return <Finder title="Find a lane" items={store.main.meta.lanes.map((lane) => ({
        title: `${cleanText(lane.title, 80)} — ${plural(lane.slice_count, "event")}`,
        run: () => {
          reveal(store.main, [lane.lane]);
          store.main.focusLane.value = lane.lane;
          store.main.scrollTo.value = { lane: lane.lane, row: 0 };
        },
      }))} />;
    default: return null;
  }
}

function Dialog({ title, children }: { title: string; children: ComponentChildren }) {
  const store = useStore();
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={() => { store.overlay.value = "none"; }} onClick={(event) => { if (event.target === element.current) element.current?.close(); }}>
      <div class="dialog-head"><h2>{title}</h2><button type="button" class="small" onClick={() => element.current?.close()}>Close</button></div>
      {children}
    </dialog>
  );
}

function HelpOverlay() {
  const store = useStore();
  return (
    <Dialog title="Help">
      <p>Each row of the timeline is a <b>lane</b>: a thread of the CPU, or a stream of the GPU. Time runs from left to right. On a thread, a bar below another one ran inside it. A GPU lane shows what the GPU ran; the lane “idle” shows when it ran nothing, and why.</p>
      <div class="help-columns">
        <table>
          <tbody>{keyHelp.map((line) => <tr key={line.text}><th scope="row">{line.keys.map((key) => <kbd key={key}>{key}</kbd>)}</th><td>{line.text}</td></tr>)}</tbody>
        </table>
        <div>
          <h3>Mouse</h3>
          <p>Click selects. Drag makes an area. Ctrl and wheel zooms, Shift and wheel or Shift and drag moves. Double click fills the window with an event. On the axis, the wheel zooms, drag moves, and double click shows the whole trace.</p>
          <h3>Colours</h3>
          <ul class="plain">{store.meta.kinds.map((kind) => <li key={kind.kind}><span class={`dot kind-${kind.kind}`} aria-hidden="true" /> {cleanText(kind.title)}</li>)}<li><span class="dot kind-idle" aria-hidden="true" /> idle GPU</li></ul>
          <p>Striped: waiting or idle. Dotted: copies. Lined: communication. Paler: only a part of that time is busy.</p>
          <label><input type="checkbox" checked={store.singleKeys.value} onChange={(event) => { store.singleKeys.value = event.currentTarget.checked; }} /> single letters are shortcuts</label>
        </div>
      </div>
    </Dialog>
  );
}

function QualityOverlay() {
  const store = useStore();
  const words = { lost: "lost", repaired: "repaired", note: "note" };
  return (
    <Dialog title="What is known about this recording">
      <table class="quality"><tbody>
        {store.main.meta.quality.map((item) => (
          <tr key={item.text}><th scope="row">{words[item.severity ?? "note"]}</th><td class="numeric">{formatCount(item.count)} ×</td><td><Text of={item.text} most={1000} /></td></tr>
        ))}
      </tbody></table>
      {store.main.meta.quality.length === 0 && <p>Nothing was lost, and nothing had to be repaired.</p>}
    </Dialog>
  );
}

function Finder({ title, items }: { title: string; items: CommandItem[] }) {
  const store = useStore();
  const text = useSignal("");
  const at = useSignal(0);
  const words = text.value.toLowerCase().split(/\s+/);
  const found = items.filter((item) => words.every((word) => item.title.toLowerCase().includes(word))).slice(0, 200);
  const run = (item: CommandItem | undefined) => {
    store.overlay.value = "none";
    item?.run();
  };
  return (
    <Dialog title={title}>
      <input class="wide" role="combobox" aria-expanded="true" aria-controls="finder-list" aria-activedescendant={`finder-${at.value}`} aria-label={title} autofocus value={text.value}
        onInput={(event) => { text.value = event.currentTarget.value; at.value = 0; }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") at.value = Math.min(found.length - 1, at.value + 1);
          else if (event.key === "ArrowUp") at.value = Math.max(0, at.value - 1);
          else if (event.key === "Enter") run(found[at.value]);
          else return;
          event.preventDefault();
        }} />
      <ul id="finder-list" class="finder" role="listbox" aria-label={title}>
        {found.map((item, index) => (
          <li key={`${item.title}-${index}`} id={`finder-${index}`} role="option" aria-selected={index === at.value} onClick={() => run(item)}>
            <bdi>{item.title}</bdi>{item.keys !== undefined && <kbd>{item.keys}</kbd>}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
