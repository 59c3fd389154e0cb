import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { sha256 } from "../../app/base/sha256.js";
import { many } from "../../core/base/many.js";
import { systemClock } from "../../host/clock.js";
import { parsePolicyTests } from "../../policy/policy-tests.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { runPolicyTest, type TestOutcome, testedRules } from "../../simulate/test-run.js";
import { collect } from "../input/collect.js";
import { readPolicyArgument } from "../input/policy-argument.js";
import { readPolicyTexts } from "../input/policy-texts.js";
import { reportFormatOption } from "../input/report-format.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";

interface TestOptions {
  readonly policy?: readonly string[];
  readonly output: "text" | "json" | "junit";
}

/** Adds `headgate test`: requests over virtual time, and their expected results. */
export function addTest(program: Command, context: CommandContext): void {
  const command = program
    .command("test")
    .description("run tests of a policy: requests over time, and their expected results")
    .argument("<FILE...>", "test files")
    .option("--policy <FILE>", "test this policy instead of the one in the files", collect)
    .addOption(reportFormatOption(["text", "json", "junit"]));
  addHelpTexts(command, {
    examples: `
  headgate test policy.tests.yaml
  headgate test -o junit *.tests.yaml > report.xml
  headgate test --policy candidate.yaml policy.tests.yaml`,
    notes: `
A test file names its policy and contains tests. Each test starts with unused limits and its own
clock. A step sends one or several requests at one moment, or waits:

  policy: policy.yaml
  tests:
    - name: fifty in ten seconds
      start: 2026-01-05T08:00:00Z
      steps:
        - {ask: {domain: shop, entries: {plan: free, user: ann}}, times: 50, expect: allowed}
        - ask: {domain: shop, entries: {plan: free, user: ann}}
          expect: {verdict: denied, retryAfter: 200ms}
        - {wait: 1s}
        - http: {host: orders.shop.example, headers: {x-plan: free, x-user: ann}}
          expect: allowed

expect also accepts {allowed: N, denied: N} for several requests, rule (its label) and remaining.`,
    exitCodes: "Exit codes: 0 all passed, 1 some failed, 2 usage, 3 tests or policy invalid.",
  }).action(async (paths: readonly string[], options: TestOptions) => {
    context.exitWith(await test(paths, options, context));
  });
}

async function test(
  paths: readonly string[],
  options: TestOptions,
  { output }: CommandContext,
): Promise<number> {
  const files: TestedFile[] = [];
  for (const path of new Set(paths)) {
    const file = await testFile(path, options, { output });
    if (typeof file === "number") return file;
    files.push(file);
  }
  if (options.output === "json") output.out(JSON.stringify({ files }, undefined, 2));
  else output.out(options.output === "junit" ? renderJunit(files) : renderTests(files));
  const isFailed = files.some(({ outcomes }) =>
    outcomes.some(({ failures }) => failures.length > 0),
  );
  return isFailed ? exitCodes.failure : exitCodes.ok;
}

/** Returns the outcome, or the exit code after the problems have been printed. */
async function testFile(
  path: string,
  options: TestOptions,
  { output }: Pick<CommandContext, "output">,
): Promise<TestedFile | number> {
  const [source] = (await readPolicyTexts([path])).sources;
  if (source === undefined) return exitCodes.failure;
  const parsed = parsePolicyTests(source);
  if (parsed.kind === "problems") {
    output.err(formatProblems(parsed));
    return exitCodes.invalidPolicy;
  }
  const policies =
    options.policy ?? parsed.tests.policies.map((name) => resolve(dirname(path), name));
  const { policy } = await readPolicyArgument(policies, output);
  const startMs = systemClock.monotonicMs();
  const found = parsed.tests.tests.map((one) => runPolicyTest(one, { policy, digest: sha256 }));
  const durationMs = systemClock.monotonicMs() - startMs;
  const { limited, unmet } = testedRules(policy, found);
  return {
    file: path,
    outcomes: found.map(({ rules, ...outcome }) => ({ ...outcome, ruleIndexes: [...rules] })),
    durationMs,
    ruleCount: limited.length,
    unmetRules: unmet.map(({ domain, label }) => `${domain}/${label}`),
  };
}

/** Results of one test file. */
interface TestedFile {
  readonly file: string;
  readonly outcomes: readonly (Omit<TestOutcome, "rules"> & {
    /** Indexes of rules that calls met. */
    readonly ruleIndexes: readonly number[];
  })[];
  readonly durationMs: number;
  /** Rules with an effect, and those that no test has met, as `domain/label`. */
  readonly ruleCount: number;
  readonly unmetRules: readonly string[];
}

/** Maximum number of named rules that no test has met. */
const unmetShownMax = 5;

/** Returns the report as text. */
function renderTests(files: readonly TestedFile[]): string {
  const lines: string[] = [];
  for (const { file, outcomes, ruleCount, unmetRules } of files) {
    lines.push(visibleText(file));
    for (const { name, failures, callCount } of outcomes) {
      const mark = failures.length === 0 ? "✓" : "✗";
      lines.push(`  ${mark} ${visibleText(name)} (${many(callCount, "call")})`);
      for (const { line, message } of failures) {
        lines.push(`      ${visibleText(file)}:${line}: ${visibleText(message)}`);
      }
    }
    const passedCount = outcomes.filter(({ failures }) => failures.length === 0).length;
    lines.push(`  ${passedCount} of ${many(outcomes.length, "test")} passed.`);
    if (unmetRules.length > 0) {
      const more = unmetRules.length - unmetShownMax;
      const shown = unmetRules.slice(0, unmetShownMax).map(visibleText).join(", ");
      const rest = more > 0 ? `, and ${more} more` : "";
      lines.push(
        `  No test matched ${unmetRules.length} of ${many(ruleCount, "rule")}: ${shown}${rest}.`,
      );
    }
  }
  return lines.join("\n");
}

/** Returns the report for CI servers. Source: the XML of JUnit's Ant task. */
function renderJunit(files: readonly TestedFile[]): string {
  const suites = files.flatMap(({ file, outcomes, durationMs }) => {
    const failedCount = outcomes.filter(({ failures }) => failures.length > 0).length;
    const counts = `tests="${outcomes.length}" failures="${failedCount}" errors="0"`;
    const time = `time="${(durationMs / 1_000).toFixed(3)}"`;
    return [
      `  <testsuite name="${escapeXml(file)}" ${counts} ${time}>`,
      ...outcomes.flatMap(({ name, line, failures }) => {
        const place = `classname="${escapeXml(file)}" file="${escapeXml(file)}" line="${line}"`;
        const open = `    <testcase name="${escapeXml(name)}" ${place}`;
        if (failures.length === 0) return [`${open}/>`];
        return [
          `${open}>`,
          ...failures.map((failure) => {
            const message = escapeXml(`line ${failure.line}: ${failure.message}`);
            return `      <failure message="${message}"/>`;
          }),
          "    </testcase>",
        ];
      }),
      "  </testsuite>",
    ];
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    "<testsuites>",
    ...suites,
    "</testsuites>",
  ].join("\n");
}

/** Escapes any text. Makes characters visible first that XML cannot contain. */
function escapeXml(text: string): string {
  return visibleText(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
