// What is known of the selected event or gap.
import { none, type ChainLink, type EventDetails } from "../api/types.ts";
import { formatCount, formatExactTime, formatShare, formatTime, plural } from "../base/format.ts";
import { cleanLines, cleanText } from "../base/text.ts";
import { showFinding } from "../state/actions/answering.ts";
import { areaOfSelection, startMeasure } from "../state/actions/areas.ts";
import { fitSelection } from "../state/actions/moving.ts";
import { allRanks } from "../state/actions/ranks.ts";
import { selectGap, selectSlice } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import type { TraceView } from "../state/store.ts";
import { queueOf } from "../timeline/scene.ts";
import { Command, CopyButton, KindDot, Link, Text, Time } from "./common.tsx";

export function Details() {
  const store = useStore();
  const selection = store.selection.value;
  if (selection === null) {
    return (
      <div class="details">
        <p>Nothing is selected. Click an event on a lane, or press <kbd>Enter</kbd> for the one in the middle.</p>
        <p class="faint"><kbd>W</kbd> <kbd>S</kbd> zoom, <kbd>A</kbd> <kbd>D</kbd> move, <kbd>?</kbd> all keys.</p>
      </div>
    );
  }
  const view = store.view(selection.trace);
  if (selection.type === "gap") return <GapDetails view={view} />;
  const details = store.details.value;
  if (details === null) return <div class="details faint">…</div>;
  return <SliceDetails view={view} details={details} />;
}

function Tools() {
  const store = useStore();
  return (
    <p class="tools">
      <button type="button" class="small" title="F" onClick={() => fitSelection(store)}>Zoom to it</button>
      <button type="button" class="small" title="R" onClick={() => areaOfSelection(store)}>Sums of this time</button>
      <button type="button" class="small" title="X" onClick={() => startMeasure(store)}>Measure from it</button>
    </p>
  );
}

function SliceDetails({ view, details }: { view: TraceView; details: EventDetails }) {
  const store = useStore();
  const lane = view.laneByNumber.get(details.lane);
  const select = (slice: number) => void selectSlice(store, view.index, slice, { move: true, keepLit: true });
  const described = details.describe;
  const short = details.short || details.name;
  return (
    <div class="details">
      <h2><KindDot kind={details.kind} /> <span><Text of={short} most={300} /></span></h2>
      {described?.what !== undefined && described.what !== "" && <p><Text of={described.what} most={1000} /></p>}
      {described?.note !== undefined && described.note !== "" && <p class="faint"><Text of={described.note} most={1000} /></p>}
      <Tools />
      <dl class="facts">
        <dt>Time</dt><dd><Time ns={details.dur_ns} />{details.self_ns !== undefined && details.self_ns !== details.dur_ns && <>, of that its own <Time ns={details.self_ns} /> <Help text="Self time: its time minus the time of the events directly inside it." /></>}</dd>
        <dt>Begins</dt><dd title={formatExactTime(details.start_ns)}>{formatExactTime(details.start_ns)}</dd>
        {details.code !== undefined && details.code !== "" && <><dt>Code</dt><dd><Text of={details.code} most={1000} /></dd></>}
        <dt>On</dt><dd><Text of={lane?.title ?? "?"} />{details.category !== undefined && details.category !== "" && <span class="faint"> · {cleanText(details.category, 40)}</span>}</dd>
        {details.like !== undefined && details.like.count > 1 && (
          <>
            <dt>Like it</dt>
            <dd>1 of {formatCount(details.like.count)}: median <Time ns={details.like.median_ns} />, {formatTime(details.like.min_ns)} to {formatTime(details.like.max_ns)}
              <LikeBar like={details.like} dur={details.dur_ns} />
              <span class="tools">
                {details.like.previous !== undefined && details.like.previous !== none && <button type="button" class="small" onClick={() => select(details.like?.previous ?? none)}>previous one</button>}
                {details.like.next !== undefined && details.like.next !== none && <button type="button" class="small" onClick={() => select(details.like?.next ?? none)}>next one</button>}
              </span>
            </dd>
          </>
        )}
        {details.occupancy !== undefined && <Occupancy occupancy={details.occupancy} />}
        {details.shapes !== undefined && details.shapes !== null && details.shapes !== "" && <><dt>Shapes</dt><dd><Text of={asText(details.shapes)} most={1000} /></dd></>}
      </dl>
      <Chain chain={wholeChain(details)} queueNs={queueOf(details)} selected={details.slice} onSelect={select} />
      {(details.launched_count ?? 0) > 1 && (
        <details>
          <summary>It launched {plural(details.launched_count ?? 0, "piece")} of GPU work</summary>
          <ol class="plain list">
            {(details.launched ?? []).map((work) => <li key={work.slice}><Link onClick={() => select(work.slice)}><Text of={work.short} /></Link> <span class="faint">{formatTime(work.dur_ns)}</span></li>)}
          </ol>
        </details>
      )}
      {details.forward !== undefined && details.forward !== none && <p><Link onClick={() => select(details.forward ?? none)}>The forward operator that this belongs to</Link></p>}
      {(details.findings ?? []).length > 0 && (
        <div>Evidence of: <ul class="plain">{(details.findings ?? []).map((rule) => (
          <li key={rule}><Link onClick={() => { void showFinding(store, rule, view.index); store.side.value = "answers"; }}><Text of={findingText(view, rule)} most={200} /></Link></li>
        ))}</ul></div>
      )}
      {details.pending === true && store.meta.ranks?.shown !== allRanks && <p class="faint" role="status">Whether a finding uses it is not known yet: the rules still run.</p>}
      <Stack stack={details.stack} />
      {details.args.length > 0 && (
        <details open={details.args.length < 14}>
          <summary>{plural(details.args.length, "argument")}, as the profiler wrote {details.args.length === 1 ? "it" : "them"}</summary>
          <table class="args"><tbody>
            {details.args.map((arg, index) => <tr key={`${arg.key}-${index}`}><th scope="row"><Text of={arg.key} most={100} /></th><td><Text of={asText(arg.value)} most={2000} /></td></tr>)}
          </tbody></table>
        </details>
      )}
      {details.name !== short && (
        <details>
          <summary>Full name</summary>
          <p class="full-name"><Text of={details.name} most={20_000} /></p>
          <CopyButton text={details.name} label="Copy name" />
        </details>
      )}
      {details.command !== undefined && details.command !== "" && <Command text={details.command} />}
    </div>
  );
}

