import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { listen } from "../../app/base/listen.js";
import type { Cancel, Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { isJsonObject, type JsonValue } from "../../core/base/json.js";

/** Pace of the fake model server. */
export interface ModelPace {
  /** Time until the first token, in milliseconds. */
  readonly firstMs: number;
  /** Time between two tokens, in milliseconds; 0 sends all of them at once. */
  readonly everyMs: number;
  /** Tokens of an answer, if the request declares no smaller maximum. */
  readonly outputTokens: number;
}

interface ModelParts {
  readonly clock: Clock;
  /** The model in answers to all requests; undefined: the requested one. */
  readonly model?: string;
  readonly pace: ModelPace;
}

/** Maximum tokens of an answer by `x-demo-tokens`, and maximum size of a request. */
const outputTokensMax = 100_000;
const requestBytesMax = 4_194_304;

/** Envoy opens one connection for each request in flight. */
const connectionsMax = 20_000;

/** A request, as far as the server understands it. */
interface ModelCall {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly isStreamed: boolean;
  /** Whether a stream ends with its usage. Source: OpenAI, `stream_options.include_usage`. */
  readonly includesUsage: boolean;
  readonly pace: ModelPace;
}

/**
 * A fake server of language models. It streams meaningless words and reports its usage like
 * OpenAI's chat completions (any path) and Anthropic's messages (`/v1/messages`). A token is one
 * word of the answer, or four characters of the request.
 *
 * A request may set its pace: `x-demo-tokens`, `x-demo-first-ms` and `x-demo-every-ms`.
 */
export class FakeModel {
  readonly #parts: ModelParts;
  readonly #server: Server;
  readonly #cancels = new Set<Cancel>();
  #callCount = 0;
  #abortedCount = 0;
  #sentTokens = 0;

  constructor(parts: ModelParts) {
    this.#parts = parts;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    // Envoy must not use a connection that has just been closed.
    this.#server.keepAliveTimeout = 0;
  }

  /** Counts of started answers, of calls whose caller left, and of sent tokens. */
  get counts(): Readonly<Record<"calls" | "aborted" | "tokens", number>> {
    return { calls: this.#callCount, aborted: this.#abortedCount, tokens: this.#sentTokens };
  }

  /** @throws ServiceError LISTEN_FAILED */
  async listen(port: number, portSetting: string): Promise<number> {
    const place = { host: "127.0.0.1", port, portSetting, hostSetting: "127.0.0.1" };
    return (await listen(this.#server, { ...place, connectionsMax })).port;
  }

  close(): void {
    for (const cancel of this.#cancels) cancel();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readText(request);
    const call = text === undefined ? undefined : this.#callOf(request, text);
    if (call === undefined) {
      response.writeHead(httpStatuses.badRequest);
      response.end();
      return;
    }
    this.#callCount += 1;
    const isAnthropic = request.url?.startsWith("/v1/messages") === true;
    const form = isAnthropic ? anthropicForm(call) : openaiForm(call);
    const state = { sent: 0, isOver: false };
    response.once("close", () => {
      if (!response.writableFinished) this.#abortedCount += 1;
      state.isOver = true;
    });
    const usageHeader = { "x-usage-output-tokens": String(call.outputTokens) };
    if (!call.isStreamed) {
      return this.#later(call.pace.firstMs + call.pace.everyMs * call.outputTokens, () => {
        if (state.isOver) return;
        this.#sentTokens += call.outputTokens;
        const headers = { "content-type": "application/json", ...usageHeader };
        response.writeHead(httpStatuses.ok, headers);
        response.end(JSON.stringify(form.whole(words(0, call.outputTokens))));
      });
    }
    this.#later(call.pace.firstMs, () => {
      if (state.isOver) return;
      response.writeHead(httpStatuses.ok, {
        "content-type": "text/event-stream",
        trailer: "x-usage-output-tokens",
      });
      response.write(form.head());
      this.#stream({ call, form, response }, state);
    });
  }

  #stream(answer: StreamedAnswer, state: { sent: number; isOver: boolean }): void {
    const { call, form, response } = answer;
    if (state.isOver) return;
    const isAtOnce = call.pace.everyMs === 0;
    const count = isAtOnce ? call.outputTokens - state.sent : 1;
    if (state.sent < call.outputTokens) {
      response.write(form.piece(words(state.sent, count)));
      state.sent += count;
      this.#sentTokens += count;
    }
    if (state.sent < call.outputTokens) {
      this.#later(call.pace.everyMs, () => this.#stream(answer, state));
      return;
    }
    response.addTrailers({ "x-usage-output-tokens": String(state.sent) });
    response.end(form.tail());
  }

  #later(delayMs: number, act: () => void): void {
    const cancel = this.#parts.clock.schedule(delayMs, () => {
      this.#cancels.delete(cancel);
      act();
    });
    this.#cancels.add(cancel);
  }

  #callOf({ headers }: IncomingMessage, text: string): ModelCall | undefined {
    const body = parseJson(text);
    if (!isJsonObject(body)) return undefined;
    const number = (name: string, otherwise: number): number => {
      const stated = Number(headers[name]);
      return headers[name] !== undefined && stated >= 0 ? stated : otherwise;
    };
    const { pace, model } = this.#parts;
    const declared = body["max_completion_tokens"] ?? body["max_tokens"];
    const wanted = Math.min(outputTokensMax, number("x-demo-tokens", pace.outputTokens));
    const options = body["stream_options"];
    return {
      model: model ?? textOf(body["model"]),
      inputTokens: Math.ceil(text.length / 4),
      outputTokens: typeof declared === "number" ? Math.min(wanted, declared) : wanted,
      isStreamed: body["stream"] === true,
      includesUsage: isJsonObject(options) && options["include_usage"] === true,
      pace: {
        firstMs: number("x-demo-first-ms", pace.firstMs),
        everyMs: number("x-demo-every-ms", pace.everyMs),
        outputTokens: wanted,
      },
    };
  }
}

