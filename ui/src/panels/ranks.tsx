// The ranks of a run: which one is shown, what holds all of them up, what each does in a step.
import { formatTime } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import type { RankRow } from "../api/types.ts";
import { openDrawer } from "../state/actions/panels.ts";
import { allRanks, openRank, rankText } from "../state/actions/ranks.ts";
import { useStore } from "../state/context.ts";
import { Command, Link } from "./common.tsx";
import { VirtualTable } from "./virtual_table.tsx";

// A sentence in which each rank of the run is a link to it.
function RankText({ of, most }: { of: string; most: number }) {
  const store = useStore();
  const known = new Set(store.meta.ranks?.list.map((each) => String(each.rank)));
  const parts = cleanText(of, most).split(/\b([Rr]ank \d+)\b/);
  return (
    <bdi>
      {parts.map((part, at) => {
        const rank = at % 2 === 1 ? part.slice("rank ".length) : "";
        return known.has(rank) && rank !== store.meta.ranks?.shown
          ? <Link key={at} label={`open ${part.toLowerCase()}`} onClick={() => openRank(store, rank)}>{part}</Link>
          : part;
      })}
    </bdi>
  );
}

export function RankPicker() {
  const store = useStore();
  const { ranks } = store.meta;
  if (ranks === undefined) return null;
  return (
    <select class="rank-picker" aria-label="which rank is shown" title={`${ranks.list.length} ranks are in the folder`} value={ranks.shown}
      onChange={(event) => openRank(store, event.currentTarget.value)}>
      {ranks.list.map((each) => <option key={each.rank} value={String(each.rank)}>rank {each.rank} of {ranks.list.length}</option>)}
      {ranks.together && <option value={allRanks}>all {ranks.list.length} ranks</option>}
    </select>
  );
}

// One line below the verdict of a rank.
export function RanksLine() {
  const store = useStore();
  const { ranks } = store.meta;
  const job = store.job.value;
  if (ranks === undefined || ranks.shown === allRanks) return null;
  const sentence = job?.sentences[0];
  return (
    <p class="ranks-line">
      <b>Of {ranks.list.length} ranks</b> this is rank {ranks.shown}.{" "}
      {sentence !== undefined && <RankText of={sentence} most={400} />}
      {sentence === undefined && ranks.together && <span class="faint">What holds all of them up is being worked out …</span>}{" "}
      {job?.late.filter((rank) => String(rank) !== ranks.shown).slice(0, 3).map((rank) => <span key={rank}><Link onClick={() => openRank(store, String(rank))}>Open rank {rank}</Link> · </span>)}
      {ranks.together && <Link onClick={() => openDrawer(store, "ranks")}>All ranks as a table</Link>}
    </p>
  );
}

// The verdict on all of them, where they are shown together.
export function JobVerdict() {
  const store = useStore();
  const job = store.job.value;
  if (job === null) return <p class="headline faint" role="status">Reading what these ranks say …</p>;
  return (
    <>
      <div class="verdict-head"><h1 class="headline"><RankText of={job.sentences[0] ?? "What holds the ranks up is not known."} most={1000} /></h1></div>
      {job.sentences.slice(1).map((sentence) => <p key={sentence}><RankText of={sentence} most={1000} /></p>)}
      <p class="faint">Clocks are aligned. Answers are those of one rank: open it in the list above, or in <Link onClick={() => openDrawer(store, "ranks")}>the table of ranks</Link>.</p>
    </>
  );
}

const columns: { key: keyof RankRow; title: string }[] = [
  { key: "step_ns", title: "Step" }, { key: "own_ns", title: "Own time" }, { key: "compute_ns", title: "Compute" }, { key: "idle_ns", title: "Idle" },
  { key: "copy_ns", title: "Copies" }, { key: "transfer_ns", title: "Transfer" }, { key: "wait_ns", title: "Waits for ranks" }, { key: "hidden_ns", title: "Hidden" },
];

export function RanksPanel() {
  const store = useStore();
  const { ranks } = store.meta;
  const job = store.job.value;
  if (ranks === undefined) return null;
  if (!ranks.together) return <p class="pad">{ranks.list.length} ranks are too many to be read for one page; <code>lanescope ranks</code> reads any number. Each can be chosen in the list above.</p>;
  if (job === null) return <p class="faint pad" role="status">Reading the traces of all ranks …</p>;
  return (
    <div class="panel">
      <div class="panel-tools"><span class="faint">Means of the steady steps. Step = own time + transfer + waits; own time = compute + idle + copies; hidden: communication while the device computes. A click opens the rank.</span></div>
      <VirtualTable label="Ranks" total={job.rows.length} row={(index) => job.rows[index]}
        onOpen={(row) => openRank(store, String(row.rank))} isCurrent={(row) => String(row.rank) === ranks.shown}
        columns={[
          { key: "rank", title: "Rank", grow: 1, cell: (row) => <>{rankText(String(row.rank))}{job.late.includes(row.rank) && <b> late</b>}</> },
          ...columns.map(({ key, title }) => ({ key, title, numeric: true, cell: (row: RankRow) => formatTime(row[key]) })),
        ]} />
      {job.remarks.map((remark) => <p key={remark} class="faint hint"><RankText of={remark} most={400} /></p>)}
      <Command text={job.command} />
    </div>
  );
}
