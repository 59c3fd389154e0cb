import { AdmissionQueue } from "../../core/admission/admission-queue.js";
import {
  type Deadline,
  expectedTimeoutHeader,
  grpcTimeoutHeader,
  requestDeadline,
} from "../../core/admission/deadline.js";
import { sigmoidRejectRatio } from "../../core/admission/estimated-wait.js";
import type { HostReadings } from "../../core/admission/host-reading.js";
import type { RefusalDetail } from "../../core/admission/immediate-response-cache.js";
import { hostLoadRatio } from "../../core/admission/load.js";
import type { PermitPool } from "../../core/admission/permit-pool.js";
import type { SharesPermits } from "../../core/admission/permit-share.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { QueueRefusal } from "../../core/admission/request-queue.js";
import type { SharedKeyCounts } from "../../core/admission/shared-key-counts.js";
import type { Clock } from "../../core/base/clock.js";
import { leftEarly, requestOutcome } from "../../core/calls/request-outcome.js";
import { ExpiryHeap } from "../../core/collections/expiry-heap.js";
import type { SignalUpdate } from "../../core/concurrency/signal-update.js";
import { requestKey } from "../../policy/services/callers.js";
import type { AdmissionBlock } from "../../policy/services/service-admission.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { unansweredEnd } from "../budget/budget-call.js";
import {
  type AdmissionAnswer,
  type AdmissionCall,
  type AdmissionRequest,
  type AdmissionTicket,
  waitTimeoutMarginMs,
} from "./admission-call.js";
import { AdmissionCounts } from "./admission-counts.js";
import { AdmissionQuestions } from "./admission-questions.js";
import { AdmittedRequest, type AdmittedRequestHost } from "./admitted-request.js";
import { moveGate, type ReadFleetGate } from "./fleet-gate.js";
import { permitLeaseMs } from "./permit-lease.js";
import { type AdmittedService, type BlockParts, ServiceBlocks } from "./service-blocks.js";
import { CapacityChanges, LongWaits, type ServiceEvent } from "./service-events.js";
import { ServicePools } from "./service-pools.js";

/** Dependencies of `ServiceAdmission`. */
export interface ServiceAdmissionParts extends BlockParts {
  readonly clock: Clock;
  /** Absent if this process is the only replica. */
  readonly shares: SharesPermits | undefined;
  /** Calls in flight by key in all replicas. Absent if this process is the only replica. */
  readonly sharedKeys?: SharedKeyCounts;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** See `LeaseBounds.leaseMsMax`. Default 300,000. */
  readonly permitLeaseMsMax: number;
  /** Percentage of a service's permits that one peer may have in use, 1 to 100. Default 100. */
  readonly permitsPeerPercentMax?: number;
  readonly onEvent: (event: ServiceEvent) => void;
  /** Reads gates from the fleet's leader. Absent if this process is the only replica. */
  readonly fleetGate?: ReadFleetGate;
}

/**
 * Admission to one service. Runs the checks in order, then the rate limit, then takes a permit or
 * queues the request. Exists across policies as long as they contain a service of this name.
 *
 * `begin` returns the first answer, and callbacks are called only after it has returned. A callback
 * may end its request at once, so all counts are up to date before each call.
 */
export class ServiceAdmission implements AdmittedRequestHost {
  readonly name: string;
  readonly counts = new AdmissionCounts();
  readonly #parts: ServiceAdmissionParts;
  readonly #pools: ServicePools;
  #indexed: AdmittedService;
  #blocks: ServiceBlocks;
  readonly #queue: AdmissionQueue<AdmittedRequest>;
  /** Requests that hold a permit, ordered by the end of their leases. */
  readonly #leases = new ExpiryHeap<AdmittedRequest>();
  readonly #questions: AdmissionQuestions;
  readonly #longWaits = new LongWaits();
  readonly #capacityChanges = new CapacityChanges();

