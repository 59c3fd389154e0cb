import { describe, expect, it } from "vitest";
import type { HeaderFields } from "../../../../src/wire/base/http2.js";
import { OutputBuffer } from "../../../../src/wire/base/output-buffer.js";
import { HpackEncoder } from "../../../../src/wire/hpack/hpack-encoder.js";
import { FrameRates } from "../../../../src/wire/http2/frame-rates.js";
import { FrameWriter } from "../../../../src/wire/http2/frame-writer.js";
import { StreamTable } from "../../../../src/wire/http2/stream-table.js";

const noFields: HeaderFields = { count: 0, name: () => "", value: () => "", get: () => undefined };

/** A table whose requests are answered at once by more than the connection's window. */
function openTable(): StreamTable {
  return new StreamTable({
    writer: new FrameWriter(new OutputBuffer()),
    encoder: new HpackEncoder(),
    rates: new FrameRates(),
    acceptor: {
      onStream: (stream) => {
        stream.sendData(Buffer.alloc(100_000), true);
        return { onData: () => {}, onEnd: () => {}, onReset: () => {}, onDrain: () => {} };
      },
    },
    host: {
      requestFlush: () => {},
      fail: () => {},
      onStreamError: () => {},
      onBug: () => {},
      onNoStreams: () => {},
    },
  });
}

describe("StreamTable", () => {
  it("holds nothing of streams that are reset behind a window that is shut", () => {
    const table = openTable();
    for (let id = 1; id < 2_000; id += 2) {
      table.pass(id);
      table.open(id, noFields, {
        isRemoteEnd: true,
        contentLength: undefined,
        sendWindowBytes: 1_000_000,
      });
      table.pump();
      const stream = table.find(id);
      expect(table.waitingCount).toBe(1);
      if (stream !== undefined) table.endByPeer(stream);
      expect(table.waitingCount).toBe(0);
      expect(table.queuedBytes).toBe(0);
      expect(table.lingeringCount).toBe(0);
    }
  });

  it("holds nothing when its connection is gone", () => {
    const table = openTable();
    for (let id = 1; id < 100; id += 2) {
      table.pass(id);
      table.open(id, noFields, {
        isRemoteEnd: true,
        contentLength: undefined,
        sendWindowBytes: 1_000_000,
      });
    }
    table.endAll();
    expect([table.count, table.waitingCount, table.queuedBytes]).toEqual([0, 0, 0]);
  });
});
