import { create } from "@bufbuild/protobuf";
import { createContextValues, createHandlerContext } from "@connectrpc/connect";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LearnedUsage } from "../../../../src/core/budgets/learned-usage.js";
import { TopUpTable } from "../../../../src/core/budgets/top-up.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { Explainer } from "../../../../src/decide/inspect/explain.js";
import { BudgetExplainer } from "../../../../src/decide/inspect/explain-budgets.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { PreparedQuery } from "../../../../src/decide/rate-limit/prepared-query.js";
import type { DescriptorQuery, RateLimitQuery } from "../../../../src/decide/rate-limit/query.js";
import { overrideToJson } from "../../../../src/fleet/records/override-record.js";
import { OverrideRegistry } from "../../../../src/fleet/records/override-registry.js";
import {
  ExplainRequestSchema,
  ExplainResponseSchema,
  LimitService,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { rateLimitEntries } from "../../../../src/generate/envoy/http/rate-limit-actions.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { PolicyBuilder } from "../../../../src/policy/policy.js";
import { adminCallKey } from "../../../../src/rpc/admin/call.js";
import { explainMethod } from "../../../../src/rpc/admin/explain/explain-method.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import {
  askedByEnvoy,
  type EnvoyRateLimit,
  type SentRequest,
} from "../../../support/envoy-actions.js";
import { plain, testContext } from "../../../support/envoy-parts.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { memoryRecords } from "../../../support/memory-records.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";
import { noSwitches } from "../../../support/switches.js";

/** Both services bring requests to the limits that plain descriptors meet, and to each other's. */
const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limits:
            - {unit: minute, requests_per_unit: 30, burst: 5, name: pace}
            - {unit: hour, requests_per_unit: 900, burst: 12, name: slow}
        - {key: user, value: ann, rate_limit: {unit: minute, requests_per_unit: 60, burst: 4}}
        - key: plan
          descriptors:
            - {key: user, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 20}}
        - {key: team, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 6}}
        - key: path
          value: "/a*"
          shadow_mode: true
          rate_limit: {unit: minute, requests_per_unit: 3}
        - {key: tokens, rate_limit: {unit: minute, requests_per_unit: 10, charge: settle}}
        - key: window
          rate_limit: {unit: minute, requests_per_unit: 4, algorithm: fixed_window}
        - key: kind
          value: paid
          rate_limit: {unit: minute, requests_per_unit: 40, replaces: [{name: pace}]}
        - {key: kind, rate_limit: {unit: minute, requests_per_unit: 25}}
        - {key: method, value: GET, rate_limit: {unlimited: true}}
        - {key: method, rate_limit: {unit: second, requests_per_unit: 2}}
        - {key: word, rate_limit: {unit: minute, requests_per_unit: 5}}
        - {key: remote_address, rate_limit: {unit: minute, requests_per_unit: 15}}
        - {key: masked_remote_address, rate_limit: {unit: minute, requests_per_unit: 50}}
        - {key: destination_cluster, rate_limit: {unit: minute, requests_per_unit: 30}}
        - {key: blocked, rate_limit: {unit: minute, requests_per_unit: 0}}
  services:
    - name: orders
      hosts: [orders.example]
      rateLimit:
        domain: shop
        descriptors:
          - [remote_address]
          - [{header: x-user, as: user}]
          - [{header: x-plan, as: plan}, {header: x-user, as: user}]
          - [{header: ":path", as: path}]
          - [{header: ":method", as: method}]
          - [{headerMatch: [{name: x-plan, exact: gold}], as: kind, value: paid}]
          - - {headerMatch: [{name: x-plan, present: true}], as: kind, value: g, expectMatch: false}
          - {entries: [{header: x-tokens, as: tokens}], hits: 0}
    - name: search
      hosts: [search.example]
      rateLimit:
        domain: shop
        descriptors:
          - [{maskedRemoteAddress: {v4: 16, v6: 32}}]
          - [{query: q, as: word}]
          - {entries: [{header: x-tokens, as: tokens}], hits: 3}
          - {entries: [{header: x-back, as: user}], hits: 2, refund: true}
          - [destination_cluster]
          - [{value: x, as: window}]
