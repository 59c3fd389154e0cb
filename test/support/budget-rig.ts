import { sha256 } from "../../src/app/base/sha256.js";
import { BudgetAdmin } from "../../src/app/operator/budget-admin.js";
import type { ReservedEntry } from "../../src/core/budgets/account.js";
import type { ReservationId } from "../../src/core/budgets/budget-ledger.js";
import { Budgets } from "../../src/decide/budget/budgets.js";
import { StoreBudgetLedger } from "../../src/fleet/budgets/store-budget-ledger.js";
import { TopUpRegistry } from "../../src/fleet/records/top-up-registry.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import type { BudgetServiceParts } from "../../src/rpc/admin/budgets/budget-requests.js";
import type { UsageRow } from "../../src/store/coordination/budget-store.js";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import { FakeClock } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";
import { memoryRecords } from "./memory-records.js";

/** Budgets of a team and a model a month, of everybody a day, and one that drains. */
export const budgetsText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  prices:
    currency: USD
    models: [{model: gpt-*, input: 2.50, output: 10}]
  budgets:
    - name: team-month
      services: [llm]
      per: [{header: x-team}, model]
      amount: 100 USD
      overrides: [{values: [research, "*"], amount: 400 USD}]
      period: month
      timeZone: Europe/Berlin
      warnAt: 0.8
    - {name: everybody-day, services: [llm], amount: 1_000_000 tokens, period: day}
    - {name: pace, per: [{header: x-user}], amount: 100 calls, period: 1m, services: [other]}
  services:
    - name: llm
      hosts: [llm.example]
      rateLimit: {domain: shop, descriptors: [{entries: [{value: llm, as: route}]}]}
      usage: {model: body, from: body}
    - {name: other, hosts: [other.example], usage: {}}
  rateLimits:
    - domain: shop
      descriptors: [{key: route, rate_limit: {unit: second, requests_per_unit: 5}}]
`;

/** A policy of a text, which must be valid. */
export function policyOfText(text: string, version = "v1"): Policy {
  const parsed = parsePolicy([{ file: "policy.yaml", text }]);
  if (parsed.kind === "problems") throw new Error(JSON.stringify(parsed.problems));
  const builder = new PolicyBuilder(version);
  builder.addDomains(parsed.domains);
  builder.addBudgets(parsed.budgets);
  builder.setPrices(parsed.prices);
  builder.addServices(parsed.services);
  builder.add(parsed.rules);
  return builder.finish();
}

/** What operators see and change of budgets, over a store in memory. */
export class BudgetRig {
  readonly clock = new FakeClock();
  readonly store = new MemoryBudgets(this.clock);
  readonly records = memoryRecords(this.clock);
  readonly topUps = new TopUpRegistry({ records: this.records, clock: this.clock });
  readonly policy: Policy;
  readonly ledger: StoreBudgetLedger;
  readonly budgets: Budgets;
  readonly parts: BudgetServiceParts;
  readonly #random = new FakeRandom(1);
  #count = 0;

  constructor(text = budgetsText) {
    const { clock, store, topUps, records } = this;
    this.policy = policyOfText(text);
    const policies = { current: () => this.policy, onLoaded: () => () => {} };
    const random = this.#random;
    this.ledger = new StoreBudgetLedger({ store, clock, random, replicaCount: () => 1 });
    const { ledger } = this;
    this.budgets = new Budgets({
      policies,
      ledger,
      clock,
      topUps,
      digest: sha256,
      onEvent: () => {},
    });
    this.parts = {
      budgets: new BudgetAdmin({ budgets: this.budgets, store, topUps, clock }),
      clock,
      digest: sha256,
      policies,
      random,
      records,
      replica: "r1",
    };
  }

  /** Reserves for a call, and settles it where it has a cost. */
  async spend(budget: string, values: readonly string[], amounts: SpentAmounts): Promise<void> {
    const compiled = this.budgets.budgets.get(budget);
    if (compiled === undefined) throw new Error("no such budget");
    const nowUs = this.clock.epochUs();
    const { estimate, cost } = amounts;
    const entry: ReservedEntry = {
      account: compiled.accountOf(values),
      law: compiled.lawAt(nowUs),
      capacity: compiled.capacityOf(values, this.topUps, nowUs / 1_000),
      estimate,
      isEnforced: false,
      whenLost: "release",
      onStoreFailure: "allow",
    };
    this.#count += 1;
    const id = `0000000a.${this.#count}` as ReservationId;
    const batch = { holder: "0000000a", leaseMs: 60_000 };
    const { store } = this;
    await store.apply({ ...batch, operations: [{ kind: "reserve", id, entries: [entry] }] });
    if (cost === undefined) return;
    await store.apply({ ...batch, operations: [{ kind: "settle", id, costs: [cost] }] });
  }

  /** Adds rows to the usage report of a day. */
  async use(day: string, ...rows: readonly UsageRow[]): Promise<void> {
    this.#count += 1;
    await this.store.addUsage({ holder: "0000000a", number: this.#count, day, rows });
  }

  close(): void {
    this.budgets.close();
    this.topUps.close();
    this.records.close();
  }
}

interface SpentAmounts {
  readonly estimate: number;
  /** Absent: the call is still in flight. */
  readonly cost?: number;
}
