// Sums over an area of time: by lane, by kind, by name, and idle time by cause.
import { none, type Lane } from "../api/types.ts";
import { formatCount, formatShare, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { lightKinds, showGaps } from "../state/actions/answering.ts";
import { goTo } from "../state/actions/moving.ts";
import { openDrawer } from "../state/actions/panels.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import { KindDot, Link } from "./common.tsx";
import { openInPerfetto, saveRange } from "./hand_over.ts";
import { VirtualTable } from "./virtual_table.tsx";

// A thread has two lanes with one title: its Python functions, and its operators and calls.
function laneText(lane: Lane | undefined): string {
  if (lane === undefined) return "";
  return lane.kind === "cpu" || lane.kind === "python" ? `${cleanText(lane.title, 60)}, ${cleanText(lane.subtitle ?? "", 60)}` : cleanText(lane.title, 60);
}

export function AreaPanel() {
  const store = useStore();
  const area = store.area.value;
  const answer = store.areaAnswer.value;
  if (area === null) return <p class="pad">Drag over the lanes, or select an event and press <kbd>R</kbd>. The sums of that time then appear here.</p>;
  const view = store.view(area.trace);
  if (answer === null) return <p class="faint pad" role="status">Adding up {formatTime(area.t1 - area.t0)}…</p>;
  const span = area.t1 - area.t0;
  const causeOf = (gap: { cause: string | number }) => store.meta.causes.find((each) => each.key === gap.cause || each.cause === gap.cause);
  const titleOf = (kind: number) => store.meta.kinds.find((each) => each.kind === kind)?.title ?? "other";
  const lanes = [...answer.lanes].filter((lane) => lane.count > 0).sort((a, b) => b.busy_ns - a.busy_ns);
  return (
    <div class="panel">
      <div class="panel-tools">
        <span><b>{formatTime(span)}</b> from {formatTime(area.t0)}</span>
        <button type="button" class="small" onClick={() => goTo(store, area.trace, area.t0, area.t1)}>Zoom to it</button>
        <button type="button" class="small" onClick={() => openDrawer(store, "flame")}>Flame graph</button>
        {!store.engine.isSaved && <button type="button" class="small" onClick={() => void saveRange(store, area.trace, area.t0, area.t1)}>Save as one HTML file</button>}
        {!store.engine.isSaved && <button type="button" class="small" onClick={() => void openInPerfetto(store, area.trace, area.t0, area.t1)}>Open in Perfetto</button>}
        <button type="button" class="small" onClick={() => { store.area.value = null; openDrawer(store, "none"); }}>Clear</button>
      </div>
      <div class="area-columns">
        <section class="area-list">
          <h2>Lanes</h2>
          <ul class="plain">
            {lanes.map((lane) => (
              <li key={lane.lane}><span class="number">{formatTime(lane.busy_ns)}</span> <span class="faint">{formatShare(lane.busy_ns / span)}</span> {laneText(view.laneByNumber.get(lane.lane))} <span class="faint">{plural(lane.count, "event")}</span></li>
            ))}
          </ul>
          {answer.gaps.length > 0 && <h2>Idle GPU</h2>}
          <ul class="plain">
            {answer.gaps.map((gap) => (
              <li key={`${gap.device ?? 0}-${gap.cause}`}><Link label={`show these gaps: ${formatTime(gap.ns)}`} onClick={() => { const key = causeOf(gap)?.key; showGaps(store, key === undefined ? null : [key], area.trace); }}><span class="number">{formatTime(gap.ns)}</span></Link> {cleanText(causeOf(gap)?.title ?? String(gap.cause))} <span class="faint">{formatCount(gap.count)}×</span></li>
            ))}
          </ul>
          {answer.launch_delay !== undefined && (
            <p>From launch to start: median {formatTime(answer.launch_delay.median_ns)}, {formatTime(answer.launch_delay.min_ns)} to {formatTime(answer.launch_delay.max_ns)}, {plural(answer.launch_delay.count, "launch", "launches")}</p>
          )}
          <h2>Kinds</h2>
          <ul class="plain">
            {answer.kinds.map((kind) => <li key={kind.kind}><KindDot kind={kind.kind} /> <Link label={`highlight these events: ${formatTime(kind.total_ns)}`} onClick={() => lightKinds(store, [kind.kind], titleOf(kind.kind), area.trace)}><span class="number">{formatTime(kind.total_ns)}</span></Link> {titleOf(kind.kind)} <span class="faint">{plural(kind.count, "event")}</span></li>)}
          </ul>
        </section>
        <VirtualTable
          label="names in the area"
          total={answer.names.length}
          row={(index) => answer.names[index]}
          onOpen={(row) => { if (row.longest !== undefined && row.longest !== none) void selectSlice(store, area.trace, row.longest, { move: true }); }}
          columns={[
            { key: "name", title: "Name", grow: 5, cell: (row) => <><KindDot kind={row.kind} /> <bdi title={cleanText(row.name, 1000)}>{cleanText(row.short || row.name)}</bdi></> },
            { key: "self", title: "Self", numeric: true, cell: (row) => formatTime(row.self_ns ?? row.total_ns) },
            { key: "total", title: "Total", numeric: true, cell: (row) => formatTime(row.total_ns) },
            { key: "count", title: "Count", numeric: true, grow: 0.7, cell: (row) => formatCount(row.count) },
          ]}
        />
      </div>
    </div>
  );
}
