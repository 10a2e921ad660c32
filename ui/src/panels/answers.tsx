// What the rules found, with the evidence for each sentence.
import { useEffect, useRef } from "preact/hooks";
import { formatShare } from "../base/format.ts";
import { evidenceLabel, evidenceSlices, hasSlice, showFinding } from "../state/actions/answering.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { allRanks } from "../state/actions/ranks.ts";
import { useStore } from "../state/context.ts";
import type { Explanation, Finding } from "../api/types.ts";
import { Command, Link, Text, Time, TracePicker } from "./common.tsx";

const headings: Record<string, string> = {
  bound: "What bounds it", cost: "What may save time (the gains overlap: do not add them)", where: "Where the time goes", normal: "Looks alarming, but is normal",
  trust: "About the recording", ends: "What ends the program", memory: "Memory",
};

export function Answers() {
  const store = useStore();
  const trace = store.panelTrace.value;
  const explanation = store.view(trace).explanation.value;
  if (store.meta.ranks?.shown === allRanks) return <p>Answers are those of one rank: choose it in the list above.</p>;
  if (explanation === null) return <p class="faint" role="status">Reading what this trace says …</p>;
  const groups: { title: string; findings: Finding[] }[] = [];
  for (const finding of inOrder(explanation)) {
    const title = finding.kind === "cost" ? headings.cost : finding.title ?? headings[finding.kind ?? "cost"] ?? "Findings";
    const group = groups.find((each) => each.title === title);
    if (group === undefined) groups.push({ title, findings: [finding] });
    else group.findings.push(finding);
  }
  const quiet = (explanation.questions ?? []).filter((each) => each.state === "quiet");
  return (
    <div class="answers">
      <TracePicker />
      {groups.length === 0 && <p>No rule found anything in this trace.</p>}
      {groups.map((group) => (
        <section key={group.title}>
          <h2><Text of={group.title} /></h2>
          {group.findings.map((finding) => <FindingCard key={finding.rule} finding={finding} trace={trace} />)}
        </section>
      ))}
      {quiet.length > 0 && (
        <details>
          <summary>{quiet.length} questions whose answer is “no issue”</summary>
          <ul class="plain">{quiet.map((each) => <li key={each.id}><Text of={each.question} /></li>)}</ul>
        </details>
      )}
      {[...(explanation.notes ?? []), ...(explanation.damage ?? [])].map((note) => <p key={note} class="faint"><Text of={note} most={1000} /></p>)}
      {explanation.full_command !== undefined && <Command text={explanation.full_command} />}
    </div>
  );
}

// What the first screen says to do first comes first here, too; the rest in the engine's order.
function inOrder(explanation: Explanation): Finding[] {
  const place = (finding: Finding) => {
    const at = explanation.do_first.findIndex((each) => each.rule === finding.rule);
    return finding.kind !== "cost" || at >= 0 ? at : explanation.do_first.length;
  };
  const costs = explanation.findings.filter((each) => each.kind === "cost").sort((a, b) => place(a) - place(b));
  return explanation.findings.map((each) => (each.kind === "cost" ? costs.shift() ?? each : each));
}

function FindingCard({ finding, trace }: { finding: Finding; trace: number }) {
  const store = useStore();
  const current = store.finding.value === finding.rule;
  const card = useRef<HTMLElement>(null);
  useEffect(() => { if (current) card.current?.scrollIntoView({ block: "nearest" }); }, [current]);
  const show = (index: number) => {
    store.finding.value = finding.rule;
    const evidence = finding.evidence[index];
    store.lit.value = { label: evidenceLabel(finding), trace, slices: evidenceSlices(finding.evidence) };
    if (hasSlice(evidence)) void selectSlice(store, trace, evidence.slice, { move: true, keepLit: true, side: false });
  };
  const brief = finding.brief !== undefined && finding.brief !== "" ? finding.brief : finding.text;
  return (
    <article ref={card} class={`card ${current ? "current" : ""}`}>
      <h3><Text of={brief} most={600} /></h3>
      <Stake finding={finding} trace={trace} />
      {finding.action !== undefined && finding.action !== "" && <p><b>Try:</b> <Text of={finding.action} most={600} /></p>}
      {finding.evidence.length > 0 && (
        <ul class="plain evidence">
          {finding.evidence.map((evidence, index) => (
            <li key={`${evidence.slice}-${index}`}>
              {!hasSlice(evidence) ? <Text of={evidence.label} most={600} /> : <Link onClick={() => show(index)}><Text of={evidence.label} most={600} /></Link>}
            </li>
          ))}
        </ul>
      )}
      {(finding.text !== brief || (finding.arithmetic ?? []).length > 0 || (finding.try_next ?? []).length > 0) && (
        <details>
          <summary>How this was worked out</summary>
          {finding.text !== brief && <p><Text of={finding.text} most={2000} /></p>}
          {(finding.arithmetic ?? []).map((line) => <p key={line} class="arithmetic"><Text of={line} most={600} /></p>)}
          {(finding.try_next ?? []).length > 0 && <ul class="plain">{(finding.try_next ?? []).map((line) => <li key={line}><Text of={line} most={600} /></li>)}</ul>}
          <p class="faint">rule {finding.rule}{finding.confidence !== undefined && <> · {finding.confidence} confidence</>}</p>
        </details>
      )}
    </article>
  );
}

// One number for one thing: what a fix gains, as "Do first" says it; else the time that the finding is about.
function Stake({ finding, trace }: { finding: Finding; trace: number }) {
  const store = useStore();
  const show = () => void showFinding(store, finding.rule, trace);
  const label = `show the evidence: ${finding.brief || finding.text}`;
  if (finding.gain_text !== undefined && finding.gain_text !== "") {
    return <p class="at-stake">gain: <Link onClick={show} label={label}><Text of={finding.gain_text} /></Link></p>;
  }
  if (finding.at_stake_ns === undefined || finding.at_stake_ns <= 0) return null;
  return (
    <p class="at-stake"><Link onClick={show} label={label}><Time ns={finding.at_stake_ns} /></Link>
      {finding.at_stake_ratio !== undefined && finding.at_stake_ratio > 0 && <span class="faint"> {formatShare(finding.at_stake_ratio)} of {store.view(trace).steps.count > 0 ? "a step" : "the recording"}</span>}</p>
  );
}
