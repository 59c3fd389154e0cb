import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { ServiceHandlers } from "../../src/wire/grpc/service.js";
import { startTransport } from "../support/transports.js";
import { unaryHandler } from "../support/unary.js";

/** What it answers to `/test.Service/Look`; it prints its port when it serves. */
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

const { port } = await startTransport("plaintext", [createService()]);
process.stdout.write(`${port}\n`);
