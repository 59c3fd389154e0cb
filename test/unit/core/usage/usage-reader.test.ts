import { execFileSync } from "node:child_process";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createUsageForm, type UsageForm } from "../../../../src/core/usage/usage-forms.js";
import {
  createUsageReader,
  readBytesMax,
  type UsageReading,
} from "../../../../src/core/usage/usage-reader.js";
import { amazonChunk, encodeAmazonFrames } from "../../../support/amazon-frames.js";
import { bundledProgram } from "../../../support/bundled-program.js";
import { propertyRuns } from "../../../support/seeds.js";
import { type UsageRecording, usageRecordings } from "../../../support/usage-recordings.js";

const auto = createUsageForm({ format: "auto", fields: {} });

type Source = Pick<UsageRecording, "headers" | "body">;

/** Reads a body that comes in pieces which end at these places. */
function read(
  { headers, body }: Source,
  { form = auto, ends = [] }: { readonly form?: UsageForm; readonly ends?: readonly number[] } = {},
): UsageReading {
  const reader = createUsageReader(form, new Map(Object.entries(headers)));
  let from = 0;
  for (const end of [...ends, body.length]) {
    reader.push(body.subarray(from, end));
    from = end;
  }
  return reader.end();
}

const everyByte = (body: Buffer) => Array.from(body, (_, i) => i + 1);

const text = (body: string, headers: Readonly<Record<string, string>> = {}): Source => ({
  body: Buffer.from(body),
  headers,
});

const events = { "content-type": "text/event-stream" };

