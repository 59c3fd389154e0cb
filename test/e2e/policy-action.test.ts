import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { useStage } from "../support/stage.js";
import { within } from "../support/wait.js";

const stage = useStage("file");
const runMsMax = 60_000;

/** A policy with one limit. */
const policyOf = (limit: string): string => `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limit: {name: per-user, ${limit}}
`;
const five = policyOf("unit: minute, requests_per_unit: 5");
const three = policyOf("unit: minute, requests_per_unit: 3");

let repository: string;

beforeEach(async () => {
  repository = await mkdtemp(join(stage.folder, "repository-"));
  git("init", "--quiet");
  await write("README.md", "first");
  commit();
});

function git(...words: readonly string[]): string {
  const named = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  return execFileSync("git", [...named, ...words], { cwd: repository, encoding: "utf8" }).trim();
}

function commit(): string {
  git("add", "--all");
  git("commit", "--quiet", "--message", "a");
  return git("rev-parse", "HEAD");
}

async function write(path: string, text: string): Promise<void> {
  await writeFile(join(repository, path), text);
}

interface ActionRun {
  readonly code: number | undefined;
  /** Lines in which GitHub reads commands. */
  readonly commands: readonly string[];
  readonly summary: string;
}

/** Runs the action as GitHub's runner does, for a pull request to a commit. */
async function runAction(
  inputs: Readonly<Record<string, string>> = {},
  base?: string,
  main = resolve(actionFile().runs.main),
): Promise<ActionRun> {
  const folder = await mkdtemp(join(stage.folder, "runner-"));
  const [event, summary] = [join(folder, "event.json"), join(folder, "summary.md")];
  const pull = base === undefined ? {} : { pull_request: { base: { sha: base } } };
  await writeFile(event, JSON.stringify(pull));
  const given = { command: `${process.execPath} ${resolve("dist/cli/main.js")}`, ...inputs };
  const program = stage.spawn({
    name: "action",
    file: process.execPath,
    args: [main],
    cwd: repository,
    env: {
      PATH: `${dirname(main)}:${process.env["PATH"]}`,
      GITHUB_EVENT_PATH: event,
      GITHUB_STEP_SUMMARY: summary,
      ...Object.fromEntries(
        Object.entries(given).map(([name, value]) => [`INPUT_${name.toUpperCase()}`, value]),
      ),
    },
  });
  const { code } = await within("the action ends", runMsMax, program.exited);
  return {
    code,
    commands: commandsIn(program.output),
    summary: existsSync(summary) ? await readFile(summary, "utf8") : "",
  };
}

/** What GitHub takes for commands: lines outside those that a stop command encloses. */
function commandsIn(output: string): readonly string[] {
  const found: string[] = [];
  let token = "";
  for (const line of output.split("\n")) {
    const stopped = /^::stop-commands::(.+)$/.exec(line)?.[1];
    if (token !== "") token = line === `::${token}::` ? "" : token;
    else if (stopped !== undefined) token = stopped;
    else if (line !== "") found.push(line);
  }
  return found;
}

function actionFile() {
  const input = z.strictObject({ description: z.string().min(1), default: z.string() });
  return z
    .strictObject({
      name: z.string(),
      description: z.string().max(125),
      inputs: z.record(z.string(), input),
      runs: z.strictObject({ using: z.literal("node24"), main: z.string() }),
      branding: z.strictObject({ icon: z.string(), color: z.string() }),
    })
    .parse(parse(readFileSync("action.yml", "utf8")));
}

describe.concurrent("action.yml", () => {
  it("has the inputs that its program reads, and no other", () => {
    const { inputs, runs } = actionFile();
    const program = readFileSync(runs.main, "utf8");
    const read = [...program.matchAll(/input\("(\w+)"\)/g)].map(([, name]) => name);
    expect(new Set(read)).toEqual(new Set(Object.keys(inputs)));
  });
});

