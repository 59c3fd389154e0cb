/**
 * The suite: finds or installs the programs that tests run, then runs the checks and every kind of
 * test, and says where the time went.
 *
 * Usage: npm test [-- KIND...], npm test -- changed [REVISION], npm run soak [-- SEED] [KIND...]
 */

import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { startVitest, type TestCase, type TestModule, type TestSuite } from "vitest/node";
import { many } from "../src/core/base/many.js";
import { changedPaths, testsReaching } from "./run-changed.js";
import {
  addTallies,
  conclude,
  type FileOutcome,
  type FileTime,
  type Tally,
  tallyCheck,
  tallyFile,
  timeLines,
} from "./run-report.js";
import { firstSeedMax, seedsFactorName, seedsFirstName, seedsMinName } from "./support/seeds.js";
import { provisionAll, type ToolName, toolNames, tools } from "./support/tools.js";
import { trueTimesName } from "./support/true-times.js";
import { readProject } from "./tidy/project.js";

/** The npm scripts that count as one test each. */
const checks: readonly string[] = ["lint", "typecheck"];

/** A kind of tests: a project of vitest.config.ts, which says which files of a folder are its. */
interface Kind {
  /** What the paths of its files begin with. */
  readonly folder: string;
  /** The programs that its tests run. */
  readonly programs: readonly ToolName[];
}

const kinds: Readonly<Record<string, Kind>> = {
  tidy: { folder: "test/tidy.test.ts", programs: [] },
  unit: { folder: "test/unit/", programs: [] },
  golden: { folder: "test/golden/", programs: ["envoy", "promtool"] },
  simulation: { folder: "test/simulation/", programs: ["redis", "valkey"] },
  contract: { folder: "test/contract/", programs: ["redis", "valkey", "envoy", "kafka"] },
  fault: { folder: "test/fault/", programs: ["redis", "valkey"] },
  e2e: { folder: "test/e2e/", programs: toolNames },
  feedback: { folder: "test/", programs: ["envoy", "redis"] },
  load: { folder: "test/e2e/", programs: ["envoy", "redis"] },
};

/** Kinds that run beside each other, in the order of their turns. */
const turns: readonly (readonly string[])[] = [
  ["tidy", "unit", "golden"],
  ["feedback", "load"],
  ["contract", "fault", "e2e"],
];

/** What is checked before every commit, beside unit tests: all that starts no server. */
const quick: Readonly<Record<string, readonly string[]>> = {
  tidy: ["test/tidy.test.ts"],
  golden: ["test/golden/"],
  contract: ["test/contract/memory"],
};

/**
 * Unit tests that are left to `npm test`: they take a second and more to fill a bound, or to try
 * each field of the language.
 */
const notQuick: readonly string[] = [
  "test/unit/core/limits/limit-headers.obedient.test.ts",
  "test/unit/policy/diff/policy-diff.fields.test.ts",
  "test/unit/policy/text/aliases.test.ts",
  "test/unit/policy/text/json-schema.test.ts",
  "test/unit/recommend/demand-reader.test.ts",
  "test/unit/rpc/nodes/metrics-names.test.ts",
  "test/unit/simulate/asked-service.test.ts",
  "test/unit/wire/http2/http2-connection.bounds.test.ts",
];

/** What of the usual number of seeds is enough before a commit, and the fewest. */
const quickFactor = 0.1;
const quickSeedsMin = 5;

/** What `npm run soak` runs: all that has seeds, or times that are shorter than those of users. */
const soaked: readonly string[] = [
  "unit",
  "simulation",
  "contract",
  "fault",
  "e2e",
  "feedback",
  "load",
];

/** How many times the usual number of seeds `npm run soak` runs. */
const soakFactor = 20;

/** What to run. */
interface Plan {
  /** Variables for the tests. */
  readonly env?: Readonly<Record<string, string>>;
  readonly checks: readonly string[];
  /** Beginnings of paths of test files, by kind; a kind that is not named does not run. */
  readonly paths: Readonly<Record<string, readonly string[]>>;
}

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const plan = planOf(args);
  if (typeof plan === "string") {
    console.error(plan);
    return 2;
  }
  Object.assign(process.env, plan.env, await provision(Object.keys(plan.paths)));
  const startedMs = performance.now();
  const tested = await runInTurn(plan);
  const ci = process.env["CI"] ?? "";
  const { exitCode, lines } = conclude(tested.tally, {
    isCi: ci !== "" && ci !== "false" && ci !== "0",
  });
  const times = timeLines(tested.times, (performance.now() - startedMs) / 1_000);
  console.log(`\n${[...times, "", ...lines].join("\n")}`);
  return exitCode;
}

