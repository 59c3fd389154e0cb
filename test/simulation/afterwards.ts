import type { Fleet } from "./fleet.js";
import { findExcess, findStuck } from "./promise.js";
import type { Replica } from "./replica.js";

/** Looks at a run that is over, and notes in it all that is wrong. */
export function checkAfterwards(fleet: Fleet, recoveredMs: number): void {
  checkPromise(fleet);
  checkRecovery(fleet, recoveredMs);
  for (const replica of fleet.replicas) {
    if (replica.isAlive) checkReplica(fleet, replica);
  }
}

function checkPromise(fleet: Fleet): void {
  for (const [bucket, happenings] of fleet.happenings) {
    const stuckUs = findStuck(happenings);
    if (stuckUs !== undefined) fleet.violate(`${bucket} refused what had drained at ${stuckUs} us`);
    const excess = findExcess(happenings);
    if (excess === undefined) continue;
    const { atUs, hits, burst } = excess;
    fleet.violate(`${bucket} held ${hits} hits of ${burst} at ${atUs} us`);
  }
}

/** Once all faults have been over for a while, the store decides whatever is asked. */
function checkRecovery(fleet: Fleet, recoveredMs: number): void {
  const late = fleet.answers.filter(
    ({ source, ask }) => source === "fallback" && ask.startMs >= recoveredMs,
  );
  if (late.length > 0) fleet.violate(`${late.length} answers without the store after its recovery`);
}

/** Nobody is left waiting, no timer is left behind, and the counters tell what happened. */
function checkReplica(fleet: Fleet, { name, asked, clock, counters, policy }: Replica): void {
  const expectSame = (what: string, expected: number, actual: number): void => {
    if (expected !== actual) fleet.violate(`${name} has ${actual} ${what}, not ${expected}`);
  };
  const countAsked = (outcome: string): number =>
    asked.filter((ask) => ask.outcome === outcome).length;
  expectSame("calls without an answer", 0, countAsked("waiting"));
  expectSame("timers left", 0, clock.timerCount);
  expectSame("calls counted as OK", countAsked("ok"), counters.okCount);
  expectSame("calls counted as denied", countAsked("denied"), counters.deniedCount);
  expectSame("failed calls counted", countAsked("failed"), sum(counters.failedByCode.values()));
  expectSame("latencies counted", asked.length, sum(counters.latencyCounts));
  const fromMemory = fleet.answers.filter(
    ({ replicaName, source }) => replicaName === name && source === "memory",
  );
  expectSame("refusals from memory", fromMemory.length, counters.refusedFromMemoryCount);
  const decided = asked.filter(({ outcome }) => outcome === "ok" || outcome === "denied");
  const descriptorCount = decided.reduce((count, ask) => count + ask.query.descriptors.length, 0);
  const ruleCounts = counters
    .forPolicy(policy)
    .map(({ ok, over, shadowOver }) => ok + over + shadowOver);
  const countedCount = sum(ruleCounts) + counters.unmatchedDescriptorCount;
  expectSame("descriptors counted", descriptorCount, countedCount);
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const one of numbers) total += one;
  return total;
}
