import type { Usage } from "../../src/core/budgets/usage.js";
import { type BudgetEvent, Budgets } from "../../src/decide/budget/budgets.js";
import { StoreBudgetLedger } from "../../src/fleet/budgets/store-budget-ledger.js";
import type { Policy } from "../../src/policy/policy.js";
import type { BudgetStore } from "../../src/store/coordination/budget-store.js";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import { AdmissionRig, type AskingRequest, type TestRequest } from "./admission.js";
import { FakeClock } from "./fake-clock.js";
import { parseHere } from "./parse-here.js";

interface BudgetedRigParts {
  readonly policy: Policy;
  readonly clock?: FakeClock;
  /** Default: one of its own, in memory. */
  readonly store?: BudgetStore;
  readonly topUp?: number;
}

/** Reads a policy; throws what is wrong with it. */
export async function policyOf(text: string): Promise<Policy> {
  const sources = [{ file: "policy.yaml", text }];
  const input = { kind: "texts", sources } as const;
  const parsing = await parseHere({ clock: new FakeClock(), version: "v1", parse: {}, input });
  if (parsing.kind !== "policy") throw new Error(JSON.stringify(parsing));
  return parsing.policy;
}

let rigCount = 0;

/** One replica's admission with budgets over a real ledger; a store may be of several. */
export class BudgetedRig {
  readonly clock: FakeClock;
  readonly store: BudgetStore;
  readonly ledger: StoreBudgetLedger;
  readonly budgets: Budgets;
  readonly admission: AdmissionRig;
  readonly events: BudgetEvent[] = [];
  policy: Policy;

  constructor({ policy, clock = new FakeClock(), store, topUp = 0 }: BudgetedRigParts) {
    this.policy = policy;
    this.clock = clock;
    this.store = store ?? new MemoryBudgets(clock);
    rigCount += 1;
    const holder = `r${rigCount}`;
    this.ledger = new StoreBudgetLedger({
      store: this.store,
      clock,
      random: { next: () => 0.5, id: () => holder },
      replicaCount: () => 2,
    });
    this.budgets = new Budgets({
      policies: { current: () => this.policy },
      ledger: this.ledger,
      clock,
      topUps: { topUpOf: () => topUp },
      digest: (text) => `d${text.length}`,
      onEvent: (event) => this.events.push(event),
    });
    this.admission = new AdmissionRig(policy, {
      clock,
      budgetsOf: (service) => this.budgets.of(service),
    });
  }

  /** Lets all that is due this turn happen, and what the store answers to it. */
  async turn(): Promise<void> {
    for (let i = 0; i < 3; i += 1) {
      this.clock.runTurns();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Asks, and waits for the verdict. */
  async ask(request: TestRequest = {}): Promise<AskingRequest> {
    const asking = this.admission.ask({ service: "llm", ...request });
    await this.turn();
    return asking;
  }

  /** Lets time pass. */
  async advance(byMs: number): Promise<void> {
    this.clock.advance(byMs);
    await this.turn();
  }

  /** The call ends well, with this usage in its headers `x-<count>`. */
  async complete(asking: AskingRequest, usage: Usage, status = 200): Promise<void> {
    const headers = new Map(
      Object.entries(usage).map(([name, count]) => [`x-${name.toLowerCase()}`, String(count)]),
    );
    asking.ticket?.responded({
      status,
      grpcStatus: undefined,
      isOverloaded: false,
      loadMetrics: undefined,
      headers,
    });
    asking.ticket?.end("completed");
    await this.turn();
  }

  /** What is spent and reserved of an account. */
  async account(budget: string, ...values: readonly string[]) {
    const compiled = this.budgets.budgets.get(budget);
    if (compiled === undefined) throw new Error(`no budget ${budget}`);
    const account = compiled.accountOf(values);
    const law = compiled.lawAt(this.clock.epochUs());
    const [row] = await this.store.read([{ account, law }], this.clock.monotonicMs() + 1_000);
    return { spent: row?.spent ?? 0, reserved: row?.reserved ?? 0 };
  }

  /** What metrics say of a budget. */
  counts(budget: string) {
    const counts = this.budgets.budgets.get(budget)?.counts;
    if (counts === undefined) throw new Error(`no budget ${budget}`);
    return counts;
  }

  close(): void {
    this.budgets.close();
    this.admission.admission.close();
  }
}
