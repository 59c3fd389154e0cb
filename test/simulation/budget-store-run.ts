import type { AccountKey, AccountLaw, ReservedEntry } from "../../src/core/budgets/account.js";
import type { ReservationId } from "../../src/core/budgets/budget-ledger.js";
import { holderOf, reservationId } from "../../src/core/budgets/reservation-id.js";
import {
  type BudgetOperation,
  type BudgetOutcome,
  type BudgetStore,
  lateSettlementMsMax,
} from "../../src/store/coordination/budget-store.js";
import { testAccount, testEntry } from "../support/budgets.js";
import type { FakeClock } from "../support/fake-clock.js";
import { FakeRandom } from "../support/fake-random.js";
import { soon } from "../support/redis-store.js";
import { Dice } from "./dice.js";

const windowMs = 60_000;
const leaseMs = 5_000;

/** An account of the run, and what an exact ledger knows of it. */
interface Account {
  readonly key: AccountKey;
  readonly kind: "window" | "inFlight";
  readonly capacity: number;
  readonly whenLost: "release" | "charge";
  /** By the index of the window. */
  readonly spent: Map<number, number>;
  readonly reserved: Map<number, number>;
  readonly lost: Map<number, number>;
  /** What calls of a window truly cost, by why the ledger lets them pass the capacity. */
  readonly allowed: Map<number, number>;
  readonly cost: Map<number, number>;
}

/** A call, as the world knows it. */
interface Call {
  readonly id: ReservationId;
  readonly entries: readonly ReservedEntry[];
  readonly accounts: readonly Account[];
  readonly costs: readonly number[];
  /** Whether it was let in without an answer of the store. */
  isUnreserved: boolean;
}

/** A reservation, as the exact ledger knows it. */
interface Held {
  readonly window: number;
  readonly call: Call;
  /** Of a lost holder: until when a late settlement counts. */
  lateUntilMs: number | undefined;
}

/** What the run met, so that a test sees that it met everything. */
export interface BudgetRunCounts {
  admitted: number;
  refused: number;
  unreserved: number;
  settled: number;
  late: number;
  unknown: number;
  expired: number;
  killed: number;
  overshot: number;
}

/**
 * Holders that share accounts, over a network that loses and delays batches and answers, and that
 * are killed; next to an exact ledger. Every outcome and every amount of the store is compared.
 */
export class BudgetRun {
  readonly violations: string[] = [];
  readonly counts: BudgetRunCounts = {
    ...{ admitted: 0, refused: 0, unreserved: 0, settled: 0, late: 0, unknown: 0 },
    ...{ expired: 0, killed: 0, overshot: 0 },
  };
  readonly #store: BudgetStore;
  readonly #clock: FakeClock;
  readonly #dice: Dice;
  readonly #accounts: readonly Account[];
  readonly #leases = new Map<string, number>();
  readonly #alive: string[] = [];
  readonly #delayed = new Map<string, (readonly BudgetOperation[])[]>();
  readonly #calls = new Map<ReservationId, Call>();
  readonly #held = new Map<ReservationId, Held>();
  /** Ids whose costs are charged. */
  readonly #charged = new Set<ReservationId>();
  /** Calls that wait for their settlement to be heard. */
  readonly #open = new Set<Call>();
  /** Calls of killed holders: only others may settle them. */
  readonly #orphans = new Set<Call>();
  #holderCount = 0;
  #callCount = 0;

