import type { PolicySimulatorParts } from "../decide/shadow/policy-simulator.js";
import type { Policy } from "../policy/policy.js";
import { wantedFacts } from "./asked-service.js";
import { type LogFormat, LogReader } from "./log-reader.js";
import type { LoggedRequest } from "./logged-request.js";
import { Replay, type ReplayedRule, type ReplayReport } from "./replay.js";

/** Parts of a `ComparedReplay`. */
export interface ComparedReplayParts extends Omit<PolicySimulatorParts, "policy"> {
  readonly active: Policy;
  /** Undefined: no comparison. */
  readonly candidate: Policy | undefined;
  readonly format: LogFormat;
}

/** A rule under two policies. Undefined: no request met the rule under that policy. */
export interface ComparedRule {
  readonly domain: string;
  readonly label: string;
  readonly active: ReplayedRule | undefined;
  readonly candidate: ReplayedRule | undefined;
}

/** What two policies would have decided for an access log. */
export interface ComparedReport {
  readonly lineCount: number;
  readonly unreadableCount: number;
  /** The first unreadable line, from 1, and the expected format; undefined: none. */
  readonly firstUnreadable: { readonly line: number; readonly hint: string } | undefined;
  readonly active: ReplayReport;
  readonly candidate: ReplayReport | undefined;
  readonly newlyDeniedCount: number;
  readonly newlyAllowedCount: number;
  /** Rules with the greatest difference first, then those that were over most often. */
  readonly rules: readonly ComparedRule[];
}

/** Replays an access log through one policy, or through two at the same time. */
export class ComparedReplay {
  readonly #reader: LogReader;
  readonly #active: Replay;
  readonly #candidate: Replay | undefined;
  /** Decisions of the active policy that the candidate still has to make, in the same order. */
  readonly #verdicts: boolean[] = [];
  #lineCount = 0;
  #unreadableCount = 0;
  #firstUnreadable: number | undefined;
  #newlyDeniedCount = 0;
  #newlyAllowedCount = 0;

  constructor({ active, candidate, format, ...parts }: ComparedReplayParts) {
    const services = [...active.services, ...(candidate?.services ?? [])];
    this.#reader = new LogReader(format, { wanted: wantedFacts(services), renamed: new Map() });
    const common = { ...parts, forAll: undefined };
    const note = (isDenied: boolean): void => void this.#verdicts.push(isDenied);
    const compared = candidate === undefined ? {} : { onDecided: note };
    this.#active = new Replay({ ...common, policy: active, ...compared });
    if (candidate === undefined) return;
    const onDecided = (isDenied: boolean): void => {
      const wasDenied = this.#verdicts.shift() === true;
      if (isDenied && !wasDenied) this.#newlyDeniedCount += 1;
      if (!isDenied && wasDenied) this.#newlyAllowedCount += 1;
    };
    this.#candidate = new Replay({ ...common, policy: candidate, onDecided });
  }

  /**
   * Takes the next line.
   *
   * @param number number of the line, from 1
   * @throws ServiceError STORE_FULL, REQUEST_INVALID; see `PolicySimulator`
   */
  take(line: string, number: number): void {
    if (line === "") return;
    const request = this.#reader.read(line);
    if (request === "titles") return;
    this.#lineCount += 1;
    if (request !== undefined) {
      this.#decide(request);
      return;
    }
    this.#unreadableCount += 1;
    this.#firstUnreadable ??= number;
  }

  /** Decides the remaining requests. Nothing may be taken afterwards. */
  finish(): ComparedReport {
    const active = this.#active.finish();
    const candidate = this.#candidate?.finish();
    const line = this.#firstUnreadable;
    return {
      lineCount: this.#lineCount,
      unreadableCount: this.#unreadableCount,
      firstUnreadable: line === undefined ? undefined : { line, hint: this.#reader.hint },
      active,
      candidate,
      newlyDeniedCount: this.#newlyDeniedCount,
      newlyAllowedCount: this.#newlyAllowedCount,
      rules: compareRules(active.rules, candidate?.rules),
    };
  }

  #decide(request: LoggedRequest): void {
    this.#active.take(request);
    this.#candidate?.take(request);
  }
}

function compareRules(
  active: readonly ReplayedRule[],
  candidate: readonly ReplayedRule[] = [],
): readonly ComparedRule[] {
  const idOf = ({ domain, label }: ReplayedRule): string => JSON.stringify([domain, label]);
  const others = new Map(candidate.map((rule) => [idOf(rule), rule]));
  const compared: ComparedRule[] = active.map((rule) => {
    const other = others.get(idOf(rule));
    others.delete(idOf(rule));
    return { domain: rule.domain, label: rule.label, active: rule, candidate: other };
  });
  for (const rule of others.values()) {
    compared.push({ domain: rule.domain, label: rule.label, active: undefined, candidate: rule });
  }
  const overOf = (rule: ReplayedRule | undefined): number => rule?.overCount ?? 0;
  const differenceOf = (one: ComparedRule): number =>
    candidate.length === 0 ? 0 : Math.abs(overOf(one.active) - overOf(one.candidate));
  const mostOf = (one: ComparedRule): number => overOf(one.active) + overOf(one.candidate);
  return compared.sort((a, b) => differenceOf(b) - differenceOf(a) || mostOf(b) - mostOf(a));
}
