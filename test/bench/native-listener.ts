import { type AddressInfo, createServer } from "node:net";
import { toCallFailure } from "../../src/rpc/grpc/status.js";
import { NativeTransport } from "../../src/wire/grpc/native-transport.js";
import type { ServiceHandlers } from "../../src/wire/grpc/service.js";
import { realClock, realRandom } from "../support/real-clock.js";

/**
 * Serves on our own transport and does nothing else. Prints its port once it listens; ends on
 * SIGTERM.
 */
export function listenNatively(services: readonly ServiceHandlers[]): void {
  const transport = new NativeTransport({
    services,
    clock: realClock,
    random: realRandom,
    connectionAgeMsMax: 86_400_000,
    connectionAgeGraceMs: 3_600_000,
    onBug: (thrown) => {
      throw thrown;
    },
    isLate: () => false,
    onDropped: () => {},
    toFailure: toCallFailure,
    scheduleFlush: (run) => process.nextTick(run),
  });
  const server = createServer({ noDelay: true }, (socket) => transport.accept(socket));
  server.listen(0, "127.0.0.1", () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
  });
  process.on("SIGTERM", () => process.exit(0));
}
