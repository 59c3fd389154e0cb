import { parentPort, workerData } from "node:worker_threads";
import { isServiceError } from "../../core/base/errors.js";
import { defaultSwitches } from "../../decide/rate-limit/switches.js";
import { type PolicyText, parsePolicy } from "../../policy/parse.js";
import { buildPolicy, type Policy } from "../../policy/policy.js";
import { parsePolicyTests } from "../../policy/policy-tests.js";
import type { ParseProblems } from "../../policy/problems/problem-log.js";
import type { LogReplay, PolicyTestReport, ReplayedPolicy } from "../../rpc/admin/admin-parts.js";
import { ComparedReplay, type ComparedRule } from "../../simulate/compared-replay.js";
import type { ReplayReport } from "../../simulate/replay.js";
import { runPolicyTest, type TestOutcome, testedRules } from "../../simulate/test-run.js";
import { alignTimeline } from "../../simulate/timeline.js";
import { sha256 } from "../base/sha256.js";
import type { TrialInput, TrialMessage, TriedPolicy } from "./policy-trial-messages.js";

/**
 * Runs in a worker thread: runs a policy's tests, or replays an access log, without delaying
 * decisions.
 */

/** The maximum number of reported rules and of keys of each, and the maximum length of a key. */
const rulesToldMax = 1_000;
const untestedToldMax = 100;
const keysToldMax = 5;
const textCharsMax = 256;

const common = { switches: defaultSwitches, digest: sha256 };

const input = workerData as TrialInput;
parentPort?.postMessage(tryOut());

function tryOut(): TrialMessage {
  try {
    return input.kind === "test" ? test(input) : replay(input);
  } catch (thrown) {
    if (!isServiceError(thrown)) throw thrown;
    return { kind: "failed", message: thrown.message };
  }
}

function test(given: TrialInput & { readonly kind: "test" }): PolicyTestReport | ParseProblems {
  const policy = read(given.policy);
  if (policy.kind === "problems") return policy;
  const tests: { file: string; outcome: TestOutcome }[] = [];
  for (const file of given.tests) {
    const parsed = parsePolicyTests(file);
    if (parsed.kind === "problems") return parsed;
    for (const one of parsed.tests.tests) {
      const outcome = runPolicyTest(one, { policy: policy.policy, digest: sha256 });
      tests.push({ file: file.file, outcome });
    }
  }
  const { unmet } = testedRules(
    policy.policy,
    tests.map(({ outcome }) => outcome),
  );
  return {
    kind: "tested",
    tests: tests.map(({ file, outcome: { rules: _, failures, ...outcome } }) => ({
      ...outcome,
      file,
      failures: failures.map(({ parts, ...failure }) => {
        return { ...failure, ...(parts ?? { expected: "", got: "" }) };
      }),
    })),
    untestedRules: unmet.slice(0, untestedToldMax).map(({ domain, label }) => ({ domain, label })),
  };
}

function replay(given: TrialInput & { readonly kind: "replay" }): LogReplay | ParseProblems {
  const active = read(given.active);
  const candidate = given.candidate && read(given.candidate);
  if (active.kind === "problems") return active;
  if (candidate?.kind === "problems") return candidate;
  const { format, log } = given;
  const policies = { active: active.policy, candidate: candidate?.policy };
  const run = new ComparedReplay({ ...common, ...policies, format });
  const lines = new TextDecoder().decode(log).split("\n");
  for (const [i, line] of lines.entries()) run.take(line.replace(/\r$/, ""), i + 1);
  const { firstUnreadable, rules, ...report } = run.finish();
  return {
    ...report,
    kind: "replayed",
    firstUnreadable: firstUnreadable && `line ${firstUnreadable.line}: ${firstUnreadable.hint}`,
    active: outcomeOf(given.active.version, report.active),
    candidate: report.candidate && outcomeOf(given.candidate?.version ?? "", report.candidate),
    rules: rules.slice(0, rulesToldMax).map(ruleOf),
  };
}

function outcomeOf(policyVersion: string, report: ReplayReport): ReplayedPolicy {
  const { calls, denied, unasked, unknownParts } = report;
  return {
    policyVersion,
    callCount: report.callCount,
    unmatchedCount: unasked.count,
    deniedCount: report.deniedCount,
    limitedThenCount: report.limitedThenCount,
    limitedBothCount: report.limitedBothCount,
    lateCount: report.lateCount,
    unknownParts: countedOf(unknownParts),
    unmatchedHosts: countedOf(unasked.hosts),
    times: calls && {
      startUs: calls.startUs,
      stepUs: calls.stepUs,
      calls: calls.counts,
      denied: alignTimeline(denied, calls),
    },
  };
}

function ruleOf({ domain, label, active, candidate }: ComparedRule): LogReplay["rules"][number] {
  return {
    domain,
    label,
    activeCallCount: active?.callCount ?? 0,
    activeOverCount: active?.overCount ?? 0,
    candidateCallCount: candidate?.callCount ?? 0,
    candidateOverCount: candidate?.overCount ?? 0,
    keys: countedOf((candidate ?? active)?.keys.slice(0, keysToldMax) ?? []),
  };
}

function countedOf(counted: readonly { readonly key: string; readonly count: number }[]) {
  return counted.map(({ key, count }) => ({ text: key.slice(0, textCharsMax), count }));
}

function read({
  version,
  files,
}: TriedPolicy): { readonly kind: "policy"; readonly policy: Policy } | ParseProblems {
  const sources: readonly PolicyText[] = files;
  const parsed = parsePolicy(sources, input.options);
  if (parsed.kind === "problems") return parsed;
  return { kind: "policy", policy: buildPolicy(version, parsed) };
}
