import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../../src/cli/program.js";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-check-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

async function check(...args: readonly string[]) {
  let out = "";
  let err = "";
  const output = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  const code = await runCli(["check", ...args], output);
  return { code, out, err };
}

const ratelimitText = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 5}
`;

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limits:
            - {name: pace, period: 10s, requests_per_unit: 5}
            - {name: daily, unit: day, requests_per_unit: 500}
`;

describe("headgate check", () => {
  it("reads files of both dialects together and counts what they hold", async () => {
    const paths = [await write("a.yaml", ratelimitText), await write("b.yaml", policyText)];
    expect(await check(...paths)).toEqual({
      code: 0,
      out: "OK: 2 files, 2 domains, 3 limits.",
      err: "",
    });
  });

  it("reads a directory", async () => {
    await write("a.yaml", ratelimitText);
    await write(".hidden.yaml", "nonsense: [");
    expect(await check(folder)).toMatchObject({ code: 0, out: "OK: 1 file, 1 domain, 1 limit." });
  });

  it("counts a file that is named twice once", async () => {
    const path = await write("a.yaml", ratelimitText);
    expect(await check(path, path)).toMatchObject({ code: 0 });
  });

  it("begins each problem with file, line and column, and answers 3", async () => {
    const first = await write("a.yaml", ratelimitText.replace("minute", "minut"));
    const second = await write("b.yaml", ratelimitText.replace("edge", ""));
    const { code, out, err } = await check(first, second);
    expect(code).toBe(3);
    expect(err).toBe("");
    const starts = out.split("\n").filter((line) => /^\S+:\d+:\d+: HG\d+ /.test(line));
    expect(starts[0]).toMatch(new RegExp(`^${first}:4:24: `));
    expect(starts[1]).toMatch(new RegExp(`^${second}:1:`));
    expect(out).toMatch(/2 problems in 2 files\.$/);
  });

  it("finds what only two files together do wrong", async () => {
    const first = await write("a.yaml", ratelimitText);
    const second = await write("b.yaml", ratelimitText);
    const { code, out } = await check(first, second);
    expect(code).toBe(3);
    expect(out).toContain(`${second}:1:9: HG150`);
  });

  it("speaks JSON when asked to", async () => {
    const good = await check("-o", "json", await write("a.yaml", ratelimitText));
    expect(JSON.parse(good.out)).toEqual({
      ok: true,
      files: 1,
      domains: 1,
      limits: 1,
      problems: [],
    });
    const bad = await check("-o", "json", await write("b.yaml", "domain: [x"));
    expect(bad.code).toBe(3);
    expect(JSON.parse(bad.out)).toMatchObject({ ok: false, problems: [{ line: 1 }] });
  });

  it("names every file that it cannot read, and answers 1", async () => {
    await mkdir(join(folder, "empty"));
    const good = await write("a.yaml", ratelimitText);
    const { code, out, err } = await check(good, join(folder, "none.yaml"), join(folder, "empty"));
    expect(code).toBe(1);
    expect(out).toBe("");
    expect(err).toContain("none.yaml cannot be read: no such file or directory");
    expect(err).toContain("there is no *.yaml or *.yml file in");
  });
});
