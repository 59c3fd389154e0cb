import { beforeAll, describe, expect, it } from "vitest";
import { quotaReportMs } from "../../src/core/quota/quota.js";
import type { RunningHeadgate } from "../support/headgate-process.js";
import { HttpClient } from "../support/http-client.js";
import {
  editedLimit,
  leaseMs,
  limitHz,
  mostAssigned,
  mostWithCalls,
  QuotaScenario,
  refusal,
  settledMs,
  slackMs,
  sum,
  TenantTraffic,
  twoReportsMs,
} from "../support/quota-scenario.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

/**
 * By Envoy, which Headgate it asks first: three Envoys at two Headgates, and two more Envoys, of
 * which one dies, and the other one loses its Headgate. Tests share them, each with a tenant of its
 * own, and run at the same time: most of it is waiting for reports, which come each five seconds.
 */
const homes = [0, 1, 0, 0, 2];
const [dyingEnvoy, orphanedEnvoy, dyingHeadgate] = [3, 4, 2];

const stage = useStage("file");
let scenario: QuotaScenario;
/** By tenant; they go on until the store's outage. */
const traffics = new Map<string, TenantTraffic>();

beforeAll(async () => {
  scenario = await QuotaScenario.start(stage, { homes, mortal: dyingHeadgate });
});

async function drive(tenant: string, paces: Record<number, number>): Promise<TenantTraffic> {
  const traffic = await scenario.drive(tenant, paces);
  traffics.set(tenant, traffic);
  return traffic;
}

/** How long it takes at most until what is handed out is the limit. */
const settled = { withinMs: 3 * settledMs } as const;

/** Traffic is looked at in pieces of this length. */
const lookMs = 4_000;

/** Whether so many a second are the limit, give or take what is still level. */
function isLimit(hz: number): boolean {
  return hz >= 0.9 * limitHz && hz <= 1.1 * limitHz;
}

/** Whether it holds of each Headgate that is to live. */
async function allAre(is: (headgate: RunningHeadgate) => boolean | Promise<boolean>) {
  const headgates = scenario.fleet.headgates.slice(0, dyingHeadgate);
  const answers = await Promise.all(headgates.map(is));
  return answers.every((answer) => answer);
}

const loadedTwice = async (headgate: RunningHeadgate): Promise<boolean> =>
  (await headgate.metric("headgate_policy_loads_total")) === 2;

/** How often each Headgate that is to live has told of an event. */
const logCounts = (event: string): readonly number[] =>
  scenario.fleet.headgates
    .slice(0, dyingHeadgate)
    .map(({ output }) => output.split(`"${event}"`).length - 1);

/** Tells whether each of them has told of it once more than now. */
function reportedFromNowOn(event: string): () => boolean {
  const before = logCounts(event);
  return () => logCounts(event).every((count, i) => count > (before[i] ?? 0));
}

/** Whether all Envoys have refused what was asked of them for a while. */
function allRefuse(traffic: TenantTraffic, forMs = 700): boolean {
  return traffic.lately(forMs).every(({ passed, refused }) => passed === 0 && refused >= 5);
}