  constructor(store: BudgetStore, clock: FakeClock, seed: number) {
    this.#store = store;
    this.#clock = clock;
    this.#dice = new Dice(new FakeRandom(seed));
    const dice = this.#dice;
    this.#accounts = Array.from({ length: 2 + dice.below(3) }, (_, i): Account => {
      const kind = i > 0 && dice.chance(0.25) ? "inFlight" : "window";
      return {
        key: testAccount(`budget-${i}`, `${kind}`),
        kind,
        capacity: kind === "window" ? 100 + dice.below(400) : 1 + dice.below(8),
        whenLost: dice.pick(["release", "charge"]),
        ...{ spent: new Map(), reserved: new Map(), lost: new Map() },
        ...{ allowed: new Map(), cost: new Map() },
      };
    });
    for (let i = 0; i < 3; i += 1) this.#join();
  }

  async run(steps: number): Promise<void> {
    for (let i = 0; i < steps; i += 1) {
      await this.#step();
      await this.#compare();
    }
    for (const account of this.#accounts) this.#judge(account);
  }

  async #step(): Promise<void> {
    const dice = this.#dice;
    this.#clock.advance(dice.chance(0.03) ? dice.below(windowMs) : dice.below(1_500));
    if (dice.chance(0.02)) this.#kill();
    const holder = dice.pick(this.#alive);
    if (dice.chance(0.25)) await this.#renew(holder);
    else await this.#send(holder);
    const waiting = [...this.#delayed.keys()];
    if (waiting.length > 0 && dice.chance(0.3)) await this.#flush(dice.pick(waiting));
  }

  /** A batch of calls that begin, and of settlements, each maybe for the second time. */
  async #send(holder: string): Promise<void> {
    const dice = this.#dice;
    const operations: BudgetOperation[] = [];
    const begun: Call[] = [];
    for (let i = dice.below(3); i >= 0; i -= 1) {
      const call = this.#begin(holder);
      begun.push(call);
      operations.push({ kind: "reserve", id: call.id, entries: call.entries });
    }
    const settling = [...this.#open, ...this.#orphans].filter((call) => {
      return dice.chance(holderOf(call.id) === holder ? 0.3 : 0.08);
    });
    for (const call of settling) operations.push(this.#settlementOf(call, holder));
    for (const call of this.#open) {
      const isOwn = holderOf(call.id) === holder && call.isUnreserved;
      if (isOwn && dice.chance(0.3)) operations.push(retellingOf(call));
    }
    await this.#flush(holder);
    const fate = dice.below(10);
    if (fate === 0) {
      this.#unheard(begun);
    } else if (fate === 1) {
      this.#delayed.set(holder, [...(this.#delayed.get(holder) ?? []), operations]);
      this.#unheard(begun);
    } else {
      const outcomes = await this.#deliver(holder, operations);
      if (fate === 2) this.#unheard(begun);
      else this.#hear(begun, settling, outcomes);
    }
  }

  #begin(holder: string): Call {
    const dice = this.#dice;
    this.#callCount += 1;
    const accounts = this.#accounts.filter((_, i) => i === 0 || dice.chance(0.6));
    const estimates = accounts.map(({ kind }) => (kind === "window" ? dice.below(60) : 1));
    const costs = accounts.map(({ kind }, i) => {
      if (kind === "inFlight") return 0;
      return dice.chance(0.7) ? dice.below((estimates[i] ?? 0) + 1) : dice.below(120);
    });
    const entries = accounts.map(({ key, kind, capacity, whenLost }, i) => {
      const law = kind === "window" ? this.#windowLaw() : ({ kind } as const);
      return testEntry({ account: key, law, capacity, whenLost, estimate: estimates[i] ?? 0 });
    });
    const id = reservationId(holder, this.#callCount);
    const call = { id, entries, accounts, costs, isUnreserved: false };
    this.#calls.set(id, call);
    return call;
  }

  #windowLaw(): AccountLaw {
    const startUs = 1_000 * windowMs * this.#window();
    const endUs = startUs + 1_000 * windowMs;
    return { kind: "window", windows: { startUs, endUs, nextEndUs: endUs + 1_000 * windowMs } };
  }

  #settlementOf({ id, costs, entries, isUnreserved }: Call, by: string): BudgetOperation {
    const isOwn = holderOf(id) === by && isUnreserved;
    return { kind: "settle", id, costs, ...(isOwn ? { unreserved: entries } : {}) };
  }

  /** The store has not answered: a failure mode lets calls in, or refuses them. */
  #unheard(begun: readonly Call[]): void {
    for (const call of begun) {
      const isLetIn = this.#dice.chance(0.5);
      const costs = isLetIn ? call.costs : call.costs.map(() => 0);
      const own = { ...call, costs, isUnreserved: true };
      this.#calls.set(call.id, own);
      const held = this.#held.get(call.id);
      if (held !== undefined) this.#held.set(call.id, { ...held, call: own });
      this.#open.add(own);
    }
  }

  #hear(
    begun: readonly Call[],
    settling: readonly Call[],
    outcomes: readonly BudgetOutcome[],
  ): void {
    begun.forEach((call, i) => {
      const outcome = outcomes[i];
      if (outcome?.kind === "reserved" && outcome.result.isReserved) this.#open.add(call);
    });
    for (const call of settling) {
      // Some settle again what is settled.
      if (this.#dice.chance(0.8)) this.#open.delete(call);
      if (this.#dice.chance(0.8)) this.#orphans.delete(call);
    }
  }

  async #flush(holder: string): Promise<void> {
    for (const operations of this.#delayed.get(holder) ?? []) {
      await this.#deliver(holder, operations);
    }
    this.#delayed.delete(holder);
  }

  async #deliver(
    holder: string,
    operations: readonly BudgetOperation[],
  ): Promise<readonly BudgetOutcome[]> {
    const outcomes = await this.#store.apply({ holder, leaseMs, operations }, soon());
    this.#leases.set(holder, this.#nowMs() + leaseMs);
    operations.forEach((operation, i) => {
      const expected = this.#expect(operation);
      const outcome = outcomes[i];
      const found =
        outcome?.kind === "reserved"
          ? String(outcome.result.isReserved)
          : outcome?.kind === "settled"
            ? outcome.result
            : "";
      if (found !== expected) this.violations.push(`${operation.id}: ${found}, not ${expected}`);
    });
    return outcomes;
  }

  /** Does the same in the exact ledger. */
  #expect(operation: BudgetOperation): string {
    const { id } = operation;
    const call = this.#calls.get(id);
    if (call === undefined) throw new Error("the world knows its calls");
    if (operation.kind === "reserve") {
      const isEnforced = operation.entries.some((entry) => entry.isEnforced);
      return String(this.#reserve(call, { isEnforced }));
    }
    const held = this.#held.get(id);
    if (held === undefined) {
      if (operation.unreserved === undefined || this.#charged.has(id)) return this.#note("unknown");
      this.#charge(call, this.#window(), { isReserved: false });
      this.counts.unreserved += 1;
      return "settled";
    }
    this.#held.delete(id);
    if (held.lateUntilMs === undefined) {
      this.#release(held);
      this.#charge(call, held.window, { isReserved: true });
      return this.#note("settled");
    }
    if (held.lateUntilMs <= this.#nowMs()) {
      return this.#note("unknown");
    }
    call.accounts.forEach((account, i) => {
      const estimate = call.entries[i]?.estimate ?? 0;
      const sums = account.whenLost === "charge" ? account.spent : account.lost;
      if (account.kind === "window") add(sums, held.window, -estimate);
      else if (account.whenLost === "release") add(account.lost, 0, -estimate);
    });
    this.#charge(call, held.window, { isReserved: true });
    return this.#note("late");
  }

  #reserve(call: Call, { isEnforced }: { readonly isEnforced: boolean }): boolean {
    const { id, entries, accounts } = call;
    if (this.#held.has(id) || this.#charged.has(id)) return this.#held.has(id);
    const window = this.#window();
    const fits =
      !isEnforced ||
      accounts.every((account, i) => {
        const at = account.kind === "window" ? window : 0;
        const used = of(account.spent, at) + of(account.reserved, at);
        return used + (entries[i]?.estimate ?? 0) <= account.capacity;
      });
    this.counts[fits ? "admitted" : "refused"] += 1;
    if (!fits) return false;
    accounts.forEach((account, i) => {
      const at = account.kind === "window" ? window : 0;
      add(account.reserved, at, entries[i]?.estimate ?? 0);
    });
    this.#held.set(id, { window, call, lateUntilMs: undefined });
    return true;
  }

  #release({ window, call }: Held): void {
    call.accounts.forEach((account, i) => {
      const at = account.kind === "window" ? window : 0;
      add(account.reserved, at, -(call.entries[i]?.estimate ?? 0));
    });
  }

  #charge(call: Call, window: number, { isReserved }: { readonly isReserved: boolean }): void {
    if (this.#charged.has(call.id)) this.violations.push(`${call.id} is charged twice`);
    this.#charged.add(call.id);
    call.accounts.forEach((account, i) => {
      if (account.kind !== "window") return;
      const cost = call.costs[i] ?? 0;
      const estimate = call.entries[i]?.estimate ?? 0;
      add(account.spent, window, cost);
      add(account.cost, window, cost);
      const isWithin = isReserved && !call.isUnreserved;
      add(account.allowed, window, isWithin ? Math.max(0, cost - estimate) : cost);
    });
  }

  async #renew(holder: string): Promise<void> {
    const { expiredCount } = await this.#store.renew(holder, leaseMs, soon());
    const nowMs = this.#nowMs();
    this.#leases.set(holder, nowMs + leaseMs);
    let expected = 0;
    for (const [id, held] of this.#held) {
      const isLost = (this.#leases.get(holderOf(id)) ?? 0) <= nowMs;
      if (!isLost || held.lateUntilMs !== undefined) continue;
      expected += 1;
      held.lateUntilMs = nowMs + lateSettlementMsMax;
      this.#release(held);
      held.call.accounts.forEach((account, i) => {
        const estimate = held.call.entries[i]?.estimate ?? 0;
        const cost = held.call.costs[i] ?? 0;
        const at = account.kind === "window" ? held.window : 0;
        if (account.whenLost === "release") {
          add(account.lost, at, estimate);
          // What it makes room for may cost as much again.
          add(account.allowed, at, Math.min(cost, estimate));
        } else if (account.kind === "window") add(account.spent, at, estimate);
      });
    }
    this.counts.expired += expected;
    if (expiredCount !== expected) this.violations.push(`${expiredCount} of ${expected} expired`);
  }

  #join(): void {
    this.#holderCount += 1;
    this.#alive.push(`h${this.#holderCount}`);
  }

  /** Nobody hears of it again; its calls go on, and others may see their ends. */
  #kill(): void {
    const [dead] = this.#alive.splice(this.#dice.below(this.#alive.length), 1);
    this.counts.killed += 1;
    for (const call of this.#open) {
      if (holderOf(call.id) !== dead) continue;
      this.#open.delete(call);
      if (this.#dice.chance(0.7)) this.#orphans.add({ ...call, isUnreserved: false });
    }
    this.#join();
  }

  /** Compares what the store says of each account. */
  async #compare(): Promise<void> {
    const rows = await this.#store.read(
      this.#accounts.map(({ key: account, kind }) => {
        return { account, law: kind === "window" ? this.#windowLaw() : { kind } };
      }),
      soon(),
    );
    const window = this.#window();
    this.#accounts.forEach((account, i) => {
      const at = account.kind === "window" ? window : 0;
      const { spent = 0, reserved = 0, spentBefore = 0, lost = 0 } = rows[i] ?? {};
      const expected = [
        of(account.spent, at),
        of(account.reserved, at),
        account.kind === "window" ? of(account.spent, at - 1) : 0,
        of(account.lost, at),
      ];
      const found = [spent, reserved, spentBefore, lost];
      if (String(found) === String(expected)) return;
      this.violations.push(`${account.key}: ${found}, not ${expected} in window ${at}`);
    });
  }

  /** The promise: calls cost no more than the capacity and what they cost beyond estimates. */
  #judge({ key, capacity, cost, allowed }: Account): void {
    for (const [window, sum] of cost) {
      if (sum > capacity) this.counts.overshot += 1;
      const most = capacity + of(allowed, window);
      if (sum > most)
        this.violations.push(`${key}: calls of window ${window} cost ${sum} of ${most}`);
    }
  }

  #note(result: "settled" | "late" | "unknown"): string {
    this.counts[result] += 1;
    return result;
  }

  #nowMs(): number {
    return Math.floor(this.#clock.epochUs() / 1_000);
  }

  #window(): number {
    return Math.floor(this.#nowMs() / windowMs);
  }
}

/** The store is told of a call that is in flight already, whether it fits or not. */
function retellingOf({ id, entries }: Call): BudgetOperation {
  const told = entries.map((entry) => ({ ...entry, isEnforced: false }));
  return { kind: "reserve", id, entries: told };
}

function of(sums: ReadonlyMap<number, number>, at: number): number {
  return sums.get(at) ?? 0;
}

function add(sums: Map<number, number>, at: number, amount: number): void {
  sums.set(at, of(sums, at) + amount);
}