interface StreamedAnswer {
  readonly call: ModelCall;
  readonly form: ModelForm;
  readonly response: ServerResponse;
}

/** Format of one provider's answers. */
interface ModelForm {
  whole(text: string): JsonValue;
  head(): string;
  piece(text: string): string;
  tail(): string;
}

/** Source: OpenAI, chat completions. */
function openaiForm({ model, inputTokens, outputTokens, includesUsage }: ModelCall): ModelForm {
  const begin = { id: "chatcmpl-demo", created: 0, model };
  const usage = {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
  const chunk = (fields: JsonValue): string =>
    `data: ${JSON.stringify({ ...begin, object: "chat.completion.chunk", ...Object(fields) })}\n\n`;
  const choice = (delta: JsonValue, reason: string | undefined): JsonValue => ({
    choices: [{ index: 0, delta, ...(reason === undefined ? {} : { finish_reason: reason }) }],
  });
  return {
    whole: (text) => ({
      ...begin,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
      usage,
    }),
    head: () => chunk(choice({ role: "assistant", content: "" }, undefined)),
    piece: (text) => chunk(choice({ content: text }, undefined)),
    tail: () => {
      const end = includesUsage ? chunk({ choices: [], usage }) : "";
      return `${chunk(choice({}, "stop"))}${end}data: [DONE]\n\n`;
    },
  };
}

/** Source: Anthropic, messages. */
function anthropicForm({ model, inputTokens, outputTokens }: ModelCall): ModelForm {
  const begin = { id: "msg_demo", type: "message", role: "assistant", model };
  const event = (type: string, fields: JsonValue): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...Object(fields) })}\n\n`;
  return {
    whole: (text) => ({
      ...begin,
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      usage: { input_tokens: inputTokens, output_tokens: outputTokens },
    }),
    head: () => {
      const usage = { input_tokens: inputTokens, output_tokens: 1 };
      const message = { ...begin, content: [], usage };
      const block = { type: "text", text: "" };
      return (
        event("message_start", { message }) +
        event("content_block_start", { index: 0, content_block: block })
      );
    },
    piece: (text) =>
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
    tail: () =>
      event("content_block_stop", { index: 0 }) +
      event("message_delta", {
        delta: { stop_reason: "end_turn" },
        usage: { output_tokens: outputTokens },
      }) +
      event("message_stop", {}),
  };
}

const vocabulary = ["so", "the", "model", "says", "a", "word", "after", "another"] as const;

function words(from: number, count: number): string {
  return Array.from(
    { length: count },
    (_, index) => `${vocabulary[(from + index) % vocabulary.length]} `,
  ).join("");
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "unnamed";
}

/** Returns the body; undefined if it is too long or incomplete. */
async function readText(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  try {
    for await (const chunk of request) {
      byteCount += chunk.length;
      if (byteCount > requestBytesMax) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
