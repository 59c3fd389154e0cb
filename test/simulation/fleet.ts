import type { Charge } from "../../src/core/limits/bucket.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { RateLimitQuery } from "../../src/decide/rate-limit/query.js";
import type { Policy } from "../../src/policy/policy.js";
import { FakeRandom } from "../support/fake-random.js";
import type { KeyEvent } from "../support/simulated-events.js";
import type { Incident } from "../support/simulated-link.js";
import { SimulatedTime } from "../support/simulated-time.js";
import type { AnswerSource, Ask } from "./ask.js";
import { Dice } from "./dice.js";
import { drawLimits, drawQueries, editLimits, type Limits, policyOf } from "./policies.js";
import { type Happening, happeningOf, markInVain } from "./promise.js";
import { Replica } from "./replica.js";
import { Stores } from "./stores.js";

/** The most replicas at a time; shares of limits are exact for as many. */
const replicasMax = 6;

/** The longest until a replica knows how many there are, in milliseconds. */
const membershipMsMax = 3_000;

/** An answer, as the report of a run counts it. */
export interface Answer {
  readonly replicaName: string;
  readonly ask: Ask;
  readonly source: AnswerSource;
  /** Whether identical calls were asked together with it. */
  readonly isMany: boolean;
  readonly atMs: number;
}

/** Something that happened to a key in the store. */
interface KeyChange {
  readonly key: LimitKey;
  readonly event: KeyEvent;
  readonly atUs: number;
}

/** Several replicas on one store, what they are asked, and a record of all that happens. */
export class Fleet {
  readonly time = new SimulatedTime();
  readonly dice: Dice;
  readonly stores: Stores;
  readonly queries: readonly RateLimitQuery[];
  readonly replicas: Replica[] = [];
  readonly answers: Answer[] = [];
  /** What may not happen and did, with its time. */
  readonly violations: string[] = [];
  /** What happened to each key in the store, and to each local share. */
  readonly happenings = new Map<string, Happening[]>();
  /** Hits of each key that callers were granted by the store. */
  readonly grantedHits = new Map<LimitKey, number>();
  /** How often calls met what may happen to them on their way. */
  readonly incidents = new Map<Incident, number>();
  readonly #random: FakeRandom;
  readonly #configuredReplicaCount: number;
  readonly #loosenedMs = new Map<LimitKey, number>();
  /** The limit under which each key was last asked, and last written. */
  readonly #askedUnder = new Map<LimitKey, string>();
  readonly #writtenUnder = new Map<LimitKey, string>();
  /** Keys whose clock went back since they were written: they may expire before they drain. */
  readonly #steppedBack = new Set<LimitKey>();
  #limits: Limits;
  #policy: Policy;
  #policyCount = 1;

