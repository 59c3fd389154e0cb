import { Tally } from "../collections/tally.js";
import { createConcurrencyLimit } from "../concurrency/concurrency-laws.js";
import type { ConcurrencyLimit, SignalReading } from "../concurrency/concurrency-limit.js";
import type { NodeReport, NodeShare, ServiceFacts, ServiceShares } from "./feedback.js";
import { FeedbackNodes } from "./feedback-nodes.js";
import { pacedLimit } from "./feedback-pace.js";
import { FeedbackPressure, type ServiceQueue } from "./feedback-pressure.js";
import type { LimitPace, LoopTimes, ServiceLoopSettings } from "./feedback-settings.js";
import { type NodeClaim, type ShareTarget, shareTargets, splitShare } from "./feedback-shares.js";
import { FeedbackSteps } from "./feedback-steps.js";
import { type FleetTotals, fleetTotals } from "./feedback-totals.js";
import { FleetWindow } from "./feedback-window.js";
import { ShareLedger } from "./share-ledger.js";

interface ServiceLoopParts {
  readonly settings: ServiceLoopSettings;
  readonly times: LoopTimes;
  readonly pace: LimitPace;
  /** What held for it in the last snapshot of somebody else; undefined: nothing did. */
  readonly from: ServiceShares | undefined;
  readonly nowMs: number;
}

/** How long a limit is remembered as one that may be gone back to at once, in milliseconds. */
const familiarMsMax = 10_000;

/** So much more in use than the limit is not the limit's, in the first seconds. */
const crowdedRatio = 1.25;

/** How long Envoys that have just come may take to fit into a limit, in milliseconds. */
const startMsMax = 10_000;

/** For how long after its first request an Envoy is taken to ask for as much as the others. */
const newcomerMsMax = 5_000;

/** Requests at HIGH from which an Envoy has a share there, though the policy has no routes. */
const highDemandMin = 0.5;

/** The part of a limit that those who do not follow take from the others, unless they use more. */
const unrulyRatioMax = 0.5;

/** One service's loop: what its Envoys report, one limit, and a share for each of them. */
export class ServiceLoop {
  readonly #parts: ServiceLoopParts;
  readonly #law: ConcurrencyLimit;
  readonly #window: FleetWindow;
  readonly #nodes: FeedbackNodes;
  readonly #ledger: ShareLedger;
  /** Identities that hold more than their part, and since when. */
  readonly #holdersSinceMs = new Map<string | undefined, number>();
  /** Envoys whose lease is over, since when, and whose they were. */
  readonly #leaving = new Map<
    string,
    { readonly sinceMs: number; readonly owner: string | undefined }
  >();
  readonly #pressure: FeedbackPressure;
  #limit: number;
  #limitMs: number;
  /** When the first Envoy was heard of. */
  #metMs = Number.NEGATIVE_INFINITY;
  /** Limits that were active lately. */
  #lately: readonly { readonly limit: number; readonly atMs: number }[] = [];
  #rttMs: number | undefined;
  #lawLimit: number;
  readonly #steps = new FeedbackSteps();
  #shares: ReadonlyMap<string, NodeShare> = new Map();
  #last: ServiceShares | undefined;

  constructor(parts: ServiceLoopParts) {
    const { settings, times, from, nowMs } = parts;
    const { law, configuredShare } = settings;
    this.#parts = parts;
    const initial = from?.limit ?? law.limits.initial;
    const { minRttMs = 0 } = from?.facts ?? {};
    const known = minRttMs > 0 ? { minRttMs, nowMs } : undefined;
    this.#law = createConcurrencyLimit({ ...law, limits: { ...law.limits, initial } }, known);
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
    this.#law.read?.(reading, nowMs);
  }

  /** Requests that wait before it, as somebody counted them now. */
  noteQueue(queue: ServiceQueue, nowMs: number): void {
    this.#pressure.noteQueue(queue, nowMs);
  }

