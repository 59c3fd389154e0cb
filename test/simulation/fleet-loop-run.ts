import type { ConcurrencySettings } from "../../src/core/concurrency/concurrency-laws.js";
import type {
  NodeReport,
  NodeShare,
  ServiceShares,
  ShareSnapshot,
} from "../../src/core/feedback/feedback.js";
import { FleetLoop, lapsedSnapshot } from "../../src/core/feedback/feedback-loop.js";
import {
  defaultLoopTimes,
  type ServiceLoopSettings,
} from "../../src/core/feedback/feedback-settings.js";
import { FakeRandom } from "../support/fake-random.js";
import { decideOf } from "../support/node-reports.js";
import { type RecordFate, RecordLeader, ReplicaRecords } from "../support/replica-records.js";
import {
  type NodeTraffic,
  type ReportWeather,
  type SimulatedEnvoy,
  SimulatedFleet,
  tickMs,
} from "../support/simulated-fleet.js";

/** A fleet before services, and what happens to it. */
export interface FleetScenario {
  readonly nodeCount: number;
  readonly replicaCount: number;
  readonly services: readonly SimulatedService[];
  readonly configuredShare: number;
  readonly weather: ReportWeather;
  /** Whether replicas write records for the leader, some of them lost, or it is told at once. */
  readonly hasRecords: boolean;
  /** See `SimulatedFleetParts.ownerCount`. */
  readonly ownerCount?: number;
  /** Mishaps of single Envoys a second, over the fleet; see `mishaps`. */
  readonly mishapsPerSecond: number;
  /** Leaders that die a second, and of which the next one knows the last snapshot alone. */
  readonly leaderDeathsPerSecond: number;
  /** Envoys by their part of the traffic; undefined: all the same. */
  readonly trafficRatio?: (place: number, nowMs: number) => number;
}

/** An upstream with servers of its own, and what is asked of it. */
export interface SimulatedService {
  readonly law: ConcurrencySettings;
  readonly serverCount: number;
  readonly serviceMs: number;
  /** Requests that come, as a multiple of what it can serve at its start. */
  readonly loadRatio: number;
  readonly highRatio?: number;
  /** For the law `signal`: how often a second its reading jumps anywhere. */
  readonly jumpsPerSecond?: number;
}

/** What was seen of a service in one second. */
export interface ServiceSecond {
  readonly limit: number;
  readonly inFlight: number;
  /** Requests that were served, as a share of what its servers could have done. */
  readonly goodputRatio: number;
  /** Requests that Envoys refused, as a part of all that came. */
  readonly refusedRatio: number;
  /** What a request took in the mean. */
  readonly rttMs: number;
  readonly minRttMs: number | undefined;
}

/** How long what was decided may be active, in milliseconds: till it expires, and a little. */
const memoryMs = defaultLoopTimes.ttlMs + defaultLoopTimes.snapshotSpreadMs + 3_000;

/** The longest time between two leaders, in milliseconds. */
const interregnumMsMax = 6_000;

/** How long an Envoy may report before it has a share. */
const welcomeMsMax = 8_000;

/** How long a leader may take to hear that an Envoy has its share again. */
const heardMsMax = 3_000;

/** Violations that are kept of one run; the first one matters most. */
const violationsMax = 5;

interface AllowedBound {
  readonly atMs: number;
  readonly bound: number;
}

interface ServiceState {
  readonly name: string;
  readonly settings: SimulatedService;
  serverCount: number;
  serviceMs: number;
  rttMs: number;
  servedCount: number;
  offeredCount: number;
  inFlight: number;
  /** What all Envoys together were allowed, by when; the newest last. */
  bounds: readonly AllowedBound[];
  readonly seconds: ServiceSecond[];
  /** When each Envoy had its first share. */
  readonly joinedMs: Map<SimulatedEnvoy, number>;
  /** When each Envoy was last seen to go by its default: the leader hears of that later. */
  readonly lapsedMs: Map<SimulatedEnvoy, number>;
  /** By Envoy: what the first snapshot gave it that speaks of it, without a break since. */
  firstShares: ReadonlyMap<string, number>;
}

