import { sha256 } from "../../src/app/base/sha256.js";
import type { Verdict } from "../../src/core/limits/verdict.js";
import { Decider, type DeciderParts } from "../../src/decide/rate-limit/decider.js";
import { Pressure } from "../../src/decide/rate-limit/pressure.js";
import type { RateLimitQuery } from "../../src/decide/rate-limit/query.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { noSwitches } from "./switches.js";

/** What a test must say of its decider; everything else has a value that no test reaches. */
export type TestDeciderParts = Pick<DeciderParts, "clock" | "counters" | "policies"> &
  Partial<DeciderParts>;

/** A decider over the embedded store, alone, with room for everything, but for what is given. */
export function createTestDecider(parts: TestDeciderParts): Decider {
  const { clock } = parts;
  return new Decider({
    store: new MemoryLimitStore({ clock }),
    createLocalStore: () => new MemoryLimitStore({ clock }),
    pressure: new Pressure({
      loopDelayMsMax: 100,
      requestsInFlightMax: 100,
      requestsInFlightBytesMax: 1_000_000,
      asksStoreWhenLate: false,
    }),
    storeBudgetMs: 10,
    newKeysPerSecondMax: 1_000_000,
    switches: noSwitches,
    nearLimitRatio: 0.8,
    digest: sha256,
    replicaCount: () => 1,
    onEvent: () => {},
    ...parts,
  });
}

/** Decides one query as a caller who asks it only once. */
export async function decideQuery(
  decider: Decider,
  query: RateLimitQuery,
  deadlineMs: number,
): Promise<Verdict> {
  const hits = query.descriptors.map((descriptor) => descriptor.hits);
  return decider.decidePrepared(decider.prepare(query, false), hits, deadlineMs);
}
