import { beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { FakeRandom } from "../support/fake-random.js";
import { startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { outcomeOf } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

/** Hits a second of the limit, over both regions; its burst is the same. */
const perSecond = 100;

/** What one region has of the rate, and of the burst, without borrowing. */
const part = perSecond / 2;

const policy = edgePolicy(`
  - key: account
    rate_limit: {name: pace, unit: second, requests_per_unit: ${perSecond}, spread: global}
  - key: own
    rate_limit: {unit: hour, requests_per_unit: 5}
`);

const stage = useStage("file");

/** Two replicas and one Redis, and the way to it from the other region. */
interface Region {
  readonly name: string;
  readonly redis: RedisServer;
  readonly link: TcpFaultProxy;
  readonly replicas: readonly HostedHeadgate[];
}

let us: Region;
let eu: Region;

beforeAll(async () => {
  const stores = await Promise.all(["us", "eu"].map((name) => openStore(name)));
  [us, eu] = (await Promise.all(stores.map((own) => openRegion(own, stores)))) as [Region, Region];
});

async function openStore(name: string): Promise<Omit<Region, "replicas">> {
  const redis = await startRedis(stage);
  const random = new FakeRandom();
  return {
    name,
    redis,
    link: await TcpFaultProxy.start(stage, { targetPort: redis.port, random }),
  };
}

/** The list is not the same text here: each region has a link of its own to the others. */
async function openRegion(
  own: Omit<Region, "replicas">,
  all: readonly Omit<Region, "replicas">[],
): Promise<Region> {
  const list = all.map(({ name, redis, link }) => {
    return `${name}=redis://127.0.0.1:${name === own.name ? redis.port : link.port}`;
  });
  const env = {
    ...redisEnv(own.redis.port),
    HEADGATE_REGION: own.name,
    HEADGATE_REGION_STORES: list.join("\n"),
    // A machine that stands still for half a second is no fault of a region.
    HEADGATE_STORE_BUDGET_MS: "5000",
    HEADGATE_ADMIN_OPEN: "true",
  };
  const start = (): Promise<HostedHeadgate> => HostedHeadgate.start(stage, { policy, env });
  return { ...own, replicas: await Promise.all([start(), start()]) };
}

/** Demand for an account at all replicas of a region: several times the limit. */
class Demand {
  readonly #traffics: readonly Traffic[];
  readonly startMs = performance.now();

  constructor({ replicas }: Region, account: string) {
    this.#traffics = replicas.map((replica) => {
      const client = startClient(stage, replica);
      const call = async () =>
        outcomeOf(await client.ask({ descriptors: [[`account=${account}`]] }));
      const traffic = Traffic.start(stage, { callersCount: 4, call });
      traffic.pauseBetweenCalls(20);
      return traffic;
    });
  }

  get admitted(): number {
    return this.#traffics.reduce((sum, traffic) => sum + traffic.count("OK"), 0);
  }

  /** Waits for two seconds in which at least 95 % of the rate was admitted. */
  async reaches(rate: number): Promise<void> {
    let since = { atMs: performance.now(), admitted: this.admitted };
    await waitFor(`${rate} a second are admitted`, () => {
      const seconds = (performance.now() - since.atMs) / 1_000;
      if (seconds < 2) return false;
      const isReached = this.admitted - since.admitted >= 0.95 * rate * seconds;
      since = { atMs: performance.now(), admitted: this.admitted };
      return isReached;
    });
  }

  /** Ends; every call was decided. */
  async stop(): Promise<void> {
    for (const traffic of this.#traffics) {
      const { byOutcome, total } = await traffic.stop();
      const { OK = 0, OVER_LIMIT = 0 } = byOutcome;
      expect(OK + OVER_LIMIT, JSON.stringify(byOutcome)).toBe(total);
    }
  }
}

/** The most that both regions may have admitted since: the whole burst, and the rate. */
function expectWithinLimit(demands: readonly Demand[]): void {
  const admitted = demands.reduce((sum, demand) => sum + demand.admitted, 0);
  const startMs = Math.min(...demands.map((demand) => demand.startMs));
  const seconds = (performance.now() - startMs) / 1_000;
  expect(admitted).toBeLessThanOrEqual(perSecond + perSecond * seconds);
}