/** A fleet and its loop, from a seed, second by second; tells of everything that may not happen. */
export class FleetRun {
  readonly fleet: SimulatedFleet;
  readonly violations: string[] = [];
  readonly #scenario: FleetScenario;
  readonly #random: FakeRandom;
  readonly #states: readonly ServiceState[];
  readonly #records: readonly ReplicaRecords[];
  /** Draws what becomes of records. */
  readonly #fates: FakeRandom;
  #leader: RecordLeader | undefined;
  #leaderFromMs = 0;
  #nextUpdateMs: number;
  #term = 0;
  #snapshot: ShareSnapshot | undefined;
  #snapshotMs = 0;
  /** Whether the leader found no snapshot that held. */
  #hasBegunAnew = false;
  #pending: NodeReport[] = [];

  constructor(scenario: FleetScenario, seed: number) {
    this.#scenario = scenario;
    this.#random = new FakeRandom(seed);
    this.#states = scenario.services.map((settings, i) => ({
      name: `service-${i}`,
      settings,
      serverCount: settings.serverCount,
      serviceMs: settings.serviceMs,
      rttMs: settings.serviceMs,
      servedCount: 0,
      offeredCount: 0,
      inFlight: 0,
      bounds: [],
      seconds: [],
      joinedMs: new Map(),
      lapsedMs: new Map(),
      firstShares: new Map(),
    }));
    const { nodeCount, replicaCount, configuredShare, weather, ownerCount } = scenario;
    const isMerged = scenario.hasRecords;
    this.#records = Array.from({ length: replicaCount }, () => new ReplicaRecords());
    this.#fates = new FakeRandom(seed);
    const services = this.#states.map(({ name }) => name);
    const parts = { nodeCount, replicaCount, services, configuredShare, weather, ownerCount };
    this.fleet = new SimulatedFleet({ random: this.#random, ...parts, isMerged });
    this.#nextUpdateMs = this.#random.next() * 1_000;
  }

  /** The newest snapshot; undefined before the first one. */
  get snapshot(): ShareSnapshot | undefined {
    return this.#snapshot;
  }

  /** All seconds of a service until now. */
  seconds(place: number): readonly ServiceSecond[] {
    return this.#stateAt(place).seconds;
  }

  /** Another capacity from now on. */
  change(place: number, to: Partial<Pick<ServiceState, "serverCount" | "serviceMs">>): void {
    Object.assign(this.#stateAt(place), to);
  }

  /** The leader dies; after that long somebody else leads, who knows the last snapshot alone. */
  loseLeader(forMs: number): void {
    this.#leader = undefined;
    this.#leaderFromMs = this.fleet.nowMs + forMs;
  }

  /** Lives on for that long. @returns what was seen of the services in it */
  span(seconds: number): readonly (readonly ServiceSecond[])[] {
    const before = this.#states.map((state) => state.seconds.length);
    for (let i = 0; i < seconds && this.violations.length < violationsMax; i += 1) this.#second();
    return this.#states.map((state, i) => state.seconds.slice(before[i]));
  }

  #stateAt(place: number): ServiceState {
    const state = this.#states[place];
    if (state === undefined) throw new Error("a service that is not there");
    return state;
  }

  #second(): void {
    const { mishapsPerSecond, leaderDeathsPerSecond } = this.#scenario;
    for (let left = mishapsPerSecond; left > 0; left -= 1) {
      if (this.#random.next() < left) this.#befall();
    }
    if (this.#random.next() < leaderDeathsPerSecond) {
      this.loseLeader(this.#random.next() * interregnumMsMax);
    }
    for (let ms = 0; ms < 1_000; ms += tickMs) this.#tick();
    for (const state of this.#states) this.#note(state);
  }

  #tick(): void {
    for (const state of this.#states) this.#flow(state);
    const { hasRecords } = this.#scenario;
    const told = this.fleet.tick();
    const { nowMs } = this.fleet;
    if (hasRecords) {
      for (const [place, nodes] of told) this.#records[place]?.write(nodes, nowMs, this.#fate());
    }
    if (this.#leader === undefined && nowMs >= this.#leaderFromMs) this.#lead();
    if (this.#leader !== undefined) {
      this.#jump(this.#leader.loop);
      if (!hasRecords) for (const nodes of told.values()) this.#pending.push(...nodes);
      if (nowMs >= this.#nextUpdateMs) this.#update(this.#leader);
    }
    for (const state of this.#states) this.#check(state);
  }

  /** Calls of the store fail as often as reports are lost; half of them were carried out. */
  #fate(): RecordFate {
    const { lostRatio } = this.#scenario.weather;
    const draw = this.#fates.next();
    if (draw >= lostRatio) return "written";
    return draw < lostRatio / 2 ? "lost" : "unknown";
  }

  /** A new leader knows what the last one wrote, and nothing else. */
  #lead(): void {
    const isLapsed = this.fleet.nowMs - this.#snapshotMs >= defaultLoopTimes.ttlMs;
    // Whatever they had, they go by their defaults, and so begin anew.
    if (isLapsed) {
      for (const state of this.#states) {
        state.joinedMs.clear();
        state.firstShares = new Map();
      }
    }
    this.#hasBegunAnew = isLapsed;
    this.#term += 1;
    const services = this.#states.map(
      ({ name, settings }): ServiceLoopSettings => ({
        service: name,
        law: settings.law,
        maxInFlight: undefined,
        configuredShare: this.#scenario.configuredShare,
        highRatio: settings.highRatio,
        sigmoid: undefined,
        gate: undefined,
      }),
    );
    const last = this.#snapshot;
    const from = isLapsed && last !== undefined ? lapsedSnapshot(last) : last;
    const { nowMs } = this.fleet;
    const loop = new FleetLoop({
      term: this.#term,
      leaderId: `leader-${this.#term}`,
      services,
      ...(from === undefined ? {} : { from }),
      nowMs,
    });
    this.#leader = new RecordLeader(loop, nowMs);
    this.#pending = [];
  }

  /** Readings of `signal` that move as far as they like. */
  #jump(loop: FleetLoop): void {
    for (const { name, settings } of this.#states) {
      const chance = ((settings.jumpsPerSecond ?? 0) * tickMs) / 1_000;
      if (chance === 0 || this.#random.next() >= chance) continue;
      loop.read(name, { reading: this.#random.next(), nowMs: this.fleet.nowMs });
    }
  }

  #update(leader: RecordLeader): void {
    const { nowMs } = this.fleet;
    this.#nextUpdateMs = nowMs + 1_000;
    const before = this.#snapshot;
    const snapshot = this.#scenario.hasRecords
      ? leader.decide(this.#records, nowMs)
      : decideOf(leader.loop, this.#pending, nowMs);
    this.#pending = [];
    this.#snapshot = snapshot;
    this.#snapshotMs = nowMs;
    this.fleet.write(snapshot);
    for (const state of this.#states) {
      const shares = snapshot.services.get(state.name);
      this.#checkSnapshot(state, shares, before);
      const kept = state.bounds.filter(({ atMs }) => atMs >= nowMs - memoryMs);
      const all = shares?.shares;
      const bound = this.#boundOf(state, shares);
      const first = [...(all ?? [])].map(([nodeId, share]): readonly [string, number] => [
        nodeId,
        state.firstShares.get(nodeId) ?? totalOf(share),
      ]);
      state.firstShares = new Map(first);
      state.bounds = [...kept, { atMs: nowMs, bound }];
    }
  }

  /** Of several identities one may have more Envoys than its part, and one permit for each. */
  #boundOf(state: ServiceState, shares: ServiceShares | undefined): number {
    if (shares === undefined) return 0;
    const floors = leastOf(state) * shares.shares.size;
    if (this.#scenario.ownerCount === undefined) return Math.max(shares.limit, floors);
    return Math.max(shares.limit, Math.min(shares.limit + floors, sumOf(shares)));
  }

  #checkSnapshot(
    state: ServiceState,
    shares: ServiceShares | undefined,
    before: ShareSnapshot | undefined,
  ): void {
    const { name } = state;
    const least = leastOf(state);
    for (const [nodeId, share] of shares?.shares ?? []) {
      const isWhole = Number.isInteger(share.default) && Number.isInteger(share.high);
      if (!isWhole || share.default < 1 || share.high < 0) this.#violate(name, "no share at all");
      const isSameLeader = before?.term === this.#term || this.#hasBegunAnew;
      const former = isSameLeader ? undefined : before?.services.get(name);
      if (former === undefined) continue;
      const last = former.shares.get(nodeId);
      const atFirst = Math.max(least, this.#scenario.configuredShare);
      const had = last === undefined ? atFirst : totalOf(last);
      const now = totalOf(share);
      if (now > had) this.#violate(name, `a new leader's share jumps from ${had} to ${now}`);
    }
    const bound = this.#boundOf(state, shares);
    const sum = sumOf(shares);
    if (sum > bound) this.#violate(name, `shares of ${sum} above ${bound}`);
    if (shares !== undefined) this.#checkUnruly(state, shares, before?.services.get(name));
    const { nowMs } = this.fleet;
    for (const envoy of this.fleet.envoys) {
      const isDue = envoy.numbersTo !== undefined && nowMs - envoy.numbersSinceMs > welcomeMsMax;
      const isLeading = nowMs - this.#leaderFromMs > welcomeMsMax;
      if (isDue && isLeading && shares?.shares.has(envoy.id) !== true) {
        this.#violate(name, `${envoy.id} has no share`);
      }
    }
  }

  /** Who goes by its default counts so, up to half of the limit, and but for others' floors. */
  #checkUnruly(
    state: ServiceState,
    { limit, shares }: ServiceShares,
    before: ServiceShares | undefined,
  ): void {
    // Numbers that are lost make an Envoy silent, and then its share is all that is set aside.
    const { ownerCount, weather } = this.#scenario;
    if (ownerCount !== undefined || weather.lostRatio > 0) return;
    const { name } = state;
    const least = leastOf(state);
    let counted = sumOf({ shares });
    let byDefault = 0;
    let longCount = 0;
    let unrulyCount = 0;
    for (const envoy of this.fleet.envoys) {
      const share = shares.get(envoy.id);
      if (share === undefined) continue;
      // Of those who are silent their shares are set aside, too, and all of that may be too much.
      if (this.fleet.nowMs - envoy.numbersSinceMs < welcomeMsMax) return;
      if (envoy.numbersTo === undefined) return;
      const isLong = this.#isLongExpired(envoy);
      if (!this.fleet.hasShare(envoy, name)) state.lapsedMs.set(envoy, this.fleet.nowMs);
      const lapsedMs = state.lapsedMs.get(envoy) ?? Number.NEGATIVE_INFINITY;
      const hasLapsed = this.fleet.nowMs - lapsedMs < heardMsMax;
      if (isLong || hasLapsed || envoy.layersFrom === undefined) unrulyCount += 1;
      const last = before?.shares.get(envoy.id);
      const enforced = this.fleet.enforced(envoy, name);
      // A share above the default is the larger of both, until one of them changes.
      if (!isLong || last === undefined || totalOf(last) >= enforced) continue;
      counted -= totalOf(share);
      byDefault += enforced;
      longCount += 1;
    }
    if (longCount === 0) return;
    const aside = longCount * Math.floor(limit / 2 / unrulyCount);
    counted += Math.max(0, Math.min(byDefault, aside, limit - least * shares.size));
    const bound = Math.max(limit, least * shares.size);
    if (counted > bound) this.#violate(name, `shares of ${counted} above ${bound}, by default`);
  }

  /** It has told its numbers all the time, and gone by its default for longer than any wait. */
  #isLongExpired({ layer, layerUntilMs, numbersTo, numbersSinceMs }: SimulatedEnvoy): boolean {
    // Of a new leader's Envoys nobody knows when they would have run out: only when for sure.
    const ledMs = this.#leaderFromMs + defaultLoopTimes.ttlMs;
    const sinceMs = Math.max(layerUntilMs, numbersSinceMs, ledMs);
    const isDefault = layer !== undefined && numbersTo !== undefined;
    return isDefault && this.fleet.nowMs - sinceMs > longExpiredMs;
  }

  /** What Envoys may enforce now, next to what was ever allowed while it can be active. */
  #check(state: ServiceState): void {
    const { name, bounds, joinedMs, firstShares } = state;
    const shares = this.#snapshot?.services.get(name)?.shares;
    if (shares === undefined) return;
    const { nowMs } = this.fleet;
    let shared = 0;
    let byDefault = 0;
    let atFirst = 0;
    for (const envoy of this.fleet.envoys) {
      // Before its first share an Envoy goes by its default, and is not ours to count.
      if (!shares.has(envoy.id)) joinedMs.delete(envoy);
      else if (this.fleet.hasShare(envoy, name) && !joinedMs.has(envoy)) joinedMs.set(envoy, nowMs);
      const sinceMs = joinedMs.get(envoy);
      if (sinceMs === undefined || envoy.layer === undefined) continue;
      // One that has started again may be told once more by who does not know of its first share.
      if (nowMs < envoy.layerUntilMs && !envoy.layer.shares.has(name)) continue;
      const enforced = this.fleet.enforced(envoy, name);
      // What it begins with it gets at once: that is less than the default by which it went before.
      const first = nowMs - sinceMs < memoryMs ? (firstShares.get(envoy.id) ?? 0) : 0;
      if (this.fleet.hasShare(envoy, name)) shared += Math.max(0, enforced - first);
      else byDefault += enforced;
      atFirst += this.fleet.hasShare(envoy, name) ? Math.min(enforced, first) : 0;
    }
    const bound = bounds.reduce((most, one) => Math.max(most, one.bound), 0);
    if (shared > bound) this.#violate(name, `Envoys enforce ${shared} of ${bound}`);
    const all = shared + atFirst + byDefault;
    const known = this.#leader?.loop.mayHold(name, nowMs) ?? Number.POSITIVE_INFINITY;
    if (all > known) this.#violate(name, `Envoys enforce ${all}, and ${known} are accounted for`);
  }

  #violate(service: string, what: string): void {
    this.violations.push(`${this.fleet.nowMs} ms, ${service}: ${what}`);
  }

  /** A mishap of one Envoy, or the end of some. */
  #befall(): void {
    const { fleet } = this;
    const envoy = fleet.envoys[Math.floor(this.#random.next() * fleet.envoys.length)];
    if (envoy === undefined) return;
    const happen = mishaps[Math.floor(this.#random.next() * mishaps.length)];
    if (!envoy.isAlive) fleet.restart(envoy);
    else if (envoy.layersFrom === undefined || envoy.numbersTo === undefined) heal(fleet, envoy);
    else happen?.(fleet, envoy);
  }

  #flow(state: ServiceState): void {
    const { settings, serverCount, serviceMs, name } = state;
    const seconds = tickMs / 1_000;
    const perSecond = (settings.loadRatio * settings.serverCount * 1_000) / settings.serviceMs;
    const { trafficRatio } = this.#scenario;
    const alive = this.fleet.envoys.filter(({ isAlive }) => isAlive);
    let inFlight = 0;
    let served = 0;
    let offeredPerSecond = 0;
    for (const envoy of alive) {
      const traffic = envoy.traffic.get(name);
      if (traffic === undefined) continue;
      const ratio = trafficRatio?.(envoy.place, this.fleet.nowMs) ?? 1 / alive.length;
      const offered = perSecond * ratio * (0.9 + 0.2 * this.#random.next());
      offeredPerSecond += offered;
      served += flowAt(
        traffic,
        { offered, seconds, rttMs: state.rttMs },
        this.fleet.enforced(envoy, name),
      );
      inFlight += traffic.inFlight;
    }
    state.inFlight = inFlight;
    state.servedCount += served;
    state.offeredCount += offeredPerSecond * seconds;
    const noise = 0.97 + 0.06 * this.#random.next();
    const wantedMs = serviceMs * (1 + (inFlight / serverCount) ** 6) ** (1 / 6) * noise;
    // A queue grows and drains no faster than requests come and are served.
    const growMs = tickMs * Math.max(1, (perSecond * serviceMs) / serverCount / 1_000);
    state.rttMs = Math.max(state.rttMs - tickMs, Math.min(state.rttMs + growMs, wantedMs));
  }

  #note(state: ServiceState): void {
    const { name, servedCount, offeredCount, inFlight, serverCount, serviceMs, rttMs } = state;
    const shares = this.#snapshot?.services.get(name);
    state.seconds.push({
      limit: shares?.limit ?? 0,
      inFlight,
      goodputRatio: servedCount / ((serverCount * 1_000) / serviceMs),
      refusedRatio: offeredCount === 0 ? 0 : 1 - servedCount / offeredCount,
      rttMs,
      minRttMs: shares?.facts.minRttMs,
    });
    state.servedCount = 0;
    state.offeredCount = 0;
  }
}

/** What each Envoy has at least: one at each of its priorities that has routes. */
function leastOf({ settings }: ServiceState): number {
  return settings.highRatio === undefined ? 1 : 2;
}

function sumOf(all: Pick<ServiceShares, "shares"> | undefined): number {
  return [...(all?.shares.values() ?? [])].reduce((sum, share) => sum + totalOf(share), 0);
}

function totalOf(share: NodeShare): number {
  return share.default + share.high;
}

/** In which others have made room for an Envoy that goes by its default, in milliseconds. */
const longExpiredMs = 12_000;

type Mishap = (fleet: SimulatedFleet, envoy: SimulatedEnvoy) => void;

const mishaps: readonly Mishap[] = [
  (fleet, envoy) => fleet.connectLayers(envoy),
  (fleet, envoy) => fleet.connectNumbers(envoy),
  (fleet, envoy) => fleet.cutLayers(envoy),
  (fleet, envoy) => fleet.cutNumbers(envoy),
  (fleet, envoy) => {
    fleet.cutLayers(envoy);
    fleet.cutNumbers(envoy);
  },
  (fleet, envoy) => fleet.kill(envoy),
  (fleet, envoy) => fleet.restart(envoy),
  (fleet) => {
    fleet.addEnvoy();
  },
];

function heal(fleet: SimulatedFleet, envoy: SimulatedEnvoy): void {
  if (envoy.layersFrom === undefined) fleet.connectLayers(envoy);
  if (envoy.numbersTo === undefined) fleet.connectNumbers(envoy);
}

/** Requests of one Envoy in one tick, by Little's law. @returns how many were served */
function flowAt(
  traffic: NodeTraffic,
  { offered, seconds, rttMs }: { offered: number; seconds: number; rttMs: number },
  enforced: number,
): number {
  const inFlight = Math.min(enforced, (offered * rttMs) / 1_000);
  const rps = (inFlight / rttMs) * 1_000;
  const served = rps * seconds;
  traffic.inFlight = inFlight;
  traffic.rps = rps;
  traffic.servedCount += served;
  traffic.latencySumMs += served * rttMs;
  traffic.refusedCount += Math.max(0, offered - rps) * seconds;
  return served;
}
