import { afterEach, describe } from "vitest";
import { QuotaLeases } from "../../src/fleet/claims/quota-leases.js";
import { ReplicatedRecords } from "../../src/fleet/records/replicated-records.js";
import { systemRandom } from "../../src/host/clock.js";
import type {
  CoordinationStore,
  SharedCoordination,
} from "../../src/store/coordination/coordination-store.js";
import { createMemoryCoordination } from "../../src/store/coordination/memory-coordination.js";
import { MemoryPermits } from "../../src/store/coordination/memory-permits.js";
import type { QuotaStore } from "../../src/store/coordination/quota-store.js";
import { createRedisCoordination } from "../../src/store/redis/coordination/redis-coordination.js";
import { enginesFor } from "../support/engines.js";
import { realClock } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import {
  describeMembers,
  describePermits,
  describeQuestions,
  describeSignals,
} from "./claim-cases.js";
import { describeLeases } from "./lease-cases.js";
import { describeLedger } from "./ledger-cases.js";
import { describeLoop } from "./loop-cases.js";
import { describeRecords, type RecordWorld } from "./record-cases.js";

/** Opens one empty store, as each of the replicas that share it sees it. */
type OpenWorld = () => () => CoordinationStore;

const ends: (() => void)[] = [];

afterEach(() => {
  for (const end of ends.splice(0)) end();
});

function describeStore(openWorld: OpenWorld): void {
  describe("the loop", () => describeLoop(() => openWorld()().loop));
  describe("members", () => describeMembers(() => openWorld()().members));
  describe("the ledger", () => describeLedger(() => openWorld()().ledger));
  let quotas: QuotaStore | undefined;
  describeLeases("by the store", () => {
    quotas ??= openWorld()().quotas;
    return new QuotaLeases({ store: quotas, random: systemRandom });
  });

  describe("records", () => {
    describeRecords((): RecordWorld => {
      const connect = openWorld();
      return {
        open: () => {
          const common = { clock: realClock, random: systemRandom, othersWaitMs: 0 };
          const records = new ReplicatedRecords({ ...common, store: connect().records });
          ends.push(() => records.close());
          return records;
        },
      };
    });
  });
}

describe("coordination in memory", () => {
  describeStore(() => {
    const store = createMemoryCoordination(realClock);
    return () => store;
  });
  describe("permits", () => describePermits(() => new MemoryPermits(realClock)));
});

describe.each(enginesFor.behaviour)("coordination over %s", (engine) => {
  const shared = shareTestStore(engine);
  let worldCount = 0;
  const openWorld = (): (() => SharedCoordination) => {
    worldCount += 1;
    const keyPrefix = `world${worldCount}:`;
    const { connections } = shared.opened;
    const parts = { connections, clock: realClock, random: systemRandom, keyPrefix };
    return () => createRedisCoordination(parts);
  };

  describeStore(openWorld);
  describe("permits", () => describePermits(() => openWorld()().permits));
  describe("questions", () => describeQuestions(() => openWorld()().questions));
  describe("signals", () => describeSignals(() => openWorld()().signals));
});
