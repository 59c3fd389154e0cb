import { beforeEach, describe, expect, it } from "vitest";
import type { Override } from "../../../../src/core/limits/override.js";
import { InProcessRecords } from "../../../../src/fleet/records/in-process-records.js";
import { overrideToJson } from "../../../../src/fleet/records/override-record.js";
import { OverrideRegistry } from "../../../../src/fleet/records/override-registry.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";

let clock: FakeClock;
let records: InProcessRecords;
let registry: OverrideRegistry;

beforeEach(() => {
  clock = new FakeClock();
  records = new InProcessRecords(clock);
  registry = new OverrideRegistry({ records, clock });
});

async function give(id: string, forMs?: number): Promise<void> {
  const nowEpochMs = clock.epochUs() / 1_000;
  const override: Override = {
    id,
    domain: "shop",
    entries: [{ key: "user", value: id }],
    isPrefix: false,
    effect: { kind: "frozen" },
    reason: "a test",
    author: "ann",
    createdEpochMs: nowEpochMs,
    ...(forMs === undefined ? {} : { expiresEpochMs: nowEpochMs + forMs }),
  };
  const value = overrideToJson(override);
  await records.change({ kind: "override", id, value, expectedVersion: 0, audit: undefined });
}

function isGiven(id: string): boolean {
  return registry.current().find("shop", [{ key: "user", value: id }], undefined) !== undefined;
}

describe("OverrideRegistry", () => {
  it("shows what is given, in a snapshot that stays until something changes", async () => {
    expect(isGiven("ann")).toBe(false);
    await give("ann");
    const table = registry.current();
    expect(isGiven("ann")).toBe(true);
    expect(registry.current()).toBe(table);
    await records.change({
      kind: "gate",
      id: "orders",
      value: {},
      expectedVersion: 0,
      audit: undefined,
    });
    expect(registry.current()).toBe(table);
    await give("bob");
    expect(registry.current().version).toBeGreaterThan(table.version);
    expect([isGiven("ann"), isGiven("bob")]).toEqual([true, true]);
  });

  it("ends an override when it expires, and takes it away a minute later", async () => {
    await give("ann", 1_000);
    await give("bob");
    clock.advance(999);
    expect(isGiven("ann")).toBe(true);
    clock.advance(1);
    expect(isGiven("ann")).toBe(false);
    expect(records.list("override").has("ann")).toBe(true);
    clock.advance(60_000);
    await settlePromises();
    expect([...records.list("override").keys()]).toEqual(["bob"]);
    expect(await records.audit(Number.POSITIVE_INFINITY, 10)).toEqual([]);
  });

  it("waits for what expires in a year without a timer that long", async () => {
    await give("ann", 365 * 86_400_000);
    for (let day = 0; day < 364; day += 1) clock.advance(86_400_000);
    expect(isGiven("ann")).toBe(true);
    clock.advance(86_400_000);
    expect(isGiven("ann")).toBe(false);
  });

  it("leaves out what is no override, and counts it", async () => {
    const wrong = [
      {},
      { domain: "shop", entries: [], effect: { kind: "frozen" } },
      { domain: "shop", entries: [["user"]], effect: { kind: "frozen" } },
    ];
    for (const [i, value] of wrong.entries()) {
      await records.change({
        kind: "override",
        id: `wrong-${i}`,
        value,
        expectedVersion: 0,
        audit: undefined,
      });
    }
    await give("ann");
    expect(registry.unreadableCount).toBe(3);
    expect(registry.current().size).toBe(1);
  });

  it("follows nothing after its end", async () => {
    await give("ann", 1_000);
    registry.close();
    await give("bob");
    expect(isGiven("bob")).toBe(false);
    expect(clock.timerCount).toBe(0);
  });
});
