// The first thing that is read: what bounds the program, where the time goes, what to do first.
import { useComputed, useSignal } from "@preact/signals";
import { formatShare } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { kindOfPart, openDrawer, selectSlice, showFinding, showWallPart, type PartKind } from "../state/actions.ts";
import { none, type Explanation, type WallPart } from "../api/types.ts";
import { useStore } from "../state/context.ts";
import { Link, Text, Time } from "./common.tsx";
import { compareHeadline } from "./compare.tsx";
import { StepRibbon } from "./step_ribbon.tsx";

export function Verdict() {
  const store = useStore();
  const chosen = useSignal<boolean | null>(null);
  // Tables need the room of the verdict on a small screen; whoever opened or closed it is obeyed.
  const open = useComputed(() => chosen.value ?? (store.drawer.value === "none" || innerHeight > 1100));
  const explanation = store.main.explanation.value;
  if (explanation === null) return <section class="verdict" aria-label="Verdict"><p class="headline faint">Reading what this trace says …</p></section>;
  const comparison = store.comparison.value;
  return (
    <section class={`verdict ${open.value ? "" : "verdict-closed"}`} aria-label="Verdict">
      <div class="verdict-head">
        {comparison === null
          ? <h1 class="headline"><Text of={explanation.headline} most={600} /></h1>
          : <h1 class="headline headline-two"><Text of={compareHeadline(comparison)} most={1000} /> <Link onClick={() => openDrawer(store, "compare")}>Show what changed</Link></h1>}
        <button type="button" class="small" aria-expanded={open.value} onClick={() => { chosen.value = !open.value; }}>{open.value ? "Less" : "More"}</button>
      </div>
      {open.value && (
        <div class="verdict-body">
          <div class="verdict-wall">
            {comparison !== null && <p><b>A:</b> <Text of={explanation.headline} most={600} /></p>}
            <Wall explanation={explanation} />
            <StepRibbon />
          </div>
          <DoFirst explanation={explanation} />
        </div>
      )}
    </section>
  );
}

const classOf: Record<PartKind, string> = {
  compute: "kind-4", communication: "kind-5", copy: "kind-6", idle: "kind-idle", operator: "kind-0", other: "kind-8",
};
const wallClass = (part: WallPart) => classOf[kindOfPart(part)];

function Wall({ explanation }: { explanation: Explanation }) {
  const store = useStore();
  const parts = useComputed(() => (store.main.explanation.value?.wall ?? []).filter((part) => part.ns > 0));
  if (parts.value.length === 0) return null;
  const subject = explanation.subject !== undefined && explanation.subject !== "" ? explanation.subject : "the trace";
  const title = subject.charAt(0).toUpperCase() + subject.slice(1);
  return (
    <div class="wall">
      <div class="wall-caption">
        <span><b><Text of={title} /></b>{explanation.wall_ns !== undefined && <>: <Time ns={explanation.wall_ns} /></>}</span>
        <span class="faint">click a part to see its events</span>
      </div>
      <div class="wall-bar">
        {parts.value.map((part) => (
          <button key={part.label} type="button" class={`wall-part ${wallClass(part)}`} style={{ flexGrow: Math.max(part.share, 0.004) }}
            aria-label={`${part.label}: ${formatShare(part.share)}`} title={cleanText(part.label)} onClick={() => showWallPart(store, part)}>
            {part.share > 0.055 && <span class="wall-word">{formatShare(part.share)}{part.share > 0.14 && <> <Text of={part.label.replace(/^idle: /, "")} /></>}</span>}
          </button>
        ))}
      </div>
      <ul class="wall-legend">
        {parts.value.map((part) => (
          <li key={part.label}>
            <span class={`dot ${wallClass(part)}`} aria-hidden="true" />
            <Text of={part.label} />{" "}
            <Link label={`show ${part.label}`} onClick={() => showWallPart(store, part)}><Time ns={part.ns} /></Link>{" "}
            <span class="faint">{formatShare(part.share)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function DoFirst({ explanation }: { explanation: Explanation }) {
  const store = useStore();
  const nothing = explanation.nothing ?? null;
  if (explanation.do_first.length === 0) {
    return (
      <div class="do-first">
        <h2>Nothing stands out</h2>
        {nothing !== null && <p><Text of={nothing.remark} /></p>}
        {nothing !== null && (
          <ol class="takers">
            {nothing.takers.slice(0, 3).map((taker) => (
              <li key={taker.text}>
                <Link onClick={() => { if (taker.slice !== undefined && taker.slice !== none) void selectSlice(store, 0, taker.slice, { move: true }); }}><Time ns={taker.ns} /></Link>
                <span class="faint"> {formatShare(taker.ratio)}</span> <Text of={taker.text} />
              </li>
            ))}
          </ol>
        )}
        {nothing?.next !== undefined && nothing.next !== "" && <p class="faint"><Text of={nothing.next} /></p>}
      </div>
    );
  }
  return (
    <div class="do-first">
      <h2>Do first</h2>
      <ol>
        {explanation.do_first.map((item) => (
          <li key={item.rule} class={store.finding.value === item.rule ? "current" : ""}>
            <div class="do-first-head">
              <b><Text of={item.verdict} /></b>
              <Link label={`show the evidence: ${item.verdict}`} onClick={() => void showFinding(store, item.rule)}>
                {item.gain_text !== undefined && item.gain_text !== "" ? item.gain_text : "show me"}
              </Link>
            </div>
            <p><Text of={item.action} />{item.place !== undefined && item.place !== "" && <span class="faint"> — <Text of={item.place} /></span>}</p>
          </li>
        ))}
      </ol>
      {[explanation.together ?? "", explanation.base ?? ""].filter((text) => text !== "").map((text) => <p key={text} class="faint"><Text of={text} /></p>)}
    </div>
  );
}
