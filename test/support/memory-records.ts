import type { Clock } from "../../src/core/base/clock.js";
import { ReplicatedRecords } from "../../src/fleet/records/replicated-records.js";
import { MemoryRecords } from "../../src/store/coordination/memory-records.js";
import { FakeRandom } from "./fake-random.js";

/** Records as a single process has them, in a store of their own. */
export function memoryRecords(clock: Clock): ReplicatedRecords {
  return new ReplicatedRecords({
    store: new MemoryRecords(clock),
    clock,
    random: new FakeRandom(),
  });
}
