import { type Charge, levelAt, unitsPerHit } from "../../src/core/limits/bucket.js";
import { regionalBurst, regionalCharge } from "../../src/core/limits/lending.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import { epochWindows, windowAt } from "../../src/core/limits/window.js";
import { Lender } from "../../src/fleet/regions/lender.js";
import type { StoreOutcome, StoreRequest } from "../../src/store/limit-store.js";
import { FakeRandom } from "../support/fake-random.js";
import { SimulatedTime } from "../support/simulated-time.js";
import { Dice } from "./dice.js";
import { GlobalBound, OwnDemandBound, regionalBursts } from "./region-bounds.js";
import {
  drawRegions,
  endMs,
  phaseCount,
  phaseMs,
  type RegionFault,
  type RegionScenario,
  regionCount,
} from "./region-scenarios.js";
import { RegionClock, RegionLink, RegionStore, type Weather } from "./region-store.js";

const tickMs = 20;

/** The time after a change of demand in which lending follows it. */
const settleMs = 2_000;

/** What one phase asked for and got after it had settled. */
export interface PhaseUse {
  readonly askedHits: number;
  readonly admittedHits: number;
  /** The most that the rate allows, or what was asked. */
  readonly dueHits: number;
  /** By how much buckets more than half full became emptier: regions first restore that half. */
  readonly restoredHits: number;
  /** Whether the promise of 95 % applies. */
  readonly isPromised: boolean;
}

export interface RegionReport {
  readonly seed: number;
  readonly scenario: RegionScenario;
  readonly violations: readonly string[];
  readonly phases: readonly PhaseUse[];
  readonly borrowedHits: number;
  readonly lostHits: number;
  /** The most hits in transit at once, in parts of the sum of bursts. */
  readonly transitRatio: number;
  /** Times that a region was cut off, asked for more than its share and got that. */
  readonly cutOffCount: number;
}

/** Runs one seed from its beginning to its end; the same seed is the same run. */
export async function runRegions(seed: number): Promise<RegionReport> {
  const run = new RegionRun(seed);
  await run.time.runUntil(endMs);
  return run.report();
}

interface Region {
  readonly index: number;
  readonly store: RegionStore;
  readonly storeClock: RegionClock;
  /** To each region, this one too. */
  readonly weather: readonly Weather[];
  readonly replicas: Replica[];
}

interface Replica {
  readonly clock: RegionClock;
  readonly lender: Lender;
  readonly links: readonly RegionLink[];
}

/** One key of the limit, over all regions. */
interface RunKey {
  readonly name: LimitKey;
  readonly bound: GlobalBound;
  readonly own: readonly OwnDemandBound[];
  /** Of windows: hits admitted by start of the window, by the clock of each region. */
  readonly windows: Map<number, number>;
  readonly asked: number[];
  readonly admitted: number[];
  readonly restored: number[];
}

/** A time in which a region was alone, with more demand for a key than its share. */
interface CutOff {
  readonly region: number;
  readonly key: RunKey;
  readonly untilMs: number;
  readonly dueHits: number;
  admittedHits: number;
}

