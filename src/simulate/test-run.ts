import { isServiceError } from "../core/base/errors.js";
import { serviceQuery } from "../decide/admission/service-query.js";
import type { DescriptorQuery, RateLimitQuery } from "../decide/rate-limit/query.js";
import { defaultSwitches } from "../decide/rate-limit/switches.js";
import {
  PolicySimulator,
  type PolicySimulatorParts,
  type SimulatedDecision,
} from "../decide/shadow/policy-simulator.js";
import type { Policy } from "../policy/policy.js";
import type { PolicyTest, TestedRequest, TestStep } from "../policy/policy-tests.js";
import { findNearestName } from "../policy/text/nearest-name.js";

/** A difference from the expected result. */
export interface TestFailure {
  readonly line: number;
  /** A sentence. */
  readonly message: string;
  /** The two parts of the message; undefined if the call could not be made at all. */
  readonly parts: { readonly expected: string; readonly got: string } | undefined;
}

/** Outcome of one test, with its failures; none if everything was as expected. */
export interface TestOutcome {
  readonly name: string;
  readonly line: number;
  readonly failures: readonly TestFailure[];
  /** Number of calls made. */
  readonly callCount: number;
  /** Indexes of the rules that calls met. */
  readonly rules: ReadonlySet<number>;
}

/** Runs one test on unused limits. A call that cannot be decided is a failure. */
export function runPolicyTest(
  test: PolicyTest,
  parts: Pick<PolicySimulatorParts, "policy" | "digest">,
): TestOutcome {
  const run = new TestRun(test, { ...parts, switches: defaultSwitches });
  try {
    for (const step of test.steps) run.take(step);
    return run.outcome();
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    const { name, line } = test;
    const failures = [{ line, message: thrown.message, parts: undefined }];
    return { name, line, failures, callCount: 0, rules: new Set() };
  }
}

/** Returns the rules with an effect, and those that no test has met. */
export function testedRules(
  { rules }: Pick<Policy, "rules">,
  outcomes: readonly Pick<TestOutcome, "rules">[],
): { readonly limited: Policy["rules"]; readonly unmet: Policy["rules"] } {
  const met = new Set(outcomes.flatMap((outcome) => [...outcome.rules]));
  const limited = rules.filter(({ effect }) => effect.kind !== "none");
  return { limited, unmet: limited.filter(({ index }) => !met.has(index)) };
}

type AskStep = Extract<TestStep, { kind: "ask" }>;

class TestRun {
  readonly #test: PolicyTest;
  readonly #policy: Policy;
  readonly #trial: PolicySimulator;
  readonly #failures: TestFailure[] = [];
  readonly #rules = new Set<number>();
  #nowUs: number;
  #callCount = 0;

  constructor(test: PolicyTest, parts: PolicySimulatorParts) {
    this.#test = test;
    this.#policy = parts.policy;
    this.#trial = new PolicySimulator(parts);
    this.#nowUs = test.startUs;
  }

  take(step: TestStep): void {
    if (step.kind === "wait") this.#nowUs += step.ms * 1_000;
    else this.#ask(step);
  }

