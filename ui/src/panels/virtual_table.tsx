// A table that makes only the rows in view, for any number of rows. Rows are chosen by click, or by arrow keys and Enter.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface Column<Row> {
  key: string;
  title: string;
  numeric?: boolean;
  grow?: number;
  cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  total: number;
  row: (index: number) => Row | undefined; // undefined: not there yet
  onRange?: (from: number, to: number) => void; // rows in view, so that they can be fetched
  sort?: { key: string; descending: boolean };
  onSort?: (key: string) => void;
  onOpen?: (row: Row) => void;
  isCurrent?: (row: Row) => boolean;
}

const rowHeight = 24;

export function VirtualTable<Row>(props: Props<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(240);
  const at = useSignal(0);
  const from = Math.max(0, Math.floor(top.value / rowHeight) - 4);
  const to = Math.min(props.total, Math.ceil((top.value + height.value) / rowHeight) + 4);

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => { height.value = element.clientHeight; });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => props.onRange?.(from, to), [from, to, props.total, props.sort?.key, props.sort?.descending]);

  const choose = (index: number) => {
    at.value = Math.max(0, Math.min(props.total - 1, index));
    const element = scroller.current;
    if (element === null) return;
    const y = at.value * rowHeight;
    if (y < element.scrollTop) element.scrollTop = y;
    if (y + rowHeight * 2 > element.scrollTop + element.clientHeight) element.scrollTop = y + rowHeight * 2 - element.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step !== undefined) choose(at.value + step);
    else if (event.key === "Home") choose(0);
    else if (event.key === "End") choose(props.total - 1);
    else if (event.key === "Enter" && event.target === scroller.current) {
      const row = props.row(at.value);
      if (row !== undefined) props.onOpen?.(row);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const style = (column: Column<Row>) => ({ flex: `${column.grow ?? 1} 1 0` });
  const rows = [];
  for (let index = from; index < to; index += 1) {
    const row = props.row(index);
    rows.push(
      <div key={index} role="row" aria-rowindex={index + 2} aria-selected={row !== undefined && props.isCurrent?.(row) === true}
        class={`trow ${index === at.value ? "at" : ""}`} style={{ top: `${index * rowHeight}px` }}
        onClick={() => { at.value = index; if (row !== undefined) props.onOpen?.(row); }}>
        {props.columns.map((column) => (
          <div key={column.key} role="gridcell" class={column.numeric === true ? "numeric" : ""} style={style(column)}>{row === undefined ? "…" : column.cell(row)}</div>
        ))}
      </div>);
  }
  return (
    <div class="vtable" role="grid" aria-label={props.label} aria-rowcount={props.total + 1} tabIndex={0} ref={scroller} onKeyDown={onKeyDown}
      onScroll={(event) => { top.value = event.currentTarget.scrollTop; }}>
      <div role="rowgroup" class="thead">
        <div role="row" class="trow-head" aria-rowindex={1}>
          {props.columns.map((column) => {
            const sorted = props.sort?.key === column.key;
            return (
              <div key={column.key} role="columnheader" class={column.numeric === true ? "numeric" : ""} style={style(column)}
                aria-sort={sorted ? (props.sort?.descending === true ? "descending" : "ascending") : undefined}>
                {props.onSort === undefined
                  ? column.title
                  : <button type="button" class="sort" onClick={() => props.onSort?.(column.key)}>{column.title}{sorted ? (props.sort?.descending === true ? " ↓" : " ↑") : ""}</button>}
              </div>
            );
          })}
        </div>
      </div>
      <div role="rowgroup" class="tbody" style={{ height: `${props.total * rowHeight}px` }}>{rows}</div>
    </div>
  );
}
