import { createConcurrencyLimit } from "./concurrency-laws.js";
import type { ConcurrencyLimit, SignalReading } from "./concurrency-limit.js";
import type { NodeReport, NodeShare, ServiceFacts, ServiceShares } from "./feedback.js";
import { FeedbackNodes } from "./feedback-nodes.js";
import { pacedLimit } from "./feedback-pace.js";
import { FeedbackPressure, type ServiceQueue } from "./feedback-pressure.js";
import type { LimitPace, LoopTimes, ServiceLoopSettings } from "./feedback-settings.js";
import { type NodeClaim, shareTargets, splitShare } from "./feedback-shares.js";
import { FleetWindow } from "./feedback-window.js";
import { sampleWindowMsMax, sampleWindowRttCount } from "./sample-window.js";
import { ShareLedger } from "./share-ledger.js";

/** What a `ServiceLoop` goes by. */
export interface ServiceLoopParts {
  readonly settings: ServiceLoopSettings;
  readonly times: LoopTimes;
  readonly pace: LimitPace;
  /** What held for it in the last sheet of somebody else; undefined: nothing did. */
  readonly from: ServiceShares | undefined;
  readonly nowMs: number;
}

/** A law's limit that moves by more than this part of itself is a step, as into a dip. */
const stepRatio = 0.25;

/** How long a step may take to come into force before what is seen counts all the same. */
const stepMsMax = 6_000;

/** The part of a limit that those who do not follow take from the others, unless they use more. */
const unrulyRatioMax = 0.5;

/** One service's loop: what its Envoys report, one limit, and a share for each of them. */
export class ServiceLoop {
  readonly #parts: ServiceLoopParts;
  readonly #law: ConcurrencyLimit;
  readonly #window: FleetWindow;
  readonly #nodes: FeedbackNodes;
  readonly #ledger: ShareLedger;
  /** Envoys whose lease is over, and since when. */
  readonly #leaving = new Map<string, number>();
  readonly #pressure: FeedbackPressure;
  #limit: number;
  #limitMs: number;
  #rttMs: number | undefined;
  #lawLimit: number;
  /** Since when a step of the law is on its way to all Envoys; undefined: none is. */
  #stepMs: number | undefined;
  /** What began before that met another limit than the present one. */
  #cleanFromMs = Number.NEGATIVE_INFINITY;
  #shares: ReadonlyMap<string, NodeShare> = new Map();
  #last: ServiceShares | undefined;

  constructor(parts: ServiceLoopParts) {
    const { settings, times, from, nowMs } = parts;
    const { law, configuredShare } = settings;
    this.#parts = parts;
    const initial = from?.limit ?? law.limits.initial;
    this.#law = createConcurrencyLimit({ ...law, limits: { ...law.limits, initial } });
    this.#lawLimit = this.#law.limit;
    this.#limit = from?.limit ?? this.#bounded(this.#law.limit);
    this.#limitMs = nowMs;
    this.#last = from;
    this.#window = new FleetWindow(law);
    this.#nodes = new FeedbackNodes(times);
    this.#ledger = new ShareLedger({ times, configuredShare });
    this.#pressure = new FeedbackPressure(settings, from?.gate);
    for (const [nodeId, share] of from?.shares ?? []) {
      this.#nodes.restore(nodeId, nowMs);
      this.#ledger.restore(nodeId, share.default + share.high, nowMs);
    }
  }

  get settings(): ServiceLoopSettings {
    return this.#parts.settings;
  }

  /** What it decided last, or began with. */
  get last(): ServiceShares | undefined {
    return this.#last;
  }

  /** Reports of Envoys for which there was no place. */
  get crowdedOutCount(): number {
    return this.#nodes.crowdedOutCount;
  }

  /** The most that Envoys may let into work now, all together. */
  mayHold(nowMs: number): number {
    return this.#ledger.total(nowMs);
  }

  /** A reading of what the law `signal` looks at, or which bound holds without one. */
  read(reading: SignalReading, nowMs: number): void {
    this.#law.read(reading, nowMs);
  }

  /** Requests that wait before it, as somebody counted them now. */
  noteQueue(queue: ServiceQueue, nowMs: number): void {
    this.#pressure.noteQueue(queue, nowMs);
  }

