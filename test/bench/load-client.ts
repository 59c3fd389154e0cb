import type { CallOutcome } from "./call-outcome.js";
import { ExchangeClient } from "./exchange-client.js";
import { FrameClient } from "./frame-client.js";
import { Http1Client } from "./http1-client.js";
import { type Head, Http2Client } from "./http2-client.js";
import { ThrottleClient } from "./throttle-client.js";

/** One connection of a load. */
export interface LoadClient {
  /** Makes a call; `at` says which of the prepared messages it sends. */
  call(at: number, done: (outcome: CallOutcome) => void): void;
  close(): void;
}

/** What the calls of a load are. Messages are in base64, each connection walks through them. */
export type LoadCalls =
  | { readonly kind: "unary"; readonly path: string; readonly messages: readonly string[] }
  /** A stream a call: a message, its answer, another one, its answer, and the end of both sides. */
  | {
      readonly kind: "exchange";
      readonly path: string;
      readonly first: readonly string[];
      readonly second: readonly string[];
    }
  /** Throttle commands over RESP, as texts. */
  | { readonly kind: "throttle"; readonly commands: readonly (readonly string[])[] }
  /** GET over HTTP/1.1, one at a time on each connection, with header fields as lines. */
  | { readonly kind: "http1"; readonly heads: readonly string[] }
  /** GET over HTTP/2, with header fields. */
  | { readonly kind: "http2"; readonly heads: readonly Head[] };

/** Connects to a server on loopback; rejects when nobody listens. */
export async function connectClient(port: number, calls: LoadCalls): Promise<LoadClient> {
  switch (calls.kind) {
    case "unary": {
      const messages = calls.messages.map(decode);
      const client = await FrameClient.connect(port, calls.path);
      return {
        call: (at, done) => client.call(pick(messages, at), (answer) => done(limitOutcome(answer))),
        close: () => client.close(),
      };
    }
    case "exchange": {
      const first = calls.first.map(decode);
      const second = calls.second.map(decode);
      const client = await ExchangeClient.connect(port, calls.path);
      return {
        call: (at, done) =>
          client.exchange([pick(first, at), pick(second, at)], (isWhole) =>
            done(isWhole ? "allowed" : "failed"),
          ),
        close: () => client.close(),
      };
    }
    case "throttle":
      return ThrottleClient.connect(port, calls.commands);
    case "http1": {
      const client = await Http1Client.connect(port, calls.heads);
      return { call: (at, done) => client.get(at, done), close: () => client.close() };
    }
    case "http2": {
      const client = await Http2Client.connect(port, calls.heads);
      return { call: (at, done) => client.get(at, done), close: () => client.close() };
    }
  }
}

/** RateLimitResponse begins with field 1, a varint: OVER_LIMIT is 2. */
function limitOutcome(answer: Buffer | undefined): CallOutcome {
  if (answer === undefined) return "failed";
  return answer[0] === 0x08 && answer[1] === 0x02 ? "denied" : "allowed";
}

function decode(message: string): Buffer {
  return Buffer.from(message, "base64");
}

function pick(messages: readonly Buffer[], at: number): Buffer {
  return messages[at % messages.length] ?? noBytes;
}

const noBytes = Buffer.alloc(0);