  constructor(parts: ServiceAdmissionParts, indexed: AdmittedService) {
    const { service } = indexed;
    this.name = service.name;
    this.#parts = parts;
    this.#indexed = indexed;
    this.#blocks = new ServiceBlocks(parts, indexed, undefined);
    const { clock, shares, digest, permitsPeerPercentMax: peerPercentMax = 100 } = parts;
    const onGrown = (): void => this.#queue.serve(clock.monotonicMs());
    const nowMs = (): number => clock.monotonicMs();
    const common = { shares, digest, peerPercentMax, onGrown, nowMs };
    this.#pools = new ServicePools({ policy: service, ...common });
    this.#questions = new AdmissionQuestions({
      ...{ clock, counts: this.counts, delayed: parts.delayed, sharedKeys: parts.sharedKeys },
      blocks: () => this.#blocks,
      isDry: (visit, block) => this.#isDry(visit, block),
      refuseIfFull: (visit, nowMs) => this.#refuseIfFull(visit, nowMs),
      refuse: (visit, cause, grounds) => this.#refuse(visit, cause, grounds),
      enter: (visit, nowMs) => this.#enter(visit, nowMs),
    });
    this.#queue = new AdmissionQueue({
      clock,
      whole: this.#pools.whole,
      admit: (visit, nowMs) => this.#admit(visit, nowMs),
      dismiss: (dismissed, nowMs) => this.#dismiss(dismissed, nowMs),
    });
  }

  /** The service's part of the active policy. */
  get policy(): ServicePolicy {
    return this.#indexed.service;
  }

  get blocks(): ServiceBlocks {
    return this.#blocks;
  }

  get pools(): ServicePools {
    return this.#pools;
  }

  /** Applies a new policy. What was learned is kept if its settings are unchanged. */
  configure(indexed: AdmittedService): void {
    if (indexed.service === this.#indexed.service) return;
    this.#indexed = indexed;
    this.#blocks = new ServiceBlocks(this.#parts, indexed, this.#blocks);
    this.#pools.configure(indexed.service);
    this.#queue.serve(this.#parts.clock.monotonicMs());
  }

  /** Called when the policy no longer contains the service. Its requests go on as before. */
  close(): void {
    this.#pools.close();
  }

  /** Occupancy of the fullest pool; see `PermitPool.occupancyRatio`. */
  occupancyRatio(nowMs: number): number {
    let ratio = this.#pools.whole.occupancyRatio(nowMs);
    for (const { pool } of this.#pools.all()) ratio = Math.max(ratio, pool.occupancyRatio(nowMs));
    return ratio;
  }

  /** Whether the policy limits permits for the whole fleet. */
  get isLimited(): boolean {
    if (this.policy.admission === undefined) return false;
    const { whole } = this.#pools;
    return this.#pools.isSplit || whole.fleetLimit() !== Number.POSITIVE_INFINITY;
  }

  /** Applies readings for the algorithm `signal`; see `Admission.read`. */
  read(update: SignalUpdate): void {
    for (const change of this.#pools.read(update)) this.#capacityChanges.add(change);
    if (update.byKey.size > 0 || typeof update.rest === "number") this.#loadBySignal();
    this.#queue.serve(this.#parts.clock.monotonicMs());
  }

  /** Applies readings of this replica's host; `holdMs` as for `LoadSignals.host`. */
  readHost(readings: HostReadings, holdMs: number): void {
    const ratio = hostLoadRatio(readings, this.policy.admission?.load?.host ?? {});
    const nowMs = this.#parts.clock.monotonicMs();
    if (ratio !== undefined) this.#blocks.admission?.health?.signals.host(ratio, holdMs, nowMs);
  }

  /** Fraction of requests that the expected wait would refuse now; 0 without a sigmoid. */
  rejectRatio(nowMs: number): number {
    const sigmoid = this.#blocks.admission?.policy.estimatedWait?.sigmoid;
    if (sigmoid === undefined) return 0;
    let ratio = 0;
    for (const { pool } of this.#pools.all()) {
      ratio = Math.max(ratio, sigmoidRejectRatio(sigmoid, pool.state(nowMs)));
    }
    return ratio;
  }

  /** Called once per second. */
  tick(nowMs: number): void {
    const gate = this.#blocks.admission?.gate;
    if (gate !== undefined) {
      const before = gate.state;
      this.#blocks.admission?.renewGate();
      moveGate(gate, this.#parts.fleetGate?.(this.name), this.rejectRatio(nowMs));
      const { state } = gate;
      if (state !== before) {
        this.#parts.onEvent({ kind: "gateChanged", service: this.name, state });
      }
    }
    for (const { pool } of this.#pools.all()) {
      const limit = pool.limit(nowMs);
      if (limit !== Number.POSITIVE_INFINITY) this.counts.capacity.add(limit);
    }
    this.#pools.expire(nowMs);
    this.#endLeases(nowMs);
    for (const change of this.#capacityChanges.take()) {
      this.#parts.onEvent({ kind: "capacityChanged", service: this.name, ...change });
    }
    const waits = this.#longWaits.take();
    if (waits !== undefined) {
      this.#parts.onEvent({ kind: "waitedLong", service: this.name, ...waits });
    }
    // The end of a permit's or share's lease, or a reading, may have made room.
    this.#queue.serve(nowMs);
  }

  begin(request: AdmissionRequest, call: AdmissionCall): AdmissionAnswer {
    const { terms, admission, rateLimit, budgets } = this.#blocks;
    const priority = this.#indexed.classifier.classify(request);
    if (priority === "bypass") {
      this.counts.bypassedCount += 1;
      return terms.bypassed;
    }
    const isPassed = admission?.passesUndecided() === true;
    if (isPassed) this.counts.failureModeAllowedCount += 1;
    if (isPassed || (admission ?? rateLimit ?? budgets) === undefined) {
      this.counts.admitted[priority] += 1;
      return terms.unfollowed[priority];
    }
    const visit = new AdmittedRequest({
      host: this,
      request,
      priority,
      caller: admission === undefined ? "" : requestKey(admission.policy.caller, request),
      deadline: deadlineOf(request.headers, admission?.policy.deadline?.header),
      arrivedMs: this.#parts.clock.monotonicMs(),
      pool: this.#pools.of(request),
    });
    this.#decide(visit);
    return visit.begun(call);
  }

  /** Handles the end of a request's exchange. */
  ended(visit: AdmittedRequest, end: Ending): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const { stage } = visit;
    endBudgeted(visit, end);
    this.#close(visit);
    if (stage === "followed") return;
    if (stage === "overdue") {
      for (const pool of this.#poolsOf(visit)) pool.forgetOverdue(visit.request.peer);
      this.#queue.serve(nowMs);
      return;
    }
    if (stage !== "admitted") {
      this.counts.leftCount += 1;
      return;
    }
    this.#leases.remove(visit);
    const { lateAfterMs: lateMs } = this.#blocks.admission?.policy ?? {};
    // The time for which a rate limit delayed the request is not latency of the service.
    const lateAfterMs = lateMs && lateMs + visit.delayedMs;
    const learnt = requestOutcome(visit, { end, nowMs, lateAfterMs });
    const { request, priority } = visit;
    for (const pool of this.#poolsOf(visit)) {
      if (leftEarly(learnt)) pool.giveBackLeft(request.peer, priority, nowMs);
      else pool.giveBack(request.peer, priority, nowMs);
    }
    this.counts.outcomes[learnt.outcome] += 1;
    this.#blocks.learn(visit, learnt, nowMs);
    this.#queue.serve(nowMs);
  }

  /**
   * Takes back permits whose leases have ended. How these requests ended is unknown, so nothing is
   * learned from them; otherwise a peer that falls silent could move a limit either way. The permit
   * of the request's key stays taken until the exchange ends, or its caller could exceed its
   * maximum in flight.
   */
  #endLeases(nowMs: number): void {
    for (;;) {
      const visit = this.#leases.first;
      if (visit === undefined || visit.expiresMs > nowMs) return;
      this.#leases.remove(visit);
      visit.stage = "overdue";
      this.counts.overdueCount += 1;
      for (const pool of this.#poolsOf(visit))
        pool.endLease(visit.request.peer, visit.priority, nowMs);
    }
  }

  /** The pools in which an admitted request holds permits. */
  #poolsOf({ pool, holdsWhole }: AdmittedRequest): readonly PermitPool<AdmittedRequest>[] {
    return holdsWhole ? [pool, this.#pools.whole] : [pool];
  }

  reported(loadMetrics: string): void {
    this.#blocks.admission?.health?.reported(loadMetrics, this.#parts.clock.monotonicMs());
  }

  #decide(visit: AdmittedRequest): void {
    const nowMs = visit.arrivedMs;
    const cause = this.#firstRefusal(visit, nowMs);
    if (cause !== undefined) {
      this.#refuse(visit, cause, { wait: visit.pool.retryWait(nowMs) });
    } else {
      this.#questions.ask(visit, nowMs);
    }
  }

  /** Refuses a request without room before it is charged. Returns whether it did. */
  #refuseIfFull(visit: AdmittedRequest, nowMs: number): boolean {
    if (this.#mayEnter(visit, nowMs)) return false;
    const full = this.#queue.mayWait(visit, nowMs) ? "queueFull" : "concurrency";
    this.#refuse(visit, full, { wait: visit.pool.retryWait(nowMs) });
    return true;
  }

  #firstRefusal(visit: AdmittedRequest, nowMs: number): RefusalCause | undefined {
    const { admission } = this.#blocks;
    if (admission === undefined) return undefined;
    const isCritical = visit.priority === "critical";
    for (const check of admission.checks) {
      if (isCritical && check.sparesCritical) continue;
      if (!check.refuses(visit, nowMs)) continue;
      if (!this.#isDry(visit, check.block)) return check.cause;
      this.counts.dryRefused.add(visit.priority, check.cause);
    }
    return undefined;
  }

  /** Whether a block only counts this request, and does not refuse it. */
  #isDry({ request }: AdmittedRequest, block: AdmissionBlock): boolean {
    return request.isObserved || this.#blocks.admission?.policy.dryRun.has(block) === true;
  }

  /** Whether a permit or a place in the queue is free, or may be taken from a waiting request. */
  #mayEnter(visit: AdmittedRequest, nowMs: number): boolean {
    if (this.#blocks.admission === undefined || this.#isDry(visit, "permits")) return true;
    if (this.#queue.hasRoom(visit, nowMs)) return true;
    return this.#queue.mayWait(visit, nowMs) && visit.pool.mayTakePlace();
  }

  /** Takes a permit or a place in the queue, or refuses the request. */
  #enter(visit: AdmittedRequest, nowMs: number): void {
    const { admission, terms } = this.#blocks;
    if (admission === undefined) {
      const isFollowed = visit.budgeted !== undefined;
      if (isFollowed) visit.stage = "followed";
      // The policy may have changed since the request was counted.
      else this.#close(visit);
      this.counts.admitted[visit.priority] += 1;
      if (!isFollowed) visit.tell(terms.unfollowedBy(visit));
      else visit.tell({ kind: "admitted", terms: terms.measured(visit), ticket: visit });
      return;
    }
    if (admission.keyed !== undefined) {
      visit.keyCount ??= admission.keyed.take(admission.keyOf(visit.request));
    }
    if (this.#queue.hasRoom(visit, nowMs)) {
      this.#admit(visit, nowMs);
    } else if (this.#isDry(visit, "permits")) {
      this.counts.dryRefused.add(visit.priority, "concurrency");
      this.#admit(visit, nowMs);
    } else if (this.#queue.mayWait(visit, nowMs)) {
      this.#wait(visit, nowMs);
    } else {
      this.#refuse(visit, "concurrency", { wait: visit.pool.retryWait(nowMs) });
    }
  }

  #wait(visit: AdmittedRequest, nowMs: number): void {
    const { place, dismissed } = this.#queue.enter(visit, nowMs);
    if (place === undefined) {
      this.#refuse(visit, "queueFull", { wait: visit.pool.retryWait(nowMs) });
    } else {
      visit.stage = "waiting";
      visit.place = place;
      visit.position = place.position;
      const timeoutMs = Math.ceil(place.expiresMs - nowMs) + waitTimeoutMarginMs;
      if (visit.delayedMs === 0) visit.tell({ kind: "waiting", timeoutMs, ticket: visit });
    }
    this.#dismiss(dismissed, nowMs);
    // A permit may have become free without notice: a lease has ended, or a limit rose.
    if (visit.pool.isFree(visit.priority, nowMs)) this.#queue.serve(nowMs);
  }

  #admit(visit: AdmittedRequest, nowMs: number): void {
    const { pool } = visit;
    const waitedMs = nowMs - visit.arrivedMs;
    if (visit.place !== undefined) {
      const waitMs = nowMs - visit.place.enteredMs;
      this.counts.waits.add(waitMs);
      this.#longWaits.add(pool.label, waitMs);
    }
    this.#blocks.admission?.health?.signals.queueWait(waitedMs - visit.delayedMs, nowMs);
    visit.stage = "admitted";
    visit.place = undefined;
    visit.admittedMs = nowMs;
    visit.expiresMs = nowMs + this.#leaseMs(visit, nowMs);
    this.#leases.push(visit);
    visit.inFlight = pool.take(visit.request.peer, visit.priority, nowMs);
    if (pool !== this.#pools.whole) {
      visit.holdsWhole = true;
      this.#pools.whole.take(visit.request.peer, visit.priority, nowMs);
    }
    if (visit.position === 0) visit.position = pool.hasQueue ? 1 : visit.inFlight;
    this.counts.admitted[visit.priority] += 1;
    const terms = this.#blocks.terms.followed(visit, waitedMs);
    visit.tell({ kind: "admitted", terms, ticket: visit });
  }

  #leaseMs(visit: AdmittedRequest, nowMs: number): number {
    const { requestMs } = this.policy.timeouts;
    const { permitLeaseMsMax: leaseMsMax } = this.#parts;
    return permitLeaseMs({ requestMs, remainingMs: visit.remainingMs(nowMs), leaseMsMax });
  }

  /** Reports the largest reading as a load, which fades if no newer one arrives in time. */
  #loadBySignal(): void {
    const full = this.policy.admission?.load?.signalReading;
    const holdMs = this.policy.concurrency?.signal?.staleAfterMs;
    if (full === undefined || holdMs === undefined) return;
    let largest: number | undefined;
    for (const [, reading] of this.#pools.readings())
      largest = Math.max(reading, largest ?? reading);
    if (largest === undefined) return;
    const nowMs = this.#parts.clock.monotonicMs();
    this.#blocks.admission?.health?.signals.outside(largest / full, holdMs, nowMs);
  }

  #refuse(visit: AdmittedRequest, cause: RefusalCause, grounds: RefusalDetail): void {
    const nowMs = this.#parts.clock.monotonicMs();
    visit.budgeted?.end(unansweredEnd);
    visit.budgeted = undefined;
    this.#close(visit);
    this.counts.refused.add(visit.priority, cause);
    visit.pool.noteRefused(cause, visit.priority);
    this.#blocks.tellRefused(cause, nowMs);
    if (cause === "throttle") this.#blocks.admission?.throttles?.refused(visit.caller, nowMs);
    const refusal = this.#blocks.refusals.refusal(cause, visit.request, grounds);
    visit.tell({ kind: "refused", refusal });
  }

  #dismiss(dismissed: readonly QueueRefusal<AdmittedRequest>[], nowMs: number): void {
    for (const { place, cause } of dismissed) {
      const visit = place.payload;
      // Refusing the previous request may have ended the next ones.
      if (visit.stage === "waiting")
        this.#refuse(visit, cause, { wait: visit.pool.retryWait(nowMs) });
    }
  }

  /** Ends a request: it leaves the queue, and gives back the permit of its key. */
  #close(visit: AdmittedRequest): void {
    visit.stage = "over";
    if (visit.place !== undefined) visit.pool.leave(visit.place);
    visit.place = undefined;
    if (visit.cancelDelay !== undefined) this.counts.delayedNow -= 1;
    visit.cancelDelay?.();
    visit.cancelDelay = undefined;
    const { keyCount } = visit;
    keyCount?.owner.giveBack(keyCount);
    visit.keyCount = undefined;
    visit.giveBackShared?.();
    visit.giveBackShared = undefined;
  }
}

type Ending = Parameters<AdmissionTicket["end"]>[0];

/** Reports the end of a call to budgets. One that was not admitted has not reached the upstream. */
function endBudgeted(visit: AdmittedRequest, end: Ending): void {
  const { stage, response, budgeted } = visit;
  visit.budgeted = undefined;
  const isIn = stage === "admitted" || stage === "followed" || stage === "overdue";
  const hasResponse = response !== undefined || end === "completed";
  budgeted?.end(isIn ? { hasResponse, status: response?.status, mayGoOn: true } : unansweredEnd);
}

/** Most requests state no deadline. Finds that without building a list of statements. */
function deadlineOf(
  headers: AdmissionRequest["headers"],
  header: string | undefined,
): Deadline | undefined {
  const isStated =
    headers.has(grpcTimeoutHeader) ||
    headers.has(expectedTimeoutHeader) ||
    (header !== undefined && headers.has(header));
  return isStated ? requestDeadline(headers, { header }) : undefined;
}
