import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type CliRun, captureCli } from "../../../support/cli.js";
import { doctorPolicyText, generatedDump, rightStats } from "../../../support/doctor.js";

const folder = mkdtempSync(join(tmpdir(), "headgate-doctor-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const run = (...words: readonly string[]): Promise<CliRun> =>
  captureCli(["doctor", ...words], { env: {} });

const dump = fileOf("dump.json", JSON.stringify(generatedDump()));
const policy = fileOf("policy.yaml", doctorPolicyText);
const stats = (changes: Readonly<Record<string, number>> = {}): string => {
  const all = Object.entries({ ...rightStats, ...changes });
  return JSON.stringify({ stats: all.map(([name, value]) => ({ name, value })) });
};

describe("headgate doctor", () => {
  it("lists what is right, and what it did not look at, for people", async () => {
    const { code, out } = await run("--config-dump", dump, "--policy", policy);
    expect(code).toBe(0);
    expect(out).toContain("✓ HG503 headgate uses HTTP/2");
    expect(out).toContain("- HG505 not checked");
    expect(out).toMatch(/^0 errors, 0 warnings, \d+ checks passed, \d+ not checked\.$/m);
  });

  it("says what was seen and what to do, and ends with 1 for an error", async () => {
    const wrong = fileOf("stats.json", stats({ "cluster.headgate.membership_healthy": 0 }));
    const { code, out } = await run("--config-dump", dump, "--stats", wrong, "--policy", policy);
    expect(code).toBe(1);
    const [title, seen, todo] = out.split("\n").slice(1);
    expect(title).toContain("✗ HG504 No host of Headgate's cluster is healthy. (error)");
    expect(seen).toContain("seen: 0 of 1 hosts of headgate are healthy");
    expect(todo).toContain("do:   Check that Headgate runs");
  });

  it("answers programs in JSON and YAML", async () => {
    const json = await run("--config-dump", dump, "--policy", policy, "-o", "json");
    expect(JSON.parse(json.out)).toMatchObject({ ok: true, errors: 0, subject: dump });
    const yaml = await run("--config-dump", dump, "--policy", policy, "-o", "yaml");
    expect(yaml.out).toContain("ok: true");
  });

  it.each([
    [["--envoy", "localhost"], "--envoy must be a URL"],
    [["--envoy", "http://me:secret@localhost"], "without a password"],
    [["--envoy", "http://a", "--config-dump", "x"], "exclude each other"],
    [["--stats", "x"], "--stats needs --config-dump"],
    [["--watch", "soon"], "--watch must be a duration"],
    [["--watch", "1h"], "at most 10m"],
    [["--config-dump", "x", "--watch", "5s"], "--watch needs --envoy"],
  ])("refuses %o as wrong usage", async (words, hint) => {
    const { code, err } = await run(...words);
    expect(code).toBe(2);
    expect(err).toContain(hint);
    expect(err).not.toContain("secret");
  });

  it("says which file cannot be read, and why", async () => {
    const missing = await run("--config-dump", join(folder, "none.json"));
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining("no such file")]);
    const strange = await run("--config-dump", policy);
    expect([strange.code, strange.err]).toEqual([1, expect.stringContaining("it is not JSON")]);
  });

  it("ends with 3 for a wrong policy", async () => {
    const wrong = fileOf("wrong.yaml", "domain: [");
    expect((await run("--config-dump", dump, "--policy", wrong)).code).toBe(3);
  });

  it("ends with 5 where what answers is no Envoy, or nobody does", async () => {
    const server = createServer((_, response) => response.writeHead(404).end());
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
    const url = `http://127.0.0.1:${port}`;
    const other = await run("--envoy", url);
    expect([other.code, other.err]).toEqual([5, expect.stringContaining("admin port?")]);
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    const gone = await run("--envoy", url);
    expect([gone.code, gone.err]).toEqual([5, expect.stringContaining("nothing listens there")]);
  });
});
