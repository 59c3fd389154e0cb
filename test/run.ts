/**
 * The whole suite: finds or installs the programs that tests run, then runs the checks and every
 * kind of test, one after the other. Usage: npm test [-- KIND...]
 */
import { spawn } from "node:child_process";
import { startVitest, type TestCase, type TestModule, type TestSuite } from "vitest/node";
import { type ProgramName, programNames, programRows } from "../src/dev/programs.js";
import { provisionAll } from "../src/dev/provision.js";
import {
  addTallies,
  conclude,
  type FileOutcome,
  type Tally,
  tallyCheck,
  tallyFile,
} from "./run-report.js";

/** The npm scripts that count as one test each. */
const checks: readonly string[] = ["lint", "typecheck"];

/** vitest's projects, quick ones first, with the programs that their tests run. */
const kinds: Readonly<Record<string, readonly ProgramName[]>> = {
  tidy: [],
  unit: [],
  golden: ["envoy", "promtool"],
  contract: ["redis", "valkey", "envoy"],
  simulation: ["redis", "valkey"],
  fault: ["redis", "valkey"],
  e2e: programNames,
};

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const known = [...checks, ...Object.keys(kinds)];
  const unknown = args.filter((arg) => !known.includes(arg));
  if (unknown.length > 0) {
    console.error(`unknown: ${unknown.join(" ")}; the kinds of tests are ${known.join(", ")}`);
    return 2;
  }
  const chosen = known.filter((name) => args.length === 0 || args.includes(name));
  Object.assign(process.env, await provision(chosen));
  const tallies: Tally[] = [];
  for (const name of chosen) {
    const startedMs = performance.now();
    console.log(`\n== ${name}`);
    tallies.push(checks.includes(name) ? await runCheck(name) : await runKind(name));
    console.log(`== ${name} took ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`);
  }
  const ci = process.env["CI"] ?? "";
  const { exitCode, lines } = conclude(addTallies(tallies), {
    isCi: ci !== "" && ci !== "false" && ci !== "0",
  });
  console.log(`\n${lines.join("\n")}`);
  return exitCode;
}

/** The variables that tell tests, and what they start, where the programs are. */
async function provision(chosen: readonly string[]): Promise<Record<string, string>> {
  const wanted = programNames.filter((name) => chosen.some((kind) => kinds[kind]?.includes(name)));
  const variables: Record<string, string> = {};
  for (const [name, program] of await provisionAll(wanted)) {
    if (program.kind === "missing") {
      console.log(`${name}: missing: ${program.why}; ${program.hint}`);
    } else {
      console.log(`${name}: ${program.version}, ${program.path}`);
      variables[programRows[name].variable] = program.path;
    }
  }
  return variables;
}

async function runCheck(name: string): Promise<Tally> {
  return tallyCheck(name, await run("npm", ["run", "--silent", name]));
}

/** Through vitest's own interface: its JSON report does not tell why a hook failed. */
async function runKind(kind: string): Promise<Tally> {
  const vitest = await startVitest("test", [], {
    run: true,
    project: kind,
    passWithNoTests: true,
    reporters: ["default"],
  });
  const tallies = vitest.state.getTestModules().map((file) => tallyFile(outcomeOf(file)));
  const strays = vitest.state.getUnhandledErrors().map((error) => messageOf(error));
  await vitest.close();
  const failures = strays.map((message) => `${kind}: outside of any test: ${message}`);
  return addTallies([...tallies, { passedCount: 0, failures, notRun: [] }]);
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
