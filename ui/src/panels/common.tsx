// Small parts that all panels use. Text of a trace goes through <Text>.
import { type ReadonlySignal, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { formatExactTime, formatTime } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { say } from "../state/actions/say.ts";
import { useStore } from "../state/context.ts";

export function Text({ of, most }: { of: string; most?: number }) {
  return <bdi>{cleanText(of, most)}</bdi>;
}

// With two traces: whose answers and tables are shown.
export function TracePicker() {
  const store = useStore();
  if (store.views.length < 2) return null;
  return (
    <span class="picker" role="group" aria-label="trace">
      {store.views.map((view) => (
        <button key={view.index} type="button" class="chip" aria-pressed={store.panelTrace.value === view.index} title={cleanText(view.meta.path, 300)}
          onClick={() => { store.panelTrace.value = view.index; }}>{view.index === 0 ? "A" : "B"}</button>
      ))}
    </span>
  );
}

export function Time({ ns }: { ns: number }) {
  return <span class="number" title={formatExactTime(ns)}>{formatTime(ns)}</span>;
}

// A number or a name that shows its events.
export function Link({ onClick, children, label }: { onClick: () => void; children: ComponentChildren; label?: string }) {
  return <button type="button" class="link" aria-label={label} onClick={onClick}>{children}</button>;
}

export function KindDot({ kind }: { kind: number }) {
  const store = useStore();
  const title = store.meta.kinds.find((each) => each.kind === kind)?.title ?? "other";
  return <span class={`dot kind-${kind}`} role="img" aria-label={title} title={title} />;
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const store = useStore();
  const copy = () => {
    navigator.clipboard?.writeText(text).then(() => say(store, "copied"), () => say(store, "the browser did not allow copying"));
  };
  return <button type="button" class="small" onClick={copy} title={text}>{label}</button>;
}

export function Command({ text }: { text: string }) {
  return (
    <p class="command">
      <code><bdi>{cleanText(text, 1000)}</bdi></code>
      <CopyButton text={text} label="Copy command" />
    </p>
  );
}

// What a signal has been for a moment: a question need not be asked for every pixel of a drag.
export function useSettled<T>(source: ReadonlySignal<T>, ms = 150): ReadonlySignal<T> {
  const settled = useSignal(source.peek());
  useSignalEffect(() => {
    const { value } = source;
    const timer = setTimeout(() => { settled.value = value; }, ms);
    return () => clearTimeout(timer);
  });
  return settled;
}