function cut(): void {
  for (const { link } of [us, eu]) link.setFault({ kind: "partition" });
}

function mend(): void {
  for (const { link } of [us, eu]) link.setFault({ kind: "none" });
}

async function waitForReach(isReachable: boolean): Promise<void> {
  for (const replica of [...us.replicas, ...eu.replicas]) {
    await waitFor(`the other region is ${isReachable ? "found" : "lost"}`, async () => {
      return (await replica.metric("headgate_region_reachable")) === (isReachable ? 1 : 0);
    });
  }
}

async function sum(metric: string, { replicas }: Region): Promise<number> {
  const values = await Promise.all(replicas.map((replica) => replica.metric(metric)));
  return values.reduce((total, value) => total + value, 0);
}

function run(region: Region, ...words: readonly string[]) {
  const [replica] = region.replicas;
  const url = `http://127.0.0.1:${replica?.portOf("admin")}`;
  return captureCli(words, { env: { HEADGATE_ADMIN_URL: url } });
}

describe("a global limit of two regions", () => {
  it("gives all of its rate to the one region that has demand, and then to the other", async () => {
    const first = new Demand(us, "moves");
    await first.reaches(perSecond);
    expectWithinLimit([first]);
    await first.stop();
    const second = new Demand(eu, "moves");
    await second.reaches(perSecond);
    await second.stop();
    expectWithinLimit([first, second]);
    for (const region of [us, eu]) {
      expect(await sum("headgate_region_borrowed_hits_total", region)).toBeGreaterThan(0);
    }
  });

  it("is never exceeded by both together", async () => {
    const both = [us, eu].map((region) => new Demand(region, "shared"));
    for (const demand of both) await demand.reaches(0.9 * part);
    expectWithinLimit(both);
    for (const demand of both) await demand.stop();
    expectWithinLimit(both);
  });

  it("is a half in each region while the link is cut, and whole again after", async () => {
    const demand = new Demand(us, "cut");
    await demand.reaches(perSecond);
    const before = { admitted: demand.admitted, atMs: performance.now() };
    cut();
    await demand.reaches(part);
    const seconds = (performance.now() - before.atMs) / 1_000;
    // What it had, its half of the rate, and what the other region had lent last: half its burst.
    const most = part + part * seconds + part / 2;
    expect(demand.admitted - before.admitted).toBeLessThanOrEqual(most);
    const other = new Demand(eu, "cut");
    await other.reaches(part);
    // Who borrows notices; until then, eu had no reason to.
    await waitForReach(false);
    mend();
    await waitForReach(true);
    await other.stop();
    await demand.reaches(perSecond);
    await demand.stop();
    expectWithinLimit([demand, other]);
    for (const region of [us, eu]) {
      expect(await sum("headgate_fallback_decisions_total", region)).toBe(0);
      expect(region.replicas[0]?.output).toMatch(/"event":"regionLost".*"event":"regionFound"/s);
    }
  });

  it("outlives the Redis of the other region", async () => {
    const demand = new Demand(us, "killed");
    await demand.reaches(perSecond);
    await eu.redis.kill();
    await demand.reaches(part);
    for (const replica of us.replicas) {
      await waitFor("it is lost", async () => {
        return (await replica.metric("headgate_region_reachable")) === 0;
      });
    }
    expect(await sum("headgate_fallback_decisions_total", us)).toBe(0);
    await eu.redis.restart();
    await demand.reaches(perSecond);
    await demand.stop();
  });
});

describe("what operators see of regions", () => {
  it("is in `fleet`, `rules` and `explain`", async () => {
    await waitForReach(true);
    const fleet = await run(us, "fleet");
    expect(fleet.out + fleet.err).toMatch(/Region: us; 1\/2 of each global limit is here/);
    expect(fleet.out).toMatch(/^ {2}eu +up +\d/m);
    const json = JSON.parse((await run(us, "fleet", "-o", "json")).out);
    expect(json).toMatchObject({ region: "us", regions: [{ name: "eu", isReachable: true }] });
    const { out: rules } = await run(us, "rules");
    expect(rules).toContain("pace: 100 per 1s, global: 1/2 here");
    expect(rules).toMatch(/5 per 1h +/);
    const { out: explained } = await run(us, "explain", "edge", "account=new");
    expect(explained).toContain("0 of 50 used, 50 left");
  });
});
