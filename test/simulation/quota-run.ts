import type {
  QuotaAssignment,
  QuotaChange,
  QuotaHolder,
  QuotaLimit,
} from "../../src/core/quota/quota.js";
import { QuotaHolders } from "../../src/core/quota/quota-holders.js";
import { QuotaPool } from "../../src/core/quota/quota-pool.js";
import { type LeaseRecords, takeClaim } from "../../src/store/coordination/quota-lease-law.js";
import { FakeRandom } from "../support/fake-random.js";
import { quotaBounds, quotaTickMs } from "../support/quota-bounds.js";
import { Dice } from "./dice.js";
import { SimulatedBucket, type SimulatedUsage } from "./quota-envoy.js";
import { DrainingLevel, QuotaStore } from "./quota-store.js";

/** How requests come to the buckets of a pool. */
export type DemandShape = "even" | "skewed" | "shifting" | "idle" | "bursts";

/** A pool, and what is asked of it. */
export interface PoolScenario {
  readonly limit: QuotaLimit;
  readonly callsShare: number;
  /** Hits a second that callers of the same limit ask for. */
  readonly callsHz: number;
  /** One for each of its buckets. */
  readonly weights: readonly number[];
  /** Hits a second that one bucket is asked for. */
  readonly demandHz: (place: number, nowMs: number) => number;
  readonly shape: DemandShape;
}

/** What may go wrong, until `untilMs`. */
export interface QuotaWeather {
  readonly untilMs: number;
  /** Reports that never arrive, and that arrive up to `lateMsMax` late: parts of all. */
  readonly lostRatio: number;
  readonly lateRatio: number;
  readonly lateMsMax: number;
  /** A second, over the fleet. */
  readonly envoyDeaths: number;
  readonly streamBreaks: number;
  readonly replicaDeaths: number;
  readonly outages: number;
}

export interface QuotaScenario {
  readonly envoyCount: number;
  readonly replicaCount: number;
  readonly pools: readonly PoolScenario[];
  readonly weather: QuotaWeather;
}

/** What was seen of a pool in a span. */
export interface PoolSpan {
  /** Hits that assignments let pass, by bucket. */
  readonly allowed: readonly number[];
  readonly denied: readonly number[];
  readonly callHits: number;
}

const stepMs = 100;
const ttlMs = 10_000;
const leaseMs = ttlMs + 5_000;

/** How long an Envoy may take to find another replica. */
const reconnectMsMax = 6_000;

interface Bucket {
  readonly place: number;
  readonly pool: PoolState;
  readonly envoy: Envoy;
  readonly weight: number;
  state: SimulatedBucket;
  /** Requests that did not come to a whole one yet. */
  rest: number;
  allowed: number;
  denied: number;
}

interface Envoy {
  readonly buckets: Bucket[];
  /** Another number for each stream; undefined while it has none. */
  stream: number | undefined;
  replica: Replica | undefined;
  nextStreamMs: number;
  isDead: boolean;
  /** When its last report arrives. */
  arrivalMs: number;
}

interface PoolState {
  readonly name: string;
  readonly scenario: PoolScenario;
  readonly buckets: Bucket[];
  readonly store: QuotaStore;
  readonly tickMs: number;
  readonly records: LeaseRecords;
  /** What assignments let pass, against what may be handed out; all, against the limit. */
  readonly envelope: DrainingLevel;
  readonly total: DrainingLevel;
  callRest: number;
  callHits: number;
}

interface Replica {
  readonly id: string;
  readonly holders: QuotaHolders;
  readonly pools: Map<PoolState, QuotaPool>;
  readonly known: Map<Bucket, { readonly holder: QuotaHolder; readonly stream: number }>;
  readonly bucketOf: Map<QuotaHolder, Bucket>;
  readonly left: Map<Bucket, { readonly holder: QuotaHolder; readonly untilMs: number }>;
  readonly phaseMs: number;
  beat: number;
  upMs: number;
}