  /** Takes a report in; reports come in the order of their times, as far as it is known. */
  take(report: NodeReport, nowMs: number): void {
    if (this.#nodes.isAnothers(report)) return;
    const isFirst = this.#nodes.count === 0;
    const news = this.#nodes.take(report, nowMs);
    if (isFirst && news !== undefined) {
      // Until now Envoys went by their configured defaults, and what that let in is still there.
      this.#metMs = nowMs;
      this.#steps.begin(nowMs);
      this.#window.restart();
    }
    if (news !== undefined && Number.isFinite(news.fromMs) && this.#steps.isClean(news.fromMs)) {
      this.#window.add(report, news.fromMs);
    }
    const { nodeId, held, heldAtMs = report.atMs } = report;
    if (held < 1 || !this.#nodes.has(nodeId)) return;
    const atMs = Math.min(heldAtMs, nowMs);
    this.#nodes.noteHeard(nodeId, atMs);
    this.#ledger.noteHeld(nodeId, { held, atMs });
  }

  /** Decides once more. @returns undefined where no Envoy was heard of within its lease */
  update(nowMs: number): ServiceShares | undefined {
    this.#forget(nowMs);
    const totals = fleetTotals({
      nodes: this.#nodes,
      ledger: this.#ledger,
      limit: this.#limit,
      nowMs,
    });
    this.#awaitSteps(totals, nowMs);
    this.#learn(totals, nowMs);
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

  /** Who has left the snapshot may be given its share once more, by who has not seen that yet. */
  #forget(nowMs: number): void {
    const { snapshotSpreadMs } = this.#parts.times;
    for (const [nodeId, owner] of this.#nodes.takeGone(nowMs)) {
      this.#leaving.set(nodeId, { sinceMs: nowMs, owner });
      if (this.#isUnruly(owner, nowMs)) this.#ledger.forget(nodeId);
      else this.#ledger.leaveOut(nodeId, nowMs);
    }
    for (const [nodeId, { sinceMs }] of this.#leaving) {
      const isBack = this.#nodes.has(nodeId);
      if (!isBack && nowMs - sinceMs < snapshotSpreadMs) continue;
      this.#leaving.delete(nodeId);
      if (!isBack) this.#ledger.forget(nodeId);
    }
  }

  #awaitSteps({ inFlight, fromMs }: FleetTotals, nowMs: number): void {
    this.#steps.update({
      nowMs,
      inFlight,
      fromMs,
      limit: this.#limit,
      obeyedSinceMs: this.#ledger.obeyedSinceMs(this.#parts.times.numbersMsMax, nowMs),
      isPaced: this.#limit === this.#paced(nowMs),
      nodeCount: this.#askers().length,
      rttMs: this.#rttMs,
    });
  }

  #learn({ inUse, allRps, isPartial }: FleetTotals, nowMs: number): void {
    if (this.#steps.isClean(nowMs)) {
      // What configured defaults let in has waited in a queue that no limit of ours made.
      const isStart = this.#rttMs === undefined && nowMs - this.#metMs < startMsMax;
      if (isStart && inUse > crowdedRatio * this.#limit) this.#window.restart();
      this.#window.look({ inFlight: inUse, rps: allRps });
      const window = this.#window.end(nowMs);
      if (window !== undefined) {
        this.#rttMs = window.rttMs ?? this.#rttMs;
        this.#law.update({ ...window, keptCount: this.#highCount(nowMs), isPartial });
      }
    }
    const before = this.#lawLimit;
    this.#lawLimit = this.#law.limit;
    if (this.#steps.note(before, this.#lawLimit, nowMs)) this.#window.restart();
  }

  /**
   * What HIGH takes without a queue, by Little's law, and one for DEFAULT at each Envoy: a probe
   * that left less would refuse critical requests. More, as with the queue in it, would be none.
   */
  #highCount(nowMs: number): number {
    let highCount = 0;
    for (const nodeId of this.#nodes.ids) {
      if (this.#nodes.isFresh(nodeId, nowMs)) highCount += this.#highDemand(nodeId) ?? 0;
    }
    if (highCount === 0) return 0;
    const rttMs = this.#rttMs ?? 0;
    const { minRttMs = rttMs } = this.#law.facts();
    const unqueuedRatio = rttMs > 0 ? Math.min(1, minRttMs / rttMs) : 1;
    return highCount * unqueuedRatio + this.#nodes.count;
  }

  #highDemand(nodeId: string): number | undefined {
    const { demand, highDemand } = this.#nodes.numbers(nodeId);
    const { highRatio } = this.settings;
    const reported =
      highDemand !== undefined && highDemand >= highDemandMin ? highDemand : undefined;
    return highRatio === undefined ? reported : (highDemand ?? highRatio * demand);
  }

