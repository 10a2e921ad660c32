// The page: bar, verdict, timeline with the side panel, tables.
import { useComputed, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { formatCount, formatExactTime, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { lightKinds, showGaps } from "../state/actions/answering.ts";
import { choose } from "../state/actions/lane_choice.ts";
import { goToNewest, goWhole } from "../state/actions/moving.ts";
import { openDrawer, showSide } from "../state/actions/panels.ts";
import { nextHit, search } from "../state/actions/searching.ts";
import { clearLit } from "../state/actions/selecting.ts";
import { startTour } from "../state/actions/touring.ts";
import { useStore } from "../state/context.ts";
import { Answers } from "../panels/answers.tsx";
import { CopyButton } from "../panels/common.tsx";
import { Details } from "../panels/details.tsx";
import { Drawer } from "../panels/drawer.tsx";
import { openInPerfetto, saveRange } from "../panels/hand_over.ts";
import { Overlays, type CommandItem } from "../panels/overlays.tsx";
import { RankPicker } from "../panels/ranks.tsx";
import { Tour } from "../panels/tour.tsx";
import { Verdict } from "../panels/verdict.tsx";
import { Timeline } from "../timeline/timeline.tsx";
import { runAction } from "./keyboard.ts";

export function App() {
  const store = useStore();
  return (
    <div class="page">
      <Bar />
      <main class="main">
        <Verdict />
        <div class="work">
          <div class="timelines">
            <LitBar />
            {store.views.map((view, index) => (
              <Timeline key={view.index} view={view} title={store.views.length > 1 ? `${index === 0 ? "A" : "B"}: ${cleanText(view.meta.title, 80)}` : null} />
            ))}
          </div>
          {store.sideOpen.value && <Side />}
        </div>
        <Drawer />
      </main>
      <Tour />
      <Overlays commands={commandList(store)} />
      <div class="live" role="status" aria-live="polite">{store.said.value}</div>
      {store.problem.value !== null && (
        <div class="toast" role="alert">
          <span>{cleanText(store.problem.value, 600)}</span>
          <button type="button" class="small" onClick={() => { store.problem.value = null; }}>Close</button>
        </div>
      )}
      {store.busy.value !== null && <div class="toast" role="status">{store.busy.value} …</div>}
    </div>
  );
}

function commandList(store: ReturnType<typeof useStore>): CommandItem[] {
  const range = () => ({ t0: Math.max(0, store.viewport.target.t0), t1: Math.min(store.main.meta.span_ns, store.viewport.target.t1) });
  const items: CommandItem[] = [
    { title: "Guided tour of this trace", keys: "T", run: () => void startTour(store) },
    { title: "Whole trace", keys: "0", run: () => goWhole(store) },
    { title: "Answers", keys: "E", run: () => showSide(store, "answers") },
    { title: "Kernels", run: () => openDrawer(store, "kernels") },
    { title: "Operators", run: () => openDrawer(store, "operators") },
    { title: "GPU gaps by cost", run: () => openDrawer(store, "gaps") },
    { title: "Flame graph", run: () => openDrawer(store, "flame") },
    { title: "Memory", run: () => openDrawer(store, "memory") },
    { title: "Notes", run: () => openDrawer(store, "notes") },
    { title: "Show all lanes", run: () => choose(store.main, { showAll: true, showQuiet: true }) },
    { title: "Only the lanes that matter", run: () => choose(store.main, { showAll: false, showQuiet: false, revealed: new Set() }) },
    { title: "Find a lane", keys: "Ctrl P", run: () => { store.overlay.value = "lanes"; } },
    { title: "Sums of the selection's time", keys: "R", run: () => runAction(store, "area") },
    { title: "Measure from the selection", keys: "X", run: () => runAction(store, "measure") },
    { title: "What is known about this recording", run: () => { store.overlay.value = "quality"; } },
    { title: "Help and keys", keys: "?", run: () => { store.overlay.value = "help"; } },
  ];
  if (isRecording(store)) items.push({ title: "Newest step of the recording", run: () => goToNewest(store) });
  if (!store.engine.isSaved) {
    items.push(
      { title: "Save this range as one HTML file", run: () => void saveRange(store, 0, range().t0, range().t1) },
      { title: "Open this range in Perfetto", run: () => void openInPerfetto(store, 0, range().t0, range().t1) },
    );
  }
  return items;
}

// Followed are also folders, whose newest trace may be another one tomorrow.
const isRecording = (store: ReturnType<typeof useStore>) => store.meta.live === true && store.main.meta.path.endsWith(".lspool");

function Bar() {
  const store = useStore();
  const menu = useSignal(false);
  const timer = useRef(0);
  const meta = store.main.meta;
  const bad = meta.quality.filter((item) => item.severity === "lost" || item.severity === "repaired");
  const answer = store.searchAnswer.value;
  const range = () => ({ t0: Math.max(0, store.viewport.target.t0), t1: Math.min(meta.span_ns, store.viewport.target.t1) });
  return (
    <header class="bar">
      <span class="logo">lanescope</span>
      <span class="trace-title" title={cleanText(meta.path, 1000)}>
        <bdi>{store.views.map((view) => cleanText(view.meta.title, 60)).join("  ·  ")}</bdi>
        <span class="faint"> {store.views.length > 1 ? `${store.views.map((view) => formatCount(view.meta.slice_count)).join(" and ")} events` : `${plural(meta.slice_count, "event")}, ${formatTime(meta.span_ns)}`}{store.engine.isSaved ? ", saved page" : ""}</span>
      </span>
      <RankPicker />
      {isRecording(store) && (
        <button type="button" class="recording" title="The recording still runs, and this page follows it. Click: the newest step." onClick={() => goToNewest(store)}>
          <span aria-hidden="true">●</span> recording
        </button>
      )}
      <span class="search-box">
        <input id="search" type="search" placeholder="Search ( / )" aria-label="search the whole trace" value={store.searchText.value}
          onInput={(event) => {
            const text = event.currentTarget.value;
            clearTimeout(timer.current);
            timer.current = window.setTimeout(() => void search(store, text), 120);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            void nextHit(store, event.shiftKey ? -1 : 1);
          }} />
        {answer !== null && (
          <button type="button" class="small" onClick={() => openDrawer(store, "search")}>
            {store.searchAt.value >= 0 ? `${formatCount(store.searchAt.value + 1)} of ` : ""}{plural(answer.total, "hit")}
          </button>
        )}
      </span>
      <nav class="bar-buttons" aria-label="Page">
        <button type="button" onClick={() => void startTour(store)}>Guided tour</button>
        <button type="button" aria-pressed={store.sideOpen.value && store.side.value === "answers"} onClick={() => runAction(store, "explain")}>Answers</button>
        <button type="button" class={bad.length > 0 ? "warn" : ""} onClick={() => { store.overlay.value = "quality"; }} title="what is known about this recording">
          {bad.length > 0 ? `⚠ ${plural(bad.length, "remark")}` : "About the data"}
        </button>
        {!store.engine.isSaved && (
          <span class="menu">
            <button type="button" aria-expanded={menu.value} aria-haspopup="true" onClick={() => { menu.value = !menu.value; }}>Share</button>
            {menu.value && (
              <span class="menu-items">
                <button type="button" onClick={() => { menu.value = false; void saveRange(store, 0, range().t0, range().t1); }}>Save this range as one HTML file</button>
                <button type="button" onClick={() => { menu.value = false; void openInPerfetto(store, 0, range().t0, range().t1); }}>Open this range in Perfetto</button>
                <button type="button" onClick={() => { menu.value = false; void navigator.clipboard?.writeText(location.href); }}>Copy link to this view</button>
              </span>
            )}
          </span>
        )}
        <button type="button" aria-label="help" onClick={() => { store.overlay.value = "help"; }}>?</button>
      </nav>
    </header>
  );
}

// Says what is highlighted and how to end it, and what hides lanes.
function LitBar() {
  const store = useStore();
  const lit = store.lit.value;
  const only = store.searchOnly.value;
  const measure = store.measure.value;
  const filter = useComputed(() => store.main.choice.value.filter);
  return (
    <div class="lit-bar">
      <input type="search" aria-label="filter lanes" placeholder="filter lanes" value={filter.value} onInput={(event) => choose(store.main, { filter: event.currentTarget.value })} />
      {lit !== null && <span class="lit-now"><b>Highlighted:</b> <bdi>{cleanText(lit.label, 140)}</bdi> <button type="button" class="small" onClick={() => clearLit(store)}>Show all (Esc)</button></span>}
      {only && <button type="button" class="small" onClick={() => { store.searchOnly.value = false; }}>Show lanes without hits</button>}
      {measure !== null && <span class="lit-now"><b>Measure:</b> {measure.to === null ? "choose the other end" : formatTime(Math.abs(measure.to - measure.from))} {measure.to !== null && <CopyButton text={formatExactTime(Math.abs(measure.to - measure.from))} label="Copy" />} <span class="faint">click an edge, or step with . and ,</span></span>}
      {lit === null && measure === null && <Legend />}
      {lit === null && measure === null && <span class="faint hint-keys"><kbd>W</kbd> <kbd>S</kbd> zoom · <kbd>A</kbd> <kbd>D</kbd> move · <kbd>E</kbd> answers</span>}
    </div>
  );
}

const shortKinds: Record<string, string> = { annotation: "ranges", python: "Python", call: "calls", compute: "compute" };

// What the colours in view mean. A click highlights one kind.
function Legend() {
  const store = useStore();
  const kinds = useComputed(() => {
    const seen = new Set<string>();
    for (const view of store.views) {
      for (const entry of view.frames.frame.value?.entries ?? []) {
        if (entry.kind !== "slices") continue;
        const lane = view.laneByNumber.get(entry.lane)?.kind;
        if (lane === "idle") seen.add("idle");
        else if (lane !== "steps") for (const kind of entry.kinds) seen.add(String(kind));
      }
    }
    return [...seen].sort().join(" "); // a text, so that an equal set draws nothing anew
  });
  const shown = kinds.value.split(" ");
  return (
    <span class="legend" role="group" aria-label="what the colours mean">
      {store.meta.kinds.filter((kind) => shown.includes(String(kind.kind))).map((kind) => (
        <button key={kind.kind} type="button" title={`highlight ${kind.title}`} onClick={() => lightKinds(store, [kind.kind], kind.title)}><span class={`dot kind-${kind.kind}`} aria-hidden="true" />{shortKinds[kind.key] ?? kind.title}</button>
      ))}
      {shown.includes("idle") && <button type="button" title="idle time of the GPU by cost" onClick={() => showGaps(store, null)}><span class="dot kind-idle" aria-hidden="true" />idle GPU</button>}
    </span>
  );
}

function Side() {
  const store = useStore();
  const tab = (name: "answers" | "details", title: string) => (
    <button id={`side-${name}`} type="button" role="tab" aria-selected={store.side.value === name} aria-controls="side-panel" tabIndex={store.side.value === name ? 0 : -1}
      onClick={() => showSide(store, name)}
      onKeyDown={(event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        const other = name === "answers" ? "details" : "answers";
        showSide(store, other);
        document.getElementById(`side-${other}`)?.focus();
        event.preventDefault();
      }}>{title}</button>
  );
  return (
    <aside class="side" aria-label="Answers and details">
      <div class="tabs" role="tablist" aria-label="Answers and details">
        {tab("answers", "Answers")}
        {tab("details", "Selected")}
      </div>
      <button type="button" class="small side-close" aria-label="close this panel" onClick={() => { store.sideOpen.value = false; }}>×</button>
      <div id="side-panel" class="side-panel" role="tabpanel" aria-labelledby={`side-${store.side.value}`} tabIndex={0}>
        {store.side.value === "answers" ? <Answers /> : <Details />}
      </div>
    </aside>
  );
}
