// The canvas as a list that a screen reader can read: the events in view on the lane with the focus. Closed until it is asked
// for, so that moving the picture does not make it anew.
import { useSignal } from "@preact/signals";
import { none } from "../api/types.ts";
import { formatCount, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { openOn } from "../state/actions/following.ts";
import { useStore } from "../state/context.ts";
import type { TraceView } from "../state/store.ts";

const mostEvents = 60;

export function EventMirror({ view }: { view: TraceView }) {
  const open = useSignal(false);
  return (
    <div class="mirror">
      <button type="button" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>List the events in view</button>
      {open.value && <EventList view={view} />}
    </div>
  );
}

function EventList({ view }: { view: TraceView }) {
  const store = useStore();
  const lane = view.laneByNumber.get(view.focusLane.value ?? -1) ?? view.shown.value.lanes.find((each) => each.slice_count > 0);
  const frame = view.frames.frame.value;
  if (lane === undefined || frame === null) return null;
  void view.names.version.value;
  const window = view.windowOf(store.viewport.shown.value);
  const events: { slice: number; text: string }[] = [];
  let total = 0;
  for (const entry of frame.entries) {
    if (entry.lane !== lane.lane || entry.kind !== "slices") continue;
    for (let index = 0; index < entry.count; index += 1) {
      const start = frame.t0 + entry.start[index];
      if (start > window.t1 || start + entry.dur[index] < window.t0) continue;
      total += 1;
      if (events.length >= mostEvents) continue;
      const name = entry.name[index] === none
        ? lane.kind === "idle" ? store.meta.causes.find((each) => each.cause === entry.kinds[index])?.title ?? "idle" : "step"
        : view.names.short(entry.name[index]);
      const many = entry.folded[index] > 1 ? `${formatCount(entry.folded[index])} events, the longest ` : "";
      events.push({ slice: entry.slice[index], text: `${many}${name}, ${formatTime(entry.dur[index])}, at ${formatTime(start)}, row ${entry.row + 1}` });
    }
  }
  return (
    <div>
      <h2>{cleanText(lane.title)}: {plural(total, "event")} in view{total > mostEvents ? `, the first ${mostEvents} are listed` : ""}</h2>
      <ol>
        {events.map((event, index) => (
          <li key={`${event.slice}-${index}`}><button type="button" onClick={() => openOn(store, view, lane.lane, event.slice)}>{event.text}</button></li>
        ))}
      </ol>
    </div>
  );
}
