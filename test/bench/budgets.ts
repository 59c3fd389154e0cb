import { sha256 } from "../../src/app/base/sha256.js";
import { keepNewObjectsYoung } from "../../src/app/base/v8-flags.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type {
  AdmissionRequest,
  AdmissionTicket,
} from "../../src/decide/admission/admission-call.js";
import { Budgets } from "../../src/decide/budget/budgets.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { StoreBudgetLedger } from "../../src/fleet/budgets/store-budget-ledger.js";
import { systemClock, systemRandom } from "../../src/host/clock.js";
import type { BudgetStore } from "../../src/store/coordination/budget-store.js";
import { MemoryBudgets } from "../../src/store/coordination/memory-budgets.js";
import type { LimitStore } from "../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import { RedisBudgets } from "../../src/store/redis/coordination/redis-budgets.js";
import { policyOf } from "../support/budgeted-rig.js";
import { createTestDecider } from "../support/decider.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore } from "../support/redis-store.js";
import { cpuUsPer } from "./in-process.js";
import { processCpuUs } from "./process-cpu.js";
import { layOut } from "./report.js";

/** Requests that begin in one turn of the event loop. */
const turnCount = 64;

const keyCount = 20_000;

/** What reserving and settling together may cost, as a multiple of a plain decision. */
const targetRatio = 2.5;

/** Rounds in which each row is measured once; the least CPU counts. */
const roundCount = 5;

const policyText = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: bench}
spec:
  rateLimits:
    - domain: bench
      descriptors:
        - {key: user, rate_limit: {unit: second, requests_per_unit: 1000000}}
  budgets:
    - name: user
      services: [one, two]
      per: [{header: x-user}]
      amount: 1000000000 tokens
      period: day
    - {name: all, services: [two], amount: 1000000000000 tokens, period: month}
  services:
    - name: plain
      admission: {}
      rateLimit: {domain: bench, inExtProc: true, descriptors: [[{header: x-user, as: user}]]}
    - name: one
      admission: {}
      usage: &usage
        model: {fixed: gpt-4o}
        from: {headers: {inputTokens: x-input, outputTokens: x-output}}
    - name: two
      admission: {}
      usage: *usage
