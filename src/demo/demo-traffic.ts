import { Agent, type IncomingHttpHeaders, request } from "node:http";
import type { Cancel, Clock } from "../core/base/clock.js";
import { httpStatuses } from "../core/base/http-status.js";

/** A caller that sends requests at a steady pace. */
export interface Caller {
  readonly name: string;
  readonly plan: string;
  /** Time between two requests, in milliseconds. */
  readonly everyMs: number;
}

/** Callers: one too frequent for the plan, one within its limits, and one with a larger plan. */
export const demoCallers: readonly Caller[] = [
  { name: "alice", plan: "free", everyMs: 500 },
  { name: "bob", plan: "free", everyMs: 3_000 },
  { name: "acme", plan: "partner", everyMs: 200 },
];

/** A limit as its caller sees it. */
export interface SeenLimit {
  readonly name?: string;
  readonly hits: number;
  readonly periodSeconds: number;
}

/** Outcome of a request. */
export type Answer =
  | { readonly kind: "allowed"; readonly isDecided: boolean }
  | { readonly kind: "refused"; readonly limit?: SeenLimit; readonly waitSeconds?: number }
  /** Neither; `words` explain it. */
  | { readonly kind: "failed"; readonly words: string };

/** Sends one request for a caller. Never rejects. */
export type Ask = (caller: Pick<Caller, "name" | "plan">) => Promise<Answer>;

/** A way to send requests, with its own connections. */
export interface Asker {
  readonly ask: Ask;
  close(): void;
}

/** Timeout after which a request counts as failed, in milliseconds. */
const silenceMsMax = 5_000;

/** Creates an asker that requests a page through Envoy, like any client. */
export function createEnvoyAsker(port: number): Asker {
  const agent = new Agent({ keepAlive: true });
  const ask: Ask = async ({ name, plan }) => {
    const headers = { "x-user": name, "x-plan": plan };
    return readEnvoyAnswer(await send({ agent, port, path: "/", method: "GET", headers }));
  };
  return { ask, close: () => agent.destroy() };
}

/** Creates an asker that calls Headgate's JSON endpoint, for use without an Envoy. */
export function createHeadgateAsker(port: number): Asker {
  const agent = new Agent({ keepAlive: true });
  const ask: Ask = async (caller) => {
    const body = jsonQuestion(caller);
    return readDecisionAnswer(await send({ agent, port, path: "/json", method: "POST", body }));
  };
  return { ask, close: () => agent.destroy() };
}

/** Returns the question of the demo's Envoy for a caller, as `POST /json` takes it. */
export function jsonQuestion({ name, plan }: Pick<Caller, "name" | "plan">): string {
  const entries = [
    { key: "plan", value: plan },
    { key: "user", value: name },
  ];
  return JSON.stringify({ domain: "demo", descriptors: [{ entries }] });
}

interface TrafficParts {
  readonly clock: Clock;
  readonly ask: Ask;
  readonly onAnswer: (caller: Caller, answer: Answer) => void;
}

/** Sends requests at each caller's pace, one at a time per caller, until `stop`. */
export class Traffic {
  readonly #parts: TrafficParts;
  readonly #cancels = new Map<Caller, Cancel>();
  #isStopped = false;

  constructor(parts: TrafficParts) {
    this.#parts = parts;
  }

  start(callers: readonly Caller[]): void {
    for (const caller of callers) this.#sendNow(caller);
  }

  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#cancels.values()) cancel();
  }

  #sendNow(caller: Caller): void {
    const { clock, ask, onAnswer } = this.#parts;
    const startMs = clock.monotonicMs();
    void ask(caller).then((answer) => {
      if (this.#isStopped) return;
      onAnswer(caller, answer);
      // A slow answer delays the next request, so that requests never accumulate.
      const waitMs = Math.max(0, startMs + caller.everyMs - clock.monotonicMs());
      this.#cancels.set(
        caller,
        clock.schedule(waitMs, () => this.#sendNow(caller)),
      );
    });
  }
}

/** The received response. */
export type WireAnswer =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: string;
    }
  | { readonly kind: "broken"; readonly words: string };

