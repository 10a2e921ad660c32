// The hits of a search: counts per lane, then each hit.
import { none } from "../api/types.ts";
import { formatCount, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { reveal } from "../state/actions/lane_choice.ts";
import { nextHit } from "../state/actions/searching.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import { VirtualTable } from "./virtual_table.tsx";

export function SearchPanel() {
  const store = useStore();
  const answer = store.searchAnswer.value;
  if (store.searchError.value !== null) return <p class="pad" role="alert">{store.searchError.value}</p>;
  if (answer === null) {
    return <p class="pad">Type into the search field (<kbd>/</kbd>). All words must be in the name; <code>kind:copy</code>, <code>&gt;100us</code> and <code>&lt;1ms</code> narrow it.</p>;
  }
  const two = store.views.length > 1;
  const laneTitle = (trace: number, lane: number) => `${two ? (trace === 0 ? "A: " : "B: ") : ""}${cleanText(store.view(trace).laneByNumber.get(lane)?.title ?? "", 60)}`;
  return (
    <div class="panel">
      <div class="panel-tools">
        <span>{plural(answer.total, "hit")} in {two ? "both traces" : "the whole trace"}{answer.total > answer.hits.length ? `, the first ${formatCount(answer.hits.length)} are listed` : ""}</span>
        <button type="button" class="small" onClick={() => void nextHit(store, -1)}>previous</button>
        <button type="button" class="small" onClick={() => void nextHit(store, 1)}>next</button>
        <button type="button" class="chip" aria-pressed={store.searchOnly.value} onClick={() => { store.searchOnly.value = !store.searchOnly.value; }}>only lanes with hits</button>
        {[...answer.lanes].sort((a, b) => b.count - a.count).slice(0, 12).map((lane) => (
          <button key={`${lane.trace}-${lane.lane}`} type="button" class="chip" onClick={() => { const view = store.view(lane.trace); reveal(view, [lane.lane]); view.scrollTo.value = { lane: lane.lane, row: 0 }; }}>
            {laneTitle(lane.trace, lane.lane)} <b>{formatCount(lane.count)}</b>
          </button>
        ))}
      </div>
      <VirtualTable
        label="hits"
        total={answer.hits.length}
        row={(index) => answer.hits[index]}
        onOpen={(hit) => {
          store.searchAt.value = answer.hits.indexOf(hit);
          if (hit.slice !== none) void selectSlice(store, hit.trace, hit.slice, { move: true, keepLit: true });
        }}
        isCurrent={(hit) => store.details.value?.slice === hit.slice && store.selection.value?.trace === hit.trace}
        columns={[
          { key: "name", title: "Name", grow: 5, cell: (hit) => <bdi title={cleanText(hit.name, 1000)}>{cleanText(hit.short || hit.name)}</bdi> },
          { key: "lane", title: "Lane", grow: 2, cell: (hit) => laneTitle(hit.trace, hit.lane) },
          { key: "dur", title: "Time", numeric: true, cell: (hit) => formatTime(hit.dur_ns) },
          { key: "start", title: "Begins", numeric: true, cell: (hit) => formatTime(hit.start_ns) },
        ]}
      />
    </div>
  );
}
