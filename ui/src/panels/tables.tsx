// Kernels and operators by name: of the area if there is one, else of the whole trace. A row shows its longest event.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { none, type TableAnswer } from "../api/types.ts";
import { formatBytes, formatCount, formatShare, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { report } from "../state/actions/say.ts";
import { nextHit, search } from "../state/actions/searching.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import type { Area } from "../state/store.ts";
import { TracePicker, useSettled } from "./common.tsx";
import { VirtualTable } from "./virtual_table.tsx";

const page = 200;

export function NameTable({ table }: { table: "kernels" | "operators" }) {
  const store = useStore();
  const answer = useSignal<TableAnswer | null>(null);
  const rows = useSignal<Map<number, TableAnswer["rows"][0]>>(new Map());
  const sort = useSignal<{ key: string; descending: boolean }>({ key: "", descending: true });
  const filter = useSignal("");
  const asked = new Set<number>();
  const latest = useRef(0); // counts questions: an answer to an older one is not shown
  const settledArea = useSettled(store.area);
  const areaHere = (area: Area | null) => (area !== null && area.trace === store.panelTrace.peek() ? area : null);

  const fetchPage = async (from: number) => {
    const area = areaHere(settledArea.peek());
    if (from === 0) latest.current += 1;
    const mine = latest.current;
    try {
      const got = await store.engine.table(store.panelTrace.peek(), {
        table, sort: sort.peek().key, descending: sort.peek().descending, filter: filter.peek(), offset: from, limit: page,
        ...(area === null ? {} : { t0: area.t0, t1: area.t1 }),
      });
      if (mine !== latest.current) return;
      const next = from === 0 ? new Map<number, TableAnswer["rows"][0]>() : new Map(rows.peek());
      got.rows.forEach((row, index) => next.set(from + index, row));
      const largest = got.columns.find((column) => column.unit === "ns");
      if (sort.peek().key === "" && largest !== undefined) {
        sort.value = { key: largest.key, descending: true }; // asks again, in this order
        return;
      }
      rows.value = next;
      answer.value = got;
    } catch (reason) {
      report(store, reason);
    }
  };
  useSignalEffect(() => {
    void store.meta.generation; // again when the trace has grown
    void settledArea.value;
    void store.panelTrace.value;
    void sort.value;
    void filter.value;
    void fetchPage(0);
  });

  const got = answer.value;
  if (got === null) return <p class="faint pad" role="status">Adding up…</p>;
  // The engine has its sums of operators of the whole trace alone.
  const area = table === "operators" && !store.engine.isSaved ? null : areaHere(settledArea.value);
  const trace = store.panelTrace.value;
  const cell = (unit: string, value: unknown) => {
    if (typeof value === "string") return <bdi title={cleanText(value, 1000)}>{cleanText(value)}</bdi>;
    if (typeof value !== "number") return "";
    const forms: Record<string, (value: number) => string> = { ns: formatTime, count: formatCount, ratio: formatShare, bytes: formatBytes };
    return forms[unit]?.(value) ?? String(value);
  };
  return (
    <div class="panel">
      <div class="panel-tools">
        <TracePicker />
        <span>{table === "kernels" ? plural(got.total, "kernel name") : `${plural(got.total, "name")} of operators, calls and GPU work`} in {area === null ? (store.engine.isSaved ? "this page" : "the whole trace") : `an area of ${formatTime(area.t1 - area.t0)}`}</span>
        <input type="search" aria-label="filter names" placeholder="filter names" value={filter.value} onInput={(event) => { filter.value = event.currentTarget.value; }} />
      </div>
      <VirtualTable<TableAnswer["rows"][0]>
        label={table}
        total={got.total}
        row={(index) => rows.value.get(index)}
        onRange={(from, to) => {
          for (let at = Math.floor(from / page) * page; at < to; at += page) {
            if (at > 0 && !rows.peek().has(at) && !asked.has(at)) {
              asked.add(at);
              void fetchPage(at);
            }
          }
        }}
        sort={sort.value}
        onSort={(key) => { sort.value = { key, descending: sort.value.key === key ? !sort.value.descending : got.columns.find((column) => column.key === key)?.unit !== "text" }; }}
        onOpen={(row) => {
          if (row.slice !== undefined && row.slice !== none) void selectSlice(store, trace, row.slice, { move: true });
          else if (typeof row.name === "string") void search(store, row.name.replace(/\*$/, "")).then(() => nextHit(store, 1));
        }}
        isCurrent={(row) => row.slice !== undefined && store.details.value?.slice === row.slice}
        columns={got.columns.map((column) => ({
          key: column.key, title: column.title, numeric: column.unit !== "text", grow: column.unit === "text" ? (column.key === "name" ? 4 : 2) : 1,
          cell: (row) => cell(column.unit, row[column.key]),
        }))}
      />
      <p class="faint hint">Click a row to see one of its events. {table === "kernels" && area === null && store.view(trace).steps.count > 0 && <><code>lanescope kernels</code> counts steady steps only; choose a step and press <kbd>R</kbd> for the sums of one. </>}{table === "operators" && store.area.value !== null && area === null && <>The tab “Area” has the sums of the area. </>}{table === "operators" && store.view(trace).meta.lanes.some((lane) => lane.kind === "device") && <>Rows of the other device's streams are here, too: their time is the device's, not the CPU's. </>}{(store.details.value?.short ?? "") !== "" && <button type="button" class="small" onClick={() => void search(store, store.details.value?.short ?? "")}>Search for the name of the selected event</button>}</p>
    </div>
  );
}
