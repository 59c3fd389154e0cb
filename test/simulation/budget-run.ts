import type { AccountLaw, ReservedEntry } from "../../src/core/budgets/account.js";
import { accountKey } from "../../src/core/budgets/account-key.js";
import type {
  ReservationId,
  ReserveAnswer,
  Settlement,
} from "../../src/core/budgets/budget-ledger.js";
import type { Windows } from "../../src/core/limits/window.js";
import {
  defaultReserveTimeoutMs,
  StoreBudgetLedger,
} from "../../src/fleet/budgets/store-budget-ledger.js";
import { randomStream } from "../../src/simulate/engine/seeded-random.js";
import type { BudgetBatch, BudgetOutcome } from "../../src/store/coordination/budget-store.js";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import { BudgetLink } from "../support/budget-link.js";
import type { LinkWeather } from "../support/lossy-link.js";
import { SimulatedClock, SimulatedTime } from "../support/simulated-time.js";
import { Dice } from "./dice.js";

/** Calls begin before this, and everything is well after `stormMs`. */
const stormMs = 60_000;

/** The last call has ended, its settlement has been repeated, and leases have expired. */
const endMs = 110_000;

/** A long outage in some runs: longer than a store knows settled ids for. */
const longOutageMs = 140_000;

const leaseMs = 3_000;
const callMsMax = 15_000;

/** Time passes in steps of this; see `SimulatedTime`. */
const gridMs = 1 / 1_024;

/** A budget of the simulated policy. */
interface SimulatedBudget {
  readonly name: string;
  readonly kind: AccountLaw["kind"];
  readonly capacity: number;
  readonly estimateMax: number;
  readonly isEnforced: boolean;
}

const budgets: readonly SimulatedBudget[] = [
  { name: "month", kind: "window", capacity: 300, estimateMax: 30, isEnforced: true },
  { name: "flow", kind: "drain", capacity: 200, estimateMax: 30, isEnforced: true },
  { name: "keys", kind: "inFlight", capacity: 3, estimateMax: 1, isEnforced: true },
  { name: "soft", kind: "window", capacity: 100, estimateMax: 30, isEnforced: false },
];

const drainPeriodUs = 20_000_000;

/** A replica from its start to its end. */
interface Replica {
  readonly ledger: StoreBudgetLedger;
  readonly link: BudgetLink;
  readonly clock: SkewedClock;
  readonly weather: LinkWeather;
  isLive: boolean;
}

/** A call, as its caller knows it. */
interface Call {
  readonly owner: Replica;
  readonly entries: readonly ReservedEntry[];
  readonly askedMs: number;
  answer: ReserveAnswer | undefined;
  /** What it has cost, when it has ended; undefined: it runs, or its replica has died before. */
  costs: readonly number[] | undefined;
  endedMs: number | undefined;
  /** Who has been told of its end. */
  readonly settledBy: Replica[];
}

/** What the store did for an id, as its operations arrived. */
interface Truth {
  /** When it was reserved, by the store's clock, and as what; undefined: never. */
  reserved: { readonly atMs: number; readonly entries: readonly ReservedEntry[] } | undefined;
  charged:
    | {
        readonly atMs: number;
        readonly costs: readonly number[];
        readonly entries: readonly ReservedEntry[];
        readonly isLate: boolean;
      }
    | undefined;
}

/** A call that the store let in, when, and what it cost. */
interface StoredCall {
  readonly entries: readonly ReservedEntry[];
  readonly costs: readonly number[];
  readonly reservedMs: number;
  readonly endedMs: number | undefined;
}

/** A clock whose wall time is off, as those of a fleet are. */
class SkewedClock extends SimulatedClock {
  readonly #skewUs: number;

  constructor(time: SimulatedTime, skewMs: number) {
    super(time, Math.abs(Math.floor(skewMs)));
    this.#skewUs = Math.floor(skewMs * 1_000);
  }

  override epochUs(): number {
    return super.epochUs() + this.#skewUs;
  }
}

/**
 * Replicas over one store, with calls that cost what nobody knew, outages, losses, kills and months
 * that end. Beside them an exact ledger of what was admitted, and what had to be charged.
 */
