import { createConcurrencyLimit, isLearning } from "../concurrency/concurrency-laws.js";
import type {
  ConcurrencyLimit,
  SignalReading,
  WindowedSample,
} from "../concurrency/concurrency-limit.js";
import type {
  NodeReport,
  ServiceFacts,
  ServiceRemainder,
  ServiceSamples,
  ServiceShares,
} from "./feedback.js";
import { meanDemands, newcomersOf } from "./feedback-newcomers.js";
import { type FeedbackNode, FeedbackNodes, isOfAnother } from "./feedback-nodes.js";
import { pacedLimit } from "./feedback-pace.js";
import { FeedbackPressure, type ServiceQueue } from "./feedback-pressure.js";
import type { LimitPace, LoopTimes, ServiceLoopSettings } from "./feedback-settings.js";
import {
  grantedShares,
  type NodeClaim,
  type ShareTarget,
  shareTargets,
  turnNodes,
} from "./feedback-shares.js";
import { FeedbackStart, startTotals } from "./feedback-start.js";
import { FeedbackSteps } from "./feedback-steps.js";
import { type FleetTotals, fleetTotals, withRemainders } from "./feedback-totals.js";
import { FleetWindow } from "./feedback-window.js";
import { ShareHolders } from "./share-holders.js";
import { type ShareEntry, ShareLedger, type ShareWant } from "./share-ledger.js";
import { noShares } from "./share-table.js";

interface ServiceLoopParts {
  readonly settings: ServiceLoopSettings;
  readonly times: LoopTimes;
  readonly pace: LimitPace;
  /** Its part of the last snapshot of another leader; undefined: it had none. */
  readonly from: ServiceShares | undefined;
  readonly nowMs: number;
}

type Leaving = Pick<FeedbackNode, "owner"> & { readonly sinceMs: number };

/** How long the limit may return to a recent value at once, in milliseconds. */
const familiarMsMax = 10_000;

/** In the first seconds, use above this many times the limit is not a result of the limit. */
const crowdedRatio = 1.25;

/** How long new Envoys may take to fit into a limit, in milliseconds. */
const startMsMax = 10_000;

/** Requests at HIGH from which an Envoy gets a share there, even if the policy has no routes. */
const highDemandMin = 0.5;

/** Maximum part of a limit for Envoys that do not follow, unless they use more. */
const unrulyRatioMax = 0.5;

/** Claims in one turn, which takes about a millisecond. */
const claimsPerTurn = 4_000;

/** The demand of an Envoy, and its identity. */
interface Claim extends NodeClaim {
  readonly node: FeedbackNode;
  readonly entry: ShareEntry;
  /** Whether its part is reserved because it does not follow. */
  readonly isUnruly: boolean;
}

