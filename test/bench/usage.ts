import { createUsageForm } from "../../src/core/usage/usage-forms.js";
import { createUsageReader } from "../../src/core/usage/usage-reader.js";
import { amazonChunk, encodeAmazonFrames } from "../support/amazon-frames.js";
import { layOut } from "./report.js";

/** Rounds in which each row is measured once; the least CPU counts. */
const roundCount = 9;

/** Bytes of a piece, as Envoy sends them at most of a fast stream. */
const bigPieceBytes = 16_384;

/** Bytes of a piece, as they come of a stream of single tokens. */
const smallPieceBytes = 256;

/** CPU of a core that 1 MB/s of responses may take. */
const targetMsPerMegabyte = 10;

interface Body {
  readonly name: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly bytes: Buffer;
  /** What reads all of it with the platform's means; undefined: it has none. */
  readonly parse?: (bytes: Buffer) => void;
}

const events = new Map([["content-type", "text/event-stream"]]);
const json = new Map([["content-type", "application/json"]]);
const frames = new Map([["content-type", "application/vnd.amazon.eventstream"]]);

/** What reading so many megabytes of each kind of response costs, next to `JSON.parse`. */
export function tellUsage(megabytes: number): string {
  const size = megabytes * 1_000_000;
  const rows = [
    ["responses", "ms/MB", "in small pieces", "JSON.parse", "target"],
    ...bodies(size).map((body) => {
      process.stderr.write(`usage, ${body.name} ...\n`);
      return measure(body);
    }),
  ];
  return layOut(rows);
}

function bodies(size: number): readonly Body[] {
  const words = 'The quick brown fox, as they say, jumps over the "lazy" dog.\n'.split(" ");
  const chat = repeated(size, (i) => `data: ${JSON.stringify(chatChunk(words, i))}\n\n`);
  const message = repeated(size, (i) => {
    const delta = { type: "text_delta", text: ` ${words[i % words.length]}` };
    const event = { type: "content_block_delta", index: 0, delta };
    return `event: content_block_delta\ndata: ${JSON.stringify(event)}\n\n`;
  });
  const content = words.join(" ").repeat(size / 64);
  const answer = { choices: [{ message: { content } }], usage: { prompt_tokens: 1 } };
  const numbers = Array.from({ length: size / 12 }, (_, i) => -1 / (i + 1.5));
  const embeddings = { data: [{ embedding: numbers }], usage: { prompt_tokens: 1 } };
  return [
    { name: "OpenAI, streamed", headers: events, bytes: Buffer.from(chat), parse: parseEvents },
    {
      name: "Anthropic, streamed",
      headers: events,
      bytes: Buffer.from(message),
      parse: parseEvents,
    },
    { name: "a long answer in JSON", headers: json, bytes: document(answer), parse: parseDocument },
    {
      name: "embeddings in JSON",
      headers: json,
      bytes: document(embeddings),
      parse: parseDocument,
    },
    { name: "Bedrock, base64 in frames", headers: frames, bytes: bedrockFrames(size, words) },
  ];
}

function chatChunk(words: readonly string[], i: number): object {
  const delta = { content: ` ${words[i % words.length]}` };
  return {
    id: "chatcmpl-BxYz0123456789abcdefghij",
    object: "chat.completion.chunk",
    created: 1_760_000_000,
    model: "gpt-4o-2024-08-06",
    service_tier: "default",
    system_fingerprint: "fp_0123456789",
    choices: [{ index: 0, delta, logprobs: undefined, finish_reason: undefined }],
    obfuscation: "abcdefgh",
  };
}

function bedrockFrames(size: number, words: readonly string[]): Buffer {
  const some = encodeAmazonFrames(
    words.map((word) => {
      const delta = { type: "text_delta", text: ` ${word}` };
      return amazonChunk({ type: "content_block_delta", index: 0, delta });
    }),
  );
  return Buffer.concat(Array.from({ length: Math.ceil(size / some.length) }, () => some));
}

function document(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function repeated(size: number, part: (i: number) => string): string {
  const parts: string[] = [];
  for (let i = 0, length = 0; length < size; i += 1) {
    const one = part(i);
    parts.push(one);
    length += one.length;
  }
  return parts.join("");
}

function parseEvents(bytes: Buffer): void {
  for (const line of bytes.toString().split("\n")) {
    if (line.startsWith("data: ")) JSON.parse(line.slice(6));
  }
}

function parseDocument(bytes: Buffer): void {
  JSON.parse(bytes.toString());
}

function measure({ name, headers, bytes, parse }: Body): readonly string[] {
  const form = createUsageForm({ format: "auto", fields: {} });
  const readPieces = (pieceBytes: number) => () => {
    const reader = createUsageReader(form, headers);
    for (let i = 0; i < bytes.length; i += pieceBytes)
      reader.push(bytes.subarray(i, i + pieceBytes));
    reader.end();
  };
  const works = [readPieces(bigPieceBytes), readPieces(smallPieceBytes), () => parse?.(bytes)];
  const least = works.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < roundCount; round += 1) {
    for (const [i, work] of works.entries()) {
      const before = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(before);
      const msPerMegabyte = ((user + system) / 1_000 / bytes.length) * 1_000_000;
      least[i] = Math.min(least[i] ?? msPerMegabyte, msPerMegabyte);
    }
  }
  const [big = 0, small = 0, parsed = 0] = least;
  const last = parse === undefined ? "" : parsed.toFixed(1);
  return [name, big.toFixed(1), small.toFixed(1), last, `at most ${targetMsPerMegabyte}`];
}