`;

const parsed = parsePolicy([{ file: "policy.yaml", text }]);
if (parsed.kind === "problems") throw new Error(JSON.stringify(parsed.problems));
const builder = new PolicyBuilder("v1");
builder.addDomains(parsed.domains);
builder.addServices(parsed.services);
builder.add(parsed.rules);
const policy = builder.finish();

/** What each service makes Envoy do, by its name. */
const generated = new Map(
  parsed.services.map((service) => {
    const trees = rateLimitEntries(service, testContext().context);
    return [service.name, trees.map((tree) => plain(tree) as EnvoyRateLimit)];
  }),
);

const descriptor = fc.constantFrom(
  "user=ann",
  "user=bob",
  "user=",
  "plan=free,user=ann",
  "plan=free",
  "team=a",
  "path=/a/b",
  "tokens=x",
  "window=x",
  "kind=paid",
  "method=GET",
  "blocked=x",
  "none=x",
);

const plainAsk = fc.record({
  kind: fc.constant("descriptors" as const),
  descriptors: fc.array(descriptor, { minLength: 1, maxLength: 3 }),
  hits: fc.constantFrom(1, 1, 1, 2, 0, 5),
  isRefund: fc.constantFrom(false, false, false, false, true),
});

const httpAsk = fc.record({
  kind: fc.constant("http" as const),
  service: fc.constantFrom("orders", "orders", "search"),
  method: fc.constantFrom("GET", "GET", "POST"),
  path: fc.constantFrom("/a/b", "/b", "/b?q=x", "/b?q=x+y", "/a?p=1&q=%78&q=z", "/?q=", "/?q"),
  headers: fc.record(
    {
      "x-user": fc.constantFrom("ann", "bob", ""),
      "x-plan": fc.constantFrom("free", "gold"),
      "x-tokens": fc.constantFrom("x", "y"),
      "x-back": fc.constantFrom("ann", "bob"),
    },
    { requiredKeys: [] },
  ),
  address: fc.constantFrom("10.1.2.3", "10.1.9.9", "2001:db8::1", "2001:db8:5::9"),
});

const change = fc.record({
  id: fc.constantFrom("one", "two", "three", "four", "five", "six"),
  entries: fc.oneof(
    descriptor,
    fc.constantFrom("user=ann", "user=bob", "plan=free", "plan=free,user=bob", "window=x"),
    fc.constantFrom("remote_address=2001:db8::1", "masked_remote_address=10.1.0.0/16"),
    fc.constantFrom("method=POST", "word=x", "word=", "kind=g", "destination_cluster=search"),
  ),
  isPrefix: fc.boolean(),
  limitName: fc.constantFrom(undefined, undefined, undefined, "pace", "slow"),
  effect: fc.oneof(
    fc.constant({ kind: "frozen" } as const),
    fc.record({ kind: fc.constant("multiplier" as const), by: fc.constantFrom(0.2, 0.5, 2, 10) }),
    fc.record({
      kind: fc.constant("amount" as const),
      hits: fc.constantFrom(0, 1, 6, 100),
      burst: fc.integer({ min: 1, max: 20 }),
    }),
    fc.constant("removed" as const),
  ),
  /** The first has expired when it comes. */
  lastsMs: fc.constantFrom(-1_000, 200, 8_000, 60_000, undefined),
});

const step = fc.record({
  change: fc.option(change, { freq: 5, nil: undefined }),
  afterMs: fc.constantFrom(0, 0, 0, 20, 300, 300, 1_500, 10_000),
  ask: fc.oneof(plainAsk, httpAsk),
});

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;
type Ask = typeof step extends fc.Arbitrary<infer T extends { ask: unknown }> ? T["ask"] : never;

describe("Explainer beside Decider", () => {
  it("agrees with decisions under live overrides", async () => {
    const counts = { asked: 0, denied: 0, http: 0, overridden: 0, frozen: 0, expired: 0 };
    const histories = fc.array(step, { minLength: 20, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(histories, async (steps) => {
        const world = new World();
        for (const { change: wanted, afterMs, ask } of steps) {
          if (wanted !== undefined) await world.change(wanted);
          counts.expired += world.advance(afterMs);
          const explained = await world.explain(ask);
          const decided = await world.decide(world.queryOf(ask));
          expect(explained.entries).toEqual(decided.entries);
          expect(explained.isDenied).toBe(decided.isDenied);
          // What is refused from memory tells only what it knows, and that is true.
          const known = explained.isOver.map((isOver, i) =>
            decided.isFromMemory && decided.isOver[i] === undefined ? undefined : isOver,
          );
          expect(decided.isOver).toEqual(known);
          counts.asked += 1;
          counts.denied += decided.isDenied ? 1 : 0;
          counts.http += ask.kind === "http" ? 1 : 0;
          counts.overridden += explained.overrides.length > 0 ? 1 : 0;
          counts.frozen += explained.overrides.includes("frozen") ? 1 : 0;
        }
      }),
      propertyRuns(60),
    );
    // Each of them was there, and none of them alone.
    for (const count of [counts.denied, counts.http, counts.overridden]) {
      expect(count).toBeGreaterThan(metCount(72));
      expect(counts.asked - count).toBeGreaterThan(metCount(72));
    }
    expect(counts.frozen).toBeGreaterThan(metCount(12));
    expect(counts.expired).toBeGreaterThan(metCount(12));
  });
});

/** What is said of a call, or done about it, in terms of both. */
interface Told {
  readonly isDenied: boolean;
  readonly entries: readonly string[];
  readonly isOver: readonly (boolean | undefined)[];
}

/** A service of its own time, with nobody's hits. */
class World {
  readonly #clock = new FakeClock();
  readonly #store = new MemoryLimitStore({ clock: this.#clock });
  readonly #records = memoryRecords(this.#clock);
  readonly #overrides = new OverrideRegistry({ records: this.#records, clock: this.#clock });
  readonly #counters = new DecisionCounters();
  readonly #parts = {
    policies: { current: () => policy },
    overrides: this.#overrides,
    clock: this.#clock,
  };
  readonly #decider = createTestDecider({
    ...this.#parts,
    store: this.#store,
    counters: this.#counters,
  });
  /** As callers keep them, over changes of overrides. */
  readonly #prepared = new Map<string, PreparedQuery>();
  readonly #explainer = new Explainer({ switches: noSwitches, digest: (one) => one });
  readonly #peek = this.#store.peek.bind(this.#store);

  /** How many overrides have expired meanwhile. */
  advance(ms: number): number {
    const before = this.#overrides.current().size;
    this.#clock.advance(ms);
    return before - this.#overrides.current().size;
  }

  async change({ id, entries, effect, lastsMs, limitName, isPrefix }: Change): Promise<void> {
    const expectedVersion = this.#records.list("override").get(id)?.version ?? 0;
    const base = { kind: "override", id, expectedVersion, audit: undefined } as const;
    if (effect === "removed") {
      await this.#records.change({ ...base, value: undefined });
      return;
    }
    const nowEpochMs = this.#clock.epochUs() / 1_000;
    const override: Override = {
      id,
      domain: "shop",
      entries: entriesOf(entries),
      isPrefix,
      ...(limitName === undefined ? {} : { limitName }),
      effect,
      ...(lastsMs === undefined ? {} : { expiresEpochMs: nowEpochMs + lastsMs }),
      reason: "a test",
      author: "op",
      createdEpochMs: nowEpochMs,
    };
    await this.#records.change({ ...base, value: overrideToJson(override) });
  }

  /** What is asked; of a request what Envoy makes of it by the configuration of its service. */
  queryOf(ask: Ask): RateLimitQuery {
    if (ask.kind === "http") {
      const rateLimits = generated.get(ask.service) ?? [];
      const descriptors = askedByEnvoy(rateLimits, sentOf(ask), ask.service);
      return { domain: "shop", descriptors };
    }
    const { hits, isRefund } = ask;
    const descriptors = ask.descriptors.map((one): DescriptorQuery => {
      return { entries: entriesOf(one), hits, isRefund };
    });
    return { domain: "shop", descriptors };
  }

  async decide(query: RateLimitQuery): Promise<Told & { readonly isFromMemory: boolean }> {
    const hits = query.descriptors.map((one) => one.hits);
    const before = this.#counters.refusedFromMemoryCount;
    const name = JSON.stringify(query.descriptors.map(({ hits: _hits, ...rest }) => rest));
    let prepared = this.#prepared.get(name);
    if (prepared === undefined || !this.#decider.isCurrent(prepared)) {
      prepared = this.#decider.prepare(query);
      this.#prepared.set(name, prepared);
    }
    const asked = this.#decider.decidePrepared(prepared, hits, Number.POSITIVE_INFINITY);
    this.#clock.runTurns();
    await settlePromises();
    const { isDenied, statuses } = await asked;
    return {
      isDenied,
      entries: query.descriptors.map(({ entries }) => textOf(entries)),
      isOver: statuses.map(({ isOver }) => isOver),
      isFromMemory: this.#counters.refusedFromMemoryCount > before,
    };
  }

  /** @returns also the effects of the overrides that it names */
  async explain(ask: Ask): Promise<Told & { readonly overrides: readonly string[] }> {
    if (ask.kind === "http") return this.#explainRequest(ask);
    const explained = await this.#explainer.explain({
      query: this.queryOf(ask),
      policy,
      overrides: this.#overrides.current(),
      peek: this.#peek,
      epochUs: this.#clock.epochUs(),
    });
    const limits = explained.descriptors.flatMap((one) => one.limits);
    return {
      isDenied: explained.isDenied,
      entries: explained.descriptors.map(({ entries }) => textOf(entries)),
      isOver: explained.descriptors.map(({ isOver }) => isOver),
      overrides: limits.flatMap(({ override }) => override?.effect.kind ?? []),
    };
  }

  async #explainRequest(ask: Extract<Ask, { kind: "http" }>) {
    const { explain } = explainMethod({
      ...this.#parts,
      explainer: this.#explainer,
      peek: this.#peek,
      budgetExplainer: new BudgetExplainer({
        learned: new LearnedUsage(),
        topUps: new TopUpTable([]),
        digest: (one) => one,
        read: async () => [],
      }),
      readCandidate: async () => ({ kind: "failed", message: "there is none" }),
    });
    const { address, ...sent } = sentOf(ask);
    const value = { ...sent, host: `${ask.service}.example`, remoteAddress: address };
    const request = create(ExplainRequestSchema, { request: { case: "http", value } });
    const { current } = create(ExplainResponseSchema, await explain(request, context));
    const { isDenied = false, descriptors = [] } = current ?? {};
    const overrides = descriptors.flatMap(({ states }) =>
      states.flatMap(({ override }) => override?.effect.case ?? []),
    );
    return {
      isDenied,
      entries: descriptors.map(({ entries }) => textOf(entries)),
      isOver: descriptors.map(({ isOver }) => isOver),
      overrides: overrides.map((effect) => (effect === "isFrozen" ? "frozen" : effect)),
    };
  }
}

const reader = { name: "ann", grants: [{ role: "reader" as const, domains: ["shop"] }] };

const context = createHandlerContext({
  service: LimitService,
  method: LimitService.method.explain,
  protocolName: "test",
  requestMethod: "POST",
  url: "http://localhost",
  contextValues: createContextValues().set(adminCallKey, {
    principal: reader,
    isStillAllowed: async () => true,
    onRead: () => {},
    onEnd: () => {},
  }),
});

function sentOf({ method, path, headers, address }: Extract<Ask, { kind: "http" }>): SentRequest {
  return { method, path, headers: Object.fromEntries(Object.entries(headers)), address };
}

function entriesOf(one: string) {
  return one.split(",").map((part) => {
    const [key = "", value = ""] = part.split("=");
    return { key, value };
  });
}

function textOf(entries: readonly { readonly key: string; readonly value?: string }[]): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(",");
}
