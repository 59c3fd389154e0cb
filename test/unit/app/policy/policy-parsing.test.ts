import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { parsePolicyInWorker } from "../../../../src/app/policy/policy-parsing.js";
import {
  chunkConditionsMax,
  chunkRulesMax,
  chunkServicesMax,
  type PolicyInput,
} from "../../../../src/app/policy/policy-worker-messages.js";
import type { Clock } from "../../../../src/core/base/clock.js";
import { type PolicyText, parsePolicy } from "../../../../src/policy/parse.js";
import { rateLimitConfigTypeUrl } from "../../../../src/rpc/policy-xds/rate-limit-config.js";
import { realClock } from "../../../support/real-clock.js";
import { policyOf } from "../../../support/service-texts.js";

function texts(...sources: readonly PolicyText[]): PolicyInput {
  return { kind: "texts", sources };
}

function source(text: string): PolicyInput {
  return texts({ file: "policy.yaml", text });
}

function manyLimits(count: number): string {
  const lines = ["domain: shop", "descriptors:"];
  for (let i = 0; i < count; i += 1) {
    lines.push(`  - {key: user, value: u${i}, rate_limit: {unit: minute, requests_per_unit: 5}}`);
  }
  return lines.join("\n");
}

describe("parsePolicyInWorker()", () => {
  it("builds the policy, with its version and its empty domains", async () => {
    const shop = { file: "a.yaml", text: manyLimits(1) };
    const input = texts(shop, { file: "b.yaml", text: "domain: empty" });
    const parsing = await parsePolicyInWorker({ input, version: "v7", clock: realClock });
    if (parsing.kind !== "policy") throw new Error(parsing.kind);
    expect(parsing.policy.version).toBe("v7");
    expect([...parsing.policy.domains.keys()]).toEqual(["shop", "empty"]);
    const rule = parsing.policy.domains.get("shop")?.match([{ key: "user", value: "u0" }]);
    expect(rule?.effect).toMatchObject({ kind: "limited", limits: [{ hits: 5 }] });
  });

  it("carries quotas over, as they were read", async () => {
    const text = [
      "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:",
      "  rateLimits: [{domain: shop}]",
      "  quotas:",
      "    - name: callers",
      "      domain: shop",
      "      bucket: [remote_address, {header: x-a, as: a}]",
      "      classes: {header: x-plan, weights: {gold: 3}}",
      "      rate: {hits: 5, period: 1s}",
    ].join("\n");
    const parsing = await parsePolicyInWorker({
      input: source(text),
      version: "v1",
      clock: realClock,
    });
    if (parsing.kind !== "policy") throw new Error(parsing.kind);
    const parsed = parsePolicy([{ file: "a.yaml", text }]);
    expect(parsing.policy.quotas).toEqual(parsed.kind === "policy" ? parsed.quotas : []);
    expect(parsing.policy.quotas).toHaveLength(1);
    const entries = ["remote_address", "a"].map((key) => ({ key, value: "b" }));
    expect(parsing.policy.domains.get("shop")?.match(entries)?.effect.kind).toBe("limited");
  });

  it("takes a large policy over in many chunks, each in a turn of its own", async () => {
    const limitCount = 2_000;
    let turnCount = 0;
    const clock: Clock = {
      ...realClock,
      scheduleTurn: (callback) => {
        turnCount += 1;
        return realClock.scheduleTurn(callback);
      },
    };
    const input = source(manyLimits(limitCount));
    const parsing = await parsePolicyInWorker({ input, version: "v1", clock });
    if (parsing.kind !== "policy") throw new Error(parsing.kind);
    expect(parsing.policy.rules).toHaveLength(limitCount);
    expect(parsing.chunkCount).toBe(Math.ceil(limitCount / chunkRulesMax));
    expect(turnCount).toBe(parsing.chunkCount);
  });

  it("takes services over in chunks, and compiles a few conditions a turn", async () => {
    const rule = "{when: 'request.path == \"/a\"', is: low}";
    const rules = (count: number) => `[${Array.from({ length: count }, () => rule).join(", ")}]`;
    const few = Array.from({ length: chunkServicesMax + 1 }, (_, i) => `{name: few-${i}}`);
    const heavy = `priority: {rules: ${rules(chunkConditionsMax + 1)}}`;
    const input = source(
      policyOf(
        ...few,
        `{name: heavy, hosts: [a.example], ${heavy}}`,
        "{name: last, admission: {}}",
      ),
    );
    const parsing = await parsePolicyInWorker({ input, version: "v1", clock: realClock });
    if (parsing.kind !== "policy") throw new Error(parsing.kind);
    const { services, serviceIndex } = parsing.policy;
    expect(services).toHaveLength(few.length + 2);
    expect(services.at(-1)?.admission?.dryRun).toEqual(new Set());
    // 32, one, the one that is too heavy for company, the last one, and the rules.
    expect(parsing.chunkCount).toBe(5);
    const heavyOne = serviceIndex.at("a.example:80");
    expect(heavyOne).toBe(serviceIndex.named("heavy"));
    const headers = new Map([[":path", "/a"]]);
    expect(heavyOne?.classifier.classify({ headers, attributes: new Map() })).toBe("low");
  });

  it("takes waiting rooms over one by one, with the texts of their pages", async () => {
    const text = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: a}
spec:
  services: [{name: shop, admission: {}}]
  waitingRooms:
    - {name: sale, service: shop, match: {paths: [/sale]}, page: {texts: {sv: {full: Fullt}}}}
    - {name: rest, service: shop, page: {template: "{{position}}"}}
`;
    const parsing = await parsePolicyInWorker({
      input: source(text),
      version: "v1",
      clock: realClock,
    });
    if (parsing.kind !== "policy") throw new Error(parsing.kind);
    const parsed = parsePolicy([{ file: "policy.yaml", text }]);
    expect(parsing.policy.waitingRooms).toHaveLength(2);
    expect(parsing.policy.waitingRooms).toEqual(
      parsed.kind === "policy" ? parsed.waitingRooms : [],
    );
    // Two rooms, and the services.
    expect(parsing.chunkCount).toBe(3);
  });

  it("takes budgets over one by one, and prices with the first message", async () => {
    const path = "test/golden/policy/budgets-every-name/policy.yaml";
    const text = readFileSync(path, "utf8");
    const input = source(text);
    const parsing = await parsePolicyInWorker({ input, version: "v1", clock: realClock });
    if (parsing.kind !== "policy") throw new Error(parsing.kind);
    const parsed = parsePolicy([{ file: "policy.yaml", text }]);
    if (parsed.kind !== "policy") throw new Error(parsed.kind);
    const { budgets, prices, services } = parsing.policy;
    expect(budgets.length).toBeGreaterThan(5);
    expect(budgets).toEqual(parsed.budgets);
    expect(prices).toEqual(parsed.prices);
    expect(services.map(({ usage }) => usage)).toEqual(parsed.services.map(({ usage }) => usage));
    // The budgets, the services, and the rules.
    expect(parsing.chunkCount).toBe(budgets.length + 2);
  });

  it("hands problems over as the parser found them", async () => {
    const input = source("domain: shop\ndescriptorz: []");
    const parsing = await parsePolicyInWorker({ input, version: "v1", clock: realClock });
    expect(parsing).toMatchObject({
      kind: "problems",
      problems: [{ file: "policy.yaml", line: 2, suggestion: "descriptors" }],
    });
  });

  it.each([
    ["a policy", manyLimits(1), {}],
    ["problems", "domain: shop\ndescriptorz: []", {}],
    ["a policy that takes too long", manyLimits(40_000), { limitMs: 1 }],
  ])("ends its thread after %s", async (_what, text, limits) => {
    let worker: Worker | undefined;
    process.once("worker", (started) => {
      worker = started;
    });
    const input = source(text);
    await parsePolicyInWorker({ input, version: "v1", clock: realClock, ...limits });
    if (worker === undefined) throw new Error("no thread was started");
    // A thread that has ended has no number.
    if (worker.threadId !== -1) await once(worker, "exit");
  });

  it("fails with words when the time is over", async () => {
    const input = source(manyLimits(40_000));
    const parsing = await parsePolicyInWorker({
      input,
      version: "v1",
      clock: realClock,
      limitMs: 1,
    });
    expect(parsing).toEqual({ kind: "failed", message: "parsing took more than 1 ms" });
  });

  it("fails with words when the memory is used up, and this process lives", async () => {
    const input = source(manyLimits(40_000));
    const parsing = await parsePolicyInWorker({
      input,
      version: "v1",
      clock: realClock,
      limitMegabytes: 24,
    });
    expect(parsing).toEqual({
      kind: "failed",
      message: "parsing took more than 24 MB of memory",
    });
  });

  it("builds a policy of a control plane's messages", async () => {
    // The name of a resource makes no page of it.
    const name = [0x0a, 6, ...Buffer.from("a.html")];
    const value = new Uint8Array([...name, 0x12, 4, ...Buffer.from("shop")]);
    const resources = [{ typeUrl: rateLimitConfigTypeUrl, value }];
    const input: PolicyInput = { kind: "resources", resources };
    const parsing = await parsePolicyInWorker({ input, version: "v1", clock: realClock });
    if (parsing.kind !== "policy") throw new Error(parsing.kind);
    expect([...parsing.policy.domains.keys()]).toEqual(["shop"]);
  });

  it("fails with words when such a message is none", async () => {
    const resources = [{ typeUrl: rateLimitConfigTypeUrl, value: new Uint8Array([0xff]) }];
    const input: PolicyInput = { kind: "resources", resources };
    const parsing = await parsePolicyInWorker({ input, version: "v1", clock: realClock });
    expect(parsing).toEqual({ kind: "failed", message: "resource 1 cannot be decoded" });
  });
});
