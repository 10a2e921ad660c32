// The first thing that is read: what bounds the program, where the time goes, what to do first.
import { useComputed, useSignal } from "@preact/signals";
import { formatChange, formatCount, formatShare } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { canShowPart, canShowPiece, showAllFindings, showFinding, showPiece, showWallPart } from "../state/actions/answering.ts";
import { openDrawer } from "../state/actions/panels.ts";
import { allRanks } from "../state/actions/ranks.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { none, type Explanation, type WallPart } from "../api/types.ts";
import { useStore } from "../state/context.ts";
import { Link, Text, Time } from "./common.tsx";
import { compareHeadline } from "./compare.tsx";
import { JobVerdict, RanksLine } from "./ranks.tsx";
import { StepRibbon } from "./step_ribbon.tsx";

// More than these, and the rules take longer than a reader waits without a word.
const manyEvents = 1_000_000;

export function Verdict() {
  const store = useStore();
  const chosen = useSignal<boolean | null>(null);
  // Tables need the room of the verdict on a small screen; whoever opened or closed it is obeyed.
  const open = useComputed(() => chosen.value ?? (store.drawer.value === "none" || innerHeight > 1100));
  const explanation = store.main.explanation.value;
  const two = store.views.length > 1;
  const headline = two ? (store.comparison.value === null ? null : compareHeadline(store.comparison.value)) : explanation?.headline ?? null;
  const events = store.views.reduce((sum, view) => sum + view.meta.slice_count, 0);
  if (store.meta.ranks?.shown === allRanks) return <section class="verdict" aria-label="Verdict"><JobVerdict /><StepRibbon /></section>;
  if (headline === null || explanation === null) {
    return (
      <section class="verdict" aria-label="Verdict" aria-busy="true">
        <p class="headline faint" role="status">Reading what {two ? "these traces say" : "this trace says"} …</p>
        {events > manyEvents && <p class="faint">The verdict on {formatCount(events)} events takes some seconds. The lanes below can be used already.</p>}
      </section>
    );
  }
  return (
    <section class={`verdict ${open.value ? "" : "verdict-closed"}`} aria-label="Verdict">
      <div class="verdict-head">
        <h1 class="headline">{two ? <Text of={headline} most={1000} /> : <Headline of={headline} explanation={explanation} />}</h1>
        <button type="button" class="small" aria-expanded={open.value} onClick={() => { chosen.value = !open.value; }}>{open.value ? "Less" : "More"}</button>
      </div>
      {open.value && <RanksLine />}
      {open.value && !two && (
        <div class="verdict-body">
          <div class="verdict-wall">
            <Wall explanation={explanation} trace={0} />
            <StepRibbon />
          </div>
          <DoFirst explanation={explanation} />
        </div>
      )}
      {open.value && two && (
        <div class="verdict-body">
          <WhatChanged />
          <div class="verdict-wall">
            {store.views.map((view) => view.explanation.value !== null && <Wall key={view.index} explanation={view.explanation.value} trace={view.index} />)}
          </div>
        </div>
      )}
    </section>
  );
}

// Each number is a link to what it counts.
function Headline({ of, explanation }: { of: string; explanation: Explanation }) {
  const store = useStore();
  const pieces = explanation.headline_pieces ?? [{ text: of }];
  return (
    <bdi>
      {pieces.map((piece, at) => {
        const text = cleanText(piece.text, 1000);
        return canShowPiece(store, piece) ? <Link key={at} label={`${text}: show it`} onClick={() => showPiece(store, piece)}>{text}</Link> : text;
      })}
    </bdi>
  );
}

// A part has the colour of its kind in the lanes.
const classOf: Record<string, string> = { compute: "kind-4", communication: "kind-5", copy: "kind-6", idle: "kind-idle", operator: "kind-0" };
const wallClass = (part: WallPart) => classOf[part.shows ?? ""] ?? "kind-8";