  outcome(): TestOutcome {
    const { name, line } = this.#test;
    const [failures, callCount, rules] = [this.#failures, this.#callCount, this.#rules];
    return { name, line, failures, callCount, rules };
  }

  #ask(step: AskStep): void {
    const found = queryOf(step.request, this.#policy);
    if (typeof found === "string") {
      this.#failures.push({ line: step.line, message: found, parts: undefined });
      return;
    }
    const { query } = found;
    let prepared = query && this.#trial.prepare(query, this.#nowUs);
    const hits = query?.descriptors.map((descriptor) => descriptor.hits) ?? [];
    let deniedCount = 0;
    let last: SimulatedDecision | undefined;
    for (let i = 0; i < step.times; i += 1) {
      if (prepared === undefined || query === undefined) break;
      if (!this.#trial.isCurrent(prepared)) prepared = this.#trial.prepare(query, this.#nowUs);
      last = this.#trial.ask(prepared, hits, this.#nowUs);
      if (last.verdict.isDenied) deniedCount += 1;
    }
    this.#callCount += step.times;
    const labels: (string | undefined)[] = [];
    for (const descriptor of prepared?.descriptors ?? []) {
      const rule = "rule" in descriptor ? descriptor.rule : undefined;
      if (rule !== undefined) this.#rules.add(rule.index);
      labels.push(rule?.label);
    }
    this.#compare(step, { deniedCount, last, labels });
  }

  #compare({ line, times, expected }: AskStep, met: Met): void {
    const { allowedCount, deniedCount, rule, remaining, retryAfterMs } = expected;
    const fail = (what: string, got: string, joint = "got"): void => {
      const message = `expected ${what}, ${joint} ${got}`;
      this.#failures.push({ line, message, parts: { expected: what, got } });
    };
    const allowed = times - met.deniedCount;
    const counts = [
      ["allowed", allowedCount, allowed],
      ["denied", deniedCount, met.deniedCount],
    ] as const;
    for (const [word, wanted, found] of counts) {
      if (wanted === undefined || wanted === found) continue;
      if (times === 1) {
        const other = word === "allowed" ? "denied" : "allowed";
        const [hoped, was] = wanted === 1 ? [word, other] : [other, word];
        fail(`${hoped}`, `${was}${describe(met)}`);
      } else fail(`${wanted} of ${times} ${word}`, `${found} were${describe(met)}`, "and");
      // The other count reports the same.
      break;
    }
    const bindingLabels = labelsOf(met);
    if (rule !== undefined && !bindingLabels.includes(rule)) {
      const all = this.#policy.rules.map(({ label }) => label);
      const nearest = all.includes(rule) ? undefined : findNearestName(rule, all);
      const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
      const what = bindingLabels.length === 0 ? "no rule" : bindingLabels.join(", ");
      fail(`the rule ${rule}`, `${what}${hint}`);
    }
    const left = Math.min(...statuses(met).map(({ limitRemaining }) => limitRemaining ?? Infinity));
    if (remaining !== undefined && remaining !== left) {
      const found = Number.isFinite(left) ? `${left}` : "no limits";
      fail(`${remaining} hits left`, `${found}`);
    }
    const retryMs = retryMsOf(met);
    if (retryAfterMs !== undefined && retryAfterMs !== retryMs) {
      const found = retryMs === undefined ? "nothing was over" : `it is ${retryMs} ms`;
      fail(`that it fits after ${retryAfterMs} ms`, found, "but");
    }
  }
}

interface Met {
  readonly deniedCount: number;
  /** Decision of the last call; undefined if there was none. */
  readonly last: SimulatedDecision | undefined;
  /** One for each descriptor. */
  readonly labels: readonly (string | undefined)[];
}

function statuses({ last }: Met): SimulatedDecision["verdict"]["statuses"] {
  return last?.verdict.statuses ?? [];
}

/** Returns the rules that were over if the call was denied, or else all that it met. */
function labelsOf(met: Met): readonly string[] {
  const isDenied = met.last?.verdict.isDenied === true;
  return met.labels.flatMap((label, i) => {
    if (label === undefined) return [];
    return isDenied && statuses(met)[i]?.isOver !== true ? [] : [label];
  });
}

/** Returns the retry time in whole milliseconds, rounded up. */
function retryMsOf(met: Met): number | undefined {
  let retryUs: number | undefined;
  for (const { isOver, durationUntilResetUs = 0 } of statuses(met)) {
    if (isOver) retryUs = Math.max(retryUs ?? 0, durationUntilResetUs);
  }
  return retryUs === undefined ? undefined : Math.ceil(retryUs / 1_000);
}

/** Returns the rules involved, as text. */
function describe(met: Met): string {
  const labels = labelsOf(met);
  if (labels.length === 0) return " (no rule matched)";
  return met.last?.verdict.isDenied === true
    ? ` (over: ${labels.join(", ")})`
    : ` (matched: ${labels.join(", ")})`;
}

/** Returns Envoy's query, or a sentence if it is unknown. */
function queryOf(
  request: TestedRequest,
  policy: Policy,
): string | { readonly query: RateLimitQuery | undefined } {
  if (request.kind === "descriptors") {
    const { domain } = request;
    if (!policy.domains.has(domain)) {
      const nearest = findNearestName(domain, [...policy.domains.keys()]);
      return `no domain has the name "${domain}"${nearest ? `; did you mean "${nearest}"?` : ""}`;
    }
    const descriptors: readonly DescriptorQuery[] = request.descriptors;
    return { query: { domain, descriptors } };
  }
  const { service: name, headers, remoteAddress } = request;
  const host = headers.get(":authority") ?? "";
  const indexed =
    name === undefined ? policy.serviceIndex.at(host) : policy.serviceIndex.named(name);
  if (indexed === undefined) {
    return name === undefined
      ? `no service has the host "${host}"`
      : `no service is named "${name}"`;
  }
  const attributes = new Map(
    remoteAddress === undefined ? [] : [["source.address", remoteAddress] as const],
  );
  const asked = serviceQuery(indexed.service, { headers, attributes });
  if (asked === undefined) return `the service "${indexed.service.name}" has no rate limits`;
  const unknown = asked.leftOut.find(({ why }) => why === "unknown");
  if (unknown !== undefined) {
    return `only Envoy knows the part "${unknown.key}"; use descriptors, with \`ask\``;
  }
  return { query: asked.query };
}
