import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CliRun, captureCli } from "../../../support/cli.js";
import { policyOf } from "../../../support/service-texts.js";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-check-"));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const check = (...args: readonly string[]): Promise<CliRun> => captureCli(["check", ...args]);

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
      out: "OK: 2 files, 2 domains, 2 rules, 3 limits.",
      err: "",
    });
  });

  it("reads a directory", async () => {
    await write("a.yaml", ratelimitText);
    await write(".hidden.yaml", "nonsense: [");
    expect(await check(folder)).toMatchObject({
      code: 0,
      out: "OK: 1 file, 1 domain, 1 rule, 1 limit.",
    });
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

  it("warns where rate_limit has no value, as in a file that was cut off", async () => {
    const cut = ratelimitText.slice(0, ratelimitText.indexOf("rate_limit:") + "rate_limit:".length);
    const path = await write("a.yaml", cut);
    const { code, out } = await check(path);
    expect(code).toBe(0);
    expect(out).toContain(`${path}:4:5: warning HG171 "rate_limit" has no value`);
  });

  it("warns where requests_per_unit is missing, which refuses every request", async () => {
    const path = await write("a.yaml", ratelimitText.replace(", requests_per_unit: 5", ""));
    const { code, out } = await check(path);
    expect(code).toBe(0);
    expect(out).toContain(`${path}:4:17: warning HG170 "requests_per_unit" is missing, so it is 0`);
  });

  it("takes a number that stands for a text as it is written, and says where", async () => {
    const numeric = ratelimitText.replace("key: user", "key: 123\n    value: 0x1F");
    const path = await write("a.yaml", numeric);
    const { code, out } = await check(path);
    expect(code).toBe(0);
    expect(out).toContain(
      `${path}:3:10: warning HG172 "key" is a number and is read as the text "123"`,
    );
    expect(out).toContain(`${path}:4:12: warning HG172 "value" is a number`);
    expect(out).toContain('read as the text "0x1F"');
    const { warnings } = JSON.parse((await check("-o", "json", path)).out);
    expect(warnings).toMatchObject([
      { id: "HG172", line: 3 },
      { id: "HG172", line: 4 },
    ]);
    const quoted = numeric.replace("123", '"123"').replace("0x1F", "'0x1F'");
    expect((await check(await write("a.yaml", quoted))).out).not.toContain("warning");
  });

  it("merges the files of a domain where the flag or the environment says so", async () => {
    const first = await write("a.yaml", ratelimitText);
    const second = await write("b.yaml", ratelimitText.replace("user", "path"));
    const merged = { code: 0, out: "OK: 2 files, 1 domain, 2 rules, 2 limits." };
    expect(await check(first, second)).toMatchObject({ code: 3 });
    expect(await check("--merge-domain-config", "true", first, second)).toMatchObject(merged);
    expect(await check(first, second, "--merge-domain-config")).toMatchObject(merged);
    // The flag may stand alone, and a file behind it is a file.
    expect(await check("--merge-domain-config", first, second)).toMatchObject(merged);
    vi.stubEnv("MERGE_DOMAIN_CONFIG", "TRUE");
    expect(await check(first, second)).toMatchObject(merged);
    expect(await check("--merge-domain-config=false", first, second)).toMatchObject({ code: 3 });
    vi.stubEnv("MERGE_DOMAIN_CONFIG", "");
    expect(await check(first, second)).toMatchObject({ code: 3 });
    vi.stubEnv("MERGE_DOMAIN_CONFIG", "perhaps");
    const { code, err } = await check(first, second);
    expect(code).toBe(2);
    expect(err).toContain("MERGE_DOMAIN_CONFIG must be true or false");
  });

  it("needs files, or a directory to report on, and not both", async () => {
    const path = await write("a.yaml", ratelimitText);
    expect(await check()).toMatchObject({ code: 2, out: "" });
    expect(await check("--ratelimit", folder, path)).toMatchObject({ code: 2, out: "" });
  });

  it("speaks JSON when asked to", async () => {
    const good = await check("-o", "json", await write("a.yaml", ratelimitText));
    expect(JSON.parse(good.out)).toEqual({
      ok: true,
      files: 1,
      domains: 1,
      rules: 1,
      limits: 1,
      services: [],
      quotas: [],
      waitingRooms: [],
      budgets: [],
      problems: [],
      warnings: [],
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

describe("headgate check, of what is right and reaches far", () => {
  const reaching = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - name: orders
      priority:
        bypassPaths: [/healthz, /static/*]
        rules: [{when: 'request.path == "/static/pay"', is: low}]
`;

  it("warns of what is reachable below a bypassed prefix, and answers 0", async () => {
    const path = await write("a.yaml", reaching);
    const { code, out } = await check(path);
    expect(code).toBe(0);
    expect(out).toContain(`${path}:8:9: warning HG440 "/static" and every path below it pass`);
    expect(out).toContain('rule 1 ("/static/pay")');
    const { warnings } = JSON.parse((await check("-o", "json", path)).out);
    expect(warnings).toMatchObject([{ id: "HG440", line: 8, severity: "warning" }]);
  });

  it("warns of nothing where each path stands for itself", async () => {
    const { out } = await check(await write("a.yaml", reaching.replace(", /static/*", "")));
    expect(out).not.toContain("HG44");
  });
});

describe("headgate check, of services", () => {
  it("counts them, and says what stands before each", async () => {
    const text = policyOf("{name: a}", "{name: b, admission: {maxInFlight: 5}}");
    const path = await write("a.yaml", text);
    const { code, out } = await check(path);
    expect(code).toBe(0);
    expect(out.split("\n")).toEqual([
      "OK: 1 file, 1 domain, 1 rule, 1 limit, 2 services.",
      "",
      "Services",
      "  service  admission        limit  trusted callers",
      "  a        off              none   none",
      "  b        deadline shedAt  5      none",
    ]);
    expect(JSON.parse((await check("-o", "json", path)).out)).toMatchObject({
      services: [
        { name: "a", admission: "off", limit: "none", classStatedBy: "none" },
        { name: "b", admission: "deadline shedAt", limit: "5", classStatedBy: "none" },
      ],
    });
  });
});

describe("headgate check, of quotas", () => {
  it("says what buckets are made of, and what Envoys do without an assignment", async () => {
    const quotas = [
      "{name: pace, domain: shop, bucket: [{header: x-team, as: team}], " +
        "rate: {hits: 5, period: 1s}}",
      "{name: tiers, domain: shop, services: [a], bucket: [remote_address], " +
        "rate: {hits: 5, period: 1s}, classes: {header: x-tier, weights: {gold: 2}}, " +
        "beforeAssignment: deny, afterExpiry: {fallback: allow}}",
    ];
    const text = `${policyOf("{name: a}")}\n  quotas:\n    - ${quotas.join("\n    - ")}\n`;
    const path = await write("a.yaml", text);
    const { code, out } = await check(path);
    expect({ code, out: out.split("\n").slice(-4) }).toEqual({
      code: 0,
      out: [
        "Quotas",
        "  quota  domain  bucket                    services  before  after",
        "  pace   shop    team                      all       allow   limit",
        "  tiers  shop    remote_address by x-tier  a         deny    allow",
      ],
    });
    expect(JSON.parse((await check("-o", "json", path)).out)).toMatchObject({
      quotas: [
        { name: "pace", services: "all" },
        { name: "tiers", afterExpiry: "allow" },
      ],
    });
  });
});

describe("headgate check --ratelimit", () => {
  it("says what is the same, better and different, with numbers, and answers 0", async () => {
    await write("a.yaml", ratelimitText.replace("minute", "day"));
    const { code, out, err } = await check("--ratelimit", folder);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const titles = out.split("\n").filter((line) => /^\S/.test(line));
    expect(titles).toEqual([
      "OK: 1 file, 1 domain, 1 rule, 1 limit.",
      "The same in both",
      "Better in Headgate, without disadvantages",
      "Different in Headgate: check whether you rely on it",
      "The maximum of each limit, in envoyproxy/ratelimit and in Headgate",
    ]);
    expect(out).toMatch(/ {2}edge +user +5 a day +10, here 5 +5, here 9 +algorithm: fixed_window/);
  });

  it("holds global limits against the regions of HEADGATE_REGION_STORES, or two", async () => {
    const rate = "{unit: second, requests_per_unit: 5, spread: global}";
    const domain = `{domain: shop, descriptors: [{key: user, rate_limit: ${rate}}]}`;
    const top = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\n";
    const path = await write("global.yaml", `${top}spec: {rateLimits: [${domain}]}\n`);
    expect((await check(path)).out).not.toContain("HG17");
    vi.stubEnv("HEADGATE_REGION_STORES", "a=x b=y c=z");
    const { code, out } = await check(path);
    expect(code).toBe(0);
    const message = "a burst of 5 cannot be divided well among 3 regions, which need 6";
    expect(out).toContain(`HG175 ${message}`);
    vi.stubEnv("HEADGATE_REGION_STORES", "");
    expect((await check(path)).out).toContain("HG176");
  });

  it("follows what the environment says of limits, and refuses it where it is wrong", async () => {
    await write("a.yaml", ratelimitText.replace("minute", "day"));
    vi.stubEnv("HEADGATE_ALGORITHM", "fixed_window");
    vi.stubEnv("HEADGATE_ON_STORE_FAILURE", "error");
    const { out } = await check("--ratelimit", folder);
    expect(out).toMatch(/ {2}edge +user +5 a day +10, here 10 +5, here 5/);
    expect(out).not.toMatch(/smooth-limits|store-failure/);
    vi.stubEnv("HEADGATE_ALGORITHM", "magic");
    expect(await check("--ratelimit", folder)).toMatchObject({
      code: 2,
      err: expect.stringContaining("HEADGATE_ALGORITHM must be one of"),
    });
    vi.stubEnv("HEADGATE_ALGORITHM", "");
    vi.stubEnv("HEADGATE_ON_STORE_FAILURE", "hope");
    expect(await check("--ratelimit", folder)).toMatchObject({
      code: 2,
      err: expect.stringContaining("HEADGATE_ON_STORE_FAILURE must be one of"),
    });
  });

  it("reads files of any name, as the service does below RUNTIME_ROOT", async () => {
    await write("limits", ratelimitText);
    await write(".draft", "domain: [");
    expect(await check("--ratelimit", folder)).toMatchObject({ code: 0 });
  });

  it("says the same to machines", async () => {
    await write("a.yaml", ratelimitText);
    const { code, out } = await check("-o", "json", "--ratelimit", folder);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      ok: true,
      files: 1,
      limits: [
        {
          domain: "edge",
          rule: "user",
          reference: { atOnceCount: 10, inWindowCount: 5 },
          headgate: { atOnceCount: 5, inWindowCount: 9 },
        },
      ],
      same: [{ ruleCount: 1 }],
      differences: expect.arrayContaining([
        expect.objectContaining({ id: "smooth-limits", kind: "different", ruleCount: 1 }),
      ]),
    });
  });

  it("answers 3, with all problems, where the directory does not load", async () => {
    await write("a.yaml", ratelimitText.replace("minute", "minut"));
    await write("b.yaml", policyText);
    const { code, out } = await check("--ratelimit", folder);
    expect(code).toBe(3);
    expect(out).toContain("a.yaml:4:24: HG142");
    expect(out).toContain("b.yaml:1:1: HG111 this is not a file of envoyproxy/ratelimit");
    expect(out).not.toContain("The same");
  });

  it("answers 1 where there is nothing to read", async () => {
    expect(await check("--ratelimit", folder)).toMatchObject({ code: 1, out: "" });
    expect(await check("--ratelimit", join(folder, "none"))).toMatchObject({ code: 1 });
  });
});
