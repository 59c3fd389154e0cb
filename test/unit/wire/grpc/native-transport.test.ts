import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { toCallFailure } from "../../../../src/rpc/grpc/status.js";
import {
  NativeTransport,
  type NativeTransportParts,
} from "../../../../src/wire/grpc/native-transport.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { realRandom } from "../../../support/real-clock.js";
import { waitFor } from "../../../support/wait.js";

/** A connection in memory whose client says nothing. */
class SilentConnection extends Duplex {
  readonly bytesWritten = 0;

  override _read(): void {
    // Nothing ever comes.
  }

  override _write(_bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    done();
  }
}

function open(parts: Partial<NativeTransportParts> = {}) {
  const clock = new FakeClock();
  const transport = new NativeTransport({
    services: [],
    clock,
    random: realRandom,
    connectionAgeMsMax: 86_400_000,
    connectionAgeGraceMs: 3_600_000,
    onBug: (thrown) => {
      throw thrown;
    },
    isLate: () => false,
    onDropped: () => {},
    toFailure: toCallFailure,
    scheduleFlush: (run) => queueMicrotask(run),
    ...parts,
  });
  return { transport, clock };
}

describe("NativeTransport", () => {
  it("tells how a connection ended, and keeps none that has", async () => {
    const ends: unknown[] = [];
    const { transport } = open({ onConnectionEnd: (end) => ends.push(end) });
    const [first, second] = [new SilentConnection(), new SilentConnection()];
    transport.accept(first);
    transport.accept(second);
    expect(transport.connectionCount).toBe(2);
    first.destroy();
    second.push("no preface of HTTP/2, and more than it has\r\n");
    second.push(null);
    await waitFor("both are gone", () => transport.connectionCount === 0);
    expect(ends).toEqual([{ kind: "peer" }, { kind: "error", code: 1 }]);
  });

  it("waits so long, and no longer, for clients to know that they should go", async () => {
    const { transport, clock } = open();
    transport.accept(new SilentConnection());
    let isOver = false;
    const announced = transport.announceClose(1_000).then(() => {
      isOver = true;
    });
    await clock.advanceAsync(999);
    expect(isOver).toBe(false);
    await clock.advanceAsync(1);
    await announced;
  });

  it("cuts connections that are still there after the grace, and takes none", async () => {
    const { transport, clock } = open();
    const silent = new SilentConnection();
    transport.accept(silent);
    const closed = transport.close(500);
    const late = new SilentConnection();
    transport.accept(late);
    expect(late.destroyed).toBe(true);
    await clock.advanceAsync(500);
    expect([await closed, silent.destroyed, transport.connectionCount]).toEqual([false, true, 0]);
  });

  it("leaves no timer behind", async () => {
    const { transport, clock } = open();
    const silent = new SilentConnection();
    transport.accept(silent);
    silent.destroy();
    await waitFor("it is gone", () => transport.connectionCount === 0);
    await transport.announceClose(1_000);
    expect([await transport.close(1_000), clock.timerCount]).toEqual([true, 0]);
  });
});