describe("createUsageReader()", () => {
  describe.each(usageRecordings)("reads $name", (recording) => {
    const { body, usage, isEstimated = false, model = "", format } = recording;
    const expected: UsageReading = {
      usage: { ...usage, responseBytes: body.length },
      isEstimated,
      unrecognised: undefined,
      model,
    };

    it("as its provider's form, and as any", () => {
      expect(read(recording, { form: createUsageForm({ format, fields: {} }) })).toEqual(expected);
      expect(read(recording)).toEqual(expected);
    });

    it("in two pieces, cut at every byte", () => {
      for (let end = 0; end <= body.length; end += 1) {
        expect(read(recording, { ends: [end] })).toEqual(expected);
      }
    });

    it("byte by byte", () => {
      expect(read(recording, { ends: everyByte(body) })).toEqual(expected);
    });
  });

  it("reads what is no such form in pieces as it reads it whole", () => {
    fc.assert(
      fc.property(mutatedRecording, fc.array(fc.nat(), { maxLength: 8 }), (source, places) => {
        const ends = places.map((at) => at % (source.body.length + 1)).sort((a, b) => a - b);
        const whole = read(source);
        expect(read(source, { ends })).toEqual(whole);
        expect(read(source, { ends: everyByte(source.body) })).toEqual(whole);
        for (const count of Object.values(whole.usage)) {
          expect(Number.isInteger(count) && count >= 0).toBe(true);
        }
      }),
      propertyRuns(1_000),
    );
  });

  it.each([
    { why: "unknownForm", source: text("<html>", { "content-type": "text/html" }) },
    { why: "unknownForm", source: text("%PDF-1.7") },
    {
      why: "unknownForm",
      source: text("0123456789abcdef", { "content-type": "application/vnd.amazon.eventstream" }),
    },
    { why: "compressed", source: text('{"usage":{}}', { "content-encoding": "gzip" }) },
    { why: "compressed", source: text("", { "content-encoding": "identity, br" }) },
    { why: "notFound", source: text('{"error":{"message":"no"}}') },
    { why: "notFound", source: text("data: hello\n\n", events) },
    { why: "notFound", source: text("") },
    { why: "notFound", source: text(" \r\n") },
  ])("counts the bytes alone of $source.body, $why", ({ why, source }) => {
    const usage = { responseBytes: source.body.length };
    expect(read(source)).toEqual({ usage, isEstimated: false, unrecognised: why, model: "" });
  });

  it("recognises a form by its first byte where the content type does not tell", () => {
    const body = '{"usage":{"input_tokens":3,"output_tokens":4}}';
    const usage = { inputTokens: 3, outputTokens: 4 };
    const texts = [body, `\ufeff\n ${body}`, `data:${body}\n\n`, `:\rdata: ${body}\r\r`];
    for (const one of texts) {
      const source = text(one, { "content-type": "text/plain", "content-encoding": "Identity" });
      expect(read(source).usage).toMatchObject(usage);
    }
  });

  it("reads what a policy says, and rounds fractions up", () => {
    const form = createUsageForm({
      format: "json",
      fields: {
        inputTokens: ["meta", "tokens", "input"],
        customUnits: ["runs", "*", "gpuSeconds"],
        outputTokens: ["runs", "*", "out"],
        responseBytes: ["size"],
      },
    });
    const body = {
      usage: { prompt_tokens: 1 },
      meta: { tokens: { input: "17" } },
      runs: [{ gpuSeconds: 1, out: 2 }, { gpuSeconds: 2.25, out: 3 }, { out: 4 }],
      size: 99,
    };
    expect(read(text(JSON.stringify(body)), { form }).usage).toEqual({
      inputTokens: 17,
      outputTokens: 4,
      customUnits: 3,
      responseBytes: 99,
    });
  });

  it.each([
    ["-5", undefined],
    ["NaN", undefined],
    ["null", undefined],
    ["true", undefined],
    ['"many"', undefined],
    ["{}", undefined],
    ["[7]", undefined],
    ["1e400", 1_099_511_627_776],
    ["9".repeat(2_000), 1_099_511_627_776],
    ["9007199254740993", 1_099_511_627_776],
    ["1099511627775", 1_099_511_627_775],
    ["1.0e2", 100],
    ["0", 0],
  ])("takes %s for %s", (written, count) => {
    const { usage } = read(text(`{"usage":{"input_tokens":1,"output_tokens":${written}}}`));
    expect(usage.outputTokens).toBe(count);
  });

  it("takes the later of two values, but no later zero", () => {
    const body = '{"usage":{"output_tokens":3,"output_tokens":2,"input_tokens":7}}';
    const later = '{"usage":{"output_tokens":0,"input_tokens":0}}';
    expect(read(text(`data: ${body}\n\ndata: ${later}\n\n`, events)).usage).toMatchObject({
      inputTokens: 7,
      outputTokens: 2,
    });
  });

  it("never counts cached tokens that exceed all input", () => {
    const details = '{"cached_tokens":50}';
    const body = `{"usage":{"prompt_tokens":20,"prompt_tokens_details":${details}}}`;
    expect(read(text(body)).usage).toMatchObject({ inputTokens: 0, cachedTokens: 50 });
    const other = `{"usage":{"input_tokens":20,"input_tokens_details":${details}}}`;
    expect(read(text(other)).usage).toMatchObject({ inputTokens: 0, cachedTokens: 50 });
  });

  it("counts a cache once that is reported as a detail and beside", () => {
    const usage = {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 60 },
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 30,
      completion_tokens: 1,
    };
    expect(read(text(JSON.stringify({ usage }))).usage).toMatchObject({
      inputTokens: 10,
      cachedTokens: 60,
      cacheWriteTokens: 30,
    });
  });

  it("counts no part of all input as input that was read from or written to a cache", () => {
    const parts = { cached_tokens: 60, cache_write_tokens: 30 };
    const counts = { inputTokens: 10, cachedTokens: 60, cacheWriteTokens: 30 };
    for (const usage of [
      { prompt_tokens: 100, prompt_tokens_details: parts },
      { input_tokens: 100, input_tokens_details: parts },
    ]) {
      expect(read(text(JSON.stringify({ usage }))).usage).toMatchObject(counts);
    }
  });

  it("estimates at least one token for each text since the last report", () => {
    const delta = (content: string, usage?: object) =>
      `data: ${JSON.stringify({ choices: [{ delta: { content } }], usage })}\n\n`;
    const body = [
      delta("a long text that a report counts", { prompt_tokens: 5, completion_tokens: 30 }),
      ...["a", "b", "", "c"].map((content) => delta(content)),
    ];
    const { usage, isEstimated } = read(text(body.join(""), events));
    expect(isEstimated).toBe(true);
    expect(usage).toMatchObject({ inputTokens: 5, outputTokens: 33 });
  });

  it("takes no zero for a report of the text before it", () => {
    const chunk = { choices: [{ delta: { content: "a" } }], usage: { completion_tokens: 0 } };
    const body = `data: ${JSON.stringify(chunk)}\n\n`.repeat(3);
    const { usage, isEstimated } = read(text(body, events));
    expect(isEstimated).toBe(true);
    expect(usage.outputTokens).toBe(3);
  });

  it("estimates each text that is cut off", () => {
    const body = 'data: {"choices":[{"delta":{"content":"a\n\n'.repeat(3);
    expect(read(text(body, events)).usage.outputTokens).toBe(3);
  });

  it("estimates no text of a document that reports, complete or not", () => {
    const body = '{"usage":{"completion_tokens":5},"choices":[{"message":{"content":"a long text';
    const { usage, isEstimated } = read(text(body));
    expect(isEstimated).toBe(false);
    expect(usage.outputTokens).toBe(5);
  });

  it("keeps sums and parts within what they may be", () => {
    const large = '{"usageMetadata":{"candidatesTokenCount":1e12,"thoughtsTokenCount":1e12}}';
    expect(read(text(large)).usage.outputTokens).toBe(1_099_511_627_776);
    const details = '{"reasoning_tokens":94}';
    const part = `{"usage":{"completion_tokens":9,"completion_tokens_details":${details}}}`;
    expect(read(text(part)).usage).toMatchObject({ outputTokens: 9, reasoningTokens: 9 });
  });

  it("reads the chunk behind one whose payload is broken", () => {
    const chunk = amazonChunk({ usage: { output_tokens: 4 } });
    const broken = { headers: {}, payload: '{"bytes":"eyJ4Ijp7InkiOiJhY' };
    const body = encodeAmazonFrames([broken, chunk]);
    const headers = { "content-type": "application/vnd.amazon.eventstream" };
    expect(read({ headers, body }).usage.outputTokens).toBe(4);
  });

  it("reads the event behind one that is cut off in the middle", () => {
    const good = '{"x":{"y":1},"usage":{"output_tokens":4}}';
    for (const cut of ['{"x":{"y":"a', '{"x":{"y":"\\', '{"usage":{"output_tokens":9', '{"us']) {
      const body = `data: ${cut}\n\ndata: ${good}\n\n`;
      expect(read(text(body, events)).usage.outputTokens).toBe(4);
    }
  });

  it("keeps 128 characters of the model", () => {
    const model = "m".repeat(2_000);
    expect(read(text(JSON.stringify({ model }))).model).toBe("m".repeat(128));
    expect(read(text('{"model":null}')).model).toBe("");
  });

  it("looks for counts in as many bytes as it says", () => {
    const piece = Buffer.alloc(2 ** 24, " ");
    const end = Buffer.from('{"usage":{"output_tokens":4}}');
    for (const [spare, unrecognised] of [
      [0, undefined],
      [1, "tooLong"],
    ] as const) {
      const reader = createUsageReader(auto, new Map());
      let left = readBytesMax - end.length + spare;
      for (; left > 0; left -= piece.length) reader.push(piece.subarray(0, left));
      reader.push(end);
      const { usage, unrecognised: why } = reader.end();
      expect(usage.responseBytes).toBe(readBytesMax + spare);
      expect(why).toBe(unrecognised);
    }
  });

  it("holds at most 4 KiB, whatever comes", () => {
    // In a process of its own: here other files leave garbage, and Stryker counts in it.
    const program = new URL("../../../support/usage-memory-program.ts", import.meta.url);
    // With all of V8's work in one thread, the same is garbage each time.
    const args = ["--single-threaded", bundledProgram(program)];
    const out = execFileSync(process.execPath, args, { encoding: "utf8" });
    const held = z.array(z.number()).parse(JSON.parse(out));
    expect(held).toHaveLength(usageRecordings.length + 1);
    expect(Math.max(...held)).toBeLessThan(4_096);
    expect(Math.min(...held)).toBeGreaterThan(100);
  });

  it("is read while it is nested deeper than any stack", () => {
    const deep = "[".repeat(1_000_000);
    expect(read(text(deep)).unrecognised).toBe("notFound");
    const objects = '{"usage":'.repeat(100_000);
    expect(read(text(objects)).unrecognised).toBe("notFound");
  });
});

/** A recording with some bytes changed, dropped or repeated, or bytes of no recording. */
const mutatedRecording: fc.Arbitrary<Source> = fc
  .record({
    recording: fc.constantFrom(...usageRecordings),
    changes: fc.array(
      fc.record({
        at: fc.nat(),
        length: fc.nat({ max: 8 }),
        bytes: fc.oneof(
          fc.uint8Array({ maxLength: 4 }),
          fc
            .constantFrom(...["{", "}", "[", "]", '"', "\\", "\\u", "\n", "\r", ":", "0", "9e9"])
            .map((one) => Buffer.from(one)),
        ),
      }),
      { maxLength: 6 },
    ),
    isNoise: fc.boolean(),
    noise: fc.uint8Array({ maxLength: 200 }),
  })
  .map(({ recording, changes, isNoise, noise }) => {
    let body = isNoise ? Buffer.from(noise) : recording.body;
    for (const { at, length, bytes } of changes) {
      const from = at % (body.length + 1);
      body = Buffer.concat([body.subarray(0, from), bytes, body.subarray(from + length)]);
    }
    return { headers: recording.headers, body };
  });