`;

interface Stores {
  readonly limits: LimitStore;
  readonly budgets: BudgetStore;
  readonly redisPid: number | undefined;
}

/** What a call costs that is reserved and settled, next to one that a rate limit decides. */
export async function tellBudgets(callCount: number): Promise<string> {
  keepNewObjectsYoung();
  const memory: Stores = {
    limits: new MemoryLimitStore({ clock: systemClock }),
    budgets: new MemoryBudgets(systemClock),
    redisPid: undefined,
  };
  const redis = await RedisServer.start({ engine: "redis" });
  try {
    const { store, connections } = await openTestStore(redis);
    const budgets = new RedisBudgets({
      decisions: connections.decision,
      heartbeats: connections.fleet,
      bulk: connections.background,
      keyPrefix: "headgate:",
    });
    const shared: Stores = { limits: store, budgets, redisPid: redis.pid };
    const rows = [
      ...(await measureStore("memory", memory, callCount)),
      ...(await measureStore("Redis", shared, callCount)),
    ];
    await store.close();
    const head = ["calls", "CPU us", "of Redis us", "times plain", "target"];
    return layOut([head, ...rows]);
  } finally {
    await redis.stop();
  }
}

interface Cost {
  readonly ownUs: number;
  readonly redisUs: number;
}

async function measureStore(
  name: string,
  stores: Stores,
  callCount: number,
): Promise<readonly (readonly string[])[]> {
  const bench = await Bench.open(stores);
  const services = ["plain", "one", "two"] as const;
  const costs = new Map<string, Cost>();
  for (const service of services) await bench.run(service, callCount / 4);
  for (let round = 0; round < roundCount; round += 1) {
    for (const service of services) {
      process.stderr.write(`budgets, ${name}, ${service}, round ${round + 1} ...\n`);
      const cost = await bench.measure(service, callCount);
      const least = costs.get(service);
      if (least === undefined || cost.ownUs + cost.redisUs < least.ownUs + least.redisUs) {
        costs.set(service, cost);
      }
    }
  }
  await bench.close();
  const plain = costs.get("plain") ?? { ownUs: 0, redisUs: 0 };
  const words = { plain: "a rate limit", one: "a budget", two: "two budgets" };
  return services.map((service) => {
    const { ownUs, redisUs } = costs.get(service) ?? plain;
    const ratio = (ownUs + redisUs) / (plain.ownUs + plain.redisUs);
    const target = service === "one" ? `at most ${targetRatio}` : "";
    return [
      `${name}, ${words[service]}`,
      ...[ownUs, redisUs, ratio].map((n) => n.toFixed(2)),
      target,
    ];
  });
}

class Bench {
  readonly #admission: Admission;
  readonly #budgets: Budgets;
  readonly #ledger: StoreBudgetLedger;
  readonly #redisPid: number | undefined;
  readonly #requests = new Map<string, readonly AdmissionRequest[]>();

  static async open(stores: Stores): Promise<Bench> {
    return new Bench(await policyOf(policyText), stores);
  }

  constructor(policy: Awaited<ReturnType<typeof policyOf>>, stores: Stores) {
    const policies = { current: () => policy };
    const clock = systemClock;
    const { limits: store, budgets: budgetStore, redisPid } = stores;
    this.#redisPid = redisPid;
    this.#ledger = new StoreBudgetLedger({
      store: budgetStore,
      clock,
      random: systemRandom,
      replicaCount: () => 1,
      reserveTimeoutMs: 1_000,
    });
    this.#budgets = new Budgets({
      policies,
      ledger: this.#ledger,
      clock,
      topUps: { topUpOf: () => 0 },
      digest: sha256,
      onEvent: () => {},
    });
    this.#admission = new Admission({
      policies,
      clock,
      random: systemRandom,
      decider: createTestDecider({
        clock,
        policies,
        store,
        storeBudgetMs: 1_000,
        counters: new DecisionCounters(),
      }),
      shares: undefined,
      digest: sha256,
      permitLeaseMsMax: 300_000,
      isOverloaded: () => false,
      budgetsOf: (service) => this.#budgets.of(service),
      onEvent: () => {},
    });
  }

  async measure(service: string, count: number): Promise<Cost> {
    const before = this.#redisPid === undefined ? 0 : processCpuUs(this.#redisPid);
    const ownUs = await cpuUsPer(count, () => this.run(service, count));
    const after = this.#redisPid === undefined ? 0 : processCpuUs(this.#redisPid);
    return { ownUs, redisUs: (after - before) / count };
  }

  async run(service: string, count: number): Promise<void> {
    const requests = this.#requestsOf(service);
    for (let begun = 0; begun < count; begun += turnCount) {
      await new Promise<void>((resolve) => {
        let openCount = turnCount;
        for (let i = 0; i < turnCount; i += 1) {
          const request = requests[(begun + i) % keyCount];
          if (request !== undefined)
            this.#ask(request, () => {
              openCount -= 1;
              if (openCount === 0) resolve();
            });
        }
      });
    }
  }

  async close(): Promise<void> {
    this.#budgets.close();
    await this.#ledger.close();
    this.#admission.close();
  }

  #ask(request: AdmissionRequest, over: () => void): void {
    const end = (ticket: AdmissionTicket | undefined): void => {
      ticket?.responded(response);
      ticket?.end("completed");
      over();
    };
    const answer = this.#admission.begin(request, {
      decided: (verdict) => {
        if (verdict.kind === "admitted") end(verdict.ticket);
        else throw new Error("a call was refused");
      },
    });
    if (answer.kind === "admitted") end(answer.ticket);
    else if (answer.kind === "refused") throw new Error("a call was refused");
  }

  #requestsOf(service: string): readonly AdmissionRequest[] {
    const known = this.#requests.get(service);
    if (known !== undefined) return known;
    const requests = Array.from({ length: keyCount }, (_, i): AdmissionRequest => {
      const headers = new Map([
        [":method", "POST"],
        [":path", "/v1/chat/completions"],
        [":authority", "llm.example"],
        ["content-length", "2000"],
        ["x-user", `user-${i}`],
      ]);
      return { serviceName: service, peer: "e", headers, attributes: new Map(), isObserved: false };
    });
    this.#requests.set(service, requests);
    return requests;
  }
}

const response = {
  status: 200,
  grpcStatus: undefined,
  isOverloaded: false,
  loadMetrics: undefined,
  headers: new Map([
    [":status", "200"],
    ["x-input", "500"],
    ["x-output", "120"],
  ]),
};