/** Reads a response from Envoy. Source: its rate limit filter, headers of draft version 03. */
export function readEnvoyAnswer(wire: WireAnswer): Answer {
  if (wire.kind === "broken") return { kind: "failed", words: wire.words };
  const { status, headers } = wire;
  const isDecided = headers["x-ratelimit-limit"] !== undefined;
  if (status === httpStatuses.ok) return { kind: "allowed", isDecided };
  if (status !== httpStatuses.tooManyRequests) return { kind: "failed", words: `status ${status}` };
  const limit = readLimitField(headers["x-ratelimit-limit"]);
  const waitText = headers["retry-after"] ?? headers["x-ratelimit-reset"];
  const waitSeconds = typeof waitText === "string" ? Number(waitText) : Number.NaN;
  return {
    kind: "refused",
    ...(limit === undefined ? {} : { limit }),
    ...(Number.isFinite(waitSeconds) ? { waitSeconds } : {}),
  };
}

/**
 * Returns the binding limit from `x-ratelimit-limit`. The field starts with its number, followed by
 * all limits that were met. The one with that number has its period and its name.
 *
 * Example: `5, 1800;w=60;name="per-address", 5;w=10;name="free-pace"` is free-pace, 5 in 10 s.
 */
export function readLimitField(
  field: string | readonly string[] | undefined,
): SeenLimit | undefined {
  if (typeof field !== "string") return undefined;
  const [first = "", ...rest] = field.split(",").map((item) => item.trim());
  for (const item of rest) {
    const [, hits, seconds, name] = /^(\d+);w=(\d+)(?:;name="([^"]*)")?$/.exec(item) ?? [];
    if (hits !== first) continue;
    const named = name === undefined ? {} : { name };
    return { ...named, hits: Number(hits), periodSeconds: Number(seconds) };
  }
  return undefined;
}

/** Reads a response of `POST /json`: a RateLimitResponse in proto3 JSON. */
export function readDecisionAnswer(wire: WireAnswer): Answer {
  if (wire.kind === "broken") return { kind: "failed", words: wire.words };
  const { status, body } = wire;
  if (status === httpStatuses.ok) return { kind: "allowed", isDecided: true };
  if (status !== httpStatuses.tooManyRequests) return { kind: "failed", words: `status ${status}` };
  const statuses = field(parseJson(body), "statuses");
  const over = (Array.isArray(statuses) ? statuses : []).find(
    (one: unknown) => field(one, "code") === "OVER_LIMIT",
  );
  const limit = readJsonLimit(field(over, "currentLimit"));
  const waitText = field(over, "durationUntilReset");
  const wait = typeof waitText === "string" ? /^(\d+(?:\.\d+)?)s$/.exec(waitText)?.[1] : undefined;
  return {
    kind: "refused",
    ...(limit === undefined ? {} : { limit }),
    ...(wait === undefined ? {} : { waitSeconds: Math.ceil(Number(wait)) }),
  };
}

const secondsByUnit: Readonly<Record<string, number>> = {
  SECOND: 1,
  MINUTE: 60,
  HOUR: 3_600,
  DAY: 86_400,
};

function readJsonLimit(limit: unknown): SeenLimit | undefined {
  const hits = field(limit, "requestsPerUnit");
  const multiplier = field(limit, "unitMultiplier") ?? 1;
  const unitSeconds = secondsByUnit[String(field(limit, "unit"))];
  const name = field(limit, "name");
  if (typeof hits !== "number" || typeof multiplier !== "number") return undefined;
  if (unitSeconds === undefined) return undefined;
  const named = typeof name === "string" ? { name } : {};
  return { ...named, hits, periodSeconds: unitSeconds * multiplier };
}

function field(value: unknown, name: string): unknown {
  return Reflect.get(Object(value), name);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A request to send. */
export interface Sending {
  readonly agent: Agent;
  readonly port: number;
  readonly path: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends a request to a port of this machine. Never rejects. */
export function send({ body, ...rest }: Sending): Promise<WireAnswer> {
  return new Promise((resolve) => {
    const broken = (words: string): void => resolve({ kind: "broken", words });
    const options = { host: "127.0.0.1", timeout: silenceMsMax, ...rest };
    const sent = request(options, (response) => {
      const { statusCode: status = 0, headers } = response;
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", () => broken("the response broke off"));
      response.once("end", () => {
        resolve({ kind: "answer", status, headers, body: Buffer.concat(chunks).toString("utf8") });
      });
    });
    sent.once("timeout", () => sent.destroy());
    sent.once("error", () => broken("no response"));
    sent.end(body);
  });
}
