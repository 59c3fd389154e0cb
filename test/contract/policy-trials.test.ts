import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { replayedBytesMax } from "../../src/rpc/admin/policy-service.js";
import { type AdminClients, adminClients, startAdminApp } from "../support/admin.js";
import { useStage } from "../support/stage.js";
import { withheldTime } from "../support/withheld-time.js";

const stage = useStage("file");

const policyOf = (perMinute: number, key = "user") => `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: ${key}, rate_limit: {unit: minute, requests_per_unit: ${perMinute}}}
        - {key: plan, rate_limit: {unit: minute, requests_per_unit: 5}}
  services:
    - name: orders
      hosts: [orders.example]
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: ${key}}]]}
`;

const testsOf = (allowed: number) => `policy: policy.yaml
tests:
  - name: so many a minute
    steps:
      - {ask: {domain: shop, entries: {user: ann}}, times: 5, expect: {allowed: ${allowed}}}
`;

let clients: AdminClients | undefined;

async function policies(): Promise<AdminClients["policies"]> {
  clients ??= adminClients((await startAdminApp(stage, policyOf(2))).port);
  return clients.policies;
}

const fileOf = (text: string) => [{ file: "a.yaml", text }];

async function codeOf(call: Promise<unknown>): Promise<Code | undefined> {
  return call.then(
    () => undefined,
    (thrown: unknown) => (thrown instanceof ConnectError ? thrown.code : Code.Unknown),
  );
}

describe("TestPolicy", () => {
  it("tells of each test what was expected, and what came", async () => {
    const { testPolicy } = await policies();
    const passed = await testPolicy({ tests: fileOf(testsOf(2)) });
    expect(passed.tests).toMatchObject([
      { name: "so many a minute", file: "a.yaml", line: 3, callCount: 5n, failures: [] },
    ]);
    expect(passed.untestedRules).toMatchObject([{ domain: "shop", label: "plan" }]);
    const failed = await testPolicy({ files: fileOf(policyOf(3)), tests: fileOf(testsOf(2)) });
    expect(failed.tests[0]?.failures).toMatchObject([
      {
        message: "expected 2 of 5 allowed, and 3 were (over: user)",
        expected: "2 of 5 allowed",
        got: "3 were (over: user)",
      },
    ]);
  });

  it("tells what is wrong with the policy, or with its tests", async () => {
    const { testPolicy } = await policies();
    const wrong = await testPolicy({ files: fileOf("kind: ["), tests: fileOf(testsOf(2)) });
    expect(wrong.problems[0]).toMatchObject({ file: "a.yaml", hint: expect.stringMatching(/./) });
    const badTests = await testPolicy({ tests: fileOf("policy: a.yaml\ntests: 7\n") });
    expect(badTests.problems[0]).toMatchObject({ line: 2 });
    expect(badTests.tests).toEqual([]);
    expect(await codeOf(testPolicy({}))).toBe(Code.InvalidArgument);
  });
});

/** Requests of one user, a second apart, one of them for a host that no service has. */
const lines = [1, 2, 3, 4].map((second) => {
  const time = `2026-01-05T08:00:0${second}.000Z`;
  return JSON.stringify({ time, authority: "orders.example", "x-user": "<b>ann", path: "/" });
});
const logText = [
  ...lines,
  JSON.stringify({ time: "2026-01-05T08:00:09.000Z", authority: "other.example" }),
  "{nonsense",
].join("\n");
const log = new TextEncoder().encode(logText);

describe("ReplayLog", () => {
  it("compares what two policies make of a log, rule by rule", async () => {
    const { replayLog } = await policies();
    const replay = await replayLog({ files: fileOf(policyOf(3)), log, format: "json" });
    expect(replay).toMatchObject({
      lineCount: 6n,
      unreadableCount: 1n,
      active: { callCount: 4n, unmatchedCount: 1n, deniedCount: 2n },
      candidate: { callCount: 4n, deniedCount: 1n },
      newlyDeniedCount: 0n,
      newlyAllowedCount: 1n,
      problems: [],
    });
    expect(replay.firstUnreadable).toMatch(/^line 6: /);
    expect(replay.active?.unmatchedHosts).toMatchObject([{ text: "other.example", count: 1n }]);
    expect(replay.active?.denied.reduce((sum, one) => sum + one, 0)).toBe(2);
    expect(replay.active?.denied).toHaveLength(replay.active?.calls.length ?? 0);
    expect(replay.rules).toMatchObject([
      {
        domain: "shop",
        label: "user",
        activeCallCount: 4n,
        activeOverCount: 2n,
        candidateOverCount: 1n,
        keys: [{ text: "user=<b>ann", count: 1n }],
      },
    ]);
  });

  it("tells of rules that one of the two does not have, and of one policy alone", async () => {
    const { replayLog } = await policies();
    const replay = await replayLog({ files: fileOf(policyOf(3, "caller")), log });
    expect(
      replay.rules.map(({ label, activeOverCount, candidateOverCount }) => {
        return [label, activeOverCount, candidateOverCount];
      }),
    ).toEqual([
      ["user", 2n, 0n],
      ["caller", 0n, 1n],
    ]);
    const alone = await replayLog({ log });
    expect([alone.candidate, alone.active?.deniedCount]).toEqual([undefined, 2n]);
  });

  it("takes bytes of anything, and no more than it may", async () => {
    const { replayLog } = await policies();
    const bytes = new Uint8Array(300_000).map((_, i) => (i * 7_919) % 256);
    const replay = await replayLog({ log: bytes });
    expect(replay.active?.callCount).toBe(0n);
    expect(await codeOf(replayLog({ log, format: "xml" }))).toBe(Code.InvalidArgument);
    const long = new Uint8Array(replayedBytesMax + 1).fill(10);
    expect(await codeOf(replayLog({ log: long }))).toBe(Code.InvalidArgument);
    const problems = await replayLog({ files: fileOf("kind: ["), log });
    expect([problems.problems[0]?.file, problems.active]).toEqual(["a.yaml", undefined]);
  });

  it("keeps no decision waiting: the event loop goes on while a long log is replayed", async () => {
    const { replayLog } = await policies();
    const many = new TextEncoder().encode(`${lines.join("\n")}\n`.repeat(9_000));
    const withheldMs = withheldTime(stage);
    const ownMs = (): number => performance.now() - withheldMs();
    let longestMs = 0;
    let lastMs = ownMs();
    let isOver = false;
    const look = (): void => {
      const nowMs = ownMs();
      longestMs = Math.max(longestMs, nowMs - lastMs);
      lastMs = nowMs;
      if (!isOver) setImmediate(look);
    };
    look();
    const replay = await replayLog({ files: fileOf(policyOf(3)), log: many });
    isOver = true;
    expect(replay.lineCount).toBe(36_000n);
    // To replay it takes much longer than that.
    expect(longestMs).toBeLessThan(500);
  });
});

describe("GetFindings", () => {
  it("tells how this replica is, with what to do", async () => {
    await policies();
    const { findings, silentReplicas } = (await clients?.fleet.getFindings({})) ?? {};
    expect(silentReplicas).toBe(0);
    const store = findings?.find(({ id }) => id === "HG512");
    expect(store).toMatchObject({ kind: "pass", severity: "", seen: "Headgate reaches its store" });
    expect(store?.remedy).toContain("Redis");
    expect(store?.replica).not.toBe("");
  });
});
