// What the rules found, with the evidence behind each sentence.
import { useEffect, useRef } from "preact/hooks";
import { none } from "../api/types.ts";
import { formatShare } from "../base/format.ts";
import { evidenceSlices, selectSlice, showFinding } from "../state/actions.ts";
import { cleanText } from "../base/text.ts";
import { useStore } from "../state/context.ts";
import type { Finding } from "../api/types.ts";
import { Command, Link, Text, Time } from "./common.tsx";

const headings: Record<string, string> = {
  bound: "What bounds it", cost: "What costs time", where: "Where the time goes", normal: "Looks alarming, but is normal",
  trust: "About the recording", ends: "What ends the program", memory: "Memory",
};

export function Answers() {
  const store = useStore();
  const explanation = store.main.explanation.value;
  if (explanation === null) return null;
  const groups: { title: string; findings: Finding[] }[] = [];
  for (const finding of explanation.findings) {
    const title = finding.title ?? headings[finding.kind ?? "cost"] ?? "Findings";
    const group = groups.find((each) => each.title === title);
    if (group === undefined) groups.push({ title, findings: [finding] });
    else group.findings.push(finding);
  }
  const quiet = (explanation.questions ?? []).filter((each) => each.state === "quiet");
  return (
    <div class="answers">
      {groups.length === 0 && <p>No rule found anything in this trace.</p>}
      {groups.map((group) => (
        <section key={group.title}>
          <h2><Text of={group.title} /></h2>
          {group.findings.map((finding) => <FindingCard key={finding.rule} finding={finding} />)}
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

function FindingCard({ finding }: { finding: Finding }) {
  const store = useStore();
  const current = store.finding.value === finding.rule;
  const card = useRef<HTMLElement>(null);
  useEffect(() => { if (current) card.current?.scrollIntoView({ block: "nearest" }); }, [current]);
  const show = (index: number) => {
    store.finding.value = finding.rule;
    const evidence = finding.evidence[index];
    store.lit.value = { label: cleanText(finding.brief || finding.text), trace: 0, slices: evidenceSlices(finding.evidence) };
    if (evidence.slice !== none) void selectSlice(store, 0, evidence.slice, { move: true, keepLit: true, side: false });
  };
  const brief = finding.brief !== undefined && finding.brief !== "" ? finding.brief : finding.text;
  return (
    <article ref={card} class={`card ${current ? "current" : ""}`}>
      <h3><Text of={brief} most={600} /></h3>
      {finding.at_stake_ns !== undefined && finding.at_stake_ns > 0 && (
        <p class="at-stake">at stake: <Link onClick={() => void showFinding(store, finding.rule)} label={`show the evidence: ${brief}`}><Time ns={finding.at_stake_ns} /></Link>
          {finding.at_stake_ratio !== undefined && finding.at_stake_ratio > 0 && <span class="faint"> {formatShare(finding.at_stake_ratio)} of {store.main.meta.steps.length > 0 ? "a step" : "the recording"}</span>}</p>
      )}
      {finding.action !== undefined && finding.action !== "" && <p><b>Try:</b> <Text of={finding.action} most={600} /></p>}
      {finding.evidence.length > 0 && (
        <ul class="plain evidence">
          {finding.evidence.map((evidence, index) => (
            <li key={`${evidence.slice}-${index}`}>
              {evidence.slice === none ? <Text of={evidence.label} most={600} /> : <Link onClick={() => show(index)}><Text of={evidence.label} most={600} /></Link>}
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
