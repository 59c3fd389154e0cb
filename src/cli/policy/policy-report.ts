import { many } from "../../core/base/many.js";
import type {
  ApplyPolicyResponse,
  GetShadowReportResponse,
  ListPoliciesResponse,
  PolicyVersion,
  Problem,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { drawBar } from "../terminal/bar.js";
import type { Drawing } from "../terminal/drawing.js";
import { countText, percentText, safeText, timeText } from "../terminal/quantity.js";
import { drawTable } from "../terminal/text-table.js";
import { wrapText } from "../terminal/text-width.js";

const barColumns = 12;

/** Draws the problems of a policy's text in the format of `headgate check`. */
export function drawProblems(problems: readonly Problem[]): readonly string[] {
  return problems.flatMap(({ file, line, column, id, message, hint }) => [
    `${safeText(file)}:${line}:${column}: ${safeText(id)} ${safeText(message)}`,
    ...(hint === "" ? [] : [`  ${safeText(hint)}`]),
  ]);
}

/** Draws the changes of a policy, one line each. */
export function drawChanges(changes: readonly string[]): readonly string[] {
  return changes.length === 0 ? ["  nothing"] : changes.map((change) => `  ${safeText(change)}`);
}

/** Draws the result of applying a policy. */
export function drawApplied({ policy }: ApplyPolicyResponse, how: string): readonly string[] {
  return [`${how}: ${policy === undefined ? "nothing" : policyText(policy)}`];
}

/** `policy 3f2a, by ann at 2026-11-21T12:00:00Z: launch week`. */
export function policyText({ version, author, reason, appliedAt }: PolicyVersion): string {
  const by = author === "" ? "" : `, by ${safeText(author)}`;
  const at = appliedAt === undefined ? "" : ` at ${timeText(appliedAt)}`;
  const why = reason === "" ? "" : `: ${safeText(reason)}`;
  return `policy ${safeText(version)}${by}${at}${why}`;
}

/** Draws policies as text, newest first. */
export function drawHistory(
  { policies }: ListPoliciesResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (policies.length === 0) return ["No policy has been applied yet."];
  return drawTable(
    [
      { title: "version", paint: style.bold },
      { title: "since" },
      { title: "from" },
      { title: "by", isFlexible: true },
      { title: "why", isFlexible: true, isWrapped: true },
    ],
    policies.map(({ version, appliedAt, source, author, reason }) => [
      safeText(version),
      timeText(appliedAt),
      safeText(source),
      safeText(author),
      safeText(reason),
    ]),
    columnsMax,
  );
}

/** Draws what the shadow policy would have decided differently. */
export function drawShadowReport(
  report: GetShadowReportResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  const { policyVersion, shadowVersion, since, callCount, unseenCallCount, rules } = report;
  const changed = rules.filter(
    ({ newlyDeniedCount, newlyAllowedCount }) => newlyDeniedCount + newlyAllowedCount > 0n,
  );
  const head = [
    `Policy ${safeText(shadowVersion)} beside ${safeText(policyVersion)}`,
    `${countText(callCount)} ${callCount === 1n ? "call" : "calls"} since ${timeText(since)}` +
      (unseenCallCount === 0n ? "" : `, and ${countText(unseenCallCount)} not seen`),
    ...wrapText(beginningText(rules), columnsMax, beginningLinesMax),
  ];
  if (changed.length === 0) {
    return [...head, `All decisions would have been the same, by ${many(rules.length, "rule")}.`];
  }
  const table = drawTable(
    [
      { title: "domain", isFlexible: true },
      { title: "rule", isFlexible: true, paint: style.bold },
      { title: "newly denied", align: "right", paint: style.bad },
      { title: "newly allowed", align: "right", paint: style.good },
      { title: "same", align: "right" },
      { title: "changed", align: "right" },
      { title: "" },
    ],
    changed.map(({ domain, label, newlyDeniedCount, newlyAllowedCount, sameCount }) => {
      const part = ratioOf(newlyDeniedCount + newlyAllowedCount, sameCount);
      return [
        safeText(domain),
        safeText(label),
        countText(newlyDeniedCount),
        countText(newlyAllowedCount),
        countText(sameCount),
        percentText(part),
        drawBar(part, barColumns),
      ];
    }),
    columnsMax,
  );
  const same = rules.length - changed.length;
  return [
    ...head,
    "",
    ...table,
    ...(same > 0 ? [`${many(same, "rule")} more without changes`] : []),
  ];
}

/** Maximum number of lines for the sentence about initial buckets. */
const beginningLinesMax = 10;

/** Maximum number of rules that a sentence names. */
const namedRulesMax = 5;

function beginningText(rules: GetShadowReportResponse["rules"]): string {
  const live = "started with the state of the active buckets";
  const empty = rules.filter(({ beganEmptyCount }) => beganEmptyCount > 0n);
  if (empty.length === 0) return `Its buckets ${live}.`;
  const names = empty.slice(0, namedRulesMax).map(({ domain, label }) => `${domain}/${label}`);
  if (empty.length > names.length) names.push(`${empty.length - names.length} more`);
  const others = rules.some(({ beganLiveCount }) => beganLiveCount > 0n) ? `; others ${live}` : "";
  return (
    `Buckets of ${safeText(names.join(", "))} started empty, and allow too much ` +
    `for one period of their limit${others}.`
  );
}

function ratioOf(changed: bigint, same: bigint): number {
  const all = changed + same;
  return all === 0n ? 0 : Number(changed) / Number(all);
}
