import { sha256 } from "../../src/app/base/sha256.js";
import { type Peer, unknownPeer } from "../../src/core/base/peer.js";
import { noOverrides, type OverrideTable } from "../../src/core/limits/override-table.js";
import type { LeasesQuotas, QuotaAssignment } from "../../src/core/quota/quota.js";
import {
  type QuotaEvent,
  QuotaRegistry,
  type QuotaRegistryParts,
} from "../../src/decide/quota/quota-registry.js";
import type { QuotaSession } from "../../src/decide/quota/quota-session.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { QuotaLeases } from "../../src/fleet/claims/quota-leases.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import { MemoryQuotas } from "../../src/store/coordination/memory-coordination.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { FakeClock, settlePromises } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";
import { FaultyStore } from "./faulty-store.js";
import { noSwitches } from "./switches.js";

/** A policy of these parts of `spec`, in YAML. */
export function quotaPolicy(spec: string, version = "v1"): Policy {
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: t}\nspec:\n";
  const text = head + spec.replace(/^/gm, "  ");
  const parsed = parsePolicy([{ file: "policy.yaml", text }]);
  if (parsed.kind !== "policy") throw new Error(JSON.stringify(parsed.problems));
  const builder = new PolicyBuilder(version);
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  builder.setQuotas(parsed.quotas);
  return builder.finish();
}

/** A quota of tenants, each so many hits a second, and as large a burst; with more fields. */
export function tenantQuota(hz: number, { domain = "", limit = "", quota = "" } = {}): Policy {
  return quotaPolicy(`
rateLimits:
  - domain: edge
    descriptors:
      - key: tenant
        rate_limit: {name: pace, requests_per_unit: ${hz}, ${limit === "" ? "unit: second" : limit}}
${domain}
quotas:
  - {name: pace, domain: edge, bucket: [{header: x-tenant, as: tenant}]${quota}}
`);
}

/** Claims that fail, while a test wants that. */
class FaultyLeases implements LeasesQuotas {
  readonly #inner: LeasesQuotas;
  readonly #isAway: (at: number) => boolean;
  /** The pools that were ever claimed, in that order. */
  readonly #pools = new Set<string>();

  /** @param isAway whether the place of a pool is away, by when the pool was claimed first */
  constructor(inner: LeasesQuotas, isAway: (at: number) => boolean) {
    this.#inner = inner;
    this.#isAway = isAway;
  }

  async exchange(asks: Parameters<LeasesQuotas["exchange"]>[0]) {
    const known = this.#pools;
    const isAway = asks.map(({ pool }) => this.#isAway([...known.add(pool)].indexOf(pool)));
    const answers = await this.#inner.exchange(asks.filter((_ask, i) => !isAway[i]));
    const left = answers.values();
    const failed = { kind: "failed", code: "STORE_TIMEOUT" } as const;
    return isAway.map((one) => (one ? failed : (left.next().value ?? failed)));
  }
}

/** Replicas that divide the quotas of one policy over one store, in a time of the test's own. */
export class QuotaRig {
  readonly clock = new FakeClock();
  readonly store = new FaultyStore(new MemoryLimitStore({ clock: this.clock }), this.clock);
  readonly counters = new DecisionCounters();
  readonly events: QuotaEvent[] = [];
  readonly bugs: unknown[] = [];
  readonly envoys: SimulatedEnvoy[] = [];
  readonly #quotas = new MemoryQuotas(this.clock);
  readonly #random = new FakeRandom(1);
  readonly registries: QuotaRegistry[] = [];
  policy: Policy | undefined;
  overrides: OverrideTable = noOverrides;
  isStoreAway = false;
  /** The part of the store that has the pool which was claimed first. */
  isFirstPlaceAway = false;

  constructor(policy: Policy | undefined) {
    this.policy = policy;
  }

