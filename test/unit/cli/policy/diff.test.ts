import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../../../src/cli/program.js";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-diff-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function limit(hits: number): string {
  const rate = `{unit: second, requests_per_unit: ${hits}}`;
  return `domain: shop\ndescriptors: [{key: user, rate_limit: ${rate}}]\n`;
}

async function diff(...args: readonly string[]) {
  const said = { out: "", err: "" };
  const code = await runCli(["diff", ...args], {
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
  });
  return { code, ...said };
}

describe("headgate diff", () => {
  it("ends with 0 where nothing changes, and says so", async () => {
    const [one, other] = [write("a.yaml", limit(1)), write("b.yaml", `# The same.\n${limit(1)}`)];
    expect(await diff(one, other)).toEqual({ code: 0, out: "No changes.", err: "" });
  });

  it("ends with 4 where something does, for machines too", async () => {
    const [one, other] = [write("a.yaml", limit(2)), write("b.yaml", limit(1))];
    const table = await diff(one, other);
    expect(table.code).toBe(4);
    expect(table.out).toContain("1 change: 1 stricter.");
    const { code, out } = await diff("-o", "json", one, other);
    expect(code).toBe(4);
    expect(JSON.parse(out)).toEqual({
      same: false,
      changes: [
        {
          effect: "stricter",
          place: "shop/user",
          words: "2 per second becomes 1 per second (half as much); its state is kept",
        },
      ],
    });
  });

  it("ends with 3 where a policy is wrong, and names all mistakes of both", async () => {
    const [one, other] = [write("a.yaml", "domain: ''\n"), write("b.yaml", "domian: shop\n")];
    const { code, out, err } = await diff(one, other);
    expect(code).toBe(3);
    expect(out).toBe("");
    expect(err).toContain("a.yaml:1");
    expect(err).toContain("b.yaml:1");
  });

  it("ends with 1 where a file cannot be read, and with 2 without two of them", async () => {
    const one = write("a.yaml", limit(1));
    expect((await diff(one, join(folder, "none.yaml"))).code).toBe(1);
    expect((await diff(one)).code).toBe(2);
  });
});
