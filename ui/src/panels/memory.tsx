// What held the GPU's memory at its peak.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { MemoryAnswer } from "../api/types.ts";
import { formatBytes, formatTime, plural } from "../base/format.ts";
import { reveal } from "../state/actions/lane_choice.ts";
import { goTo } from "../state/actions/moving.ts";
import { report } from "../state/actions/say.ts";
import { useStore } from "../state/context.ts";
import { Link, Text, TracePicker } from "./common.tsx";

export function MemoryPanel() {
  const store = useStore();
  const answer = useSignal<MemoryAnswer | null>(null);
  useSignalEffect(() => {
    void store.meta.generation; // again when the trace has grown
    store.engine.memory(store.panelTrace.value).then((got) => { answer.value = got; }, (reason) => report(store, reason));
  });
  const view = store.view(store.panelTrace.value);
  if (answer.value === null) return <p class="faint pad">…</p>;
  if (answer.value.devices.length === 0) {
    return <p class="pad"><TracePicker /> This trace has no memory events. Record with <code>profile_memory=True</code> to see what held the peak.</p>;
  }
  const end = answer.value.records_end_ns;
  return (
    <div class="panel panel-scroll" tabIndex={0} role="group" aria-label="memory">
      <TracePicker />
      {answer.value.devices.map((device) => {
        const holders = device.holders ?? []; // only where the records have addresses
        const most = Math.max(1, ...holders.map((holder) => holder.bytes));
        return (
          <section key={device.title} class="memory">
            <h2><Text of={device.title} />: at most <b>{formatBytes(device.peak_bytes)}</b>,{" "}
              <Link onClick={() => { if (device.lane !== undefined) { reveal(view, [device.lane]); view.scrollTo.value = { lane: device.lane, row: 0 }; } goTo(store, view.index, device.peak_ns - 5e5, device.peak_ns + 5e5); }}>at {formatTime(device.peak_ns)}</Link>
            </h2>
            {end !== undefined && <p class="faint">Recorded until {formatTime(end)}: the recording's budget ended it. Later levels are unknown, and so is what was freed later.</p>}
            <p class="faint">{holders.length > 0 ? "What was held then, largest first:" : "The records name totals and no blocks, so what was held is unknown."}</p>
            <ol class="bars">
              {holders.map((holder) => (
                <li key={holder.text}>
                  <span class="share-bar" aria-hidden="true"><span style={{ width: `${(holder.bytes / most) * 100}%` }} /></span>
                  <span class="number">{formatBytes(holder.bytes)}</span> <Text of={holder.text} /> <span class="faint">{plural(holder.blocks, "block")}</span>
                </li>
              ))}
            </ol>
            {(device.never_freed ?? []).length > 0 && (
              <details>
                <summary>{end === undefined ? "Allocated in the recording and not freed in it" : "Allocated and not freed while memory was recorded"}</summary>
                <ul class="plain">{(device.never_freed ?? []).map((each) => <li key={each.text}><span class="number">{formatBytes(each.bytes)}</span> <Text of={each.text} /></li>)}</ul>
              </details>
            )}
          </section>
        );
      })}
    </div>
  );
}
