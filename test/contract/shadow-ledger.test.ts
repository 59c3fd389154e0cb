import { describe, expect, it } from "vitest";
import { ShadowLedger } from "../../src/fleet/claims/shadow-ledger.js";
import { systemRandom } from "../../src/host/clock.js";
import { ledgerKeptSeconds } from "../../src/store/coordination/ledger-store.js";
import { RedisLedger } from "../../src/store/redis/coordination/redis-ledger.js";
import { realClock } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { entry, sums } from "./ledger-cases.js";

describe("ledgers as they are stored in Redis", () => {
  const shared = shareTestStore("redis");

  it("keeps the ledger for an hour from the last time that somebody has looked", async () => {
    const { background: connection } = shared.opened.connections;
    const parts = { clock: realClock, random: systemRandom };
    const store = new RedisLedger({ ...parts, connection, keyPrefix: "ledger:" });
    const ledger = new ShadowLedger({ store, random: systemRandom });
    const key = "ledger:{fleet}:shadow:r1";
    await ledger.add(entry({ a: 1 }, { begins: true }));
    await shared.control.expire(key, 10);
    await ledger.add(entry({ a: 1 }));
    expect(await shared.control.ttl(key)).toBeLessThanOrEqual(10);
    await ledger.add(entry({ a: 1 }, { isLookedAt: true }));
    expect(await shared.control.ttl(key)).toBeGreaterThan(ledgerKeptSeconds - 60);
    await shared.control.del(key);
    expect(await sums(ledger, entry({ a: 1 }))).toBeUndefined();
  });
});
