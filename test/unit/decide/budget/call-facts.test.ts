import { describe, expect, it } from "vitest";
import {
  addUsageNeeds,
  callFactsOf,
  reportedUsage,
} from "../../../../src/decide/budget/call-facts.js";
import type {
  ModelSource,
  ServiceUsage,
  UsageSource,
} from "../../../../src/policy/budgets/budget-policy.js";

const fixed: ModelSource = { kind: "fixed", model: "gpt-4o" };

/** What a request with these headers says of its call. */
function factsOf(
  headers: Readonly<Record<string, string>>,
  { model = fixed, declaredMax }: Partial<Pick<ServiceUsage, "model" | "declaredMax">> = {},
  facts?: Parameters<typeof callFactsOf>[1]["facts"],
) {
  const read = facts === undefined ? {} : { facts };
  return callFactsOf(
    { model, declaredMax },
    { headers: new Map(Object.entries(headers)), ...read },
  );
}

describe("callFactsOf()", () => {
  it("reads the model from the body, and knows none where that was not read", () => {
    const model: ModelSource = { kind: "body" };
    expect(factsOf({}, { model }, { model: "mini" })).toEqual({ model: "mini" });
    expect(factsOf({}, { model })).toEqual({ model: "" });
  });

  it("reads the model from a header, at most 128 characters of it", () => {
    const model: ModelSource = { kind: "header", header: "x-model" };
    expect(factsOf({ "x-model": "m".repeat(200) }, { model }).model).toBe("m".repeat(128));
    expect(factsOf({}, { model })).toEqual({ model: "" });
  });

  it.each([
    { path: "/v1beta/models/gemini-pro:streamGenerateContent", name: "gemini-pro" },
    { path: "/models/gemini-pro?alt=sse", name: "gemini-pro" },
    { path: "/models/org%2Fllama%203", name: "org/llama 3" },
    { path: "/models/100%", name: "100%" },
    { path: `/models/${"m".repeat(200)}`, name: "m".repeat(128) },
    { path: "/v1beta/models", name: "" },
    { path: "/v1beta/tunedModels/mine", name: "" },
    { path: undefined, name: "" },
  ])("reads the model from the path $path", ({ path, name }) => {
    const model: ModelSource = { kind: "path", after: "models" };
    const headers = path === undefined ? {} : { ":path": path };
    expect(factsOf(headers, { model })).toEqual({ model: name });
  });

  it("takes the declared maximum from where the policy says, and from nowhere else", () => {
    const headers = { "x-max": "300" };
    const read = { model: "mini", outputTokensMax: 50 };
    const declaredMax = { kind: "header", header: "x-max" } as const;
    expect(factsOf(headers, { declaredMax }, read).outputTokensMax).toBe(300);
    expect(factsOf({ "x-max": "-1" }, { declaredMax }, read)).toEqual({ model: "gpt-4o" });
    const inBody = { declaredMax: { kind: "body" } } as const;
    expect(factsOf(headers, inBody, read).outputTokensMax).toBe(50);
    expect(factsOf(headers, inBody)).toEqual({ model: "gpt-4o" });
    expect(factsOf(headers, {}, read)).toEqual({ model: "gpt-4o" });
  });

  it("counts the bytes of the body that was read, or those that its headers declare", () => {
    const headers = { "content-length": "20" };
    expect(factsOf(headers)).toEqual({ model: "gpt-4o", requestBytes: 20 });
    expect(factsOf(headers, {}, { model: "", requestBytes: 7 }).requestBytes).toBe(7);
  });
});

const fromHeaders: UsageSource = { kind: "headers", fields: { outputTokens: "x-output" } };

const fromMetadata: UsageSource = {
  kind: "metadata",
  namespace: "llm.filter",
  fields: { outputTokens: ["usage", "output"], inputTokens: ["usage", "input"] },
};

const nowhere: UsageSource = { kind: "none" };

const everywhere = {
  headers: new Map([
    ["x-output", "42"],
    ["content-length", "900"],
  ]),
  metadata: new Map([["llm.filter", new Map([["usage.output", 7]])]]),
};

describe("reportedUsage()", () => {
  it.each([
    { source: fromHeaders, usage: { responseBytes: 900, outputTokens: 42 } },
    { source: fromMetadata, usage: { responseBytes: 900, outputTokens: 7 } },
    { source: nowhere, usage: { responseBytes: 900 } },
  ])("reads what $source.kind report, and the size of the response", ({ source, usage }) => {
    expect(reportedUsage(source, everywhere)).toEqual(usage);
  });

  it.each([
    { source: fromHeaders, facts: { headers: new Map([["x-output", "many"]]) } },
    { source: fromHeaders, facts: {} },
    { source: fromMetadata, facts: { metadata: new Map() } },
    { source: fromMetadata, facts: { headers: new Map([["usage.output", "7"]]) } },
  ])("is undefined where $source.kind report nothing", ({ source, facts }) => {
    expect(reportedUsage(source, facts)).toBeUndefined();
  });
});

describe("addUsageNeeds()", () => {
  it("asks for the headers and the paths of metadata in which services report usage", () => {
    const needs = {
      responseHeaders: new Set<string>(),
      metadataPaths: new Map<string, Set<string>>(),
    };
    const usage = {
      model: fixed,
      declaredMax: undefined,
      requestBytesMax: 1_000,
      estimate: { quantile: 0.9, initial: 100 },
      callMsMax: 1_000,
    };
    const cost: UsageSource = { ...fromMetadata, fields: { customUnits: ["cost"] } };
    for (const source of [fromHeaders, fromMetadata, cost, nowhere]) {
      addUsageNeeds({ ...usage, source }, needs);
    }
    expect(needs).toEqual({
      responseHeaders: new Set(["content-length", "x-output"]),
      metadataPaths: new Map([["llm.filter", new Set(["usage.output", "usage.input", "cost"])]]),
    });
  });
});