  /** Another replica. */
  join(parts: Pick<Partial<QuotaRegistryParts>, "bucketsBytesMax"> = {}): QuotaRegistry {
    const { clock, events, bugs, store } = this;
    const leases = new QuotaLeases({ store: this.#quotas, random: this.#random });
    const registry = new QuotaRegistry({
      ...parts,
      policies: { current: () => this.policy },
      overrides: { current: () => this.overrides },
      store,
      leases: new FaultyLeases(leases, (at) => {
        return this.isStoreAway || (this.isFirstPlaceAway && at === 0);
      }),
      clock,
      counters: this.counters,
      switches: noSwitches,
      digest: sha256,
      replicaCount: () => this.registries.length,
      onEvent: (event) => void events.push(event),
      onBug: (thrown) => void bugs.push(thrown),
    });
    this.registries.push(registry);
    return registry;
  }

  /** An Envoy whose stream is on a replica. @param hz requests a second of each bucket */
  connect(
    registry: QuotaRegistry,
    who: string | EnvoyName,
    hz: Readonly<Record<string, number>>,
  ): SimulatedEnvoy {
    const name = typeof who === "string" ? { node: who, peer: unknownPeer } : who;
    const envoy = new SimulatedEnvoy(this.clock, { ...name, hz });
    envoy.open(registry);
    this.envoys.push(envoy);
    return envoy;
  }

  /** Lets time pass: traffic in steps of 50 ms, all that is scheduled, and what is promised. */
  async pass(seconds: number): Promise<void> {
    for (let step = 0; step < seconds * 20; step += 1) {
      for (const envoy of this.envoys) envoy.step();
      this.clock.advance(50);
      await settlePromises();
      this.clock.runTurns();
      await settlePromises();
      if (this.bugs.length > 0) throw this.bugs[0];
    }
  }

  /** What all Envoys let pass a second, over some seconds from now on. */
  async passedHz(seconds: number): Promise<number> {
    const before = this.passed;
    await this.pass(seconds);
    return (this.passed - before) / seconds;
  }

  get passed(): number {
    return this.envoys.reduce((sum, { passed }) => sum + passed, 0);
  }
}

interface EnvoyBucket {
  hz: number;
  due: number;
  tokens: number;
  atMs: number;
  allowed: number;
  denied: number;
  reportedMs: number;
  isKnown: boolean;
  reported: QuotaAssignment | undefined;
  untilMs: number;
}

/** Envoy's reports, in milliseconds. */
const reportEveryMs = 5_000;

/** What an Envoy calls itself, and what its connection says. */
interface EnvoyName {
  readonly node: string;
  readonly peer: Peer;
}

interface EnvoyWish extends EnvoyName {
  readonly hz: Readonly<Record<string, number>>;
}

/**
 * An Envoy as it was measured: a changed token bucket keeps its tokens, an expired assignment
 * denies here, and usage is told each 5 s. Buckets are of the quota `pace`, by tenant.
 */
export class SimulatedEnvoy {
  readonly node: string;
  readonly peer: Peer;
  readonly buckets = new Map<string, EnvoyBucket>();
  passed = 0;
  refused = 0;
  /** Whether it reads what it is told. */
  isReading = true;
  readonly #clock: FakeClock;
  #session: QuotaSession | undefined;
  #reportMs: number;

  constructor(clock: FakeClock, { node, hz, peer }: EnvoyWish) {
    this.#clock = clock;
    this.node = node;
    this.peer = peer;
    this.#reportMs = clock.monotonicMs() + reportEveryMs;
    for (const [tenant, one] of Object.entries(hz)) this.ask(tenant, one);
  }

  /** So many requests a second of a tenant from now on. */
  ask(tenant: string, hz: number): void {
    const known = this.buckets.get(tenant);
    if (known !== undefined) known.hz = hz;
    else this.buckets.set(tenant, { ...emptyBucket, hz, atMs: this.#clock.monotonicMs() });
  }

  open(registry: QuotaRegistry): void {
    const wake = (): void => this.#read();
    const readId = (tenant: string) => ({
      key: tenant,
      entries: () => ({ quota: "pace", tenant }),
    });
    this.#session = registry.open({ node: this.node, peer: this.peer, readId, wake });
  }

  /** Its stream is gone. */
  lose(): void {
    this.#session?.close();
    this.#session = undefined;
  }

  /** The seconds' rate of what it was told of a tenant; 0 for nothing. */
  reportedHz(tenant: string): number {
    const reported = this.buckets.get(tenant)?.reported;
    return reported?.kind === "bucket" ? reported.rateMicroHz / 1e6 : 0;
  }

  step(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [tenant, bucket] of this.buckets) this.#serve(tenant, bucket, nowMs);
    if (nowMs >= this.#reportMs) {
      this.#reportMs += reportEveryMs;
      for (const [tenant, bucket] of this.buckets) if (bucket.isKnown) this.#report(tenant, bucket);
      this.#read();
    }
  }

  #serve(tenant: string, bucket: EnvoyBucket, nowMs: number): void {
    const seconds = (nowMs - bucket.atMs) / 1_000;
    bucket.atMs = nowMs;
    bucket.due += bucket.hz * seconds;
    const { reported } = bucket;
    if (reported?.kind === "bucket") {
      const filled = bucket.tokens + (reported.rateMicroHz / 1e6) * seconds;
      bucket.tokens = Math.min(reported.tokensMax, filled);
    }
    for (; bucket.due >= 1; bucket.due -= 1) {
      if (this.#admits(bucket, nowMs)) {
        bucket.allowed += 1;
        this.passed += 1;
      } else {
        bucket.denied += 1;
        this.refused += 1;
      }
      if (!bucket.isKnown) {
        bucket.isKnown = true;
        bucket.reportedMs = nowMs;
        this.#report(tenant, bucket);
        this.#read();
      }
    }
  }

  #admits(bucket: EnvoyBucket, nowMs: number): boolean {
    const { reported } = bucket;
    if (reported === undefined) return true;
    if (nowMs >= bucket.untilMs) return false;
    if (reported.kind === "blanket") return reported.rule === "allow";
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  #report(tenant: string, bucket: EnvoyBucket): void {
    const nowMs = this.#clock.monotonicMs();
    const { allowed: allowedHits, denied: deniedHits, reportedMs } = bucket;
    const elapsedMs = Math.floor((nowMs - reportedMs) / 1_000) * 1_000;
    Object.assign(bucket, { allowed: 0, denied: 0, reportedMs: nowMs });
    this.#session?.report("edge", [{ id: tenant, allowedHits, deniedHits, elapsedMs }]);
  }

  #read(): void {
    if (!this.isReading) return;
    const nowMs = this.#clock.monotonicMs();
    for (const { id: tenant, reported } of this.#session?.takeActions(1_000) ?? []) {
      const bucket = this.buckets.get(tenant);
      if (bucket === undefined) continue;
      if (reported.kind === "abandon") {
        Object.assign(bucket, { reported: undefined, isKnown: false });
        continue;
      }
      const { assignment } = reported;
      const isFull = bucket.reported?.kind !== "bucket" || nowMs >= bucket.untilMs;
      if (assignment.kind === "bucket") {
        const { tokensMax } = assignment;
        bucket.tokens = isFull ? tokensMax : Math.min(bucket.tokens, tokensMax);
      }
      bucket.reported = assignment;
      bucket.untilMs = nowMs + Math.floor(assignment.ttlMs / 1_000) * 1_000;
    }
  }
}

const emptyBucket: Omit<EnvoyBucket, "hz" | "atMs"> = {
  due: 0,
  tokens: 0,
  allowed: 0,
  denied: 0,
  reportedMs: 0,
  isKnown: false,
  reported: undefined,
  untilMs: 0,
};