describe.concurrent("quotas of several Envoys and Headgates", { timeout: 10 * settledMs }, () => {
  it("divide a limit evenly among those who ask for the same", async () => {
    const traffic = await drive("even", { 0: 20, 1: 20, 2: 20 });
    await waitFor(
      "each has its part of the limit",
      () => {
        const each = traffic.latelyHz(lookMs);
        return isLimit(sum(each)) && Math.min(...each) > 0.5 * Math.max(...each);
      },
      settled,
    );
  });

  it("give one Envoy what the others leave, who have what they ask for", async () => {
    const traffic = await drive("skewed", { 0: 40, 1: 3, 2: 3 });
    await waitFor(
      "one has what the others leave",
      () => {
        const [busy = 0, ...quiet] = traffic.latelyHz(lookMs);
        return isLimit(busy + sum(quiet)) && Math.min(...quiet) > 0.75 * 3;
      },
      settled,
    );
  });

  it("go to another Envoy within two reports when that is asked for more", async () => {
    const traffic = await drive("shifting", { 0: 40, 1: 3, 2: 3 });
    const latelyHz = (envoy: number): number => traffic.latelyHz(2_000)[envoy] ?? 0;
    await waitFor("one has most of it", () => latelyHz(0) > 0.5 * limitHz, settled);
    traffic.pace([3, 40, 3]);
    await waitFor("the other one has its part", () => latelyHz(1) > 0.4 * limitHz, {
      withinMs: twoReportsMs + lookMs,
    });
    await waitFor("all is given", () => isLimit(sum(traffic.latelyHz(lookMs))), settled);
  });

  it("share one budget with calls for the same limit", async () => {
    const traffic = await drive("called", { 0: 40 });
    const descriptors = [{ entries: [{ key: "tenant", value: "called" }] }];
    const askedMs: number[] = [];
    const calledMs: number[] = [];
    await waitFor(
      "both have a part, and together the limit",
      async () => {
        const sentMs = performance.now();
        askedMs.push(sentMs);
        const answer = await scenario.fleet.headgates[0]?.postJson({ domain: "edge", descriptors });
        if (answer?.status === 200) calledMs.push(sentMs);
        const ofQuotas = sum(traffic.latelyHz(lookMs));
        const [askedHz = 0, ofCalls = 0] = [askedMs, calledMs].map(
          (all) => (all.filter((ms) => ms >= sentMs - lookMs).length * 1_000) / lookMs,
        );
        const isShared = ofQuotas + ofCalls <= 1.15 * limitHz;
        return isShared && ofQuotas > 0.4 * limitHz && ofCalls > 1 && askedHz > 0.3 * limitHz;
      },
      { ...settled, everyMs: 50 },
    );
    const all = calledMs.length + traffic.passedSince(traffic.startMs);
    expect(all).toBeLessThanOrEqual(mostWithCalls(performance.now() - traffic.startMs));
  });

  it("follow a freeze, its end and a policy's edit at once, at every Envoy", async () => {
    const [edited, frozen] = [
      await drive("edited", { 0: 20, 1: 20, 2: 20 }),
      await drive("frozen", { 0: 20, 1: 20, 2: 20 }),
    ];
    await waitFor(
      "each Envoy serves both",
      () => [...edited.latelyHz(1_000), ...frozen.latelyHz(1_000)].every((hz) => hz >= 6),
      settled,
    );
    // Each reports on its own, and on a busy machine they have begun seconds apart.
    const reportAgeMsMax = 2_000;
    // The admin API takes so many calls a second, and an operator's is next.
    const rarely = { everyMs: 200 };
    await waitFor(
      "all Envoys have just reported",
      async () => {
        const shares = await scenario.sharesOf("frozen");
        const ages = shares.map(({ age }) => Number(age?.seconds) * 1e3 + (age?.nanos ?? 0) / 1e6);
        return ages.length === 3 && Math.max(...ages) < reportAgeMsMax;
      },
      rarely,
    );
    const [admin] = scenario.admins;
    const entries = [{ key: "tenant", value: "frozen" }];
    const effect = { case: "isFrozen", value: true } as const;
    const override = { id: "stop", domain: "edge", entries, effect, reason: "a test" };
    const set = await admin?.limits.setOverride({ override });
    await waitFor("no Envoy lets anything pass, and none has reported", () => allRefuse(frozen), {
      withinMs: quotaReportMs - reportAgeMsMax,
    });
    const frozenMs = performance.now();
    const editedHz = 3;
    await scenario.edit(editedLimit(limitHz), editedLimit(editedHz));
    await waitFor("all Headgates have the edited policy", () => allAre(loadedTwice), settled);
    await waitFor(
      "all Envoys go by it, and most have not reported",
      () => edited.lately(700).every(({ passed, refused }) => passed <= 3 && refused >= 5),
      { withinMs: quotaReportMs / 2 },
    );
    const editedMs = performance.now();
    // Several reports of it have come meanwhile.
    expect(frozen.passedSince(frozenMs)).toBe(0);
    await admin?.limits.deleteOverride({
      id: "stop",
      domain: "edge",
      reason: "it is over",
      expectedVersion: set?.override?.version ?? 0n,
    });
    await waitFor("the tenant is served again", () => sum(frozen.latelyHz(2_000)) > 5, {
      withinMs: twoReportsMs,
    });
    await waitFor("no more than the edited limit passes", () => {
      return sum(edited.latelyHz(lookMs)) <= 1.5 * editedHz;
    });
    const sinceMs = performance.now() - editedMs;
    expect(edited.passedSince(editedMs)).toBeLessThanOrEqual(mostAssigned(sinceMs, editedHz));
  });

  it("go to the living when an Envoy and another one's Headgate are killed", async () => {
    const all = await drive("killed", { 0: 20, [dyingEnvoy]: 20, [orphanedEnvoy]: 20 });
    await waitFor(
      "all three have a part of the limit",
      () => all.latelyHz(2_000).every((hz) => hz > 0.2 * limitHz),
      settled,
    );
    all.pace([40, 0, 40]);
    const { envoys, mortal } = scenario.fleet;
    const live = new TenantTraffic(all.each.filter((_, i) => i !== 1));
    traffics.set("killed", live);
    await Promise.all([envoys[dyingEnvoy]?.kill(), mortal?.process.kill()]);
    await waitFor(
      "the living have what the dead had",
      () => {
        const each = live.latelyHz(2_000);
        return sum(each) > 0.8 * limitHz && Math.min(...each) > 0.25 * limitHz;
      },
      { withinMs: settledMs },
    );
    const sinceMs = performance.now() - live.startMs;
    expect(live.passedSince(live.startMs)).toBeLessThanOrEqual(mostAssigned(sinceMs));
  });
});