  /** Takes a report in; reports come in the order of their times, as far as it is known. */
  take(report: NodeReport, nowMs: number): void {
    const news = this.#nodes.take(report, nowMs);
    if (news !== undefined && news.fromMs >= this.#cleanFromMs && this.#stepMs === undefined) {
      if (Number.isFinite(news.fromMs)) this.#window.add(report, news.fromMs);
    }
    const { nodeId, held, heldAtMs = report.atMs } = report;
    if (held < 1 || !this.#nodes.has(nodeId)) return;
    const atMs = Math.min(heldAtMs, nowMs);
    this.#nodes.noteHeard(nodeId, atMs);
    this.#ledger.noteHeld(nodeId, { held, atMs }, nowMs);
  }

  /** Decides once more. @returns undefined where no Envoy was heard of within its lease */
  update(nowMs: number): ServiceShares | undefined {
    this.#forget(nowMs);
    const totals = this.#add(nowMs);
    this.#awaitStep(nowMs);
    this.#learn(totals.inUse, nowMs);
    this.#moveLimit(nowMs);
    if (this.#nodes.count === 0) {
      this.#last = undefined;
      return undefined;
    }
    this.#share(nowMs);
    this.#last = {
      limit: this.#limit,
      shares: this.#shares,
      rejectRatio: this.#rejectRatio(totals.inFlight, nowMs),
      gate: this.#pressure.gate,
      facts: this.#facts(totals),
    };
    return this.#last;
  }

