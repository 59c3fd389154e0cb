import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogEvent, Logger } from "../../../../src/app/base/logger.js";
import type { PolicyFileStyle } from "../../../../src/app/config/policy-files.js";
import { PolicyReloader } from "../../../../src/app/policy/policies.js";
import type { PolicyParsing } from "../../../../src/app/policy/policy-parsing.js";
import { parseHere as parser } from "../../../support/parse-here.js";
import { replaceFile } from "../../../support/replace-file.js";
import { waitFor } from "../../../support/wait.js";
import { watchClock as clock } from "../../../support/watch-clock.js";

let folder: string;
let events: LogEvent[];
let sentences: string[];
let reloaders: PolicyReloader[];

const note = (event: LogEvent, sentence: string): void => {
  events.push(event);
  sentences.push(sentence);
};
const logger: Logger = { debug: note, info: note, warn: note, error: note };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-reload-"));
  events = [];
  sentences = [];
  reloaders = [];
});

afterEach(async () => {
  for (const reloader of reloaders) reloader.close();
  await rm(folder, { recursive: true });
});

function policyText(hits: number): string {
  return `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: ${hits}}
`;
}

const brokenText = "domain: shop\ndescriptors:\n  - key: user\n    rate_limit: {unit: minut";

async function watching(
  path: string,
  watchedDirectories: readonly string[] = [],
  style: PolicyFileStyle = "yamlFiles",
): Promise<PolicyReloader> {
  const parts = { path, watchedDirectories, style, parser, clock, logger };
  const reloader = new PolicyReloader(parts);
  reloaders.push(reloader);
  await reloader.look();
  reloader.watch();
  return reloader;
}

/** The limit in force. */
function hits(reloader: PolicyReloader): number | undefined {
  const effect = reloader.current()?.rules[0]?.effect;
  return effect?.kind === "limited" ? effect.limits[0]?.hits : undefined;
}

function active(reloader: PolicyReloader, wanted: number): Promise<unknown> {
  return waitFor(`${wanted} hits are active`, () => hits(reloader) === wanted);
}

async function layOut(name: string, text: string): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, "policy.yaml"), text);
}