// What the finding of a rule says; without one, the rule's name.
function findingText(view: TraceView, rule: string): string {
  const finding = view.explanation.value?.findings.find((each) => each.rule === rule);
  return finding === undefined ? rule : finding.brief || finding.text;
}

export function Help({ text }: { text: string }) {
  return <span class="help-mark" role="img" aria-label={text} title={text}>?</span>;
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return JSON.stringify(value) ?? "";
}

// Where this one lies between the shortest and the longest of its name.
function LikeBar({ like, dur }: { like: { median_ns: number; min_ns: number; max_ns: number }; dur: number }) {
  const span = Math.max(1, like.max_ns - like.min_ns);
  const place = (ns: number) => `${((ns - like.min_ns) / span) * 100}%`;
  return (
    <span class="like-bar" aria-hidden="true">
      <span class="like-median" style={{ left: place(like.median_ns) }} title="median" />
      <span class="like-this" style={{ left: place(dur) }} title="this one" />
    </span>
  );
}

function Occupancy({ occupancy }: { occupancy: NonNullable<EventDetails["occupancy"]> }) {
  const parts = [
    occupancy.percent !== undefined ? `${formatShare(occupancy.percent / 100)} estimated` : "",
    occupancy.limiter !== undefined && occupancy.limiter !== "" ? `limited by ${occupancy.limiter === "grid" ? "too few blocks" : occupancy.limiter}` : "",
    occupancy.blocks !== undefined ? `${formatCount(occupancy.blocks)} blocks of ${formatCount(occupancy.block_threads ?? 0)} threads` : "",
    occupancy.waves !== undefined ? `${occupancy.waves < 0.05 ? "a small part of a wave" : `${occupancy.waves.toFixed(occupancy.waves < 10 ? 1 : 0)} waves`}` : "",
  ].filter((part) => part !== "");
  if (parts.length === 0) return null;
  return <><dt>Occupancy <Help text="How many of the threads that a multiprocessor can hold this kernel keeps there." /></dt><dd><Text of={parts.join(", ")} /></dd></>;
}

