import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type CliRun, captureCli } from "../support/cli.js";
import { FakeTerminal } from "../support/fake-terminal.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

function policyOf(hits: number): string {
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: user, rate_limit: {name: pace, unit: hour, requests_per_unit: ${hits}}}
  services:
    - name: checkout
      hosts: [checkout.example]
      admission:
        gate: {openBelow: 0.4, closeAbove: 0.8}
        estimatedWait: {sigmoid: {midpoint: 28s, slope: 0.23}}
    - {name: search, hosts: [search.example]}
`;
}

const stage = useStage("file");
let headgate: HostedHeadgate;
/** Its admin port. */
let url: string;

beforeAll(async () => {
  const adminPort = await freePort();
  url = `http://127.0.0.1:${adminPort}`;
  headgate = await HostedHeadgate.start(stage, {
    policy: policyOf(10),
    env: {
      HEADGATE_ADMIN_ADDR: `127.0.0.1:${adminPort}`,
      HEADGATE_ADMIN_OPEN: "true",
      HEADGATE_ADMIN_CALLS_PER_SECOND: "1000",
      HEADGATE_POLICY_SOURCE: "store",
    },
  });
});

/** Runs a command; the words of one argument stand in an array of their own. */
function run(...words: readonly string[]): Promise<CliRun> {
  return captureCli(words, { env: { HEADGATE_ADMIN_URL: url } });
}

/** As `run`, on a terminal where somebody types this. */
function runAnswered(answer: string, ...words: readonly string[]): Promise<CliRun> {
  const terminal = new FakeTerminal({ columns: 80, answers: [answer] });
  return captureCli(words, { env: { HEADGATE_ADMIN_URL: url, NO_COLOR: "1" }, terminal });
}

async function json(...words: readonly string[]): Promise<Record<string, unknown>> {
  const { code, out, err } = await run(...words, "-o", "json");
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out) as Record<string, unknown>;
}

async function file(name: string, text: string): Promise<string> {
  const path = join(stage.folder, name);
  await writeFile(path, text);
  return path;
}

async function currentVersion(): Promise<string> {
  const { policies } = (await json("history")) as { policies: { version: string }[] };
  return policies[0]?.version ?? "";
}

const because = ["--reason", "a test"] as const;

