// Idle time of the GPU as a table: by cost, by cause; each row is a gap that can be seen.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { Gap } from "../api/types.ts";
import { formatCount, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { showGaps } from "../state/actions/answering.ts";
import { allRanks } from "../state/actions/ranks.ts";
import { report } from "../state/actions/say.ts";
import { selectGap } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import { TracePicker } from "./common.tsx";
import { VirtualTable } from "./virtual_table.tsx";

export function GapsPanel() {
  const store = useStore();
  const sort = useSignal<"cost" | "time">("cost");
  const gaps = useSignal<Gap[] | null>(null);
  const causeOf = (gap: { cause: string | number }) => store.meta.causes.find((cause) => cause.key === gap.cause || cause.cause === gap.cause);
  useSignalEffect(() => {
    void store.meta.generation; // again when the trace has grown
    void store.view(store.panelTrace.value).explanation.value; // and when the rules have said what the CPU did
    const view = store.view(store.panelTrace.value);
    store.engine.gaps(view.index, sort.value, 5000).then((answer) => {
      gaps.value = answer.gaps;
      view.gaps.value = answer;
    }, (reason) => report(store, reason));
  });
  const all = gaps.value;
  const trace = store.panelTrace.value;
  const answer = store.view(trace).gaps.value;
  if (all === null || answer === null) return <p class="faint pad" role="status">Looking for the times when the GPU was idle…</p>;
  if (answer.total === 0) return <p class="pad"><TracePicker /> No GPU of this trace has a gap.</p>;
  const chosen = store.gapCauses.value;
  const shown = chosen === null ? all : all.filter((gap) => chosen.includes(causeOf(gap)?.key ?? ""));
  return (
    <div class="panel">
      <div class="panel-tools" role="group" aria-label="cause">
        <TracePicker />
        <button type="button" class="chip" aria-pressed={chosen === null} onClick={() => showGaps(store, null, trace)}>all {formatCount(answer.total)}</button>
        {answer.by_cause.filter((each) => each.count > 0).map((each) => {
          const cause = causeOf(each);
          return (
            <button key={String(each.cause)} type="button" class="chip" aria-pressed={chosen?.includes(cause?.key ?? "") === true} title={cause?.text} onClick={() => showGaps(store, cause === undefined ? null : [cause.key], trace)}>
              {cleanText(cause?.title ?? String(each.cause))} {formatTime(each.ns)} <span class="faint">{formatCount(each.count)}×</span>
            </button>
          );
        })}
      </div>
      <VirtualTable
        label="GPU gaps"
        total={shown.length}
        row={(index) => shown[index]}
        sort={{ key: sort.value, descending: sort.value === "cost" }}
        onSort={(key) => { sort.value = key === "time" ? "time" : "cost"; }}
        onOpen={(gap) => void selectGap(store, trace, gap.index, true)}
        isCurrent={(gap) => store.gap.value?.index === gap.index}
        columns={[
          { key: "cost", title: "Idle", numeric: true, cell: (gap) => formatTime(gap.dur_ns) },
          { key: "time", title: "Begins", numeric: true, cell: (gap) => formatTime(gap.start_ns) },
          { key: "device", title: "GPU", numeric: true, grow: 0.5, cell: (gap) => gap.device },
          { key: "cause", title: "Cause", grow: 2, cell: (gap) => cleanText(causeOf(gap)?.title ?? String(gap.cause)) },
          { key: "text", title: "The CPU meanwhile", grow: 6, cell: (gap) => { const text = gap.cpu || gap.text; return <bdi title={cleanText(text, 1000)}>{cleanText(text)}</bdi>; } },
        ]}
      />
      {answer.pending === true && store.meta.ranks?.shown !== allRanks && <p class="faint hint" role="status">What the CPU did meanwhile follows when the rules have run.</p>}
      {shown.length < answer.total && chosen === null && <p class="faint hint">{plural(shown.length, "gap")} of {formatCount(answer.total)} are listed.</p>}
    </div>
  );
}
