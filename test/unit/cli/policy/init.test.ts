import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runCli } from "../../../../src/cli/program.js";
import { formatPolicy } from "../../../../src/policy/format/format-policy.js";
import { parsePolicy } from "../../../../src/policy/parse.js";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-init-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function init(...args: readonly string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const output = { out: (text: string) => out.push(text), err: (text: string) => err.push(text) };
  const code = await runCli(["init", ...args], output);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

describe("headgate init", () => {
  it("writes a policy that is right, in its one form, and says what comes next", async () => {
    const path = join(folder, "policy.yaml");
    const { code, out } = await init(path, "--name", "shop", "--service", "orders");
    expect(code).toBe(0);
    expect(out).toContain(`headgate check ${path}`);
    const text = await readFile(path, "utf8");
    expect(parsePolicy([{ file: path, text }])).toMatchObject({
      kind: "policy",
      name: "shop",
      services: [{ name: "orders", upstream: { address: "orders", port: 8080 } }],
    });
    expect(formatPolicy({ file: path, text })).toEqual({ kind: "formatted", text });
    expect(await readdir(folder)).toEqual(["headgate.schema.json", "policy.yaml"]);
    expect(out).toContain(`Wrote ${path}, and ${join(folder, "headgate.schema.json")}`);
  });

  it("says in comments what holds anyway, and what may be said", async () => {
    const { out: text } = await init("-");
    const read = (from: string) => {
      const parsed = parsePolicy([{ file: "policy.yaml", text: from }]);
      if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
      return parsed.services[0];
    };
    expect(text).toContain("# timeouts: {request: 15s, connect: 250ms}");
    const uncommented = text.replaceAll(/# (?=timeouts:|retries:)/g, "");
    expect(read(uncommented)?.timeouts).toEqual(read(text)?.timeouts);
    expect(read(uncommented)?.retries).toMatchObject({ retriesMax: 2 });
  });

  it("has options of a service with their defaults, each right if uncommented", async () => {
    const { out: text } = await init("-");
    const options = text.match(/^ {6}# \w+:(?: \{.*\}$|(?:\n {6}# {3}\w+: \S+$)+)/gm) ?? [];
    expect(options.map((option) => /\w+/.exec(option)?.[0])).toEqual(
      expect.arrayContaining(["circuitBreakers", "outlierDetection", "retries", "timeouts"]),
    );
    for (const option of options) {
      const uncommented = text.replace(option, option.replaceAll("# ", ""));
      expect(parsePolicy([{ file: "policy.yaml", text: uncommented }]), option).toMatchObject({
        kind: "policy",
      });
    }
  });

  it("names the schema in its first line, and keeps one that is there", async () => {
    const schema = join(folder, "headgate.schema.json");
    const path = join(folder, "policy.yaml");
    await init(path);
    const text = await readFile(path, "utf8");
    expect(text).toMatch(/^# yaml-language-server: \$schema=headgate\.schema\.json\n/);
    const written: unknown = JSON.parse(await readFile(schema, "utf8"));
    expect(Reflect.get(Object(written), "title")).toBe("Headgate policy");
    const validate = new Ajv2020({ strict: false }).compile(Object(written));
    expect(validate(parse(text)), JSON.stringify(validate.errors)).toBe(true);
    await writeFile(schema, "mine");
    const { out } = await init(path, "--force");
    expect(out).not.toContain("headgate.schema.json");
    expect(await readFile(schema, "utf8")).toBe("mine");
  });

  it.each([
    ["orders.example:80", "orders.example", 80],
    ["[::1]:9090", "::1", 9_090],
    ["10.0.0.1:65535", "10.0.0.1", 65_535],
  ])("takes %s for where the service listens", async (given, address, port) => {
    const { out } = await init("-", "--upstream", given);
    expect(parsePolicy([{ file: "-", text: out }])).toMatchObject({
      services: [{ upstream: { address, port } }],
    });
  });

  it("keeps names that YAML would take for something else", async () => {
    const { code, out } = await init("-", "--name", "on", "--service", "null");
    expect(code).toBe(0);
    expect(parsePolicy([{ file: "-", text: out }])).toMatchObject({
      name: "on",
      services: [{ name: "null" }],
    });
  });

  it("replaces no file unless it is told to, nor a link", async () => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, "domain: a\n");
    expect(await init(path)).toMatchObject({ code: 1, err: expect.stringContaining("--force") });
    expect(await readFile(path, "utf8")).toBe("domain: a\n");
    expect(await init(path, "--force")).toMatchObject({ code: 0 });
    expect(await readFile(path, "utf8")).toContain("kind: Policy");
    const link = join(folder, "link.yaml");
    await symlink("nowhere.yaml", link);
    expect(await init(link)).toMatchObject({ code: 1 });
  });

  it.each([
    ["--service", "My Service"],
    ["--name", 'a"b'],
    ["--name", ""],
    ["--upstream", "orders"],
    ["--upstream", "orders:99999"],
    ["--upstream", "http://orders:80"],
  ])("refuses %s %s, and writes nothing", async (flag, value) => {
    const path = join(folder, "policy.yaml");
    expect(await init(path, flag, value)).toMatchObject({ code: 2 });
    expect(await readdir(folder)).toEqual([]);
  });

  it("says where it cannot write", async () => {
    expect(await init(join(folder, "none", "policy.yaml"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("cannot be written"),
    });
  });
});