describe("headgate apply", () => {
  it("says what would change, and changes nothing, with --dry-run", async () => {
    const before = await currentVersion();
    const path = await file("twenty.yaml", policyOf(20));
    const { code, out } = await run("apply", path, "--dry-run");
    expect(code).toBe(0);
    expect(out).toContain("Changes:\n  shop/user pace: 10 per hour becomes 20 per hour");
    expect(await currentVersion()).toBe(before);
    const { changes, problems } = await json("apply", path, "--dry-run");
    expect([(changes as string[]).length, problems]).toEqual([1, []]);
  });

  it("needs a reason, a file that is there, and a policy that is right", async () => {
    const path = await file("twenty.yaml", policyOf(20));
    const silent = await run("apply", path);
    expect([silent.code, silent.err]).toEqual([2, expect.stringContaining("--reason is required")]);
    const none = await run("apply", `${path}.none`, ...because);
    expect([none.code, none.err]).toEqual([1, expect.stringContaining("no such file")]);
    const wrong = await file("wrong.yaml", policyOf(20).replace("unit: hour", "unit: huor"));
    const reported = await run("apply", wrong, ...because);
    expect(reported.code).toBe(3);
    expect(reported.out).toMatch(/wrong\.yaml:8:\d+: HG142 .*huor/);
    const asJson = await run("apply", wrong, ...because, "-o", "json");
    expect(asJson.code).toBe(3);
    expect(JSON.parse(asJson.out)).toMatchObject({ problems: [{ id: "HG142", line: 8 }] });
  });

  it("takes the pages of waiting rooms from files beside the policy", async () => {
    const rooms = "[{name: lobby, service: checkout, page: {templateFile: lobby.html}}]";
    const text = policyOf(10).replace("spec:", `spec:\n  waitingRooms: ${rooms}`);
    const path = await file("room.yaml", text);
    expect(await run("apply", path, ...because)).toMatchObject({
      code: 3,
      out: expect.stringContaining("HG284"),
    });
    const page = await file("lobby.html", "<p>{{position}}");
    const applied = await run("apply", path, page, ...because);
    expect([applied.code, applied.err]).toEqual([0, ""]);
    expect(applied.out).toContain("a new waiting room in front of checkout");
    await file("lobby.html", "<p>{{ahead}}");
    const { changes } = await json("apply", path, page, "--dry-run");
    expect(changes).toEqual([expect.stringContaining("page.template changes")]);
  });

  it("puts an active policy, of which callers know at once", async () => {
    const path = await file("two.yaml", policyOf(2));
    const asked = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "eve" }] }] };
    const { code, out } = await run("apply", path, ...because);
    expect(code).toBe(0);
    expect(out).toMatch(/^Active: policy [0-9a-f]{12}, by local at \S+: a test\nChanges:/);
    const statuses: number[] = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await headgate.postJson(asked)).status);
    expect(statuses).toEqual([200, 200, 429]);
  });

  it("replaces only what it was told of, and says what is there", async () => {
    const path = await file("five.yaml", policyOf(5));
    const before = await currentVersion();
    const { code, err } = await run(
      "apply",
      path,
      ...because,
      "--expected-version",
      "0123456789ab",
    );
    expect(code).toBe(1);
    expect(err).toContain(`The policy has version ${before} now`);
    expect(err).toContain("--expected-version");
    expect(await currentVersion()).toBe(before);
    const reported = await run("apply", path, ...because, "--expected-version", before);
    expect(reported.code).toBe(0);
  });

  it("asks on a terminal, and takes nothing but yes", async () => {
    const path = await file("six.yaml", policyOf(6));
    const before = await currentVersion();
    const no = await runAnswered("", "apply", path, ...because);
    expect([no.code, no.out]).toEqual([1, ""]);
    expect(no.err).toContain("Changes:\n  shop/user pace: 5 per hour becomes 6 per hour");
    expect(no.err).toContain("Nothing was changed.");
    expect(await currentVersion()).toBe(before);
    expect((await runAnswered("y", "apply", path, ...because)).code).toBe(0);
    expect(await currentVersion()).not.toBe(before);
  });

  it("is told where the policy comes from that cannot be replaced", async () => {
    const adminPort = await freePort();
    const env = { HEADGATE_ADMIN_ADDR: `127.0.0.1:${adminPort}`, HEADGATE_ADMIN_OPEN: "true" };
    await HostedHeadgate.start(stage, { policy: policyOf(10), env });
    const path = await file("seven.yaml", policyOf(7));
    const words = ["apply", path, ...because, "--admin-url", `http://127.0.0.1:${adminPort}`];
    const { code, err } = await run(...words);
    expect(code).toBe(1);
    expect(err).toContain("comes from its files");
    expect(err).toContain("HEADGATE_POLICY_SOURCE=store");
    expect((await run(...words, "--shadow")).code).toBe(0);
  });
});

describe("headgate shadow, enforce and rollback", () => {
  it("try a policy, report on it, and activate it", async () => {
    for (const command of ["shadow", "enforce"]) {
      const more = command === "enforce" ? because : [];
      const { code, err } = await run(command, ...more);
      expect([code, err]).toEqual([1, expect.stringContaining("`headgate apply --shadow`")]);
    }
    const before = await currentVersion();
    const path = await file("one.yaml", policyOf(1));
    const tried = await run("apply", path, "--shadow", ...because);
    expect(tried.code).toBe(0);
    expect(tried.out).toContain("`headgate shadow` shows its report");
    expect(await currentVersion()).toBe(before);

    const asked = { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "fay" }] }] };
    for (let i = 0; i < 3; i += 1) expect((await headgate.postJson(asked)).status).toBe(200);
    await waitFor("the report has all calls", async () => {
      return (await json("shadow"))["callCount"] === 3;
    });
    const { out } = await run("shadow");
    expect(out).toMatch(/^Policy [0-9a-f]{12} beside [0-9a-f]{12}\n3 calls since /);
    expect(out).toContain("Its buckets started with the state of the active buckets.");
    expect(out).toMatch(/shop +user +2 +0 +1 +66\.7 %/);
    const yaml: unknown = parse((await run("shadow", "-o", "yaml")).out);
    expect(yaml).toEqual(await json("shadow"));

    const late = await run("enforce", ...because, "--expected-version", "0123456789ab");
    expect([late.code, late.err]).toEqual([1, expect.stringContaining(`version ${before} now`)]);
    const enforced = await run("enforce", "--reason", "nobody was hurt");
    expect(enforced.out).toMatch(/^Active: policy [0-9a-f]{12}, by local at \S+: nobody was hurt/);
    expect((await headgate.postJson(asked)).status).toBe(429);
    expect((await run("shadow")).code).toBe(1);

    const back = await json("rollback", ...because);
    expect(back).toMatchObject({ policy: { version: before } });
    expect((await headgate.postJson(asked)).status).toBe(200);
  });

  it("end what is tried before they go back to a policy", async () => {
    const before = await currentVersion();
    const path = await file("three.yaml", policyOf(3));
    await run("apply", path, "--shadow", ...because);
    const no = await runAnswered("n", "rollback", ...because);
    expect([no.code, no.err]).toEqual([1, expect.stringContaining("Nothing was changed.")]);
    const { code, out } = await run("rollback", ...because);
    expect(code).toBe(0);
    expect(out).toMatch(/^Ended the shadow policy: policy [0-9a-f]{12}, by local/);
    expect(out).toContain(`Active: policy ${before}`);
    expect((await run("shadow")).code).toBe(1);
    expect(await currentVersion()).toBe(before);
  });

  it("know which versions there are", async () => {
    const { policies } = (await json("history")) as { policies: { version: string }[] };
    const earlier = policies.find(({ version }) => version !== policies[0]?.version)?.version ?? "";
    const typo = `${earlier.slice(0, -1)}${earlier.endsWith("0") ? "1" : "0"}`;
    const { code, err } = await run("rollback", typo, ...because);
    expect(code).toBe(1);
    expect(err).toContain(`did you mean "${earlier}"?`);
    expect((await run("rollback", earlier, ...because)).code).toBe(0);
    expect(await currentVersion()).toBe(earlier);
    const listed = await run("history");
    expect(listed.out).toMatch(/^version +since +from +by +why\n/);
  });
});