/** The plan, or what is wrong with the arguments. */
function planOf(args: readonly string[]): Plan | string {
  const [first = "", ...rest] = args;
  if (first === "quick") return planQuick();
  if (first === "changed") return planChanged(rest);
  if (first === "soak") return planSoak(rest);
  const known = [...checks, ...Object.keys(kinds)];
  const unknown = args.filter((arg) => !known.includes(arg));
  if (unknown.length > 0) {
    const words = [...known, "changed", "quick", "soak"].join(", ");
    return `unknown: ${unknown.join(" ")}; run all, or name some of: ${words}`;
  }
  const chosen = known.filter((name) => args.length === 0 || args.includes(name));
  const entries = Object.entries(kinds).filter(([name]) => chosen.includes(name));
  return {
    checks: checks.filter((name) => chosen.includes(name)),
    paths: Object.fromEntries(entries.map(([name, { folder }]) => [name, [folder]])),
  };
}

function planQuick(): Plan | string {
  const env = { [seedsFactorName]: String(quickFactor), [seedsMinName]: String(quickSeedsMin) };
  console.log(
    Object.entries(env)
      .map((pair) => pair.join("="))
      .join(" "),
  );
  console.log(`Test files that fill a bound, left to npm test: ${notQuick.length}`);
  const all = filesUnder("test/unit");
  const gone = notQuick.filter((path) => !all.includes(path));
  if (gone.length > 0) return `files that are gone: ${gone.join(", ")}`;
  const unit = all.filter((path) => !notQuick.includes(path));
  return { checks, paths: { ...quick, unit }, env };
}

function filesUnder(folder: string): readonly string[] {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => path.endsWith(".test.ts")).map((path) => `${folder}/${path}`);
}

function planSoak(args: readonly string[]): Plan | string {
  const seed = args.find((arg) => /^[0-9]+$/.test(arg)) ?? String(randomInt(firstSeedMax));
  const names = args.filter((arg) => arg !== seed);
  const unknown = names.filter((name) => !soaked.includes(name));
  if (unknown.length > 0) return `unknown: ${unknown.join(" ")}; choose from: ${soaked.join(", ")}`;
  const chosen = soaked.filter((name) => names.length === 0 || names.includes(name));
  const paths = chosen.map((name) => [name, [kinds[name]?.folder ?? ""]] as const);
  const again = ["npm run soak --", seed, ...names].join(" ");
  console.log(`Running ${soakFactor} times as many seeds, from ${seed}. Repeat with: ${again}`);
  return {
    checks: [],
    paths: Object.fromEntries(paths),
    env: { [seedsFirstName]: seed, [seedsFactorName]: String(soakFactor), [trueTimesName]: "1" },
  };
}

function planChanged([revision = "HEAD", ...more]: readonly string[]): Plan | string {
  if (more.length > 0) return "usage: npm test -- changed [REVISION]";
  const root = process.cwd();
  const changed = changedPaths(root, revision);
  if (typeof changed === "string") return changed;
  const tests = testsReaching(changed, readProject(root));
  console.log(`Test files affected by ${many(changed.length, "changed file")}: ${tests.length}`);
  const entries = Object.entries(kinds).map(
    ([name, { folder }]) => [name, tests.filter((path) => path.startsWith(folder))] as const,
  );
  return { checks, paths: Object.fromEntries(entries.filter(([, paths]) => paths.length > 0)) };
}

/** The variables that tell tests, and what they start, where the programs are. */
async function provision(chosen: readonly string[]): Promise<Record<string, string>> {
  const wanted = toolNames.filter((name) =>
    chosen.some((kind) => kinds[kind]?.programs.includes(name)),
  );
  const variables: Record<string, string> = {};
  for (const [name, program] of await provisionAll(wanted)) {
    if (program.kind === "missing") {
      console.log(`${name}: missing: ${program.why}; ${program.hint}`);
    } else {
      console.log(`${name}: ${program.version}, ${program.path}`);
      variables[tools[name].variable] = program.path;
    }
  }
  return variables;
}