  constructor(seed: number) {
    this.#random = new FakeRandom(seed);
    this.dice = new Dice(this.#random);
    this.stores = new Stores({
      time: this.time,
      dice: this.dice,
      onKeyEvent: (place, change) => this.#noteKey(place, change),
    });
    this.#limits = drawLimits(this.dice);
    this.#policy = policyOf(this.#limits, 1);
    this.queries = drawQueries(this.dice, 10);
    const replicaCount = 1 + this.dice.below(4);
    this.#configuredReplicaCount = this.dice.pick([1, replicaCount]);
    for (let i = 0; i < replicaCount; i += 1) this.startReplica();
    for (const replica of this.replicas) replica.knownReplicaCount = replicaCount;
  }

  liveReplicas(): readonly Replica[] {
    return this.replicas.filter(({ isAlive }) => isAlive);
  }

  /** Starts one more, unless there are many; the others learn of it later. */
  startReplica(): void {
    if (this.liveReplicas().length >= replicasMax) return;
    const name = `replica-${this.replicas.length}`;
    const replica = new Replica({
      name,
      time: this.time,
      stores: this.stores,
      random: this.#random,
      policy: this.#policy,
      knownReplicaCount: this.#configuredReplicaCount,
      isLoosened: (charge, sinceMs) => this.#isLoosened(charge, sinceMs),
      onViolation: (what) => this.violate(what),
      onGranted: (key, hits) => {
        this.grantedHits.set(key, (this.grantedHits.get(key) ?? 0) + hits);
      },
      onIncident: (incident) => {
        this.incidents.set(incident, (this.incidents.get(incident) ?? 0) + 1);
      },
      onLocal: (bucket, happening) => this.#note(bucket, happening),
      onAnswer: (ask, source, isMany) => {
        const atMs = this.time.nowMs;
        this.answers.push({ replicaName: name, ask, source, isMany, atMs });
      },
    });
    this.replicas.push(replica);
    this.#spreadMembership();
  }

  /** Ends one without a goodbye, unless it is the last. */
  killReplica(): void {
    const live = this.liveReplicas();
    if (live.length < 2) return;
    this.dice.pick(live).die();
    this.#spreadMembership();
  }

  /** Edits one limit; the replicas take it up one after the other, within `forMs`. */
  editPolicy(forMs: number): void {
    this.#limits = editLimits(this.dice, this.#limits);
    this.#policyCount += 1;
    const policy = policyOf(this.#limits, this.#policyCount);
    this.#policy = policy;
    for (const replica of this.liveReplicas()) {
      this.time.after(this.dice.between(0, forMs), () => {
        // A slow replica may be overtaken by the next edit.
        if (Number(replica.policy.version.slice(1)) < Number(policy.version.slice(1))) {
          replica.policy = policy;
        }
      });
    }
  }

  /** Takes note of what may not happen. */
  violate(what: string): void {
    this.violations.push(`${this.time.nowMs.toFixed(3)} ms: ${what}`);
  }

  #spreadMembership(): void {
    const { length } = this.liveReplicas();
    for (const replica of this.liveReplicas()) {
      this.time.after(this.dice.between(0, membershipMsMax), () => {
        if (this.stores.servers[0]?.health.kind !== "well") return;
        replica.knownReplicaCount = Math.max(length, this.#configuredReplicaCount);
      });
    }
  }

  #noteKey(place: string, { key, event, atUs }: KeyChange): void {
    if (event.kind === "givenBack") {
      const isKnown = markInVain(this.happenings.get(place) ?? [], { ...event, atUs });
      if (!isKnown) this.violate(`${place} gave ${event.hits} hits back that nobody took`);
    } else {
      this.#note(place, happeningOf(event, atUs));
    }
    if (this.#isLoosening(key, event)) this.#loosenedMs.set(key, this.time.nowMs);
  }

  /** Whether the key may now let in what it would have refused without the event. */
  #isLoosening(key: LimitKey, event: KeyEvent): boolean {
    if (event.kind === "clockBack") this.#steppedBack.add(key);
    if (event.kind !== "asked") return true;
    const limit = limitText(event.charge);
    const last = this.#askedUnder.get(key);
    this.#askedUnder.set(key, limit);
    if (event.takenHits + event.refundedHits > 0) {
      // What was there before may have expired, before it had drained as this limit says.
      const mayHaveExpired = this.#steppedBack.has(key) || this.#writtenUnder.get(key) !== limit;
      this.#writtenUnder.set(key, limit);
      this.#steppedBack.delete(key);
      if (mayHaveExpired) return true;
    }
    return event.refundedHits > 0 || (last !== undefined && last !== limit);
  }

  #isLoosened(charge: Charge, sinceMs: number): boolean {
    const { key } = charge;
    if ((this.#loosenedMs.get(key) ?? Number.NEGATIVE_INFINITY) >= sinceMs) return true;
    if (this.#steppedBack.has(key)) return true;
    // What was written under a faster limit expires as that says, also for replicas with another.
    return this.#writtenUnder.get(key) !== limitText(charge);
  }

  #note(bucket: string, happening: Happening): void {
    const known = this.happenings.get(bucket);
    if (known === undefined) this.happenings.set(bucket, [happening]);
    else known.push(happening);
  }
}

function limitText({ hits, periodUs, burst, role }: Charge): string {
  return `${hits} ${periodUs} ${burst} ${role}`;
}
