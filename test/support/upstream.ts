import { createServer } from "node:http";
import { systemClock } from "../../src/app/base/clock.js";
import { listenOnLoopback } from "./loopback-server.js";
import type { Stage } from "./stage.js";

/** The small server behind Envoy. */
export interface Upstream {
  readonly port: number;
  /** Requests it has seen so far. */
  readonly requestCount: number;
  /** The most that it has had in work at once. */
  readonly inWorkMost: number;
}

/** Request header whose value comes back as `x-tokens-used`: a cost known after the response. */
export const tokensHeader = "x-reply-tokens";

/** Starts a server that answers 200 to everything, after so long. */
export async function startUpstream(stage: Stage, workMs = 0): Promise<Upstream> {
  let requestCount = 0;
  let inWorkCount = 0;
  let inWorkMost = 0;
  const server = createServer((request, response) => {
    requestCount += 1;
    const tokens = request.headers[tokensHeader];
    if (typeof tokens === "string") response.setHeader("x-tokens-used", tokens);
    request.resume();
    inWorkCount += 1;
    inWorkMost = Math.max(inWorkMost, inWorkCount);
    const answer = (): void => {
      inWorkCount -= 1;
      response.end("upstream\n");
    };
    if (workMs === 0) answer();
    else systemClock.schedule(workMs, answer);
  });
  const port = await listenOnLoopback(stage, server);
  return {
    port,
    get requestCount() {
      return requestCount;
    },
    get inWorkMost() {
      return inWorkMost;
    },
  };
}
