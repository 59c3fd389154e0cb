import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { ServiceHandlers } from "../../src/wire/grpc/service.js";
import { startTransport, transportNames } from "../support/transports.js";
import { unaryHandler } from "../support/unary.js";

/** What it prints when it serves: a port by transport. */
export type TransportPorts = Readonly<Record<(typeof transportNames)[number], number>>;

/** What it answers to `/test.Service/Look`, of one transport. */
export interface TransportLook {
  readonly readCount: number;
  /** What buffers of this process hold that somebody still needs. */
  readonly bufferBytes: number;
}

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** Reads messages of calls that stay open, and tells what it has kept. */
function createService(): ServiceHandlers {
  let readCount = 0;
  return {
    name: "test.Service",
    methods: [
      {
        kind: "bidi",
        name: "Ask",
        open: (_call, answers) => ({
          onMessage: () => {
            readCount += 1;
            answers.next();
          },
          onEnd: () => answers.end(),
          onCancel: () => answers.end(),
          onDrain: () => {},
        }),
      },
      {
        kind: "unary",
        name: "Look",
        handle: unaryHandler(async () => {
          collectGarbage();
          const look: TransportLook = {
            readCount,
            bufferBytes: process.memoryUsage().arrayBuffers,
          };
          return Buffer.from(JSON.stringify(look));
        }),
      },
    ],
  };
}

const running = await Promise.all(
  transportNames.map(
    async (name) => [name, await startTransport(name, [createService()])] as const,
  ),
);
const ports = Object.fromEntries(running.map(([name, { port }]) => [name, port]));
process.stdout.write(`${JSON.stringify(ports)}\n`);
