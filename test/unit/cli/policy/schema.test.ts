import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../../../src/cli/program.js";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-schema-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function run(...args: readonly string[]) {
  const said = { out: "", err: "" };
  const output = {
    out: (text: string) => {
      said.out += text;
    },
    err: (text: string) => {
      said.err += text;
    },
  };
  return { code: await runCli(["schema", ...args], output), ...said };
}

async function schema(...args: readonly string[]): Promise<unknown> {
  const { code, out } = await run(...args);
  expect(code).toBe(0);
  return JSON.parse(out);
}

describe("headgate schema", () => {
  it("prints the schema of a policy file", async () => {
    expect(await schema()).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $ref: "#/$defs/policy",
      $defs: {
        service: {
          properties: { name: { description: expect.any(String) } },
          additionalProperties: false,
          required: ["name"],
        },
      },
    });
  });

  it("prints that of a file of envoyproxy/ratelimit", async () => {
    expect(await schema("--ratelimit")).toMatchObject({
      $defs: { ratelimitFile: { required: ["domain"] } },
    });
  });

  it("writes it to a file, and says how a policy refers to it", async () => {
    const path = join(folder, "p.schema.json");
    const { code, out } = await run("--write", path);
    expect(code).toBe(0);
    expect(out).toContain("# yaml-language-server: $schema=p.schema.json");
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual(await schema());
    await run("--ratelimit", "--write", path);
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual(await schema("--ratelimit"));
    expect(await run("--write", join(folder, "none", "a.json"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("no such file or directory"),
    });
  });
});