function Wall({ explanation, trace }: { explanation: Explanation; trace: number }) {
  const store = useStore();
  const view = store.view(trace);
  const parts = explanation.wall.filter((part) => part.ns > 0);
  if (parts.length === 0) return null;
  const subject = explanation.subject !== undefined && explanation.subject !== "" ? explanation.subject : "the trace";
  const title = subject.charAt(0).toUpperCase() + subject.slice(1);
  return (
    <div class="wall">
      <div class="wall-caption">
        <span>{store.views.length > 1 && <><b>{trace === 0 ? "A" : "B"}</b> · </>}<b><Text of={title} /></b>{explanation.wall_ns !== undefined && <>: <Link label="show a step of usual length" onClick={() => showPiece(store, { text: title, shows: "step" })}><Time ns={explanation.wall_ns} /></Link></>}</span>
        {trace === 0 && <span class="faint">click a part to see its events</span>}
      </div>
      <div class="wall-bar">
        {parts.map((part) => {
          const style = { flexGrow: Math.max(part.share, 0.004) };
          // Narrow parts have no room for words; the list below names them.
          const word = part.share > 0.075 && <span class="wall-word"><span>{formatShare(part.share)}</span><Text of={part.label.replace(/^idle: /, "")} /></span>;
          const name = `${part.label}: ${formatShare(part.share)}`;
          return canShowPart(view, part)
            ? <button key={part.label} type="button" class={`wall-part ${wallClass(part)}`} style={style} aria-label={name} title={cleanText(name)} onClick={() => showWallPart(store, part, trace)}>{word}</button>
            : <span key={part.label} class={`wall-part ${wallClass(part)}`} style={style} title={cleanText(name)}>{word}</span>;
        })}
      </div>
      <ul class="wall-legend">
        {parts.map((part) => (
          <li key={part.label}>
            <span class={`dot ${wallClass(part)}`} aria-hidden="true" />
            <Text of={part.label} />{" "}
            {canShowPart(view, part)
              ? <Link label={`show ${part.label}`} onClick={() => showWallPart(store, part, trace)}><Time ns={part.ns} /> <span class="faint">{formatShare(part.share)}</span></Link>
              : <><Time ns={part.ns} /> <span class="faint">{formatShare(part.share)}</span></>}
          </li>
        ))}
      </ul>
    </div>
  );
}

// Two traces: the parts that make the difference, largest first.
function WhatChanged() {
  const store = useStore();
  const brief = store.comparison.value?.brief;
  return (
    <div class="changes">
      <h2>What makes the difference, per step</h2>
      {brief !== undefined && brief.parts.length > 0
        ? (
          <ul class="plain">
            {brief.parts.map((part) => <li key={part.text}><b class="number">{formatChange(part.delta_ns)}</b> <Text of={part.text} most={600} /></li>)}
          </ul>
        )
        : <p>No part of a step changed by much.</p>}
      {brief !== undefined && brief.caution !== "" && <p class="faint"><Text of={brief.caution} most={600} /></p>}
      <p><Link onClick={() => openDrawer(store, "compare")}>All kernels of both, by change</Link></p>
    </div>
  );
}

function DoFirst({ explanation }: { explanation: Explanation }) {
  const store = useStore();
  const nothing = explanation.nothing ?? null;
  // A browser's trace, for example: there is no time of a step or a GPU that a fix could save.
  if (explanation.do_first.length === 0 && nothing === null && explanation.wall.length === 0) {
    return (
      <div class="do-first">
        <h2>What it holds is in the lanes below</h2>
        <p class="faint">Click an event for its details, drag over the lanes for the sums of a time, search for a name with <kbd>/</kbd>.</p>
      </div>
    );
  }
  if (explanation.do_first.length === 0) {
    return (
      <div class="do-first">
        <h2>No single fix stands out</h2>
        {nothing !== null && <p><Text of={nothing.remark} /></p>}
        {nothing !== null && (
          <ol class="takers">
            {nothing.takers.slice(0, 3).map((taker) => (
              <li key={taker.text}>
                {taker.slice !== undefined && taker.slice !== none
                  ? <Link onClick={() => void selectSlice(store, 0, taker.slice ?? none, { move: true })}><Time ns={taker.ns} /> <span class="faint">{formatShare(taker.ratio)}</span></Link>
                  : <><Time ns={taker.ns} /> <span class="faint">{formatShare(taker.ratio)}</span></>} <Text of={taker.text} />
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
            <button type="button" class="link do-first-head" aria-label={`show the evidence: ${item.verdict}`} title={cleanText(item.verdict, 600)} onClick={() => void showFinding(store, item.rule)}>
              <b><Text of={item.verdict} /></b>
              <span class="gain">{item.gain_text !== undefined && item.gain_text !== "" ? item.gain_text : "show me"}</span>
            </button>
            <p title={cleanText(item.action)}><Text of={item.action} />{item.place !== undefined && item.place !== "" && <span class="faint"> — <Text of={item.place} /></span>}</p>
          </li>
        ))}
      </ol>
      {explanation.together !== undefined && explanation.together !== "" && <p class="faint"><Link label={`${explanation.together}: show the evidence of all`} onClick={() => showAllFindings(store)}><Text of={explanation.together} /></Link></p>}
      {explanation.base !== undefined && explanation.base !== "" && <p class="faint"><Text of={explanation.base} /></p>}
    </div>
  );
}