export class BudgetRun {
  readonly violations: string[] = [];
  readonly counts = {
    reserved: 0,
    refused: 0,
    failureAdmitted: 0,
    failureRefused: 0,
    late: 0,
    unreserved: 0,
    killed: 0,
    underestimated: 0,
  };
  readonly #time = new SimulatedTime();
  readonly #storeClock = new SimulatedClock(this.#time, 0);
  readonly #store = new MemoryBudgets(this.#storeClock);
  readonly #seed: number;
  readonly #dice: Dice;
  readonly #replicas: Replica[] = [];
  readonly #calls: Call[] = [];
  readonly #truth = new Map<ReservationId, Truth>();
  readonly #onStoreFailure: ReservedEntry["onStoreFailure"];
  readonly #whenLost: ReservedEntry["whenLost"];
  readonly #replicaCount: number;
  readonly #restMs: number;
  /** Ends of months, in milliseconds since the run began. */
  readonly #monthEndsMs: readonly number[];
  #startedCount = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#dice = new Dice(randomStream(seed, "world"));
    const dice = this.#dice;
    this.#onStoreFailure = dice.pick(["local", "local", "allow", "deny"]);
    this.#whenLost = dice.pick(["release", "charge"]);
    this.#replicaCount = 2 + dice.below(4);
    this.#restMs = dice.chance(0.05) ? longOutageMs : 0;
    const firstMs = dice.between(5_000, 31_000);
    this.#monthEndsMs = Array.from({ length: 20 }, (_, i) => Math.floor(firstMs + i * 29_500));
    for (let i = 0; i < this.#replicaCount; i += 1) this.#start();
  }

  async run(): Promise<void> {
    this.#scheduleCalls();
    this.#scheduleFaults();
    const calmMs = stormMs + this.#restMs;
    this.#time.after(calmMs, () => this.#calm());
    await this.#time.runUntil(endMs + this.#restMs);
    await this.#check();
  }