class RegionRun {
  readonly time = new SimulatedTime();
  readonly #seed: number;
  readonly #random: FakeRandom;
  readonly #dice: Dice;
  readonly #scenario: RegionScenario;
  readonly #regions: Region[] = [];
  readonly #keys: RunKey[];
  readonly #violations: string[] = [];
  readonly #isWindowed: boolean;
  readonly #wholeBurst: number;
  #cutOffs: CutOff[] = [];
  #cutOffCount = 0;
  #endedBorrowed = 0;
  #endedLost = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = new FakeRandom(seed);
    this.#dice = new Dice(this.#random);
    this.#scenario = drawRegions(this.#dice);
    const { limit, keyCount } = this.#scenario;
    this.#isWindowed = limit.algorithm !== undefined;
    this.#wholeBurst = regionalBursts(limit, regionCount).reduce((sum, one) => sum + one, 0);
    this.#keys = Array.from({ length: keyCount }, (_, i) => this.#createKey(`2g1:r1:k${i}`));
    for (let index = 0; index < regionCount; index += 1) this.#regions.push(this.#create(index));
    for (const region of this.#regions) {
      const count = this.#scenario.replicaCounts[region.index] ?? 1;
      for (let i = 0; i < count; i += 1) region.replicas.push(this.#startReplica(region));
    }
    for (const region of this.#regions) this.time.after(0, () => this.#tick(region));
    for (let phase = 0; phase < phaseCount; phase += 1) {
      const startMs = phase * phaseMs + settleMs;
      this.time.after(startMs, () => this.#weigh(phase, 1));
      this.time.after(startMs + phaseMs - settleMs, () => this.#weigh(phase, -1));
    }
    for (const fault of this.#scenario.faults) {
      this.time.after(fault.atMs, () => this.#strike(fault));
    }
  }

  report(): RegionReport {
    const lendings = this.#regions.flatMap(({ replicas }) =>
      replicas.flatMap(({ lender }) => lender.regions()),
    );
    const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
    const transits = this.#keys.map(({ bound }) => bound.inTransitMax / this.#wholeBurst);
    return {
      seed: this.#seed,
      scenario: this.#scenario,
      violations: this.#violations,
      phases: this.#keys.flatMap((key) => this.#phasesOf(key)),
      borrowedHits: this.#endedBorrowed + sum(lendings.map(({ borrowedHits }) => borrowedHits)),
      lostHits: this.#endedLost + sum(lendings.map(({ lostHits }) => lostHits)),
      transitRatio: Math.max(...transits),
      cutOffCount: this.#cutOffCount,
    };
  }

  #createKey(name: string): RunKey {
    const { limit } = this.#scenario;
    const bound = new GlobalBound(limit, regionCount);
    const own = this.#perRegion(
      (index) => new OwnDemandBound(limit, { index, count: regionCount }),
    );
    const zeros = Array.from({ length: phaseCount }, () => 0);
    const counts = { asked: [...zeros], admitted: [...zeros], restored: [...zeros] };
    return { name: name as LimitKey, bound, own, windows: new Map(), ...counts };
  }

  #create(index: number): Region {
    const storeClock = this.#clock(index);
    const { latencyMs } = this.#scenario;
    const weather = this.#perRegion((other) => ({
      latencyMs: other === index ? 0.3 : latencyMs,
      areRequestsCut: false,
      areRepliesCut: false,
      lossRatio: 0,
    }));
    return { index, store: new RegionStore(storeClock), storeClock, weather, replicas: [] };
  }

  #clock(region: number): RegionClock {
    const skewUs = this.#scenario.skewsUs[region] ?? 0;
    return new RegionClock(this.time, this.#dice.below(1_000_000), skewUs);
  }

  #startReplica(region: Region): Replica {
    const clock = this.#clock(region.index);
    const links = this.#regions.map((target) => this.#link(region, target, clock));
    const peers = links.flatMap((store, i) =>
      i === region.index ? [] : [{ name: `r${i}`, store }],
    );
    const store = links[region.index];
    if (store === undefined) throw new Error("a link to the own store");
    const lender = new Lender({
      region: `r${region.index}`,
      store,
      peers,
      clock,
      random: this.#random,
      replicaCount: () => region.replicas.length,
    });
    return { clock, lender, links };
  }

  #link(region: Region, target: Region, clock: RegionClock): RegionLink {
    const weather = region.weather[target.index];
    if (weather === undefined) throw new Error("weather to each region");
    const isOwn = region === target;
    return new RegionLink({
      time: this.time,
      clock,
      target: target.store,
      weather,
      next: () => this.#random.next(),
      decided: (batch, outcomes) => {
        if (!isOwn) return this.#lent(batch, outcomes);
        this.#creditsEnd(batch);
        return () => {};
      },
      dropped: (batch) => {
        if (isOwn) this.#creditsEnd(batch);
      },
    });
  }

  /** Hits were charged for another region. @returns what happens when it never learns of it */
  #lent(batch: readonly StoreRequest[], outcomes: readonly StoreOutcome[]): () => void {
    const moved: { readonly key: RunKey; readonly hits: number }[] = [];
    for (const [i, { charges }] of batch.entries()) {
      const outcome = outcomes[i];
      const key = this.#keys.find(({ name }) => name === charges[0]?.key);
      if (outcome?.kind !== "decided" || key === undefined) continue;
      const hits = outcome.result.grantedCount * (charges[0]?.cost ?? 0);
      moved.push({ key, hits });
      key.bound.move(hits, this.time.nowMs);
    }
    return () => {
      for (const { key, hits } of moved) key.bound.move(-hits, this.time.nowMs);
    };
  }

  #creditsEnd(batch: readonly StoreRequest[]): void {
    for (const { charges } of batch) {
      const [charge] = charges;
      const key = this.#keys.find(({ name }) => name === charge?.key);
      if (charge?.isRefund === true) key?.bound.move(-charge.cost, this.time.nowMs);
    }
  }

  #tick(region: Region): void {
    const { demandHz, dutyRatios } = this.#scenario;
    const phase = Math.min(phaseCount - 1, Math.floor(this.time.nowMs / phaseMs));
    for (const [i, key] of this.#keys.entries()) {
      const hz = demandHz[phase]?.[i]?.[region.index] ?? 0;
      const duty = dutyRatios[phase]?.[i] ?? 1;
      const isOn = this.time.nowMs % 1_000 < duty * 1_000;
      const mean = isOn ? ((hz / duty) * tickMs) / 1_000 : 0;
      const hits = Math.floor(2 * mean * this.#random.next() + this.#random.next());
      if (mean > 0 && hits > 0) this.#ask(region, { key, hits, phase });
    }
    this.time.after(tickMs * (0.5 + this.#random.next()), () => this.#tick(region));
  }

  /** Adds what buckets hold above their half to what a phase restored, or takes it away. */
  #weigh(phase: number, sign: 1 | -1): void {
    for (const region of this.#regions) {
      for (const key of this.#keys) {
        const charge = this.#chargeOf(key.name, region, region.storeClock);
        void region.store.bucket(key.name).then((found) => {
          if (found === undefined) return;
          const levelHits = levelAt(charge, found.bucket, found.nowUs) / unitsPerHit;
          const aboveHits = Math.max(0, levelHits - charge.burst / 2);
          key.restored[phase] = (key.restored[phase] ?? 0) + sign * aboveHits;
        });
      }
    }
  }

  #chargeOf(key: LimitKey, region: Region, clock: RegionClock): Charge {
    const { hits, periodUs, burst } = this.#scenario.limit;
    const windows = this.#isWindowed ? epochWindows(periodUs, clock.epochUs()) : undefined;
    const fixed = { cost: 1, role: "enforce", isRefund: false, peekExhausted: false } as const;
    const share = { index: region.index, count: regionCount };
    return regionalCharge({ key, hits, periodUs, burst, windows, ...fixed }, share);
  }

  #ask(region: Region, { key, hits, phase }: Asked): void {
    if (this.time.nowMs % phaseMs >= settleMs) key.asked[phase] = (key.asked[phase] ?? 0) + hits;
    if (region.store.state !== "up") return;
    const replica = this.#dice.pick(region.replicas);
    const charge = this.#chargeOf(key.name, region, replica.clock);
    const batch = this.#isWindowed
      ? Array.from({ length: Math.min(hits, 40) }, () => ({ charges: [charge], multiplicity: 1 }))
      : [{ charges: [charge], multiplicity: hits }];
    const decided = (outcomes: readonly StoreOutcome[]): void => {
      for (const [i, outcome] of outcomes.entries()) {
        const askedHits = batch[i]?.multiplicity ?? 1;
        this.#noteDecided({ region, replica, key, phase, charge, askedHits }, outcome);
      }
    };
    region.store.arrive({ batch, decided, dropped: () => {} });
  }

  #noteDecided(
    { region, replica, key, phase, charge, askedHits }: DecidedAsk,
    outcome: StoreOutcome,
  ): void {
    if (outcome.kind !== "decided") return;
    const { nowMs } = this.time;
    const { grantedCount, results, nowUs } = outcome.result;
    const refusedHits = askedHits - grantedCount;
    if (nowMs % phaseMs >= settleMs) {
      key.admitted[phase] = (key.admitted[phase] ?? 0) + grantedCount;
    }
    for (const cutOff of this.#cutOffs) {
      if (cutOff.region === region.index && cutOff.key === key) cutOff.admittedHits += grantedCount;
    }
    if (this.#isWindowed) {
      const { startUs } = windowAt(charge.windows ?? epochWindows(1, 0), nowUs);
      const admitted = (key.windows.get(startUs) ?? 0) + grantedCount;
      key.windows.set(startUs, admitted);
      if (admitted > this.#wholeBurst) this.#violate(`admitted ${admitted} in a window`);
    } else {
      if (!key.bound.admit(grantedCount, nowMs)) this.#violate("admitted more than the bound");
      if (key.own[region.index]?.ask(askedHits, refusedHits, nowMs) === false) {
        this.#violate(`region ${region.index} refused demand within its own share`);
      }
    }
    const [result] = results;
    if (result === undefined) return;
    const { limit } = this.#scenario;
    if (grantedCount > 0) {
      const within = { isOver: false, bucket: result.bucket };
      const noted = { ...charge, cost: grantedCount };
      replica.lender.note({ limit, charge: noted, result: within, nowUs });
    }
    if (refusedHits === 0) return;
    replica.lender.note({ limit, charge: { ...charge, cost: refusedHits }, result, nowUs });
  }

  #strike({ kind, forMs, region: index, other, atMs }: RegionFault): void {
    const region = this.#regions[index];
    if (region === undefined) return;
    const links = this.#regions.flatMap((one) =>
      one.weather.filter((_, i) => i !== one.index && (i === index || one.index === index)),
    );
    const pair = [region.weather[other], this.#regions[other]?.weather[index]];
    switch (kind) {
      case "pairCut":
        for (const weather of pair) this.#cut(weather, { forMs, requests: true, replies: true });
        return;
      case "oneWayCut":
        // What the region sends is lost: its own requests, and its store's replies.
        this.#cut(pair[0], { forMs, requests: true, replies: false });
        this.#cut(pair[1], { forMs, requests: false, replies: true });
        return;
      case "isolation":
        for (const weather of links) this.#cut(weather, { forMs, requests: true, replies: true });
        this.#watchCutOff(region, atMs + forMs);
        return;
      case "storeStopped":
        region.store.stop();
        this.time.after(forMs, () => region.store.start());
        return;
      case "storeKilled":
        void this.#kill(region);
        this.time.after(forMs, () => region.store.start());
        return;
      case "loss":
        for (const weather of links) {
          weather.lossRatio = 0.3;
          this.time.after(forMs, () => {
            weather.lossRatio = 0;
          });
        }
        return;
      case "restart":
        this.#restart(region);
    }
  }

  #cut(weather: Weather | undefined, { forMs, requests, replies }: Cut): void {
    if (weather === undefined) return;
    if (requests) weather.areRequestsCut = true;
    if (replies) weather.areRepliesCut = true;
    this.time.after(forMs, () => {
      if (requests) weather.areRequestsCut = false;
      if (replies) weather.areRepliesCut = false;
    });
  }

  /** What its buckets held may be admitted again. */
  async #kill(region: Region): Promise<void> {
    if (region.store.state === "down") return;
    const levels = this.#keys.map(({ name }) => region.store.bucket(name));
    region.store.kill();
    for (const [i, found] of (await Promise.all(levels)).entries()) {
      const key = this.#keys[i];
      if (found === undefined || key === undefined) continue;
      const charge = this.#chargeOf(key.name, region, region.storeClock);
      const hits = levelAt(charge, found.bucket, found.nowUs) / unitsPerHit;
      key.bound.forgive(hits);
      if (charge.windows === undefined) continue;
      const { startUs } = windowAt(charge.windows, found.nowUs);
      key.windows.set(startUs, (key.windows.get(startUs) ?? 0) - hits);
    }
  }

  #restart(region: Region): void {
    const replica = region.replicas.shift();
    if (replica === undefined) return;
    replica.clock.stop();
    for (const link of replica.links) link.isEnded = true;
    for (const { borrowedHits, lostHits } of replica.lender.regions()) {
      this.#endedBorrowed += borrowedHits;
      this.#endedLost += lostHits;
    }
    region.replicas.push(this.#startReplica(region));
  }

  /** Of a region that is alone, and asks for more than its share all the time. */
  #watchCutOff(region: Region, endsMs: number): void {
    const { limit, demandHz, dutyRatios } = this.#scenario;
    const phase = Math.floor(this.time.nowMs / phaseMs);
    const untilMs = Math.min(endsMs, (phase + 1) * phaseMs);
    const shareHz = limit.hits / (limit.periodUs / 1_000_000) / regionCount;
    const share = { index: region.index, count: regionCount };
    const isRoomy = regionalBurst(limit.burst, share) > 3 * ((shareHz * tickMs) / 1_000) + 3;
    if (this.#isWindowed || !isRoomy || untilMs - this.time.nowMs < 1_500) return;
    for (const [i, key] of this.#keys.entries()) {
      const hz = demandHz[phase]?.[i]?.[region.index] ?? 0;
      if (hz < 1.5 * shareHz || dutyRatios[phase]?.[i] !== 1) continue;
      const dueHits = 0.95 * ((untilMs - this.time.nowMs) / 1_000) * shareHz - 5;
      const cutOff = { region: region.index, key, untilMs, dueHits, admittedHits: 0 };
      this.#cutOffs.push(cutOff);
      const areStoresWhole = this.#scenario.faults.every(
        (fault) => !fault.kind.startsWith("store") || fault.region !== region.index,
      );
      this.time.after(untilMs - this.time.nowMs, () => {
        this.#cutOffs = this.#cutOffs.filter((one) => one !== cutOff);
        if (!areStoresWhole) return;
        this.#cutOffCount += 1;
        if (cutOff.admittedHits >= dueHits) return;
        this.#violate(`cut off, region ${region.index} admitted ${cutOff.admittedHits}`);
      });
    }
  }

  #phasesOf(key: RunKey): readonly PhaseUse[] {
    const { limit, latencyMs, faults, dutyRatios } = this.#scenario;
    const hz = limit.hits / (limit.periodUs / 1_000_000);
    const seconds = (phaseMs - settleMs) / 1_000;
    const cycleSeconds = 0.15 + (2 * latencyMs) / 1_000;
    const isRoomy =
      limit.burst >= regionCount * hz * cycleSeconds && limit.burst >= 4 * regionCount;
    const index = this.#keys.indexOf(key);
    return key.asked.map((askedHits, phase): PhaseUse => {
      const isFair = faults.length === 0 || phase === phaseCount - 1;
      const isSteady = dutyRatios[phase]?.[index] === 1;
      return {
        askedHits,
        admittedHits: key.admitted[phase] ?? 0,
        dueHits: Math.min(askedHits, hz * seconds),
        restoredHits: key.restored[phase] ?? 0,
        isPromised: isFair && isSteady && isRoomy && !this.#isWindowed,
      };
    });
  }

  #violate(what: string): void {
    if (this.#violations.length < 10) {
      this.#violations.push(`${Math.round(this.time.nowMs)} ms: ${what}`);
    }
  }

  #perRegion<T>(make: (region: number) => T): readonly T[] {
    return Array.from({ length: regionCount }, (_, region) => make(region));
  }
}

interface Asked {
  readonly key: RunKey;
  readonly hits: number;
  readonly phase: number;
}

interface DecidedAsk {
  readonly region: Region;
  readonly replica: Replica;
  readonly key: RunKey;
  readonly phase: number;
  readonly charge: Charge;
  readonly askedHits: number;
}

interface Cut {
  readonly forMs: number;
  readonly requests: boolean;
  readonly replies: boolean;
}