// The chain of a call goes on with the first work that it launched.
function wholeChain(details: EventDetails): ChainLink[] {
  const work = details.launched?.[0];
  const known = details.chain.some((link) => link.role === "kernel");
  return work === undefined || known ? details.chain : [...details.chain, { ...work, role: "kernel", name: work.short }];
}

const roleWords: Record<string, string> = {
  step: "step", annotation: "range", module: "module", operator: "operator", launch: "launch", call: "call", kernel: "on the GPU", python: "Python",
};

function Chain({ chain, queueNs, selected, onSelect }: { chain: ChainLink[]; queueNs: number | null; selected: number; onSelect: (slice: number) => void }) {
  if (chain.length < 2) return null;
  return (
    <section aria-label="From your code to the GPU">
      <h3>From your code to the GPU</h3>
      <ol class="chain">
        {chain.map((link) => (
          <li key={`${link.role}-${link.slice}`} class={link.slice === selected ? "current" : ""}>
            {link.role === "kernel" && queueNs !== null && <p class="queue">{queueNs < 0 ? `starts ${formatTime(-queueNs)} before the call returns` : `${formatTime(queueNs)} from the end of the call to its start`}</p>}
            <span class="role">{roleWords[link.role] ?? cleanText(link.role, 20)}</span>
            <Link onClick={() => onSelect(link.slice)}><Text of={link.short || link.name} most={160} /></Link>
            <span class="faint number">{formatTime(link.dur_ns)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Stack({ stack }: { stack: EventDetails["stack"] }) {
  const lines = Array.isArray(stack) ? stack : typeof stack === "string" && stack !== "" ? stack.split(/[;\n]/) : [];
  if (lines.length === 0) return null;
  return (
    <details open>
      <summary>Python stack</summary>
      <pre class="stack" tabIndex={0}>{lines.slice(0, 200).map((line) => cleanLines(line, 1000)).join("\n")}</pre>
    </details>
  );
}

function GapDetails({ view }: { view: TraceView }) {
  const store = useStore();
  const gap = store.gap.value;
  if (gap === null) return <div class="details faint" role="status">…</div>;
  const select = (slice: number) => void selectSlice(store, view.index, slice, { move: true });
  const cause = store.meta.causes.find((each) => each.key === gap.cause || each.cause === gap.cause);
  const links: [string, number | null | undefined][] = [
    ["The CPU call that it waited for", gap.blame], ["The launch of the next work", gap.launch], ["The GPU work that ended it", gap.ends_at],
  ];
  return (
    <div class="details">
      <h2><span class="dot kind-idle" aria-hidden="true" /> <span>GPU idle for <Time ns={gap.dur_ns} /></span></h2>
      <p><b><Text of={cause?.title ?? String(gap.cause)} /></b>. <Text of={cause?.text ?? gap.text} most={1000} /></p>
      <Tools />
      <dl class="facts">
        <dt>Begins</dt><dd>{formatExactTime(gap.start_ns)}</dd>
        <dt>GPU</dt><dd>{gap.device}</dd>
        <dt>Share</dt><dd>{formatShare(gap.dur_ns / Math.max(1, view.meta.span_ns))} of the trace</dd>
      </dl>
      <ul class="plain">
        {gap.cpu !== undefined && gap.cpu !== null && gap.cpu !== "" && (
          <li>The CPU meanwhile: {gap.cpu_slice !== undefined && gap.cpu_slice !== null && gap.cpu_slice !== none
            ? <Link onClick={() => select(gap.cpu_slice ?? none)}><Text of={gap.cpu} /></Link>
            : <Text of={gap.cpu} />}</li>
        )}
        {links.map(([text, slice]) => slice !== undefined && slice !== null && slice !== none && <li key={text}><Link onClick={() => select(slice)}>{text}</Link></li>)}
      </ul>
      {gap.finding !== undefined && gap.finding !== null && gap.finding !== "" && <p>Evidence of: <Link onClick={() => { void showFinding(store, gap.finding ?? "", view.index); }}><Text of={findingText(view, gap.finding)} most={200} /></Link></p>}
      {gap.pending === true && store.meta.ranks?.shown !== allRanks && <p class="faint" role="status">What the CPU did meanwhile follows when the rules have run.</p>}
      <p class="tools">
        <button type="button" class="small" onClick={() => void selectGap(store, view.index, gap.index, true)}>Bring it into view</button>
      </p>
    </div>
  );
}