  #start(): void {
    this.#startedCount += 1;
    const random = randomStream(this.#seed, `replica ${this.#startedCount}`);
    const clock = new SkewedClock(this.#time, this.#dice.between(-1_000, 1_000));
    const lostRatio = this.#dice.pick([0, 0, 0.02]);
    const weather = { delayMs: 0.5, lostRatio, isOut: false };
    const watcher = {
      applied: (batch: BudgetBatch, outcomes: readonly BudgetOutcome[]) =>
        this.#applied(batch, outcomes),
    };
    const network = this.#storeClock;
    const link = new BudgetLink({ inner: this.#store, clock, network, random, weather, watcher });
    const ledger = new StoreBudgetLedger({
      ...{ store: link, clock, random, leaseMs, heartbeatMs: 1_000 },
      replicaCount: () => this.#replicaCount,
    });
    this.#replicas.push({ ledger, link, clock, weather, isLive: true });
  }

  #live(): readonly Replica[] {
    return this.#replicas.filter(({ isLive }) => isLive);
  }

  #kill(replica: Replica): void {
    replica.isLive = false;
    replica.link.isDead = true;
    replica.clock.stop();
    this.counts.killed += 1;
  }

  #scheduleCalls(): void {
    const dice = this.#dice;
    const count = 60 + dice.below(200);
    for (let i = 0; i < count; i += 1) {
      this.#time.after(dice.between(0, stormMs), () => {
        // Some come together, so that they share a batch.
        for (let j = dice.pick([1, 1, 1, 4]); j > 0; j -= 1) this.#ask();
      });
    }
  }

  #scheduleFaults(): void {
    const dice = this.#dice;
    for (let count = dice.below(5); count > 0; count -= 1) {
      const atMs = dice.between(1_000, stormMs - 12_000);
      const spanMs = dice.pick([100, 1_000, 4_000, 11_000]) * dice.between(0.3, 1);
      const fault = dice.pick(["outage", "partition", "loss", "delay", "kill", "kill"] as const);
      this.#time.after(atMs, () => this.#strike(fault, spanMs));
    }
    if (this.#restMs > 0)
      this.#time.after(stormMs, () => this.#during(this.#replicas, { isOut: true }));
  }

  #strike(fault: "outage" | "partition" | "loss" | "delay" | "kill", spanMs: number): void {
    const live = this.#live();
    const one = live[this.#dice.below(live.length)];
    if (one === undefined) return;
    if (fault === "kill") {
      this.#kill(one);
      this.#time.after(spanMs, () => this.#start());
      return;
    }
    const changes = {
      outage: { isOut: true },
      partition: { isOut: true },
      loss: { lostRatio: 0.5 },
      delay: { delayMs: 6 },
    };
    const struck = fault === "partition" ? [one] : live;
    const restore = this.#during(struck, changes[fault]);
    this.#time.after(spanMs, restore);
  }

  #during(replicas: readonly Replica[], change: Partial<LinkWeather>): () => void {
    const before = replicas.map(({ weather }) => ({ ...weather }));
    for (const { weather } of replicas) Object.assign(weather, change);
    return () => {
      for (const [i, { weather }] of replicas.entries()) Object.assign(weather, before[i]);
    };
  }

  #calm(): void {
    while (this.#live().length === 0) this.#start();
    for (const { weather } of this.#replicas) {
      Object.assign(weather, { delayMs: 0.5, lostRatio: 0, isOut: false });
    }
  }

  #ask(): void {
    const live = this.#live();
    const owner = live[this.#dice.below(live.length)];
    if (owner === undefined) return;
    const entries = this.#entries(owner.clock.epochUs());
    const askedMs = this.#time.nowMs;
    const call: Call = {
      ...{ owner, entries, askedMs, answer: undefined, costs: undefined, endedMs: undefined },
      settledBy: [],
    };
    this.#calls.push(call);
    const patienceMs = this.#dice.pick([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 2]);
    owner.ledger.reserve(entries, owner.clock.monotonicMs() + patienceMs, (answer) =>
      this.#answered(call, answer),
    );
  }

  /** Some of the budgets, one account of each. */
  #entries(nowUs: number): readonly ReservedEntry[] {
    const dice = this.#dice;
    const chosen = budgets.filter(() => dice.chance(0.6));
    const [first] = budgets;
    return (chosen.length === 0 && first !== undefined ? [first] : chosen).map((budget) => ({
      account: accountKey(budget.name, [dice.pick(["a", "b"])], String),
      law: this.#lawOf(budget.kind, nowUs),
      capacity: budget.capacity,
      estimate: 1 + dice.below(budget.estimateMax),
      isEnforced: budget.isEnforced,
      whenLost: this.#whenLost,
      onStoreFailure: this.#onStoreFailure,
    }));
  }

  #lawOf(kind: AccountLaw["kind"], nowUs: number): AccountLaw {
    if (kind === "drain") return { kind, periodUs: drainPeriodUs };
    if (kind === "inFlight") return { kind };
    return { kind, windows: this.#windowsAt(nowUs) };
  }

  #windowsAt(nowUs: number): Windows {
    const nowMs = (nowUs - this.#beginUs) / 1_000;
    const next = this.#monthEndsMs.findIndex((end) => nowMs < end);
    const endOf = (index: number): number =>
      this.#beginUs + 1_000 * (this.#monthEndsMs[index] ?? -100_000);
    return { startUs: endOf(next - 1), endUs: endOf(next), nextEndUs: endOf(next + 1) };
  }

  get #beginUs(): number {
    return this.#storeClock.epochUs() - this.#time.nowUs;
  }

  /** The month of a time since the run began. */
  #monthAt(ms: number): number {
    return this.#monthEndsMs.findIndex((end) => ms < end);
  }

  #answered(call: Call, answer: ReserveAnswer): void {
    if (!call.owner.isLive) return;
    if (call.answer !== undefined) this.violations.push("a call was answered twice");
    call.answer = answer;
    const lateMs = this.#time.nowMs - call.askedMs - defaultReserveTimeoutMs;
    if (lateMs > 3 * gridMs) this.violations.push(`an answer came ${lateMs} ms too late`);
    if (answer.kind === "failed") {
      if (answer.id === undefined) this.counts.failureRefused += 1;
      else this.#checkLocal(call);
    } else if (answer.id === undefined) this.counts.refused += 1;
    else this.counts.reserved += 1;
    if (answer.id === undefined) return;
    const { id } = answer;
    this.#time.after(this.#dice.between(0, callMsMax), () => this.#end(call, id));
  }

  /** Of one key, a replica alone has at most its part of the calls in flight. */
  #checkLocal(call: Call): void {
    this.counts.failureAdmitted += 1;
    if (this.#onStoreFailure !== "local") return;
    for (const { account, law, capacity } of call.entries) {
      if (law.kind !== "inFlight") continue;
      const own = this.#calls.filter(
        ({ owner, answer, endedMs, entries }) =>
          owner === call.owner &&
          answer?.id !== undefined &&
          endedMs === undefined &&
          entries.some((entry) => entry.account === account),
      );
      const most = Math.max(1, Math.floor(capacity / this.#replicaCount));
      if (own.length > most) this.violations.push(`${own.length} local calls of ${account}`);
    }
  }

  #end(call: Call, id: ReservationId): void {
    const dice = this.#dice;
    call.endedMs = this.#time.nowMs;
    const isAborted = dice.chance(0.15);
    const factor = dice.chance(0.25) ? dice.between(1, 3) : dice.between(0, 1);
    const usedRatio = isAborted ? dice.pick([0, 0, 0.3]) : 1;
    const costs = call.entries.map(({ estimate, law }) =>
      law.kind === "inFlight" ? 0 : Math.floor(estimate * factor * usedRatio),
    );
    if (call.entries.some(({ estimate }, i) => (costs[i] ?? 0) > estimate)) {
      this.counts.underestimated += 1;
    }
    const others = this.#live().filter((replica) => replica !== call.owner);
    const observer = others[dice.below(others.length)];
    const isSeen = dice.chance(call.owner.isLive ? 0.3 : 0.5);
    if (isSeen && observer !== undefined) this.#settle(call, observer, { id, costs });
    if (!call.owner.isLive) return;
    const settleOwn = (): void => {
      if (call.owner.isLive) this.#settle(call, call.owner, { id, costs });
    };
    if (isSeen) this.#time.after(500, settleOwn);
    else settleOwn();
    if (dice.chance(0.1)) this.#time.after(dice.between(0, 3_000), settleOwn);
  }

  #settle(call: Call, by: Replica, settlement: Settlement): void {
    call.costs = settlement.costs;
    call.settledBy.push(by);
    by.ledger.settle(settlement);
  }

  /** Called by the link when the store has applied a batch. */
  #applied(batch: BudgetBatch, outcomes: readonly BudgetOutcome[]): void {
    const atMs = this.#time.nowMs;
    for (const [i, operation] of batch.operations.entries()) {
      const outcome = outcomes[i];
      const truth = this.#truth.get(operation.id) ?? { reserved: undefined, charged: undefined };
      this.#truth.set(operation.id, truth);
      if (operation.kind === "reserve") {
        const isReserved = outcome?.kind === "reserved" && outcome.result.isReserved;
        if (isReserved) truth.reserved ??= { atMs, entries: operation.entries };
        continue;
      }
      if (outcome?.kind !== "settled" || outcome.result === "unknown") continue;
      if (truth.charged !== undefined) this.violations.push(`${operation.id} was charged twice`);
      const isLate = outcome.result === "late";
      const entries = truth.reserved?.entries ?? operation.unreserved ?? [];
      truth.charged = { atMs, costs: operation.costs, entries, isLate };
      if (isLate) this.counts.late += 1;
      if (truth.reserved === undefined) this.counts.unreserved += 1;
    }
  }

  async #check(): Promise<void> {
    this.#checkCharges();
    this.#checkCapacity();
    this.#checkInFlight();
    await this.#checkAccounts();
    for (const { ledger } of this.#live()) {
      if (ledger.queuedCount > 0) this.violations.push("settlements were left");
      if (ledger.openCount > 0) this.violations.push("calls were left open");
    }
  }

  /** Who was let in is charged once, what it cost; who was not, nothing. */
  #checkCharges(): void {
    const admitted = this.#admitted();
    for (const call of this.#calls) {
      if (call.answer === undefined && call.owner.isLive) this.violations.push("no answer came");
    }
    for (const [id, { charged }] of this.#truth) {
      if (charged === undefined) continue;
      const expected = admitted.get(id)?.costs ?? charged.costs.map(() => 0);
      if (charged.costs.some((cost, i) => cost !== expected[i])) {
        this.violations.push(`${id} was charged ${charged.costs.join()}, cost ${expected.join()}`);
      }
    }
    for (const [id, call] of admitted) {
      const truth = this.#truth.get(id);
      const isDue = call.settledBy.some(
        (by) => by.isLive && (by === call.owner || truth?.reserved !== undefined),
      );
      if (isDue && truth?.charged === undefined) this.violations.push(`${id} was not charged`);
    }
  }

  /**
   * What the store let in costs at most the capacity, without what it cost beyond its estimates:
   * in each month, and without what was lost with its replica.
   */
  #checkCapacity(): void {
    const sums = new Map<string, { sum: number; readonly capacity: number }>();
    for (const { entries, reservedMs, costs } of this.#byStore()) {
      for (const [i, { account, law, estimate, capacity, isEnforced }] of entries.entries()) {
        if (law.kind !== "window" || !isEnforced) continue;
        const key = `${account} ${this.#monthAt(reservedMs)}`;
        const known = sums.get(key) ?? { sum: 0, capacity };
        known.sum += Math.min(estimate, costs[i] ?? 0);
        sums.set(key, known);
      }
    }
    for (const [key, { sum, capacity }] of sums) {
      if (sum > capacity) this.violations.push(`${key}: ${sum} of ${capacity} were admitted`);
    }
  }

  /** What the store let in is never more in flight than its maximum. */
  #checkInFlight(): void {
    const changes = new Map<string, { readonly atMs: number; readonly by: number }[]>();
    for (const { entries, reservedMs, endedMs } of this.#byStore()) {
      for (const { account, law, isEnforced } of entries) {
        if (law.kind !== "inFlight" || !isEnforced || endedMs === undefined) continue;
        const own = changes.get(account) ?? [];
        own.push({ atMs: reservedMs, by: 1 }, { atMs: endedMs, by: -1 });
        changes.set(account, own);
      }
    }
    for (const [account, own] of changes) {
      let count = 0;
      for (const { by } of own.toSorted((a, b) => a.atMs - b.atMs || a.by - b.by)) {
        count += by;
        if (count > 3) this.violations.push(`${account}: ${count} are in flight`);
      }
    }
  }

  /** Calls that the store let in, and that were settled before their leases expired. */
  #byStore(): readonly StoredCall[] {
    const calls = this.#admitted();
    return [...this.#truth].flatMap(([id, { reserved, charged }]) => {
      if (reserved === undefined || charged === undefined || charged.isLate) return [];
      const call = calls.get(id);
      // The store was told of others after they had been let in, without being asked.
      const { entries } = call?.answer?.kind === "decided" ? call : reserved;
      const { costs } = charged;
      return { entries, costs, reservedMs: reserved.atMs, endedMs: call?.endedMs };
    });
  }

  #admitted(): ReadonlyMap<ReservationId, Call> {
    return new Map(
      this.#calls.flatMap((call) =>
        call.answer?.id === undefined ? [] : [[call.answer.id, call]],
      ),
    );
  }

  /** The store's accounts are those of the exact ledger. */
  async #checkAccounts(): Promise<void> {
    const nowUs = this.#storeClock.epochUs();
    const month = this.#monthAt(this.#time.nowMs);
    const named = budgets.flatMap(({ name, kind }) =>
      ["a", "b"].map((value) => ({
        account: accountKey(name, [value], String),
        law: this.#lawOf(kind, nowUs),
      })),
    );
    const rows = await this.#store.read(named);
    for (const [i, { account, law }] of named.entries()) {
      const row = rows[i];
      if (row === undefined) continue;
      if (row.reserved !== 0) this.violations.push(`${account}: ${row.reserved} stay reserved`);
      if (law.kind !== "window") continue;
      const expected = [this.#spent(account, month), this.#spent(account, month - 1)];
      if (row.spent !== expected[0] || row.spentBefore !== expected[1]) {
        const found = `${row.spent} and ${row.spentBefore}`;
        this.violations.push(`${account}: ${found} are spent, of ${expected.join(" and ")}`);
      }
    }
  }

  #spent(account: string, month: number): number {
    let sum = 0;
    for (const { reserved, charged } of this.#truth.values()) {
      const { atMs, entries } = reserved ?? charged ?? { atMs: 0, entries: [] };
      if (this.#monthAt(atMs) !== month) continue;
      for (const [i, entry] of entries.entries()) {
        if (entry.account !== account) continue;
        if (charged !== undefined) sum += charged.costs[i] ?? 0;
        else if (entry.whenLost === "charge") sum += entry.estimate;
      }
    }
    return sum;
  }
}
