import { createServer } from "node:http";
import { listenOnLoopback } from "./loopback-server.js";
import type { Stage } from "./stage.js";
import { tokensHeader } from "./upstream.js";

/** A service of one of the five policies: what it answers tells what it saw. */
export interface PolicyUpstream {
  readonly port: number;
  /** Requests that asked to be held (`x-hold`) and wait for an answer. */
  readonly heldCount: number;
  /** Answers all that wait. */
  release(): void;
}

/** Headers that come back as others, to be looked at. */
const echoes: Readonly<Record<string, string>> = {
  [tokensHeader]: "x-tokens-used",
  "x-request-priority": "x-seen-priority",
  "x-plan": "x-seen-plan",
};

/** Starts one; it ends with the stage. */
export async function startPolicyUpstream(stage: Stage, service: string): Promise<PolicyUpstream> {
  const held = new Set<() => void>();
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader("x-served-by", service);
    for (const [name, echo] of Object.entries(echoes)) {
      const value = request.headers[name];
      if (typeof value === "string") response.setHeader(echo, value);
    }
    const answer = () => response.end("served\n");
    if (request.headers["x-hold"] === undefined) answer();
    else held.add(answer);
    response.once("close", () => held.delete(answer));
  });
  const port = await listenOnLoopback(stage, server);
  return {
    port,
    get heldCount() {
      return held.size;
    },
    release() {
      for (const answer of held) answer();
    },
  };
}