describe("PolicyReloader", () => {
  it("warns of a limit whose file leaves requests_per_unit out", async () => {
    await layOut("config", policyText(5).replace(", requests_per_unit: 5", ""));
    const reloader = await watching(join(folder, "config"));
    expect(hits(reloader)).toBe(0);
    const at = events.findIndex(({ event }) => event === "policyNotice");
    expect(events[at]).toMatchObject({ problem: "HG170" });
    expect(sentences[at]).toMatch(/policy\.yaml:\d+:\d+: HG170 "requests_per_unit" is missing, so/);
  });

  it("knows no policy before its first look, and one after", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const reloader = new PolicyReloader({
      path,
      watchedDirectories: [],
      parser,
      clock,
      logger,
    });
    expect(reloader.current()).toBeUndefined();
    expect(reloader.status).toEqual({
      ruleCount: 0,
      limitCount: 0,
      domainCount: 0,
      serviceCount: 0,
      roomCount: 0,
      budgetCount: 0,
      loadedCount: 0,
      refusedCount: 0,
    });
    expect(await reloader.look()).toMatchObject({ kind: "loaded" });
    expect(reloader.status).toMatchObject({ ruleCount: 1, domainCount: 1, loadedCount: 1 });
    expect(reloader.status.version).toBe(reloader.current()?.version);
    expect(await reloader.look()).toEqual({ kind: "unchanged" });
    expect(reloader.status.loadedCount).toBe(1);
  });

  it("parses texts again that it could not parse for want of what the system gives", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const failures: PolicyParsing[] = [
      { kind: "failed", message: "no thread could be started", isPassing: true },
      { kind: "failed", message: "parsing took more than 60000 ms" },
    ];
    const reloader = new PolicyReloader({
      path,
      watchedDirectories: [],
      parser: async (options) => failures.shift() ?? (await parser(options)),
      clock,
      logger,
    });
    expect(await reloader.look()).toMatchObject({ kind: "refused" });
    expect(reloader.status.lastProblem).toBe("no thread could be started; retry soon");
    // This one is the text's own fault: the same would take as long again.
    expect(await reloader.look()).toMatchObject({ kind: "refused" });
    expect(await reloader.look()).toEqual({ kind: "unchanged" });
    await writeFile(path, policyText(6));
    expect(await reloader.look()).toMatchObject({ kind: "loaded" });
  });

  it("takes over a file that is written in place", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const reloader = await watching(path);
    await writeFile(path, policyText(6));
    await active(reloader, 6);
  });

  it("takes over a file that is renamed into place, again and again", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const reloader = await watching(path);
    for (const wanted of [6, 7]) {
      await replaceFile(path, policyText(wanted));
      await active(reloader, wanted);
    }
  });

  it("follows a ConfigMap's symbolic links, again and again", async () => {
    await layOut("..1", policyText(1));
    await symlink("..1", join(folder, "..data"));
    await symlink(join("..data", "policy.yaml"), join(folder, "policy.yaml"));
    const reloader = await watching(join(folder, "policy.yaml"));
    for (const wanted of [2, 3]) {
      await layOut(`..${wanted}`, policyText(wanted));
      await symlink(`..${wanted}`, join(folder, "..data_tmp"));
      await rename(join(folder, "..data_tmp"), join(folder, "..data"));
      await rm(join(folder, `..${wanted - 1}`), { recursive: true });
      await active(reloader, wanted);
    }
  });

  it("follows a ConfigMap that is the runtime's directory, whatever dot files are", async () => {
    const directory = join(folder, "config");
    await layOut("config/..1", policyText(1));
    await symlink("..1", join(directory, "..data"));
    await symlink(join("..data", "policy.yaml"), join(directory, "policy.yaml"));
    const reloader = await watching(directory, [], "allFiles");
    expect(hits(reloader)).toBe(1);
    await layOut("config/..2", policyText(2));
    await symlink("..2", join(directory, "..data_tmp"));
    await rename(join(directory, "..data_tmp"), join(directory, "..data"));
    await rm(join(directory, "..1"), { recursive: true });
    await active(reloader, 2);
  });

  it("follows a swap of the runtime root", async () => {
    await layOut("1/config", policyText(1));
    await symlink("1", join(folder, "current"));
    const reloader = await watching(join(folder, "current", "config"), [folder]);
    await layOut("2/config", policyText(2));
    await symlink("2", join(folder, "current_tmp"));
    await rename(join(folder, "current_tmp"), join(folder, "current"));
    await active(reloader, 2);
  });

  it("takes over files that come into a directory and that leave it", async () => {
    await writeFile(join(folder, "a.yaml"), policyText(5));
    const reloader = await watching(folder);
    await writeFile(join(folder, "b.yaml"), "domain: other");
    await waitFor("two domains", () => reloader.status.domainCount === 2);
    await rm(join(folder, "b.yaml"));
    await waitFor("one domain", () => reloader.status.domainCount === 1);
  });

  it("keeps the old policy while a file is half written, and says so", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const reloader = await watching(path);
    await replaceFile(path, brokenText);
    await waitFor("it is refused", () => reloader.status.refusedCount === 1);
    expect(hits(reloader)).toBe(5);
    expect(reloader.status.lastProblem).toMatch(/policy\.yaml:\d+:\d+: HG\d+ /);
    expect(reloader.status.lastProblem).not.toContain("minut");
    const at = events.findIndex(({ event }) => event === "policyRefused");
    expect(events[at]).toMatchObject({ keptVersion: reloader.status.version });
    expect(sentences[at]).toContain("minut");

    await writeFile(path, policyText(6));
    await active(reloader, 6);
    expect(reloader.status.lastProblem).toBeUndefined();
  });

  it("forgets a problem also when the old text comes back", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const reloader = await watching(path);
    await replaceFile(path, brokenText);
    await waitFor("it is refused", () => reloader.status.lastProblem !== undefined);
    await writeFile(path, policyText(5));
    await waitFor("it is well again", () => reloader.status.lastProblem === undefined);
    expect(hits(reloader)).toBe(5);
  });

  it("keeps the old policy when its file is gone, and takes the next one", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const reloader = await watching(path);
    await rm(path);
    await waitFor("it is missed", () => reloader.status.lastProblem !== undefined);
    expect(hits(reloader)).toBe(5);
    expect(reloader.status.lastProblem).toContain("no such file");
    await writeFile(path, policyText(6));
    await active(reloader, 6);
  });

  it("reports each bad text once, however often it is looked at", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, policyText(5));
    const reloader = await watching(path);
    await replaceFile(path, brokenText);
    await waitFor("it is refused", () => reloader.status.refusedCount === 1);
    await writeFile(path, await readFile(path, "utf8"));
    expect(await reloader.look()).toEqual({ kind: "unchanged" });
    expect(events.filter(({ event }) => event === "policyRefused")).toHaveLength(1);
  });

  it("hands the report of a first policy that is wrong to its caller", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, brokenText);
    const reloader = new PolicyReloader({
      path,
      watchedDirectories: [],
      parser,
      clock,
      logger,
    });
    expect(await reloader.look()).toMatchObject({
      kind: "refused",
      cause: "invalid",
      report: expect.stringContaining(`${path}:4:`),
    });
    expect(events).toEqual([]);
  });
});
