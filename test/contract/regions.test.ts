import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Bucket, levelAt, unitsPerHit } from "../../src/core/limits/bucket.js";
import { creditCharge, regionalCharge } from "../../src/core/limits/lending.js";
import { Lender, type LendingEvent } from "../../src/fleet/regions/lender.js";
import { once, takeOne, testCharge } from "../support/charges.js";
import { enginesFor } from "../support/engines.js";
import { testLimit } from "../support/policies.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { allStarted, RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";
import { TcpFaultProxy } from "../support/tcp-fault-proxy.js";
import { waitFor } from "../support/wait.js";

/** Nothing of it drains while a test runs. */
const limit = testLimit(80, { unit: "year", periodUs: 31_536_000_000_000, spread: "global" });
const here = { index: 0, count: 2 };
const { hits, periodUs, burst } = limit;

let keyCount = 0;

/** A charge of this region's part of a key that no other test has. */
function freshCharge() {
  keyCount += 1;
  return regionalCharge(testCharge({ key: `k${keyCount}`, hits, periodUs, burst }), here);
}

describe.each(enginesFor.scripts)("Lender over two servers of %s", (engine) => {
  const stage = useStage("file");
  let servers: readonly RedisServer[] = [];
  let proxy: TcpFaultProxy;
  let near: TestRedisStore;
  let far: TestRedisStore;
  let lender: Lender;
  let events: LendingEvent[];

  beforeAll(async () => {
    servers = await allStarted([RedisServer.start({ engine }), RedisServer.start({ engine })]);
    proxy = await TcpFaultProxy.start(stage, { targetPort: server(1).port, random: realRandom });
    near = await openTestStore(server(0));
    far = await openTestStore(proxy);
  });

  afterAll(async () => {
    await lender?.close();
    await near?.store.close();
    await far?.store.close();
    for (const one of servers) await one.stop();
  });

  beforeEach(async () => {
    await lender?.close();
    events = [];
    lender = new Lender({
      region: "a",
      store: near.store,
      peers: [{ name: "b", store: far.store }],
      clock: realClock,
      random: realRandom,
      replicaCount: () => 1,
      onEvent: (event) => events.push(event),
    });
  });

  function server(place: number): RedisServer {
    const one = servers[place];
    if (one === undefined) throw new Error("two servers");
    return one;
  }

  /** Asks for more than the region's part. @returns the admitted hits */
  async function demand(charge: ReturnType<typeof freshCharge>): Promise<number> {
    const request = { charges: [charge], multiplicity: 60 };
    const [outcome] = await near.store.take([request], soon());
    if (outcome?.kind !== "decided") throw new Error("the store decides");
    const { results, grantedCount, nowUs } = outcome.result;
    const [result] = results;
    if (result !== undefined)
      lender.note({ limit, charge: { ...charge, cost: 60 }, result, nowUs });
    return grantedCount;
  }

  async function levelHits(store: TestRedisStore, charge: ReturnType<typeof freshCharge>) {
    const found = await store.store.peek(charge.key, soon());
    const bucket: Bucket = found?.bucket ?? { level: 0, tUs: 0 };
    return Math.round(levelAt(charge, bucket, found?.nowUs ?? 0) / unitsPerHit);
  }

  const borrowed = (): number => lender.regions()[0]?.borrowedHits ?? 0;
  const lost = (): number => lender.regions()[0]?.lostHits ?? 0;

  it("moves what it borrows from one server to the other, to the hit", async () => {
    const charge = freshCharge();
    expect(await demand(charge)).toBe(40);
    await waitFor("hits are borrowed", () => borrowed() === 20);
    expect(await levelHits(far, charge)).toBe(20);
    expect(await levelHits(near, charge)).toBe(20);
    expect(await demand(charge)).toBe(20);
    expect(lost()).toBe(0);
  });

  it("borrows over a link that takes 200 ms", async () => {
    proxy.setFault({ kind: "slow", latencyMs: 200, jitterMs: 20 });
    const charge = freshCharge();
    await demand(charge);
    await waitFor("hits are borrowed", async () => {
      await demand(charge);
      return borrowed() === 20;
    });
    proxy.setFault({ kind: "none" });
    expect(await levelHits(far, charge)).toBe(20);
  });

  /** Neither server admits a hit twice, whatever was lost on the way. */
  async function expectNothingTwice(charge: ReturnType<typeof freshCharge>, admitted: number) {
    const held = (await levelHits(near, charge)) + (await levelHits(far, charge));
    expect(held).toBeGreaterThanOrEqual(admitted);
    expect(admitted).toBeLessThanOrEqual(60);
  }

  it.each([
    {
      what: "stops with its connections open",
      begin: async () => server(1).pause(),
      end: async () => server(1).resume(),
    },
    {
      what: "is behind a link that carries nothing",
      begin: async () => {
        proxy.setFault({ kind: "partition" });
      },
      end: async () => {
        proxy.setFault({ kind: "none" });
      },
    },
    {
      what: "is behind a link that resets connections",
      begin: async () => {
        proxy.setFault({ kind: "reset" });
      },
      end: async () => {
        proxy.setFault({ kind: "none" });
      },
    },
  ])("rests while a server $what, and borrows again", async ({ begin, end }) => {
    const charge = freshCharge();
    await begin();
    let admitted = await demand(charge);
    await waitFor("the region is lost", () => events.some(({ kind }) => kind === "regionLost"));
    expect(admitted).toBe(40);
    // Its own part is decided as ever.
    expect(await demand(charge)).toBe(0);
    await end();
    await waitFor("the region is found", () => events.some(({ kind }) => kind === "regionFound"));
    const other = freshCharge();
    await waitFor("hits are borrowed again", async () => {
      await demand(other);
      return (await levelHits(far, other)) > 0;
    });
    admitted += await demand(charge);
    await expectNothingTwice(charge, admitted);
  });

  it("borrows from a server that was killed and lost its state", async () => {
    const charge = freshCharge();
    await server(1).kill();
    await demand(charge);
    await waitFor("the region is lost", () => events.some(({ kind }) => kind === "regionLost"));
    await server(1).restart();
    await waitFor("hits are borrowed again", async () => {
      await demand(charge);
      return borrowed() === 20;
    });
    expect(await levelHits(far, charge)).toBe(20);
  });

  it("credits a window until it ends, and never the next one", async () => {
    const nowUs = (await takeOne(near.store, [freshCharge()], soon())).nowUs;
    const windowAround = (endUs: number) => ({
      startUs: nowUs - 60_000_000,
      endUs,
      nextEndUs: endUs + 60_000_000,
    });
    const windowed = { ...freshCharge(), windows: windowAround(nowUs + 60_000_000) };
    await near.store.take([{ charges: [{ ...windowed, cost: 9 }], multiplicity: 1 }], soon());
    const credit = (endUs: number) =>
      near.store.take([once(creditCharge(windowed, 4, windowAround(endUs)))], soon());
    await credit(nowUs + 60_000_000);
    expect(await levelHits(near, windowed)).toBe(5);
    await credit(nowUs - 1_000_000);
    expect(await levelHits(near, windowed)).toBe(5);
  });
});
