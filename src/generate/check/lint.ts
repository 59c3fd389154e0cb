import type { CheckProblem, ReportProblem } from "../base/check-problem.js";
import { rated } from "../base/generate-problems.js";
import { type EnvoyMessage, messagesAt, textField, visitMessages } from "./envoy-message.js";

/** The configuration around a message. */
export interface LintScope {
  /** The outermost message. */
  readonly root: EnvoyMessage;
  /** Names of all clusters. Undefined if there may be clusters that are not listed. */
  readonly clusters: ReadonlySet<string> | undefined;
  readonly report: ReportProblem;
}

/** A check of each message of one type. */
export interface Lint {
  /** Full name of the message. */
  readonly on: string;
  readonly check: (message: EnvoyMessage, scope: LintScope) => void;
}

/** Runs the lints on a message and everything in it. */
export function runLints(root: EnvoyMessage, lints: readonly Lint[]): readonly CheckProblem[] {
  const problems: CheckProblem[] = [];
  const scope: LintScope = {
    root,
    clusters: clustersOf(root),
    report: (finding) => void problems.push(rated(finding)),
  };
  const byType = new Map<string, Lint[]>();
  for (const lint of lints) byType.set(lint.on, [...(byType.get(lint.on) ?? []), lint]);
  visitMessages(root, (message) => {
    for (const { check } of byType.get(message.desc.typeName) ?? []) check(message, scope);
  });
  return problems;
}

/** Returns the clusters of a complete configuration that receives none over xDS. */
function clustersOf(root: EnvoyMessage): ReadonlySet<string> | undefined {
  if (root.desc.typeName !== "envoy.config.bootstrap.v3.Bootstrap") return undefined;
  const resources = root.fields.get("static_resources");
  if (resources?.kind !== "message" || root.fields.has("dynamic_resources")) return undefined;
  const names = messagesAt(resources.message, "clusters").map(
    (one) => textField(one, "name") ?? "",
  );
  return new Set(names);
}