  #moveLimit(nowMs: number): void {
    this.#limit = this.#paced(nowMs);
    this.#limitMs = nowMs;
    const kept = this.#lately.filter(({ atMs }) => atMs > nowMs - familiarMsMax);
    this.#lately = [...kept, { limit: this.#limit, atMs: nowMs }];
  }

  #paced(nowMs: number): number {
    const { settings, pace } = this.#parts;
    const wanted = this.#bounded(this.#law.limit);
    const familiar = Math.max(0, ...this.#lately.map(({ limit }) => limit));
    const step = { limit: this.#limit, wanted, familiar, elapsedMs: nowMs - this.#limitMs };
    return pacedLimit(step, settings.law.law, pace);
  }

  #bounded(limit: number): number {
    return Math.max(1, Math.min(limit, this.settings.maxInFlight ?? limit));
  }

  #share(nowMs: number): void {
    // One at each of Envoy's priorities that has routes: nobody can be told 0.
    const least = this.settings.highRatio === undefined ? 1 : 2;
    const askers = this.#askers();
    const reserved = this.#reserves(nowMs);
    const newcomerDemand = this.#newcomerDemands(askers, nowMs);
    const claims = askers.map((nodeId): NodeClaim => {
      const claim = this.#claim(nodeId, reserved, nowMs);
      if (!this.#isNewcomer(nodeId, nowMs)) return claim;
      return { ...claim, demand: Math.max(claim.demand, newcomerDemand(claim.owner)) };
    });
    const targets = shareTargets(this.#limit, claims, least);
    const totals = new Map<string, number>();
    const setAside = new Map<string, number>();
    this.#noteHolders(targets, nowMs);
    let sum = 0;
    for (const [nodeId, { total }] of targets) {
      sum += total;
      // What is set aside for it is not its share: when it follows again, it begins with that.
      const share = Math.max(1, this.#ledger.share(nodeId));
      totals.set(nodeId, reserved.has(nodeId) ? Math.min(total, share) : total);
      const isUnruly = reserved.has(nodeId) || this.#isUnruly(this.#nodes.owner(nodeId), nowMs);
      if (isUnruly) setAside.set(nodeId, total);
    }
    const byDefaultMost = this.#byDefaultMost(nowMs);
    const bound = Math.max(this.#limit, sum);
    const order = { targets: totals, bound, reserved: setAside, byDefaultMost, least } as const;
    const granted = this.#ledger.grant(order, nowMs);
    const before = this.#shares;
    this.#shares = new Map(
      [...targets].map(([nodeId, target]) => {
        const known = before.get(nodeId);
        return [nodeId, keptShare(known, splitShare(granted.get(nodeId) ?? 1, target))];
      }),
    );
  }

  /**
   * Which identities may hold more than their part: one that does for long keeps nobody else from
   * theirs, by whatever names. What a leader before this one gave is not told against them.
   */
  #noteHolders(targets: ReadonlyMap<string, ShareTarget>, nowMs: number): void {
    const held = new Tally<string | undefined>();
    const parts = new Tally<string | undefined>();
    for (const [nodeId, { total }] of targets) {
      const owner = this.#nodes.owner(nodeId);
      held.add(owner, this.#ledger.mayHold(nodeId, nowMs));
      parts.add(owner, total);
    }
    const { configuredShare } = this.settings;
    for (const { owner } of this.#leaving.values()) held.add(owner, configuredShare);
    const before = new Map(this.#holdersSinceMs);
    this.#holdersSinceMs.clear();
    if (held.size < 2) return;
    for (const owner of held.keys()) {
      const heldCount = held.get(owner);
      if (heldCount <= parts.get(owner) || heldCount === Number.POSITIVE_INFINITY) continue;
      this.#holdersSinceMs.set(owner, before.get(owner) ?? nowMs);
    }
  }

  #isUnruly(owner: string | undefined, nowMs: number): boolean {
    const { ttlMs, snapshotSpreadMs } = this.#parts.times;
    return nowMs - (this.#holdersSinceMs.get(owner) ?? nowMs) >= ttlMs + snapshotSpreadMs;
  }

  /**
   * Those who have a share: who never had a request goes by its configured default until it has
   * one, and a thousand of them take nothing from the others.
   */
  #askers(): readonly string[] {
    return [...this.#nodes.ids].filter((nodeId) => this.#nodes.askedMs(nodeId) !== undefined);
  }

  /** Its numbers are of a part of a second, or of callers of whom most are still on their way. */
  #isNewcomer(nodeId: string, nowMs: number): boolean {
    return nowMs - (this.#nodes.askedMs(nodeId) ?? nowMs) < newcomerMsMax;
  }

  /**
   * Those of one identity are balanced, as a rule: who comes will be asked as much as those before
   * it are in the mean.
   */
  #newcomerDemands(
    askers: readonly string[],
    nowMs: number,
  ): (owner: string | undefined) => number {
    const sums = new Tally<string | undefined>();
    const counts = new Tally<string | undefined>();
    for (const nodeId of askers) {
      if (this.#isNewcomer(nodeId, nowMs) || !this.#nodes.isFresh(nodeId, nowMs)) continue;
      const owner = this.#nodes.owner(nodeId);
      sums.add(owner, this.#nodes.numbers(nodeId).demand);
      counts.add(owner, 1);
    }
    return (owner) => sums.get(owner) / Math.max(1, counts.get(owner));
  }

  #claim(nodeId: string, reserved: ReadonlyMap<string, number>, nowMs: number): NodeClaim {
    const isSilent = !this.#nodes.isFresh(nodeId, nowMs);
    const share = this.#ledger.share(nodeId);
    return {
      nodeId,
      owner: this.#nodes.owner(nodeId),
      demand: this.#nodes.numbers(nodeId).demand,
      highDemand: this.#highDemand(nodeId),
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

  /**
   * The same bound for those who are out of reach, each for itself: others keep what they have, and
   * may have it back when a probe or a signal took it, though a default of 1,024 is more than all.
   */
  #byDefaultMost(nowMs: number): number {
    const ids = [...this.#nodes.ids];
    const count = ids.filter((nodeId) => this.#ledger.mayHaveExpired(nodeId, nowMs)).length;
    return Math.floor((unrulyRatioMax * this.#limit) / Math.max(1, count));
  }

  #rejectRatio(inFlightCount: number, nowMs: number): number {
    const fleet = { inFlightCount, limit: this.#limit, serviceMs: this.#rttMs };
    const shedRatio = this.#law.shedRatio?.(nowMs) ?? 0;
    return Math.max(this.#pressure.update(fleet, nowMs), shedRatio);
  }

  #facts({ inFlight, rps, overflowPerSecond }: FleetTotals): ServiceFacts {
    const { rttMs = this.#rttMs, minRttMs, gradientRatio: gradient } = this.#law.facts();
    return {
      inFlight,
      rps,
      overflowPerSecond,
      ...(rttMs === undefined ? {} : { rttMs }),
      ...(minRttMs === undefined ? {} : { minRttMs }),
      ...(gradient === undefined ? {} : { gradient }),
    };
  }
}

/** The same object where it says the same: whoever compares snapshots is spared the numbers. */
function keptShare(known: NodeShare | undefined, share: NodeShare): NodeShare {
  const isSame = known?.default === share.default && known.high === share.high;
  return isSame ? known : share;
}
