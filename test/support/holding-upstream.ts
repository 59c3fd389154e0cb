import { createServer, type ServerResponse } from "node:http";
import { listenOnLoopback } from "./loopback-server.js";
import type { Stage } from "./stage.js";

/** A server behind Envoy that answers when it is told to, so that a test sees what is in work. */
export interface HoldingUpstream {
  readonly port: number;
  /** Requests that wait for an answer. */
  readonly heldCount: number;
  /** Answers all that wait, after that time. */
  release(status?: number, afterMs?: number): void;
  /** Answers the one that has waited longest. */
  releaseOne(status: number): void;
}

/** Starts one; it ends with the stage. */
export async function startHoldingUpstream(stage: Stage): Promise<HoldingUpstream> {
  const held = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    request.resume();
    held.add(response);
    response.once("close", () => held.delete(response));
  });
  const port = await listenOnLoopback(stage, server);
  return {
    port,
    get heldCount() {
      return held.size;
    },
    release(status = 200, afterMs = 0) {
      const all = [...held];
      held.clear();
      setTimeout(() => {
        for (const response of all) answer(response, status);
      }, afterMs);
    },
    releaseOne(status) {
      const [first] = held;
      if (first === undefined) return;
      held.delete(first);
      answer(first, status);
    },
  };
}

function answer(response: ServerResponse, status: number): void {
  response.statusCode = status;
  response.end("released\n");
}
