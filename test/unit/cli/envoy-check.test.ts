import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../../src/cli/program.js";
import { problemsMax } from "../../../src/policy/problem-log.js";

let folder = "";
let file = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-check-"));
  file = join(folder, "envoy.yaml");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function check(...args: readonly string[]) {
  let [out, err] = ["", ""];
  const output = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  return { code: await runCli(["check", "--envoy", ...args], output), out, err };
}

describe("headgate check --envoy", () => {
  it("says where a configuration is wrong, and what would be right", async () => {
    writeFileSync(file, "static_resources:\n  clusters:\n    - {name: a, conect_timeout: 1s}\n");
    const { code, out } = await check(file);
    expect(code).toBe(3);
    expect(out).toBe(
      [
        `${file}:3:33: error HG450 "conect_timeout" is no name of envoy.config.cluster.v3.Cluster`,
        "  at static_resources.clusters[0].conect_timeout",
        "  hint: did you mean connect_timeout",
        "",
        "1 error, 0 warnings.",
      ].join("\n"),
    );
    const json = await check("-o", "json", file);
    expect(json.code).toBe(3);
    expect(JSON.parse(json.out)).toMatchObject({
      ok: false,
      problems: [{ file, line: 3, column: 33, id: "HG450", severity: "error" }],
    });
  });

  it("lets warnings pass", async () => {
    writeFileSync(file, "static_resources: {clusters: [{name: a, circuit_breakers: {}}]}\n");
    const { code, out } = await check(file);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("warning HG423") });
    writeFileSync(file, "static_resources: {clusters: [{name: a}]}\n");
    expect(await check(file)).toMatchObject({ code: 0, out: "OK: nothing is wrong." });
  });

  it("shows a bounded number of problems", async () => {
    const names = Array.from({ length: problemsMax + 5 }, (_, i) => `x${i}: 1\n`);
    writeFileSync(file, names.join(""));
    const { out } = await check(file);
    expect(out.match(/HG450/g)).toHaveLength(problemsMax);
    expect(out).toContain("and 5 more\n");
  });

  it("needs files that can be read, and no policy to compare with", async () => {
    expect(await check(join(folder, "none"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("no such file"),
    });
    expect(await check()).toMatchObject({ code: 2, err: expect.stringContaining("needs files") });
    expect((await check(file, "--ratelimit", folder)).code).toBe(2);
  });
});
