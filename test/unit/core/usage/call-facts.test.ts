import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CallFacts, usageCountMax } from "../../../../src/core/budgets/usage.js";
import { readCallFacts } from "../../../../src/core/usage/call-facts.js";
import { propertyRuns } from "../../../support/seeds.js";

const nothing = { model: "" };

const messages = [{ role: "user", content: 'Say {"model": "x", "max_tokens": 9}' }];

interface Case {
  readonly name: string;
  readonly body: object;
  readonly facts: Omit<CallFacts, "requestBytes">;
}

const cases: readonly Case[] = [
  {
    name: "OpenAI Chat Completions",
    body: { model: "gpt-4o", messages, max_tokens: 100, stream: false },
    facts: { ...nothing, model: "gpt-4o", outputTokensMax: 100 },
  },
  {
    name: "OpenAI Chat Completions, streamed, of two choices",
    body: { model: "o3", messages, max_completion_tokens: 50, n: 2, stream: true },
    facts: { model: "o3", outputTokensMax: 100 },
  },
  {
    name: "OpenAI Chat Completions with include_usage",
    body: { stream_options: { include_usage: true }, stream: true, model: "o3", messages },
    facts: { model: "o3" },
  },
  {
    name: "OpenAI Completions with best_of",
    body: { model: "davinci-002", prompt: "a", max_tokens: 10, n: 2, best_of: 5 },
    facts: { ...nothing, model: "davinci-002", outputTokensMax: 50 },
  },
  {
    name: "OpenAI Responses",
    body: { model: "gpt-5", input: "a", max_output_tokens: 30 },
    facts: { ...nothing, model: "gpt-5", outputTokensMax: 30 },
  },
  {
    name: "Anthropic Messages",
    body: { model: "claude-sonnet-4-5", max_tokens: 1_024, messages },
    facts: { ...nothing, model: "claude-sonnet-4-5", outputTokensMax: 1_024 },
  },
  {
    name: "Gemini",
    body: {
      contents: [{ parts: [] }],
      generationConfig: { maxOutputTokens: 8, candidateCount: 3 },
    },
    facts: { ...nothing, outputTokensMax: 24 },
  },
  {
    name: "Gemini in its other spelling",
    body: { generation_config: { max_output_tokens: 8, candidate_count: 1 } },
    facts: { ...nothing, outputTokensMax: 8 },
  },
  {
    name: "Bedrock Converse",
    body: { messages, inferenceConfig: { maxTokens: 512 } },
    facts: { ...nothing, outputTokensMax: 512 },
  },
  {
    name: "Bedrock Titan",
    body: { inputText: "a", textGenerationConfig: { maxTokenCount: 77 } },
    facts: { ...nothing, outputTokensMax: 77 },
  },
  {
    name: "Bedrock Llama",
    body: { prompt: "a", max_gen_len: 78 },
    facts: { ...nothing, outputTokensMax: 78 },
  },
  { name: "a body of no such form", body: ["a", 1, true], facts: nothing },
  {
    name: "values of other types",
    body: { model: 7, max_tokens: -1, n: "x", stream: "true" },
    facts: { ...nothing },
  },
];

describe("readCallFacts()", () => {
  it.each(cases)("reads $name", ({ body, facts }) => {
    const bytes = Buffer.from(JSON.stringify(body));
    expect(readCallFacts(bytes)).toEqual({ ...facts, requestBytes: bytes.length });
    expect(readCallFacts(bytes, 9_000_000).requestBytes).toBe(9_000_000);
  });

  it("says what was found of a body that is cut off", () => {
    const body = '{"model":"gpt-4o","max_tokens":64,"messages":[{"content":"…';
    const facts = { ...nothing, model: "gpt-4o", outputTokensMax: 64, requestBytes: 70_000 };
    expect(readCallFacts(Buffer.from(body), 70_000)).toEqual(facts);
  });

  it("takes the largest maximum, and the last model", () => {
    const body = '{"max_tokens":900,"model":"a","max_tokens":1,"max_output_tokens":2,"model":"b"}';
    expect(readCallFacts(Buffer.from(body))).toMatchObject({ model: "b", outputTokensMax: 900 });
  });

  it("is not misled by escapes", () => {
    const body = '{"m\\u006fdel":"gpt\\u002d4o","\\u006dax_tokens":5}';
    expect(readCallFacts(Buffer.from(body))).toMatchObject({ model: "gpt-4o", outputTokensMax: 5 });
  });

  it("is not misled by a byte order mark, or by a second document", () => {
    const body = '\ufeff{"model":"gpt-4o","max_tokens":5}{"model":"cheap","n":2}';
    expect(readCallFacts(Buffer.from(body))).toMatchObject({ model: "gpt-4o", outputTokensMax: 5 });
  });

  it("keeps no half of a character", () => {
    const body = { model: `${"m".repeat(127)}\u{1f600}` };
    const { model } = readCallFacts(Buffer.from(JSON.stringify(body)));
    expect(model).toBe(`${"m".repeat(127)}\ufffd`);
  });

  it("keeps 128 characters of a model, and no more than the largest count", () => {
    const body = { model: "ü".repeat(500), max_tokens: 2 ** 40, n: 1_000 };
    expect(readCallFacts(Buffer.from(JSON.stringify(body)))).toMatchObject({
      model: "ü".repeat(128),
      outputTokensMax: usageCountMax,
    });
  });

  it("takes any bytes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...cases),
        fc.nat(),
        fc.uint8Array({ maxLength: 6 }),
        ({ body }, at, noise) => {
          const bytes = Buffer.from(JSON.stringify(body));
          const from = at % bytes.length;
          const facts = readCallFacts(
            Buffer.concat([bytes.subarray(0, from), noise, bytes.subarray(from + 1)]),
          );
          expect(facts.model.length).toBeLessThanOrEqual(128);
          expect(Number.isSafeInteger(facts.outputTokensMax ?? 0)).toBe(true);
        },
      ),
      propertyRuns(1_000),
    );
  });
});
