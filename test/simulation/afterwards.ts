import type { LimitKey } from "../../src/core/limits/limit.js";
import { tagIndex } from "../../src/store/redis/cluster/cluster-tags.js";
import { storeBudgetMs } from "./ask.js";
import type { FaultKind } from "./faults.js";
import type { Fleet } from "./fleet.js";
import { findExcess, findStuck } from "./promise.js";
import type { Replica } from "./replica.js";
import { sides } from "./stores.js";

/** What is known of a run that is over. */
export interface FinishedRun {
  readonly faults: readonly FaultKind[];
  /** From then on all faults had been over for long enough. */
  readonly recoveredMs: number;
}

/** Looks at a run that is over, and notes in it all that is wrong. */
export function checkAfterwards(fleet: Fleet, { faults, recoveredMs }: FinishedRun): void {
  checkPromise(fleet);
  if (faults.length === 0) checkTaken(fleet);
  if (faults.every((kind) => kind === "slotsMove")) checkMoving(fleet);
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

/** Without any fault, what was granted is all that was taken and not given back. */
function checkTaken(fleet: Fleet): void {
  const taken = new Map<LimitKey, number>();
  for (const { store } of fleet.replicas) {
    for (const [key, hits] of store.ledger.takenHits) taken.set(key, (taken.get(key) ?? 0) + hits);
  }
  for (const [key, hits] of taken) {
    const happenings = sides.flatMap((side) => fleet.happenings.get(`${side} ${key}`) ?? []);
    const inVainHits = sum(
      happenings.map((one) => {
        return one.kind === "asked" && one.role === "enforce" ? one.inVainHits : 0;
      }),
    );
    const grantedHits = fleet.grantedHits.get(key) ?? 0;
    const keptHits = hits - inVainHits;
    if (keptHits !== grantedHits) {
      fleet.violate(`${grantedHits} hits of ${key} were granted, and ${keptHits} taken`);
    }
  }
}

/**
 * Slots may move all the time: a request with one key in each of them is decided by the store,
 * unless it is sent on so often that its time is over.
 */
function checkMoving(fleet: Fleet): void {
  const tagCount = fleet.stores.cluster?.tagCount ?? 1;
  const lost = fleet.answers.filter(({ source, ask, atMs }) => {
    const keys = new Set(ask.prepared.asks.map(({ charge }) => charge.key));
    const tags = new Set([...keys].map((key) => tagIndex(key, tagCount)));
    const isPatient = ask.deadlineMs - ask.startMs >= patientMs;
    const isInTime = isPatient && atMs < ask.startMs + storeBudgetMs;
    const isKnown = ask.startMs >= knownMs;
    return source === "fallback" && keys.size === tags.size && isInTime && isKnown;
  });
  if (lost.length > 0) fleet.violate(`${lost.length} calls were lost while slots moved`);
}

/** When every replica has found out which node has which slots. */
const knownMs = 50;

/** Who waits so long leaves the store its whole budget. */
const patientMs = 20;

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
  // What nobody looked at is told so, and counted nowhere.
  const descriptorCount = decided.reduce(
    (count, { query, unknownCount }) => count + query.descriptors.length - unknownCount,
    0,
  );
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