type Message =
  | {
      readonly kind: "report";
      readonly bucket: Bucket;
      readonly stream: number;
      readonly replica: Replica;
      readonly usage: SimulatedUsage;
    }
  | {
      readonly kind: "assign";
      readonly bucket: Bucket;
      readonly stream: number;
      readonly assignment: QuotaAssignment | undefined;
    };

/** Violations that are kept of one run. */
const violationsMax = 5;

/** Envoys, replicas and a store, from a seed; tells of everything that may not happen. */
export class QuotaRun {
  readonly violations: string[] = [];
  nowMs = 0;
  reportCount = 0;
  changeCount = 0;
  /** The worst of all pools, as a part of what is promised: of the envelope, and of the total. */
  readonly worst = { envelope: 0, total: 0 };
  readonly #scenario: QuotaScenario;
  readonly #dice: Dice;
  readonly #random: FakeRandom;
  readonly #pools: readonly PoolState[];
  readonly #envoys: readonly Envoy[];
  readonly #mail = new Map<number, Message[]>();
  #replicas: Replica[];
  #streamCount = 0;
  #outageUntilMs = 0;

  constructor(scenario: QuotaScenario, seed: number) {
    this.#scenario = scenario;
    this.#random = new FakeRandom(seed);
    this.#dice = new Dice(this.#random);
    this.#replicas = Array.from({ length: scenario.replicaCount }, () => this.#newReplica());
    this.#envoys = Array.from({ length: scenario.envoyCount }, () => this.#newEnvoy());
    this.#pools = scenario.pools.map((pool, i) => this.#newPool(pool, i));
  }