describe("the action", () => {
  it("passes a right policy, runs its tests, and says what a pull request changes", async () => {
    await write("policy.yaml", five);
    const base = commit();
    await write("policy.yaml", three);
    const test =
      "{ask: {domain: shop, entries: {user: a}}, times: 4, expect: {allowed: 3, denied: 1}}";
    await write(
      "policy.tests.yaml",
      `policy: policy.yaml\ntests:\n  - {name: three, steps: [${test}]}\n`,
    );
    const { code, commands, summary } = await runAction({}, base);
    expect(commands).toEqual([]);
    expect(code).toBe(0);
    expect(summary).toMatch(/^### Headgate: Check\n\n```text\nOK: 1 file\.\n```/);
    expect(summary).toContain("✓ three");
    expect(summary).toMatch(/stricter +shop\/user per-user +5 per minute becomes 3 per minute/);
  });

  it("runs the Headgate that was built beside it, and else that of its own version", async () => {
    await write("policy.yaml", five);
    const built = await runAction({ command: "" });
    expect(built).toMatchObject({ code: 0, commands: [] });
    expect(built.summary).toContain("OK: 1 file.");

    const action = await mkdtemp(join(stage.folder, "action-"));
    await mkdir(join(action, "tools"));
    const main = join(action, actionFile().runs.main);
    await copyFile(actionFile().runs.main, main);
    await writeFile(join(action, "package.json"), '{"version": "7.8.9", "type": "module"}');
    // An npx that says what it is asked to run.
    const npx = join(action, "tools/npx");
    await writeFile(npx, '#!/bin/sh\necho "asked: $*" >&2\n', { mode: 0o755 });
    const { code, commands } = await runAction({ command: "" }, undefined, main);
    expect({ code, commands }).toEqual({
      code: 1,
      commands: ["::error::asked: --yes headgate@7.8.9 check -o json -- policy.yaml"],
    });
  });

  it("marks each problem of a policy in its line, and fails", async () => {
    await write("policy.yaml", policyOf("unit: minut, requests_per_unit: 5"));
    const { code, commands, summary } = await runAction();
    expect(code).toBe(1);
    const [annotation = "", ...others] = commands;
    expect(annotation).toMatch(
      /^::error file=policy\.yaml,line=9,col=\d+::HG142 "minut" is not a unit%0Aexpected: .*minute/,
    );
    expect(others).toEqual([]);
    expect(summary).toContain('HG142 "minut" is not a unit\n1 problem.\n');
  });

  it("marks each test that fails, and tests that are invalid", async () => {
    await write("policy.yaml", five);
    const test = (expected: string) =>
      `policy: policy.yaml
tests:
  - name: one
    steps:
      - {ask: {domain: shop, entries: {user: a}}, expect: ${expected}}
`;
    await write("a.yaml", test("denied"));
    const failed = await runAction({ tests: "a.yaml\n" });
    expect(failed.code).toBe(1);
    expect(failed.commands).toHaveLength(1);
    expect(failed.commands[0]).toMatch(/^::error file=a\.yaml,line=5::one: /);
    expect(failed.summary).toContain("✗ one");
    await write("b.yaml", test("refused"));
    const invalid = await runAction({ tests: "b.yaml" });
    expect(invalid.code).toBe(1);
    expect(invalid.commands[0]).toMatch(/^::error file=b\.yaml,line=5,col=\d+::HG\d+ /);
  });

  it("lets neither names of files nor what they hold give commands", async () => {
    const folder = "a,b:c%0A\n::warning::x\n```\n# x";
    await mkdir(join(repository, folder));
    const hostile = '"\\n::error file=x::y\\n##[error]z\\r\\n```\\n# heading"';
    await write(join(folder, "p.yaml"), policyOf(`unit: ${hostile}, requests_per_unit: 5`));
    const { code, commands, summary } = await runAction({ policy: folder });
    expect(code).toBe(1);
    expect(commands).toHaveLength(1);
    const [annotation = ""] = commands;
    expect(annotation).toMatch(
      /^::error file=a%2Cb%3Ac%250A%0A%3A%3Awarning%3A%3Ax%0A```%0A# x\/p\.yaml,line=9,col=\d+::HG/,
    );
    // What stands in the fence of the summary does not end it.
    const [, fence = ""] = /^(`{3,})text$/m.exec(summary) ?? [];
    expect(summary.split("\n").filter((line) => line === fence)).toHaveLength(1);
  });

  it("compares a directory of files, and nothing where the base has none", async () => {
    const first = git("rev-parse", "HEAD");
    await mkdir(join(repository, "policies"));
    await write("policies/a.yaml", five);
    const base = commit();
    await write("policies/a.yaml", three);
    expect((await runAction({ policy: "policies" }, base)).summary).toContain("1 stricter");
    const { code, summary } = await runAction({ policy: "policies" }, first);
    expect(code).toBe(0);
    expect(summary).toContain("A new policy");
  });

  it("says that it cannot compare with a commit that is not there", async () => {
    await write("policy.yaml", five);
    const missing = await runAction({ base: "0".repeat(40) });
    expect(missing).toMatchObject({
      code: 0,
      commands: [expect.stringMatching(/^::warning::Not compared: the base/)],
    });
    const flag = await runAction({ base: "--upload-pack=touch x" });
    expect(flag).toMatchObject({ code: 1, commands: [expect.stringMatching(/is not a commit$/)] });
  });

  it("fails when the policy or the program is not there", async () => {
    expect(await runAction()).toMatchObject({
      code: 1,
      commands: [expect.stringMatching(/^::error::headgate check: .*policy\.yaml/)],
    });
    expect(await runAction({ command: "/nowhere/headgate" })).toMatchObject({
      code: 1,
      commands: [expect.stringMatching(/^::error::\/nowhere\/headgate cannot be started: /)],
    });
  });
});

describe(".pre-commit-hooks.yaml", () => {
  const hooks = z
    .array(
      z.strictObject({
        id: z.string(),
        name: z.string(),
        description: z.string(),
        entry: z.string(),
        language: z.literal("system"),
        files: z.string(),
        require_serial: z.boolean().optional(),
      }),
    )
    .parse(parse(readFileSync(".pre-commit-hooks.yaml", "utf8")));

  it.each(hooks.map((hook) => [hook.id, hook] as const))("%s runs on policies", async (_, hook) => {
    expect(["policy.yaml", "a/policy.yml"].every((path) => new RegExp(hook.files).test(path))).toBe(
      true,
    );
    expect(new RegExp(hook.files).test("policy.tests.yaml")).toBe(false);
    await write("policy.yaml", five);
    const [program, ...words] = hook.entry.split(" ");
    expect(program).toBe("headgate");
    const run = stage.spawn({
      name: hook.id,
      file: process.execPath,
      args: [resolve("dist/cli/main.js"), ...words, "policy.yaml"],
      cwd: repository,
    });
    expect(await within("the hook ends", runMsMax, run.exited), run.output).toEqual({ code: 0 });
  });
});
