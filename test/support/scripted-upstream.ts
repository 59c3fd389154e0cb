import { createServer, type IncomingMessage } from "node:http";
import { listenOnLoopback } from "./loopback-server.js";
import type { Stage } from "./stage.js";

/** What a server answers. */
export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the answer takes, in milliseconds. Default 0 */
  readonly afterMs?: number;
}

/** A server whose answers a test writes. */
export interface ScriptedUpstream {
  readonly port: number;
  /** Requests that it has seen, and when, in milliseconds of a monotonic clock. */
  readonly arrivalsMs: readonly number[];
  /** What it answers from now on, by how many requests came before this one. */
  answer: (index: number, request: IncomingMessage) => ScriptedAnswer;
}

/** Starts one that answers 200; it ends with the stage. */
export async function startScriptedUpstream(stage: Stage): Promise<ScriptedUpstream> {
  const arrivalsMs: number[] = [];
  // More than Envoy takes: what comes through is counted, however large.
  const server = createServer({ maxHeaderSize: 131_072 }, (request, response) => {
    arrivalsMs.push(performance.now());
    request.resume();
    const { status, headers = {}, afterMs } = upstream.answer(arrivalsMs.length - 1, request);
    const answer = (): void => {
      response.writeHead(status, headers).end(`answer ${status}\n`);
    };
    if (afterMs === undefined) answer();
    else setTimeout(answer, afterMs);
  });
  const port = await listenOnLoopback(stage, server);
  const upstream: ScriptedUpstream = { port, arrivalsMs, answer: () => ({ status: 200 }) };
  return upstream;
}