describe("quotas of several Envoys and Headgates, over all that time", () => {
  const settledTenants: readonly {
    readonly tenant: string;
    readonly isFair: (each: readonly number[]) => boolean;
  }[] = [
    { tenant: "even", isFair: (each) => Math.min(...each) > 0.5 * Math.max(...each) },
    { tenant: "skewed", isFair: ([, ...quiet]) => Math.min(...quiet) > 0.7 * 3 },
    { tenant: "shifting", isFair: ([, busy = 0]) => busy > 0.5 * limitHz },
  ];

  it.each(settledTenants)("have given $tenant its limit for ten seconds", async (row) => {
    const traffic = traffics.get(row.tenant);
    await waitFor(
      "its limit passes, in fair parts",
      () => {
        const each = traffic?.latelyHz(10_000) ?? [];
        return isLimit(sum(each)) && row.isFair(each);
      },
      settled,
    );
  });

  it.each(["even", "skewed", "shifting"])(
    "let pass no more than the bound of the tenant %s",
    (tenant) => {
      const traffic = traffics.get(tenant);
      const { startMs = 0 } = traffic ?? {};
      const passed = traffic?.passedSince(startMs) ?? Number.NaN;
      expect(passed).toBeLessThanOrEqual(mostAssigned(performance.now() - startMs));
    },
  );

  it("refuse as the filter says, and nothing else goes wrong", async () => {
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const port = scenario.fleet.envoys[0]?.port ?? 0;
    const headers = { "x-tenant": "even" };
    const refused = await waitFor("one is refused", async () => {
      const answer = await http.send({ port, headers });
      return answer.status === 200 ? undefined : answer;
    });
    expect(refused).toMatchObject(refusal);
    for (const [tenant, { failures }] of traffics) expect(failures, tenant).toEqual([]);
    for (const name of ["bugs", "quota_ignored_reports", "quota_unusual_reports"]) {
      const isZero = async (one: RunningHeadgate): Promise<boolean> =>
        (await one.metric(`headgate_${name}_total`)) === 0;
      expect(await allAre(isZero), name).toBe(true);
    }
  });
});

describe("quotas while the store is away", { timeout: 10 * settledMs }, () => {
  it("stay inside the last lease, then deny as told, and are well soon after", async () => {
    const even = traffics.get("even") ?? (await drive("even", { 0: 20, 1: 20, 2: 20 }));
    for (const traffic of traffics.values()) if (traffic !== even) traffic.pace([]);
    await waitFor("its limit passes", () => isLimit(sum(even.latelyHz(2_000))), settled);
    const isUnrenewed = reportedFromNowOn("quotaLeasesUnrenewed");
    const isLost = reportedFromNowOn("quotaLeasesLost");
    const isFound = reportedFromNowOn("quotaLeasesFound");
    scenario.redis.pause();
    const pausedMs = performance.now();
    await waitFor("claims fail", isUnrenewed, {
      withinMs: leaseMs,
    });
    const unrenewedMs = performance.now();
    await waitFor("the last lease goes on", () => even.passedSince(unrenewedMs) > limitHz, {
      withinMs: leaseMs,
    });
    await waitFor("leases are over", async () => isLost() && (await allAre(hasLostLeases)), {
      withinMs: leaseMs + slackMs,
    });
    await waitFor("all are told to deny, and do", async () => {
      const shares = await scenario.sharesOf("even");
      return (
        shares.every(({ assignment }) => assignment.value === "deny") && allRefuse(even, 3_000)
      );
    });
    expect(even.passedSince(pausedMs)).toBeLessThanOrEqual(mostAssigned(leaseMs));
    expect(await allAre(async (one) => (await one.get("/readyz")).status === 200)).toBe(true);
    scenario.redis.resume();
    await waitFor("it is well again", () => sum(even.latelyHz(2_000)) > 0.4 * limitHz, {
      withinMs: twoReportsMs,
    });
    await waitFor("claims are answered", isFound);
  });
});

async function hasLostLeases(headgate: RunningHeadgate): Promise<boolean> {
  const [lost, leased] = await Promise.all(
    ["lost", "leased"].map((state) => headgate.metric("headgate_quota_leases", { state })),
  );
  return lost !== undefined && lost > 0 && leased === 0;
}