  /** Lives on for that long. @returns what was seen of each pool in it */
  span(seconds: number): readonly PoolSpan[] {
    for (const pool of this.#pools) {
      pool.callHits = 0;
      for (const bucket of pool.buckets) {
        bucket.allowed = 0;
        bucket.denied = 0;
      }
    }
    const endMs = this.nowMs + seconds * 1_000;
    while (this.nowMs < endMs && this.violations.length < violationsMax) this.#step();
    return this.#pools.map(({ buckets, callHits }) => ({
      allowed: buckets.map(({ allowed }) => allowed),
      denied: buckets.map(({ denied }) => denied),
      callHits,
    }));
  }

  /** The level of a pool in the store. */
  level(place: number): number {
    return this.#pools[place]?.store.level(this.nowMs) ?? 0;
  }

  #step(): void {
    this.nowMs += stepMs;
    if (this.nowMs < this.#scenario.weather.untilMs) this.#befall();
    for (const envoy of this.#envoys) this.#connect(envoy);
    const mail = this.#mail.get(this.nowMs) ?? [];
    this.#mail.delete(this.nowMs);
    for (const message of mail) this.#deliver(message);
    for (const pool of this.#pools) this.#traffic(pool);
    for (const replica of this.#replicas) if (this.nowMs >= replica.upMs) this.#drive(replica);
    for (const pool of this.#pools) this.#check(pool);
  }

  #newReplica(): Replica {
    return {
      id: this.#random.id(),
      holders: new QuotaHolders(),
      pools: new Map(),
      known: new Map(),
      bucketOf: new Map(),
      left: new Map(),
      phaseMs: this.#dice.below(10) * stepMs,
      beat: 0,
      upMs: this.nowMs,
    };
  }

  #newEnvoy(): Envoy {
    return {
      buckets: [],
      stream: undefined,
      replica: undefined,
      nextStreamMs: 0,
      isDead: false,
      arrivalMs: 0,
    };
  }

  #newPool(scenario: PoolScenario, i: number): PoolState {
    const { weather, replicaCount } = this.#scenario;
    const parts = {
      limits: [scenario.limit],
      ttlMs,
      holdersMax: scenario.weights.length,
      replicasMax: replicaCount + 1,
      lateMs: weather.lateMsMax + 2 * stepMs,
      hasCalls: scenario.callsHz > 0,
    };
    // Who is on its way to another replica reports later by that.
    const awayMs = weather.streamBreaks + weather.replicaDeaths > 0 ? reconnectMsMax : 0;
    const { envelope } = quotaBounds(parts);
    const { total } = quotaBounds({ ...parts, lateMs: parts.lateMs + awayMs });
    const pool: PoolState = {
      name: `pool-${i}`,
      scenario,
      buckets: [],
      store: new QuotaStore(scenario.limit),
      tickMs: Math.ceil(quotaTickMs([scenario.limit]) / stepMs) * stepMs,
      records: new Map(),
      envelope: new DrainingLevel(envelope),
      total: new DrainingLevel(total),
      callRest: this.#dice.between(0, 1),
      callHits: 0,
    };
    const offset = this.#dice.below(this.#envoys.length);
    scenario.weights.forEach((weight, place) => {
      const envoy = this.#envoys[(offset + place) % this.#envoys.length];
      if (envoy === undefined) return;
      const rest = this.#dice.between(0, 1);
      const state = new SimulatedBucket();
      const bucket: Bucket = { place, pool, envoy, weight, state, rest, allowed: 0, denied: 0 };
      pool.buckets.push(bucket);
      envoy.buckets.push(bucket);
    });
    return pool;
  }

  #befall(): void {
    const { envoyDeaths, streamBreaks, replicaDeaths, outages } = this.#scenario.weather;
    const chance = (perSecond: number): boolean => this.#dice.chance((perSecond * stepMs) / 1_000);
    if (chance(envoyDeaths)) this.#killEnvoy(this.#dice.pick(this.#envoys));
    if (chance(streamBreaks)) this.#breakStream(this.#dice.pick(this.#envoys));
    if (chance(replicaDeaths)) this.#killReplica(this.#dice.below(this.#replicas.length));
    if (chance(outages)) this.#outageUntilMs = this.nowMs + this.#dice.between(1_000, 25_000);
  }

  /** All that it admitted and did not tell is lost. */
  #killEnvoy(envoy: Envoy): void {
    this.#breakStream(envoy);
    envoy.isDead = true;
    envoy.nextStreamMs = this.nowMs + this.#dice.between(500, 20_000);
    for (const bucket of envoy.buckets) {
      bucket.pool.total.forgive(bucket.state.unreportedHits);
      bucket.state = new SimulatedBucket();
    }
  }

  #breakStream(envoy: Envoy): void {
    const { replica } = envoy;
    for (const bucket of envoy.buckets) if (replica !== undefined) this.#leave(replica, bucket);
    envoy.stream = undefined;
    envoy.replica = undefined;
    envoy.nextStreamMs = this.nowMs + this.#dice.between(0, reconnectMsMax);
  }

  #leave(replica: Replica, bucket: Bucket): void {
    const known = replica.known.get(bucket);
    const pool = replica.pools.get(bucket.pool);
    if (known === undefined || pool === undefined) return;
    replica.known.delete(bucket);
    replica.bucketOf.delete(known.holder);
    const untilMs = pool.leave(known.holder, this.nowMs);
    replica.left.set(bucket, { holder: known.holder, untilMs });
  }

  #killReplica(place: number): void {
    const dead = this.#replicas[place];
    if (dead === undefined) return;
    for (const [state, pool] of dead.pools) state.total.forgive(pool.dueHits(this.nowMs));
    const reborn = this.#newReplica();
    reborn.upMs = this.nowMs + this.#dice.between(500, 10_000);
    this.#replicas = this.#replicas.map((replica) => (replica === dead ? reborn : replica));
    for (const envoy of this.#envoys) {
      if (envoy.replica !== dead) continue;
      envoy.stream = undefined;
      envoy.replica = undefined;
      envoy.nextStreamMs = this.nowMs + this.#dice.between(0, reconnectMsMax);
    }
  }

  #connect(envoy: Envoy): void {
    if (envoy.stream !== undefined || this.nowMs < envoy.nextStreamMs) return;
    const up = this.#replicas.filter(({ upMs }) => this.nowMs >= upMs);
    if (up.length === 0) return;
    envoy.isDead = false;
    envoy.arrivalMs = this.nowMs;
    this.#streamCount += 1;
    envoy.stream = this.#streamCount;
    envoy.replica = this.#dice.pick(up);
  }

  #post(message: Message, delayMs: number): void {
    const atMs = this.nowMs + Math.max(1, Math.ceil(delayMs / stepMs)) * stepMs;
    const there = this.#mail.get(atMs);
    if (there === undefined) this.#mail.set(atMs, [message]);
    else there.push(message);
  }

  #deliver(message: Message): void {
    const { bucket, stream } = message;
    const isOpen = bucket.envoy.stream === stream;
    if (message.kind === "assign") {
      if (!isOpen) return;
      if (message.assignment === undefined) {
        bucket.pool.total.forgive(bucket.state.unreportedHits);
        bucket.state.forget();
      } else bucket.state.take(message.assignment, this.nowMs);
    } else if (isOpen && bucket.envoy.replica === message.replica) this.#report(message);
    else bucket.pool.total.forgive(message.usage.allowedHits);
  }

  #report({ bucket, stream, replica, usage }: Extract<Message, { kind: "report" }>): void {
    this.reportCount += 1;
    const pool = this.#poolOf(replica, bucket.pool);
    let holder = replica.known.get(bucket)?.holder;
    if (holder === undefined) {
      const left = replica.left.get(bucket);
      replica.left.delete(bucket);
      if (left !== undefined && this.nowMs < left.untilMs) {
        holder = left.holder;
        pool.rejoin(holder, this.nowMs);
      } else holder = pool.join({ weight: bucket.weight, identity: "fleet" }, this.nowMs);
      if (holder === undefined) throw new Error("no room for a holder");
      replica.known.set(bucket, { holder, stream });
      replica.bucketOf.set(holder, bucket);
    }
    const verdict = pool.report(holder, usage, this.nowMs);
    // Of an Envoy that another replica told what it may, less is taken than it may have used.
    const isHonest = verdict === "plausible" || verdict === "unassigned";
    if (!isHonest) this.#violate(bucket.pool, `an honest report is ${verdict}`);
    const assignment = pool.answer(holder, this.nowMs);
    if (assignment !== undefined) this.#post({ kind: "assign", bucket, stream, assignment }, 100);
  }

  #poolOf(replica: Replica, state: PoolState): QuotaPool {
    const known = replica.pools.get(state);
    if (known !== undefined) return known;
    const { limit, callsShare } = state.scenario;
    const settings = { mode: "limited", limits: [limit], ttlMs, callsShare } as const;
    const { nowMs } = this;
    const pool = new QuotaPool({ settings, holders: replica.holders, nowMs });
    replica.pools.set(state, pool);
    this.#exchange(replica, state, pool);
    return pool;
  }

  #traffic(pool: PoolState): void {
    const { scenario } = pool;
    for (const bucket of pool.buckets) {
      const { envoy, state } = bucket;
      if (envoy.isDead) continue;
      bucket.rest += (scenario.demandHz(bucket.place, this.nowMs) * stepMs) / 1_000;
      const hits = Math.floor(bucket.rest);
      bucket.rest -= hits;
      const { allowed, isFirst } = state.ask(hits, this.nowMs);
      bucket.allowed += allowed;
      bucket.denied += hits - allowed;
      pool.envelope.add(allowed, this.nowMs);
      pool.total.add(allowed, this.nowMs);
      if (isFirst || state.isReportDue(this.nowMs)) this.#send(bucket);
    }
    if (scenario.callsHz === 0) return;
    pool.callRest += (scenario.callsHz * stepMs) / 1_000;
    const calls = Math.floor(pool.callRest);
    pool.callRest -= calls;
    if (this.nowMs < this.#outageUntilMs) return;
    const admitted = pool.store.enforce(calls, this.nowMs);
    pool.callHits += admitted;
    pool.total.add(admitted, this.nowMs);
  }

  #send(bucket: Bucket): void {
    const { stream, replica } = bucket.envoy;
    if (stream === undefined || replica === undefined) return;
    const { untilMs, lostRatio, lateRatio, lateMsMax } = this.#scenario.weather;
    const usage = bucket.state.report(this.nowMs);
    const isFoul = this.nowMs < untilMs;
    if (isFoul && this.#dice.chance(lostRatio)) {
      bucket.pool.total.forgive(usage.allowedHits);
      return;
    }
    const isLate = isFoul && this.#dice.chance(lateRatio);
    const delayMs = isLate ? this.#dice.between(100, lateMsMax) : 100;
    // A stream keeps its order: what is late holds up what comes after it.
    const { envoy } = bucket;
    envoy.arrivalMs = Math.max(envoy.arrivalMs, this.nowMs + delayMs);
    const message = { kind: "report", bucket, stream, replica, usage } as const;
    this.#post(message, envoy.arrivalMs - this.nowMs);
  }

  #drive(replica: Replica): void {
    const isDown = this.nowMs < this.#outageUntilMs;
    const atMs = this.nowMs + replica.phaseMs;
    for (const [state, pool] of replica.pools) {
      if (atMs % state.tickMs === 0) this.#charge(state, pool, isDown);
      if (atMs % 1_000 === 0 && !isDown) this.#exchange(replica, state, pool);
      if (!pool.isDue(this.nowMs)) continue;
      for (const change of pool.rebalance(this.nowMs)) this.#push(replica, change);
      if (pool.countedCount === 0) replica.pools.delete(state);
    }
  }

  #charge(state: PoolState, pool: QuotaPool, isDown: boolean): void {
    const hits = pool.dueHits(this.nowMs);
    if (hits === 0 && !pool.wantsLevel(this.nowMs)) return;
    if (isDown) pool.missed(hits, this.nowMs);
    else pool.charged({ hits, levels: [state.store.settle(hits, this.nowMs)] }, this.nowMs);
  }

  #exchange(replica: Replica, state: PoolState, pool: QuotaPool): void {
    if (this.nowMs < this.#outageUntilMs) return;
    replica.beat += 1;
    const claim = pool.claim(this.nowMs);
    const order = { replica: replica.id, beat: replica.beat, claim, leaseMs };
    const taken = takeClaim(state.records, order, this.nowMs);
    if (taken === undefined) return;
    pool.lease({ ...taken, untilMs: this.nowMs + leaseMs }, this.nowMs);
  }

  #push(replica: Replica, change: QuotaChange): void {
    this.changeCount += 1;
    const bucket = replica.bucketOf.get(change.holder);
    const stream = bucket === undefined ? undefined : replica.known.get(bucket)?.stream;
    if (bucket === undefined || stream === undefined) return;
    const assignment = change.kind === "assign" ? change.assignment : undefined;
    if (change.kind === "abandon") {
      replica.known.delete(bucket);
      replica.bucketOf.delete(change.holder);
    }
    this.#post({ kind: "assign", bucket, stream, assignment }, 100);
  }

  #check(pool: PoolState): void {
    const { envelope, total } = pool;
    this.worst.envelope = Math.max(this.worst.envelope, envelope.ratio);
    this.worst.total = Math.max(this.worst.total, total.ratio);
    if (envelope.ratio > 1) this.#violate(pool, `envelope at ${envelope.ratio.toFixed(2)}`);
    if (total.ratio > 1) this.#violate(pool, `total at ${total.ratio.toFixed(2)}`);
  }

  #violate({ name, scenario }: PoolState, what: string): void {
    if (this.violations.length >= violationsMax) return;
    const { hits, periodUs, burst } = scenario.limit;
    const shape = `${hits} in ${periodUs / 1e6} s, burst ${burst}, ${scenario.weights.length}`;
    this.violations.push(`${this.nowMs} ms, ${name} (${shape}): ${what}`);
  }
}