/** The loop of one service: the reports of its Envoys, one limit, and a share for each Envoy. */
export class ServiceLoop {
  readonly #parts: ServiceLoopParts;
  #law: ConcurrencyLimit;
  /** Undefined as soon as the algorithm decides. */
  #start: FeedbackStart | undefined;
  readonly #window: FleetWindow;
  readonly #nodes: FeedbackNodes;
  readonly #ledger: ShareLedger;
  readonly #holders: ShareHolders;
  /** Envoys whose lease has expired, with the time and their identity. */
  readonly #leaving = new Map<string, Leaving>();
  readonly #pressure: FeedbackPressure;
  /** By their source. */
  readonly #remainders = new Map<string, ServiceRemainder>();
  #limit: number;
  #limitMs: number;
  /** When the first Envoy reported, or the algorithm began to decide. */
  #metMs = Number.NEGATIVE_INFINITY;
  /** When the newest Envoy reported for the first time. */
  #joinedMs = Number.NEGATIVE_INFINITY;
  /** Limits that were active lately. */
  #lately: readonly { readonly limit: number; readonly atMs: number }[] = [];
  #rttMs: number | undefined;
  #lawLimit: number;
  readonly #steps = new FeedbackSteps();
  #shares = noShares;
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
    const isUnknown = from === undefined && isLearning(law.law);
    this.#start = isUnknown ? new FeedbackStart(law.limits.initial) : undefined;
    this.#limit = from?.limit ?? this.#bounded(this.#law.limit);
    this.#limitMs = nowMs;
    this.#last = from;
    this.#window = new FleetWindow(law);
    this.#nodes = new FeedbackNodes(times);
    this.#ledger = new ShareLedger({ times, configuredShare });
    this.#holders = new ShareHolders(times);
    this.#pressure = new FeedbackPressure(settings, from?.gate);
    for (const [nodeId, share] of from?.shares ?? []) {
      const node = this.#nodes.restore(nodeId, nowMs);
      node.entry = this.#ledger.restore(nodeId, share.default + share.high, nowMs);
    }
  }

  get settings(): ServiceLoopSettings {
    return this.#parts.settings;
  }

  /** The last decision, or the initial state. */
  get last(): ServiceShares | undefined {
    return this.#last;
  }

  /** Reports of Envoys for which there was no place. */
  get crowdedOutCount(): number {
    return this.#nodes.crowdedOutCount;
  }

  /** Maximum number of requests that all Envoys together may admit now. */
  mayHold(nowMs: number): number {
    return this.#ledger.total(nowMs);
  }

  /** Takes a reading for the algorithm `signal`, or the bound that applies without one. */
  read(reading: SignalReading, nowMs: number): void {
    this.#law.read?.(reading, nowMs);
  }

  /** Takes the current number of requests that wait in front of the service. */
  noteQueue(queue: ServiceQueue, nowMs: number): void {
    this.#pressure.noteQueue(queue, nowMs);
  }

  /** Takes a report. Reports arrive in the order of their times, as far as known. */
  take(report: NodeReport, nowMs: number): void {
    const { nodeId } = report;
    const known = this.#nodes.find(nodeId);
    if (isOfAnother(known, report)) return;
    const isFirst = this.#nodes.count === 0;
    const fromMs = this.#nodes.take(report, nowMs, known);
    if (known === undefined && fromMs !== undefined) this.#joinedMs = nowMs;
    if (isFirst && fromMs !== undefined && this.#start === undefined) {
      // Requests that the configured defaults admitted are still in flight.
      this.#metMs = nowMs;
      this.#steps.begin(nowMs);
      this.#window.restart();
    }
    if (fromMs !== undefined && Number.isFinite(fromMs)) this.#learnFrom(report, fromMs);
    const { held, heldAtMs = report.atMs } = report;
    const node = known ?? this.#nodes.find(nodeId);
    if (node === undefined) return;
    // An Envoy that returns may still use the share that it had.
    if (known === undefined) node.entry = this.#ledger.find(nodeId);
    if (held < 1) return;
    const atMs = Math.min(heldAtMs, nowMs);
    this.#nodes.noteHeard(node, atMs);
    if (node.entry !== undefined) this.#ledger.noteHeld(node.entry, held, atMs);
  }

  /** Takes measurements that are not part of the reports of Envoys; each once. */
  takeSamples(samples: ServiceSamples): void {
    this.#learnFrom(samples, samples.fromMs);
  }

  /** Takes what rounding removed from the reports of its Envoys. */
  takeRemainder(remainder: ServiceRemainder): void {
    this.#remainders.set(remainder.source, remainder);
  }

  #learnFrom(measured: Pick<ServiceSamples, "latency" | "errorCount">, fromMs: number): void {
    if (this.#steps.isClean(fromMs)) this.#window.add(measured, fromMs);
  }

  /**
   * Decides again, in turns. With 10,000 Envoys, a turn takes at most a few milliseconds.
   *
   * @returns undefined if no Envoy has a lease
   */
  *update(nowMs: number): Generator<undefined, ServiceShares | undefined> {
    this.#forget(nowMs);
    const totals = this.#totals(nowMs);
    if (this.#nodes.count > turnNodes) yield;
    if (this.#start !== undefined) this.#follow(this.#start, totals, nowMs);
    else {
      this.#awaitSteps(totals, nowMs);
      this.#learn(totals, nowMs);
      this.#moveLimit(nowMs);
    }
    if (this.#nodes.count === 0) {
      this.#last = undefined;
      return undefined;
    }
    if (this.#nodes.count > turnNodes) yield;
    yield* this.#share(nowMs);
    this.#last = {
      limit: this.#limit,
      shares: this.#shares,
      rejectRatio: this.#rejectRatio(totals.inFlight, nowMs),
      gate: this.#pressure.gate,
      facts: this.#facts(totals),
    };
    return this.#last;
  }

  /** A replica with an old snapshot may still give a share to an Envoy that has left. */
  #forget(nowMs: number): void {
    const { snapshotSpreadMs } = this.#parts.times;
    for (const { nodeId, owner, entry } of this.#nodes.takeGone(nowMs)) {
      this.#leaving.set(nodeId, { sinceMs: nowMs, owner });
      if (this.#holders.isUnruly(owner, nowMs)) this.#ledger.forget(nodeId);
      else if (entry !== undefined) this.#ledger.leaveOut(entry, nowMs);
    }
    for (const [nodeId, { sinceMs }] of this.#leaving) {
      const isBack = this.#nodes.find(nodeId) !== undefined;
      if (!isBack && nowMs - sinceMs < snapshotSpreadMs) continue;
      this.#leaving.delete(nodeId);
      if (!isBack) this.#ledger.forget(nodeId);
    }
  }

  #totals(nowMs: number): FleetTotals {
    const totals = fleetTotals({ nodes: this.#nodes, limit: this.#limit, nowMs });
    for (const [source, { atMs }] of this.#remainders) {
      if (nowMs - atMs > this.#parts.times.numbersMsMax) this.#remainders.delete(source);
    }
    return withRemainders(totals, this.#remainders.values());
  }

  /** At the start, before it is known whether the use includes a queue. */
  #follow(start: FeedbackStart, totals: FleetTotals, nowMs: number): void {
    const { inUse, allRps, overflowPerSecond } = totals;
    this.#window.look({ inFlight: inUse, rps: allRps });
    const rttMs = this.#window.meanMs;
    const window = this.#window.end(nowMs);
    start.look({
      nowMs,
      inUse,
      overflowPerSecond,
      ...startTotals(this.#nodes, nowMs),
      configuredCount: this.#askers().length * this.settings.configuredShare,
      joinedMs: this.#joinedMs,
      rttMs,
      window,
    });
    const { law } = this.settings;
    const limit = Math.min(start.limit, law.limits.max);
    this.#limit = Math.floor(this.#bounded(limit));
    if (!start.isOver) {
      this.#limitMs = nowMs;
      return;
    }
    this.#start = undefined;
    this.#law = createConcurrencyLimit({ ...law, limits: { ...law.limits, initial: limit } });
    this.#lawLimit = this.#law.limit;
    this.#metMs = nowMs;
    this.#window.restart();
    // Requests that were admitted before are still in flight.
    if (inUse > this.#limit) this.#steps.begin(nowMs);
    else if (window !== undefined) this.#teach(window, totals, nowMs);
    this.#noteStep(nowMs);
    this.#moveLimit(nowMs);
  }

  #awaitSteps({ inFlight, fromMs }: FleetTotals, nowMs: number): void {
    if (!this.#steps.isAwaiting) return;
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

  #learn(totals: FleetTotals, nowMs: number): void {
    if (this.#steps.isClean(nowMs)) {
      // Requests that the configured defaults admitted waited in a queue that is not the limit's.
      const isStart = this.#rttMs === undefined && nowMs - this.#metMs < startMsMax;
      if (isStart && totals.inUse > crowdedRatio * this.#limit) this.#window.restart();
      this.#window.look({ inFlight: totals.inUse, rps: totals.allRps });
      const window = this.#window.end(nowMs);
      if (window !== undefined) this.#teach(window, totals, nowMs);
    }
    this.#noteStep(nowMs);
  }

  #teach(window: WindowedSample, { isPartial, askingCount }: FleetTotals, nowMs: number): void {
    this.#rttMs = window.rttMs ?? this.#rttMs;
    this.#law.update({ ...window, keptCount: this.#keptCount(askingCount, nowMs), isPartial });
  }

  #noteStep(nowMs: number): void {
    const before = this.#lawLimit;
    this.#lawLimit = this.#law.limit;
    if (this.#steps.note(before, this.#lawLimit, nowMs)) this.#window.restart();
  }

  /**
   * Permits that a probe leaves: one for each Envoy with requests. With requests at HIGH, their use
   * without a queue (Little's law), since a probe must not refuse them, and one for each Envoy.
   */
  #keptCount(askingCount: number, nowMs: number): number {
    let highCount = 0;
    for (const node of this.#nodes.all) {
      if (this.#nodes.isFresh(node, nowMs)) highCount += this.#highDemand(node) ?? 0;
    }
    if (highCount === 0) return askingCount;
    const rttMs = this.#rttMs ?? 0;
    const { minRttMs = rttMs } = this.#law.facts();
    const unqueuedRatio = rttMs > 0 ? Math.min(1, minRttMs / rttMs) : 1;
    return highCount * unqueuedRatio + this.#nodes.count;
  }

  #highDemand({ demand, highDemand }: FeedbackNode): number | undefined {
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

  *#share(nowMs: number): Generator<undefined, void> {
    // One at each priority of Envoy that has routes, because no share is 0.
    const least = this.settings.highRatio === undefined ? 1 : 2;
    const claims = yield* this.#claims(nowMs);
    const isMany = claims.length > turnNodes;
    const targets = yield* shareTargets(this.#limit, claims, least);
    if (isMany) yield;
    this.#noteHolders(targets, nowMs);
    if (isMany) yield;
    const wants = this.#wants(targets, nowMs);
    const sum = targets.reduce((all, { total }) => all + total, 0);
    const bound = Math.max(this.#limit, sum);
    const byDefaultMost = this.#byDefaultMost(nowMs);
    if (isMany) yield;
    this.#ledger.grant({ wants, bound, byDefaultMost, least }, nowMs);
    if (isMany) yield;
    this.#shares = grantedShares(targets, this.#shares);
  }

  #wants(targets: readonly ShareTarget<Claim>[], nowMs: number): readonly ShareWant[] {
    const { isCalm } = this.#holders;
    return targets.map(({ claim: { entry, owner, isUnruly }, total }): ShareWant => {
      const isAside = isUnruly || (!isCalm && this.#holders.isUnruly(owner, nowMs));
      // The reserved part is not its share. When it follows again, it begins with its share.
      const target = isUnruly ? Math.min(total, Math.max(1, entry.share)) : total;
      return { entry, target, reserved: isAside ? total : undefined };
    });
  }

  #noteHolders(targets: readonly ShareTarget<Claim>[], nowMs: number): void {
    const owners = [...this.#leaving.values()].map(({ owner }) => owner);
    const isOne = targets[0]?.claim.owner === targets.at(-1)?.claim.owner;
    const compared = isOne && owners.length === 0 ? [] : targets;
    const shares = compared.map(({ claim: { owner, entry }, total }) => {
      return { owner, total, mayHold: this.#ledger.mayHold(entry, nowMs) };
    });
    const { configuredShare } = this.settings;
    this.#holders.note(shares, { owners, configuredShare }, nowMs);
  }

  /**
   * The Envoys with a share. An Envoy that never had a request uses its configured default until it
   * has one, so a thousand of them take nothing from the others.
   */
  #askers(): readonly FeedbackNode[] {
    const askers: FeedbackNode[] = [];
    for (const node of this.#nodes.all) if (node.askedMs !== undefined) askers.push(node);
    return askers;
  }

  *#claims(nowMs: number): Generator<undefined, readonly Claim[]> {
    const askers = this.#askers();
    const isMany = askers.length > turnNodes;
    const reserved = this.#reserves(nowMs);
    const newcomers = newcomersOf(askers, nowMs);
    if (isMany) yield;
    const claims: Claim[] = [];
    // By index, because an iterator that outlives a turn creates an object for each Envoy.
    for (let i = 0; i < askers.length; i += 1) {
      const node = askers[i];
      if (node !== undefined) claims.push(this.#claim(node, reserved, nowMs));
      if (claims.length % claimsPerTurn === 0) yield;
    }
    if (newcomers.size === 0) return claims;
    if (isMany) yield;
    const known = askers.filter((node) => !newcomers.has(node) && this.#nodes.isFresh(node, nowMs));
    const demandOf = meanDemands(known);
    return claims.map((claim) => {
      if (!newcomers.has(claim.node)) return claim;
      return { ...claim, demand: Math.max(claim.demand, demandOf(claim.owner)) };
    });
  }

  #claim(node: FeedbackNode, unruly: ReadonlyMap<FeedbackNode, number>, nowMs: number): Claim {
    const { nodeId, owner, demand } = node;
    node.entry ??= this.#ledger.open(nodeId, nowMs);
    const aside = unruly.get(node);
    const isSilent = !this.#nodes.isFresh(node, nowMs);
    return {
      node,
      entry: node.entry,
      owner,
      demand,
      highDemand: this.#highDemand(node),
      reserved: aside ?? (isSilent ? node.entry.share : undefined),
      isUnruly: aside !== undefined,
    };
  }

  /**
   * The parts that are reserved for Envoys that hold more than their share and do not follow: all
   * that they hold, but more than half of the limit only if they use it. Otherwise one Envoy, with
   * Envoy's default of 1,024, would leave nothing to the others.
   */
  #reserves(nowMs: number): ReadonlyMap<FeedbackNode, number> {
    const unruly = new Map<FeedbackNode, number>();
    for (const node of this.#nodes.all) {
      if (node.entry === undefined || !this.#ledger.isUnruly(node.entry, nowMs)) continue;
      if (this.#nodes.isFresh(node, nowMs))
        unruly.set(node, this.#ledger.mayHold(node.entry, nowMs));
    }
    const most = Math.floor((unrulyRatioMax * this.#limit) / Math.max(1, unruly.size));
    for (const [node, mayHold] of unruly) {
      unruly.set(node, Math.min(mayHold, Math.max(most, Math.ceil(node.demand))));
    }
    return unruly;
  }

  /**
   * The same bound for each Envoy that is out of reach. The other Envoys keep their shares, and get
   * them back after a probe or a signal, even though a default of 1,024 exceeds the limit.
   */
  #byDefaultMost(nowMs: number): number {
    let count = 0;
    for (const { entry } of this.#nodes.all) {
      if (entry !== undefined && this.#ledger.mayHaveExpired(entry, nowMs)) count += 1;
    }
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
