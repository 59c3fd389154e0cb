import { afterEach, describe, expect, it } from "vitest";
import { ReplicatedRecords } from "../../src/fleet/records/replicated-records.js";
import type { SharedRecords } from "../../src/fleet/records/shared-records.js";
import { systemRandom } from "../../src/host/clock.js";
import { goneRecordsMax, type RecordChange } from "../../src/store/coordination/record-store.js";
import { RedisRecords } from "../../src/store/redis/coordination/redis-records.js";
import type { StoreConnection } from "../../src/store/redis/scripts/connection.js";
import { enginesFor } from "../support/engines.js";
import { realClock } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";
import { withheldTime } from "../support/withheld-time.js";

const stage = useStage("file");

function change(fields: Partial<RecordChange> = {}): RecordChange {
  const facts = { kind: "override", id: "one", value: {}, expectedVersion: 0 } as const;
  return { ...facts, audit: { who: "ann" }, ...fields };
}

/** Makes a change that must succeed; answers the version. */
async function changed(records: SharedRecords, fields: Partial<RecordChange> = {}) {
  const outcome = await records.change(change(fields));
  if (outcome.kind !== "changed") throw new Error(outcome.kind);
  return outcome.version;
}

const opened: SharedRecords[] = [];

afterEach(() => {
  for (const records of opened.splice(0)) records.close();
});

describe.each(enginesFor.behaviour)("records as they are stored in %s", (engine) => {
  const store = shareTestStore(engine);
  let worldCount = 0;

  function createWorld() {
    worldCount += 1;
    const keyPrefix = `w${worldCount}:`;
    const open = (
      connection: StoreConnection = store.opened.connections.background,
    ): SharedRecords => {
      const common = { clock: realClock, random: systemRandom };
      const stored = new RedisRecords({ ...common, connection, keyPrefix });
      const records = new ReplicatedRecords({ ...common, store: stored, othersWaitMs: 0 });
      opened.push(records);
      return records;
    };
    return { open, keyPrefix };
  }

  it("reads many in pages, and tells of each, to one who comes later", async () => {
    const { open, keyPrefix } = createWorld();
    const count = 12_000;
    const pipeline = store.control.pipeline();
    for (let i = 1; i <= count; i += 1) {
      pipeline.hset(`${keyPrefix}{fleet}:records:override`, `r${i}`, `${i} ab\n{"i":${i}}`);
      pipeline.zadd(`${keyPrefix}{fleet}:records:override:versions`, i, `r${i}`);
    }
    pipeline.hset(`${keyPrefix}{fleet}:records:counters`, "override", count);
    await pipeline.exec();
    const records = open();
    let reportedCount = 0;
    records.onChange(() => {
      reportedCount += 1;
    });
    await waitFor("all are known", () => records.list("override").size === count);
    expect(records.list("override").get("r7000")?.value).toEqual({ i: 7_000 });
    expect(reportedCount).toBe(12);
  });

  it("reads everything anew where it has missed more than is remembered", async () => {
    const { open, keyPrefix } = createWorld();
    const records = open();
    const version = await changed(records);
    // As after so many were taken away while this replica was cut off; in one step.
    await store.control
      .multi()
      .hdel(`${keyPrefix}{fleet}:records:override`, "one")
      .zrem(`${keyPrefix}{fleet}:records:override:versions`, "one")
      .hset(`${keyPrefix}{fleet}:records:counters`, {
        override: version + goneRecordsMax + 9,
        "floor:override": version + 5,
      })
      .exec();
    await waitFor("it is gone here too", () => records.list("override").size === 0, {
      withinMs: 2_000,
      withheldMs: withheldTime(stage),
    });
  });

  it("answers a repeated change as the first time", async () => {
    const { open } = createWorld();
    const { background } = store.opened.connections;
    const twice = {
      run: async (call: Parameters<typeof background.run>[0]) => {
        await background.run(call);
        return background.run(call);
      },
    };
    const records = open(twice);
    const expectedVersion = await changed(records);
    const gone = { value: undefined, expectedVersion };
    expect(await changed(records, gone)).toBe(expectedVersion + 1);
    expect(await records.audit(Number.POSITIVE_INFINITY, 10)).toHaveLength(2);
  });
});
