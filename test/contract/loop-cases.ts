import { expect, it } from "vitest";
import {
  baseNumberAtByte,
  type KnownReport,
  type LeaseBeat,
  type LoopStore,
} from "../../src/store/coordination/loop-store.js";
import { lowestRank, type SnapshotVersion } from "../../src/store/coordination/snapshot-version.js";
import { soon } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

/** Longer than any test takes. */
const leaseMs = 60_000;
const farMs = Number.POSITIVE_INFINITY;

/** What the store of the loop promises, whatever it is. */
export function describeLoop(open: () => LoopStore): void {
  describeLease(open);
  describeReports(open);
  describeSnapshots(open);
}

function beatOf(store: LoopStore) {
  const numbers = new Map<string, number>();
  return async (replicaId: string, fields: Partial<LeaseBeat> = {}): Promise<number> => {
    const number = (numbers.get(replicaId) ?? 0) + 1;
    numbers.set(replicaId, number);
    const beat = { replicaId, number, term: 0, leaseMs, seen: lowestRank, ...fields };
    return (await store.beat(beat, soon())).term;
  };
}

function describeLease(open: () => LoopStore): void {
  it("has one leader, which renews its lease and resigns", async () => {
    const store = open();
    const beat = beatOf(store);
    expect(await beat("a1")).toBe(1);
    expect(await beat("b2")).toBe(0);
    expect(await beat("a1", { term: 1 })).toBe(1);
    await store.resign("b2", soon());
    expect(await beat("b2")).toBe(0);
    await store.resign("a1", soon());
    expect(await beat("b2")).toBe(2);
    expect(await beat("a1", { term: 1 })).toBe(0);
  });

  it("begins another term for one that has lost count of its own", async () => {
    const beat = beatOf(open());
    expect(await beat("a1")).toBe(1);
    expect(await beat("a1")).toBe(2);
  });

  it("takes a heartbeat that is repeated for one, and leaves one aside that is late", async () => {
    const beat = beatOf(open());
    expect(await beat("a1", { number: 5 })).toBe(1);
    expect(await beat("a1", { number: 5 })).toBe(1);
    expect(await beat("a1", { number: 4, term: 1 })).toBe(0);
    expect(await beat("a1", { number: 6, term: 1 })).toBe(1);
  });

  it("lends anew when a lease is over", async () => {
    const beat = beatOf(open());
    expect(await beat("a1", { leaseMs: 50 })).toBe(1);
    await waitFor("the lease is over", async () => (await beat("b2")) === 2);
    expect(await beat("a1", { term: 1 })).toBe(0);
  });

  it("goes on above what anybody has seen, and ends the lease of who is below that", async () => {
    const beat = beatOf(open());
    const seen = (term: number, leaderId: string): { seen: SnapshotVersion } => ({
      seen: { term, leaderId, version: 1 },
    });
    expect(await beat("b2", seen(6, "ff"))).toBe(7);
    expect(await beat("c3", seen(7, "b2"))).toBe(0);
    expect(await beat("c3", seen(7, "b1"))).toBe(0);
    expect(await beat("c3", seen(7, "b3"))).toBe(8);
    expect(await beat("b2", { term: 7, ...seen(9, "a1") })).toBe(10);
  });
}

/** Bytes of a record: those that say which full one it differs from, and any others. */
function recordOf(baseNumber: number | undefined, text: string | Buffer): Buffer {
  const head = Buffer.alloc(6);
  head.writeUInt32LE(baseNumber ?? 0, baseNumberAtByte);
  return Buffer.concat([head, Buffer.from(text)]);
}

