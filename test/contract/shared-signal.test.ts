import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/core/base/errors.js";
import { SharedSignalReader } from "../../src/fleet/signals/shared-signal.js";
import type { SignalReadings } from "../../src/fleet/signals/signal-readings.js";
import { RedisSignals } from "../../src/store/redis/coordination/redis-signals.js";
import { enginesFor } from "../support/engines.js";
import { freePort } from "../support/free-port.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { openTestStore, shareTestStore, soon } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

/** A source that counts its polls. */
class CountedSource {
  pollCount = 0;
  answer: SignalReadings | ServiceError = { kind: "whole", reading: 7 };

  async read(): Promise<SignalReadings> {
    this.pollCount += 1;
    if (this.answer instanceof ServiceError) throw this.answer;
    return this.answer;
  }
}

describe.each(enginesFor.behaviour)("SharedSignalReader on %s", (engine) => {
  const store = shareTestStore(engine);

  /** A replica, and the source as it sees it. */
  function join(source: string, connection = store.opened.connections.background) {
    const own = new CountedSource();
    const parts = { connection, clock: realClock, random: realRandom, keyPrefix: "shared:" };
    const reader = new SharedSignalReader({
      store: new RedisSignals(parts),
      reader: own,
      source,
      replicaId: realRandom.id(),
      // Turns last longer than any test.
      everyMs: 60_000,
      timeoutMs: 10_000,
      keysMax: 10,
    });
    return { source: own, read: () => reader.read(soon() + 10_000) };
  }

  it("polls a source once for all replicas", async () => {
    const [one, other] = [join("0a"), join("0a")];
    const readings = new Map([
      ["orders", 1.5],
      ["7", 2],
      ["__proto__", 3],
    ]);
    one.source.answer = { kind: "byKey", readings };
    expect(await one.read()).toEqual({ kind: "byKey", readings });
    await waitFor("the other has them", async () => {
      expect(await other.read()).toEqual({ kind: "byKey", readings });
      return true;
    });
    const before = other.source.pollCount;
    one.source.answer = { kind: "whole", reading: 9 };
    await one.read();
    await waitFor("the other has the new one", async () => {
      const read = await other.read();
      return read.kind === "whole" && read.reading === 9;
    });
    expect([one.source.pollCount, other.source.pollCount]).toEqual([2, before]);
    expect(before).toBeLessThanOrEqual(1);
  });

  it("lets another replica try when a poll has failed", async () => {
    const [one, other] = [join("0b"), join("0b")];
    await one.read();
    one.source.answer = new ServiceError("SIGNAL_UNAVAILABLE");
    await expect(one.read()).rejects.toMatchObject({ code: "SIGNAL_UNAVAILABLE" });
    await waitFor("the other polls", async () => {
      await other.read();
      return other.source.pollCount > 0;
    });
    await waitFor("the one hears of it", async () => {
      expect(await one.read()).toEqual({ kind: "whole", reading: 7 });
      return true;
    });
  });

  it("polls by itself when it cannot read what was told", async () => {
    const [one, other] = [join("0c"), join("0c")];
    await one.read();
    await waitFor("it is told", async () => {
      const { control } = store;
      const [key = ""] = await control.keys("*signal:0c");
      return (await control.hset(key, "readings", "{")) === 0;
    });
    expect(await other.read()).toEqual({ kind: "whole", reading: 7 });
    expect(other.source.pollCount).toBe(1);
  });

  it("polls by itself while the store is away", async () => {
    const away = await openTestStore({ port: await freePort() }, { isVerified: false });
    const [one, other] = [join("0d", away.connections.background), join("0d")];
    expect(await one.read()).toEqual({ kind: "whole", reading: 7 });
    expect(await other.read()).toEqual({ kind: "whole", reading: 7 });
    expect([one.source.pollCount, other.source.pollCount]).toEqual([1, 1]);
    await away.store.close();
  });
});
