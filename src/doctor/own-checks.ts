import { visibleText } from "../policy/problems/problem.js";
import { type Diagnostic, findingsOr, rankDiagnostics } from "./diagnostic.js";
import type { HeadgateView } from "./headgate-view.js";
import { shownName } from "./json-access.js";
import { checkOwnState } from "./response-checks.js";
import { judgeEnvoy } from "./side-checks.js";

/** What a Headgate knows itself, without calling an Envoy. */
export interface OwnView {
  readonly headgate: HeadgateView;
  readonly envoys: readonly KnownEnvoy[];
  readonly services: readonly WatchedService[];
}

/** An Envoy that has connected. */
export interface KnownEnvoy {
  readonly name: string;
  /** Such as `1.40.0`; undefined: it is not reported. */
  readonly version: string | undefined;
  /** Why it rejected the last layer; undefined: it accepted it. */
  readonly refusal: string | undefined;
}

/** A service whose load Envoys report. */
export interface WatchedService {
  readonly name: string;
  /** Requests per second that breakers refuse, over the fleet. */
  readonly overflowPerSecond: number;
  /** Whether Envoys enforce its limit. */
  readonly isDriven: boolean;
}

/** Maximum length of an Envoy's message that is shown, in characters. */
const wordsCharsMax = 200;

/** Returns problems of this Headgate and of its known Envoys, worst first. */
export function diagnoseOwn(view: OwnView): readonly Diagnostic[] {
  return rankDiagnostics([
    ...checkOwnState(view.headgate),
    ...checkKnown(view),
    ...checkVersions(view.envoys),
    ...checkOverflows(view.services),
  ]);
}

function checkKnown({ envoys, services }: OwnView): readonly Diagnostic[] {
  const driven = services.filter(({ isDriven }) => isDriven);
  if (driven.length === 0) return [];
  if (envoys.length === 0) {
    const seen = "no Envoy has a stream to this replica; others may know theirs";
    return [{ kind: "unseen", id: "HG541", seen }];
  }
  const findings = envoys.flatMap(({ name, refusal }): readonly Diagnostic[] => {
    if (refusal === undefined) return [];
    const words = visibleText(refusal.slice(0, wordsCharsMax));
    const seen = `${shownName(name)} refuses the last layer: ${words}`;
    return [{ kind: "finding", id: "HG542", severity: "error", seen }];
  });
  const seen = `${envoys.length} Envoys are known here, and none refuses what it is sent`;
  return findingsOr(findings, { id: "HG542", seen });
}

function checkVersions(envoys: readonly KnownEnvoy[]): readonly Diagnostic[] {
  const versions = new Set(envoys.flatMap(({ version }) => version ?? []));
  const judged = [...versions].map(judgeEnvoy);
  const findings = judged.filter(({ kind }) => kind === "finding");
  const [first] = judged.filter(({ kind }) => kind === "pass");
  return findings.length === 0 && first === undefined
    ? []
    : findingsOr(findings, { id: "HG560", seen: first?.seen ?? "" });
}

function checkOverflows(services: readonly WatchedService[]): readonly Diagnostic[] {
  const findings = services.flatMap(({ name, overflowPerSecond }): readonly Diagnostic[] => {
    if (overflowPerSecond <= 0) return [];
    const seen = `breakers refuse ${overflowPerSecond.toFixed(1)} requests/s of ${shownName(name)}`;
    return [{ kind: "finding", id: "HG554", severity: "warning", seen }];
  });
  if (services.length === 0) return [];
  return findingsOr(findings, { id: "HG554", seen: "breakers of Envoys refuse nothing" });
}