describe("headgate gate", () => {
  it("changes when a gate opens, by the version that it was looked at with", async () => {
    const { code, out } = await run("gate", "get", "checkout");
    expect([code, out]).toEqual([
      0,
      "checkout: opens below 0.4, closes above 0.8 (from the policy)",
    ]);
    const ratios = ["--open-below", "0.5", "--close-above", "0.9"];
    const set = await run("gate", "set", "checkout", ...ratios, ...because);
    expect(set.code).toBe(0);
    expect(set.out).toMatch(/opens below 0\.5, closes above 0\.9 \(set by hand, version \d+\)/);
    const { thresholds } = (await json("gate", "get", "checkout")) as {
      thresholds: { version: number };
    };
    expect(thresholds).toMatchObject({ openBelow: 0.5, closeAbove: 0.9, isOverridden: true });
    const stale = String(thresholds.version + 5);
    const late = ["gate", "set", "checkout", ...ratios, ...because, "--expected-version", stale];
    const refused = await run(...late);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining(`version ${thresholds.version} now`),
    ]);
    const cleared = await run("gate", "clear", "checkout", ...because);
    expect(cleared.out).toContain("opens below 0.4, closes above 0.8 (from the policy)");
    const yaml: unknown = parse((await run("gate", "get", "checkout", "-o", "yaml")).out);
    expect(yaml).toEqual(await json("gate", "get", "checkout"));
  });

  it.each([
    ["0.9", "0.4", "--open-below must be below --close-above"],
    ["0.5", "0.5", "--open-below must be below --close-above"],
    ["0", "0.5", "--open-below must be a number above 0"],
    ["0.5", "x", "--close-above must be a number above 0"],
  ])("refuses to open below %s and close above %s", async (open, close, words) => {
    const ratios = ["--open-below", open, "--close-above", close];
    const { code, err } = await run("gate", "set", "checkout", ...ratios, ...because);
    expect([code, err]).toEqual([2, expect.stringContaining(words)]);
  });

  it("knows which services have one, and suggests the nearest", async () => {
    for (const words of [
      ["get", "chekout"],
      ["clear", "chekout", ...because],
    ]) {
      const { code, err } = await run("gate", ...words);
      expect([code, err]).toEqual([1, expect.stringContaining('did you mean "checkout"?')]);
    }
    expect((await run("gate", "get", "search")).code).toBe(1);
  });
});

describe("headgate audit", () => {
  it("has all of that, and why", async () => {
    const { out } = await run("audit");
    for (const action of ["ApplyPolicy", "EnforcePolicy", "RollBackPolicy", "SetGateThresholds"]) {
      expect(out).toContain(action);
    }
    expect(out).toMatch(/SetGateThresholds +checkout +0\.5 to 0\.9 → none +a test/);
    expect(out).toContain("nobody was hurt");
  });
});