function describeReports(open: () => LoopStore): void {
  const nothing = new Map<string, KnownReport>();

  function tellOf(store: LoopStore) {
    return (replicaId: string, number: number, baseNumber?: number): Promise<boolean> => {
      const bytes = recordOf(baseNumber, `${replicaId} ${number}`);
      return store.tell({ replicaId, number, baseNumber, bytes });
    };
  }

  it("gathers the last report of each replica, byte by byte, until it goes", async () => {
    const store = open();
    expect(await store.gather(nothing)).toEqual([]);
    const bytes = recordOf(undefined, Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256)));
    const full = { replicaId: "a1", baseNumber: undefined };
    await store.tell({ ...full, number: 1, bytes: recordOf(undefined, "before") });
    expect(await store.tell({ ...full, number: 2, bytes })).toBe(true);
    await store.tell({ ...full, replicaId: "b2", number: 1, bytes: recordOf(undefined, "other") });
    const found = await store.gather(nothing);
    const own = found.find(({ replicaId }) => replicaId === "a1");
    expect(own?.number).toBe(2);
    expect(own?.bytes.equals(bytes)).toBe(true);
    expect(own?.base).toBeUndefined();
    expect(found).toHaveLength(2);
    await store.withdraw("a1");
    expect((await store.gather(nothing)).map(({ replicaId }) => replicaId)).toEqual(["b2"]);
    expect(await tellOf(store)("a1", 3, 2)).toBe(false);
  });

  it("hands out a report with the full one that it differs from, where that is new", async () => {
    const store = open();
    const tell = tellOf(store);
    expect(await tell("a1", 1)).toBe(true);
    expect(await tell("a1", 2, 1)).toBe(true);
    expect(await tell("a1", 3, 1)).toBe(true);
    const gather = async (number: number, baseNumber: number): Promise<string[]> => {
      const [found] = await store.gather(new Map([["a1", { number, baseNumber }]]));
      return [`${found?.number}`, textOf(found?.bytes), textOf(found?.base?.bytes)];
    };
    expect(await gather(0, 0)).toEqual(["3", "a1 3", "a1 1"]);
    expect(await gather(2, 1)).toEqual(["3", "a1 3", ""]);
    expect(await gather(3, 1)).toEqual(["3", "", ""]);
    expect(await tell("a1", 4)).toBe(true);
    expect(await gather(3, 1)).toEqual(["4", "a1 4", ""]);
    expect(await tell("a1", 5, 4)).toBe(true);
    expect(await gather(3, 1)).toEqual(["5", "a1 5", "a1 4"]);
  });

  it("takes a report twice, and none that differs from one which is not there", async () => {
    const store = open();
    const tell = tellOf(store);
    expect(await tell("a1", 2, 1)).toBe(false);
    expect(await store.gather(nothing)).toEqual([]);
    expect([await tell("a1", 3), await tell("a1", 3)]).toEqual([true, true]);
    expect([await tell("a1", 4, 3), await tell("a1", 4, 3)]).toEqual([true, true]);
    expect([await tell("a1", 5), await tell("a1", 6, 3)]).toEqual([true, false]);
    expect(await tell("b2", 6, 5)).toBe(false);
    expect((await store.gather(nothing)).map(({ number }) => number)).toEqual([5]);
  });
}

function textOf(bytes: Buffer | undefined): string {
  return bytes?.toString("latin1").slice(6) ?? "";
}

function describeSnapshots(open: () => LoopStore): void {
  it("takes a snapshot from the leader alone, twice the same, and none that is older", async () => {
    const store = open();
    const beat = beatOf(store);
    const publish = (version: number, fields: Partial<SnapshotVersion> = {}): Promise<boolean> => {
      const rank = { term: 3, leaderId: "a1", version, ...fields };
      return store.publish(rank, Buffer.from(`${version}`), farMs);
    };
    expect(await store.fetch()).toBeUndefined();
    expect(await publish(1)).toBe(false);
    expect(await beat("a1", { seen: { term: 2, leaderId: "ff", version: 9 } })).toBe(3);
    expect([await publish(2), await publish(2), await publish(1)]).toEqual([true, true, false]);
    expect([await publish(3, { term: 2 }), await publish(3, { leaderId: "b2" })]).toEqual([
      false,
      false,
    ]);
    const found = await store.fetch();
    expect(found?.rank).toEqual({ term: 3, leaderId: "a1", version: 2 });
    expect(found?.bytes.toString()).toBe("2");
    const answer = await store.beat(
      { replicaId: "b2", number: 1, term: 0, leaseMs, seen: lowestRank },
      soon(),
    );
    expect(answer).toEqual({ term: 0, newest: found?.rank });
    await store.resign("a1", soon());
    expect(await publish(3)).toBe(false);
    expect((await store.fetch())?.bytes.toString()).toBe("2");
  });
}