/** @param isBehind whether it has the time alone that tests leave */
async function runCheck(name: string, isBehind: boolean): Promise<Tally> {
  const command = ["npm", "run", "--silent", name];
  const [file = "", ...args] = isBehind ? ["nice", "-n", "10", ...command] : command;
  return tallyCheck(name, await run(file, args));
}

interface Tested {
  readonly tally: Tally;
  readonly times: readonly FileTime[];
}

/**
 * What computes and is soon done comes first, with all cores. What judges times and shares waits
 * most of the time, and needs a machine that is not busy: beside it only what has hours to simulate
 * runs, and then the checks, at a lower priority, in the time that it leaves. What starts servers
 * and waits for them is last, beside what is left of these: both have work for all cores until the
 * end. Where nothing is simulated the checks begin at once: the compiler has one core, and tests
 * the other.
 */
async function runInTurn({ paths, checks }: Plan): Promise<Tested> {
  const some = (kindsOfTurn: readonly string[]): Plan["paths"] =>
    Object.fromEntries(Object.entries(paths).filter(([kind]) => kindsOfTurn.includes(kind)));
  const isBehind = paths["simulation"] !== undefined;
  const checking = isBehind ? [] : checks.map((name) => runCheck(name, false));
  const [soonDone = [], ...inTurn] = turns;
  const first = await runTests(some(soonDone));
  const behind = runBehind(some(["simulation"]), isBehind ? checks : []);
  const waited: Tested[] = [];
  for (const turn of inTurn) waited.push(await runTests(some(turn)));
  const all = [first, ...waited, await behind];
  return {
    tally: addTallies([...(await Promise.all(checking)), ...all.map(({ tally }) => tally)]),
    times: all.flatMap(({ times }) => times),
  };
}

/** One after the other, since two of them would take from those that they run beside. */
async function runBehind(paths: Plan["paths"], names: readonly string[]): Promise<Tested> {
  const { tally, times } = await runTests(paths);
  const tallies = [tally];
  for (const name of names) tallies.push(await runCheck(name, true));
  return { tally: addTallies(tallies), times };
}

/** Through vitest's own interface: its JSON report does not tell why a hook failed. */
async function runTests(paths: Plan["paths"]): Promise<Tested> {
  if (Object.keys(paths).length === 0) return { tally: addTallies([]), times: [] };
  const startsMs = new Map<string, number>();
  const times: FileTime[] = [];
  const stopwatch = {
    onTestModuleQueued: ({ moduleId }: TestModule) => {
      startsMs.set(moduleId, performance.now());
    },
    onTestModuleEnd: ({ moduleId, relativeModuleId, project }: TestModule) => {
      const endMs = performance.now();
      const startMs = startsMs.get(moduleId) ?? endMs;
      times.push({ kind: project.name, path: relativeModuleId, startMs, endMs });
    },
  };
  const vitest = await startVitest("test", Object.values(paths).flat(), {
    run: true,
    project: Object.keys(paths),
    passWithNoTests: true,
    reporters: ["default", stopwatch],
  });
  const tallies = vitest.state.getTestModules().map((file) => tallyFile(outcomeOf(file)));
  const strays = vitest.state.getUnhandledErrors().map((error) => messageOf(error));
  await vitest.close();
  const failures = strays.map((message) => `outside any test: ${message}`);
  return { tally: addTallies([...tallies, { passedCount: 0, failures, notRun: [] }]), times };
}

function outcomeOf(file: TestModule): FileOutcome {
  return {
    path: file.relativeModuleId,
    isFailed: file.state() === "failed",
    errors: file.errors().map(messageOf),
    tests: [...file.children.allTests()].map((test) => ({
      name: test.fullName,
      state: test.result().state,
      errors: [...(test.result().errors ?? []), ...errorsAround(test)].map(messageOf),
    })),
  };
}

/** Errors of hooks of the suites and the file that hold a test. */
function errorsAround({ parent }: TestCase | TestSuite): readonly unknown[] {
  return parent.type === "module" ? parent.errors() : [...parent.errors(), ...errorsAround(parent)];
}

function messageOf(error: unknown): string {
  return typeof error === "object" && error !== null && "message" in error
    ? String(error.message)
    : String(error);
}

/** Resolves with the exit code; 1 when the program could not be started or a signal ended it. */
function run(file: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: ["ignore", "inherit", "inherit"] });
    child.once("error", (error) => {
      console.error(error.message);
      resolve(1);
    });
    child.once("close", (code) => resolve(code ?? 1));
  });
}
