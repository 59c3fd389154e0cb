import { describe, expect, it } from "vitest";
import { gatherBytesMax, reportKeptMs } from "../../src/store/coordination/loop-store.js";
import { enginesFor } from "../support/engines.js";
import { realClock } from "../support/real-clock.js";
import { redisLoop } from "../support/redis-loop.js";
import { shareTestStore } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

/** The store tells whole milliseconds. */
const roundingMs = 2;

/** An age that counts still. */
const agedMs = reportKeptMs / 2;

describe.each(enginesFor.behaviour)("reports and snapshots as they are stored in %s", (engine) => {
  const store = shareTestStore(engine);

  function open(keyPrefix: string) {
    const connection = store.opened.connections.background;
    const snapshots = redisLoop(connection, realClock, keyPrefix);
    const place = async (id: string, ageMs: number, bytes: Buffer): Promise<void> => {
      const [seconds, micros] = await store.control.time();
      const atMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) - ageMs;
      const value = Buffer.concat([Buffer.from(`${atMs} 7\n`), bytes]);
      await store.control.hset(`${keyPrefix}{fleet}:reports`, id, value);
    };
    return { snapshots, place };
  }

  it("finds what was told, byte by byte, with its age", async () => {
    const { snapshots, place } = open("bytes:");
    // The first six say that it differs from no other one.
    const bytes = Buffer.from(Array.from({ length: 518 }, (_, i) => (i < 6 ? 0 : i % 256)));
    const placeMs = realClock.monotonicMs();
    await place("b2", agedMs, Buffer.from("aged"));
    await snapshots.tell({ replicaId: "a1", number: 5, baseNumber: undefined, bytes });
    const sentMs = realClock.monotonicMs();
    const found = await snapshots.gather(new Map());
    const waitMs = realClock.monotonicMs() - sentMs;
    const own = found.find(({ replicaId }) => replicaId === "a1");
    expect(own).toMatchObject({ number: 5 });
    expect(own?.bytes.equals(bytes)).toBe(true);
    // Told between the two; ages are by the store's clock, when it answered.
    for (const [id, ageMs] of Object.entries({ a1: 0, b2: agedMs })) {
      const atMs = found.find(({ replicaId }) => replicaId === id)?.atMs;
      expect(atMs, id).toBeGreaterThanOrEqual(placeMs - ageMs - waitMs - roundingMs);
      expect(atMs, id).toBeLessThanOrEqual(sentMs - ageMs + roundingMs);
    }
  });

  it("drops what is too old or nobody's, and takes the future for now", async () => {
    const { snapshots, place } = open("ages:");
    await place("01d", reportKeptMs + 1, Buffer.from("old"));
    await place("0e3", -7_200_000, Buffer.from("ahead"));
    await store.control.hset("ages:{fleet}:reports", "bad", "what is this");
    const found = await snapshots.gather(new Map());
    expect(found.map(({ replicaId, bytes }) => [replicaId, bytes.toString()])).toEqual([
      ["0e3", "ahead"],
    ]);
    expect(found[0]?.atMs).toBeLessThanOrEqual(realClock.monotonicMs());
    expect(await store.control.hkeys("ages:{fleet}:reports")).toEqual(["0e3"]);
    const value = await store.control.hget("ages:{fleet}:reports", "0e3");
    expect(Number(value?.split(" ")[0])).toBeLessThan(Date.now() + 60_000);
  });

  it("names those for which there is no room, without their bytes", async () => {
    const { snapshots, place } = open("room:");
    const bytes = Buffer.alloc(gatherBytesMax / 4, 1);
    const ids = ["a0", "a1", "a2", "a3", "a4"];
    // Megabytes, for which a busy machine may need longer than a call may take, or a report holds.
    const gather = async () => {
      await Promise.all(ids.map((id) => place(id, 0, bytes)));
      const all = await snapshots.gather(new Map());
      return all.length === ids.length ? all : undefined;
    };
    const found = await waitFor("they are gathered", gather, { withinMs: 30_000 });
    const lengths = found.map(({ bytes }) => bytes.length);
    expect(lengths.toSorted((a, b) => a - b)).toEqual([0, ...Array(4).fill(gatherBytesMax / 4)]);
  });

  it("has no snapshot before the first, and none of nobody", async () => {
    const { snapshots } = open("none:");
    expect(await snapshots.fetch()).toBeUndefined();
    const rank = { term: 1, leaderId: "a1", version: 1 };
    expect(await snapshots.publish(rank, Buffer.from("snapshot"), Number.POSITIVE_INFINITY)).toBe(
      false,
    );
    expect(await snapshots.fetch()).toBeUndefined();
    await store.control.set("none:{fleet}:sheet", "what is this");
    expect(await snapshots.fetch()).toBeUndefined();
    await store.control.set("none:{fleet}:sheet", "1 what is this\nsnapshot");
    await expect(snapshots.fetch()).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
  });
});