  /** Who has left the sheet may be given its share once more, by who has not seen that yet. */
  #forget(nowMs: number): void {
    const { sheetSpreadMs } = this.#parts.times;
    for (const nodeId of this.#nodes.takeGone(nowMs)) {
      this.#leaving.set(nodeId, nowMs);
      this.#ledger.leaveOut(nodeId, nowMs);
    }
    for (const [nodeId, sinceMs] of this.#leaving) {
      const isBack = this.#nodes.has(nodeId);
      if (!isBack && nowMs - sinceMs < sheetSpreadMs) continue;
      this.#leaving.delete(nodeId);
      if (!isBack) this.#ledger.forget(nodeId);
    }
  }

  #add(nowMs: number): Totals {
    let inFlight = 0;
    let inUse = 0;
    let rps = 0;
    for (const nodeId of this.#nodes.ids) {
      if (!this.#nodes.isFresh(nodeId, nowMs)) continue;
      const numbers = this.#nodes.numbers(nodeId);
      inFlight += numbers.inFlight;
      rps += numbers.rps;
      // One look a second need not have met the moment at which its share was all in use.
      const share = numbers.isFull ? this.#ledger.share(nodeId) : 0;
      inUse += Math.max(numbers.inFlight, share);
    }
    return { inFlight, inUse, rps };
  }

  /** A step is in force when limit and shares have come to it, and Envoys have said so. */
  #awaitStep(nowMs: number): void {
    if (this.#stepMs === undefined) return;
    const { numbersMsMax } = this.#parts.times;
    const sinceMs = this.#ledger.obeyedSinceMs(numbersMsMax, nowMs);
    const isThere = this.#limit === this.#paced(nowMs) && sinceMs !== undefined;
    if (!isThere && nowMs - this.#stepMs < stepMsMax) return;
    this.#cleanFromMs = (isThere ? Math.max(sinceMs, this.#stepMs) : nowMs) + this.#settleMs;
    this.#stepMs = undefined;
  }

  /** Requests that were let in before are gone after two round trips. */
  get #settleMs(): number {
    return Math.min(sampleWindowMsMax, sampleWindowRttCount * (this.#rttMs ?? 0));
  }

  #learn(inUse: number, nowMs: number): void {
    if (this.#stepMs === undefined && nowMs >= this.#cleanFromMs) {
      this.#window.noteInFlight(inUse);
      const window = this.#window.end(nowMs);
      if (window !== undefined) {
        this.#rttMs = window.rttMs ?? this.#rttMs;
        this.#law.update(window);
      }
    }
    const before = this.#lawLimit;
    this.#lawLimit = this.#law.limit;
    if (Math.abs(this.#lawLimit - before) <= stepRatio * before) return;
    this.#stepMs = nowMs;
    this.#window.restart();
  }

  #moveLimit(nowMs: number): void {
    this.#limit = this.#paced(nowMs);
    this.#limitMs = nowMs;
  }

  #paced(nowMs: number): number {
    const { settings, pace } = this.#parts;
    const wanted = this.#bounded(this.#law.limit);
    const step = { limit: this.#limit, wanted, elapsedMs: nowMs - this.#limitMs };
    return pacedLimit(step, settings.law.law, pace);
  }

  #bounded(limit: number): number {
    return Math.max(1, Math.min(limit, this.settings.maxInFlight ?? limit));
  }

  #share(nowMs: number): void {
    const bound = Math.max(this.#limit, this.#nodes.count);
    const reserved = this.#reserves(nowMs);
    const claims = [...this.#nodes.ids].map((nodeId) => this.#claim(nodeId, reserved, nowMs));
    const targets = shareTargets(this.#limit, claims);
    const totals = new Map<string, number>();
    const setAside = new Map<string, number>();
    for (const [nodeId, { total }] of targets) {
      // What is set aside for it is not its share: when it follows again, it begins with that.
      const share = Math.max(1, this.#ledger.share(nodeId));
      totals.set(nodeId, reserved.has(nodeId) ? Math.min(total, share) : total);
      if (reserved.has(nodeId)) setAside.set(nodeId, total);
    }
    const order = { targets: totals, bound, reserved: setAside };
    const granted = this.#ledger.grant(order, nowMs);
    const before = this.#shares;
    this.#shares = new Map(
      [...targets].map(([nodeId, target]) => {
        const known = before.get(nodeId);
        return [nodeId, keptShare(known, splitShare(granted.get(nodeId) ?? 1, target))];
      }),
    );
  }

  #claim(nodeId: string, reserved: ReadonlyMap<string, number>, nowMs: number): NodeClaim {
    const { demand, highDemand } = this.#nodes.numbers(nodeId);
    const { highRatio } = this.settings;
    const isSilent = !this.#nodes.isFresh(nodeId, nowMs);
    const share = this.#ledger.share(nodeId);
    return {
      nodeId,
      demand,
      highDemand: highRatio === undefined ? undefined : (highDemand ?? highRatio * demand),
      reserved: reserved.get(nodeId) ?? (isSilent ? share : undefined),
    };
  }

  /**
   * What is set aside for Envoys that hold more than they were given and do not follow: all of it,
   * but more than half of the limit only as far as they use it. Otherwise one of them, with Envoy's
   * default of 1,024, would leave nothing to all others.
   */
  #reserves(nowMs: number): ReadonlyMap<string, number> {
    const unruly = [...this.#nodes.ids].filter(
      (nodeId) => this.#ledger.isUnruly(nodeId, nowMs) && this.#nodes.isFresh(nodeId, nowMs),
    );
    const most = Math.floor((unrulyRatioMax * this.#limit) / Math.max(1, unruly.length));
    return new Map(
      unruly.map((nodeId) => {
        const inUse = Math.ceil(this.#nodes.numbers(nodeId).demand);
        return [nodeId, Math.min(this.#ledger.mayHold(nodeId, nowMs), Math.max(most, inUse))];
      }),
    );
  }

  #rejectRatio(inFlightCount: number, nowMs: number): number {
    const fleet = { inFlightCount, limit: this.#limit, serviceMs: this.#rttMs };
    return Math.max(this.#pressure.update(fleet, nowMs), this.#law.shedRatio(nowMs));
  }

  #facts({ inFlight, rps }: Totals): ServiceFacts {
    const { rttMs = this.#rttMs, minRttMs, gradientRatio: gradient } = this.#law.facts();
    return {
      inFlight,
      rps,
      ...(rttMs === undefined ? {} : { rttMs }),
      ...(minRttMs === undefined ? {} : { minRttMs }),
      ...(gradient === undefined ? {} : { gradient }),
    };
  }
}

interface Totals {
  readonly inFlight: number;
  /** The same, with shares that were full at some time counted whole. */
  readonly inUse: number;
  readonly rps: number;
}

/** The same object where it says the same: whoever compares sheets is spared the numbers. */
function keptShare(known: NodeShare | undefined, share: NodeShare): NodeShare {
  const isSame = known?.default === share.default && known.high === share.high;
  return isSame ? known : share;
}
