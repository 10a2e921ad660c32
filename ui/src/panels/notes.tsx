// Notes that stay next to the trace, in a file of their own.
import { useSignal } from "@preact/signals";
import { none } from "../api/types.ts";
import { formatTime } from "../base/format.ts";
import { keepNotes } from "../state/actions/areas.ts";
import { goTo, selectedRange } from "../state/actions/moving.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import { Link, Text } from "./common.tsx";

export function NotesPanel() {
  const store = useStore();
  const text = useSignal("");
  const add = () => {
    if (text.value.trim() === "") return;
    const range = selectedRange(store);
    const window = store.viewport.target;
    const details = store.details.peek();
    void keepNotes(store, [...store.notes.peek(), {
      t_ns: Math.round(range?.t0 ?? (window.t0 + window.t1) / 2), text: text.value.trim().slice(0, 2000),
      ...(details !== null ? { slice: details.slice, lane: details.lane } : {}),
    }]);
    text.value = "";
  };
  return (
    <div class="panel panel-scroll">
      {store.engine.isSaved
        ? <p class="pad faint">A saved page keeps no notes.</p>
        : (
          <form class="panel-tools" onSubmit={(event) => { event.preventDefault(); add(); }}>
            <input aria-label="note" placeholder={store.selection.value === null ? "a note at the middle of the window" : "a note on the selection"} class="wide" value={text.value} onInput={(event) => { text.value = event.currentTarget.value; }} />
            <button type="submit" class="small">Add</button>
          </form>
        )}
      {store.notes.value.length === 0 && !store.engine.isSaved && <p class="pad faint">No notes yet. They are kept in a file next to the trace.</p>}
      <ul class="plain notes">
        {store.notes.value.map((note, index) => (
          <li key={`${note.t_ns}-${index}`}>
            <Link onClick={() => { if (note.slice !== undefined && note.slice !== none) void selectSlice(store, 0, note.slice, { move: true }); else goTo(store, 0, note.t_ns - 1e5, note.t_ns + 1e5); }}>{formatTime(note.t_ns)}</Link>{" "}
            <Text of={note.text} most={2000} />{" "}
            <button type="button" class="small" aria-label={`delete the note at ${formatTime(note.t_ns)}`} onClick={() => void keepNotes(store, store.notes.peek().filter((_, at) => at !== index))}>delete</button>
          </li>
        ))}
      </ul>
    </div>
  );
}
