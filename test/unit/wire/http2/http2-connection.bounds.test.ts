import { describe, expect, it } from "vitest";
import { http2ErrorCodes } from "../../../../src/wire/base/http2-error.js";
import {
  connectionQueueBytesMax,
  connectionWindowBytes,
  continuationCountMax,
  emptyDataPerSecondMax,
  endedStreamsKeptMax,
  headerBlockBytesMax,
  ignoredFramesPerSecondMax,
  outputBytesMax,
  pingsPerSecondMax,
  pingsPerSentFrameMax,
  pingsSavedMax,
  provokedResetsPerSecondMax,
  resetStreamsKeptMax,
  settingsPerSecondMax,
  streamCountMax,
  streamQueueBytesMax,
  streamWindowBytes,
  windowUpdatesPerSecondMax,
  windowUpdatesPerSentFrameMax,
  windowUpdatesSavedMax,
} from "../../../../src/wire/base/http2-limits.js";
import { headerListBytesMax } from "../../../../src/wire/hpack/hpack-decoder.js";
import {
  data,
  frame,
  Http2Peer,
  request,
  requestFields,
  settings,
  uint32,
} from "../../../support/http2-peer.js";

const calm = http2ErrorCodes.enhanceYourCalm;
const ping = frame({ type: 6, payload: Buffer.alloc(8) });
const resetOf = (streamId: number): Buffer => frame({ type: 3, streamId, payload: uint32(8) });
const windowUpdate = (byteCount: number, streamId = 0): Buffer =>
  frame({ type: 8, streamId, payload: uint32(byteCount) });

function openMany(peer: Http2Peer, count: number, firstId = 1): void {
  peer.send(...Array.from({ length: count }, (_, i) => request(firstId + 2 * i, 0x4)));
}

describe("Http2Connection, frames that cost a peer nothing", () => {
  it.each([
    { what: "PING", bytes: ping, most: pingsPerSecondMax },
    { what: "SETTINGS", bytes: frame({ type: 4 }), most: settingsPerSecondMax },
    {
      what: "PRIORITY",
      bytes: frame({ type: 2, streamId: 1, payload: Buffer.alloc(5) }),
      most: ignoredFramesPerSecondMax,
    },
    { what: "unknown", bytes: frame({ type: 0x99 }), most: ignoredFramesPerSecondMax },
    { what: "empty DATA", bytes: data(1), most: emptyDataPerSecondMax },
    {
      what: "WINDOW_UPDATE",
      bytes: windowUpdate(1),
      most: windowUpdatesPerSecondMax,
    },
  ])("takes $most $what frames a second, and ends the connection at one more", (row) => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.clock.advance(2_000);
    peer.send(request(1, 0x4));
    for (let second = 0; second < 2; second += 1) {
      peer.send(Buffer.concat(Array.from({ length: row.most }, () => row.bytes)));
      expect(peer.socket.isEnded).toBe(false);
      peer.clock.advance(1_000);
    }
    peer.send(Buffer.concat(Array.from({ length: row.most }, () => row.bytes)));
    peer.send(row.bytes);
    expect(peer.endCode()).toBe(calm);
  });

  const answerRows = [
    {
      what: "WINDOW_UPDATE",
      bytes: windowUpdate(1),
      perSecond: windowUpdatesPerSecondMax,
      perFrame: windowUpdatesPerSentFrameMax,
      saved: windowUpdatesSavedMax,
    },
    {
      what: "PING",
      bytes: ping,
      perSecond: pingsPerSecondMax,
      perFrame: pingsPerSentFrameMax,
      saved: pingsSavedMax,
    },
  ];

  it.each(answerRows)("takes as many $what frames as its answers explain", (row) => {
    const peer = Http2Peer.greeted();
    const answers = 500;
    peer.send(...Array.from({ length: answers }, (_, i) => request(1 + 2 * i)));
    // Each answer is three frames.
    const most = row.perSecond + answers * 3 * row.perFrame;
    peer.send(Buffer.concat(Array.from({ length: most }, () => row.bytes)));
    expect(peer.socket.isEnded).toBe(false);
    peer.send(row.bytes);
    expect(peer.endCode()).toBe(calm);
  });

  it.each(answerRows)("saves no more $what frames than a bound", (row) => {
    const peer = Http2Peer.greeted();
    for (let i = 0; 3 * i * row.perFrame < row.saved; i += 1) peer.send(request(1 + 2 * i));
    const most = row.saved + row.perFrame;
    peer.send(Buffer.concat(Array.from({ length: most }, () => row.bytes)));
    expect(peer.endCode()).toBe(calm);
  });
});

describe("Http2Connection, header blocks", () => {
  it("takes so many CONTINUATION frames, and ends the connection at one more", () => {
    for (const [count, end] of [
      [continuationCountMax, undefined],
      [continuationCountMax + 1, calm],
    ] as const) {
      const peer = Http2Peer.greeted();
      peer.send(request(1, 0x1));
      for (let i = 1; i <= count; i += 1) {
        const flags = i === count ? 0x4 : 0;
        if (!peer.socket.isEnded) peer.send(frame({ type: 9, flags, streamId: 1 }));
      }
      expect(peer.endCode()).toBe(end);
      expect(peer.requests).toHaveLength(end === undefined ? 1 : 0);
    }
  });

  it("counts the frames of each block alone", () => {
    const peer = Http2Peer.greeted();
    for (const id of [1, 3]) {
      peer.send(request(id, 0x1));
      for (let i = 1; i <= continuationCountMax; i += 1) {
        peer.send(frame({ type: 9, flags: i === continuationCountMax ? 4 : 0, streamId: id }));
      }
    }
    expect(peer.requests).toHaveLength(2);
  });

  it("ends the connection when a block has more bytes than it may have", () => {
    const peer = Http2Peer.greeted();
    const payload = Buffer.alloc(16_384);
    peer.send(frame({ type: 1, flags: 1, streamId: 1, payload }));
    for (let sent = payload.length; sent < headerBlockBytesMax; sent += payload.length) {
      peer.send(frame({ type: 9, streamId: 1, payload }));
    }
    expect(peer.socket.isEnded).toBe(false);
    peer.send(frame({ type: 9, streamId: 1, payload: Buffer.of(0) }));
    expect(peer.endCode()).toBe(calm);
  });

  it("resets a request with a larger list, and reads the next one", () => {
    const peer = Http2Peer.greeted();
    const half = "x".repeat(headerListBytesMax / 2);
    sendInFrames(peer, [...requestFields, ["x-a", half], ["x-b", half]]);
    peer.send(request(3));
    expect(peer.takeLines()[0]).toBe(`1 RST_STREAM ${calm}`);
    expect(peer.requests.map(({ stream }) => stream.id)).toEqual([3]);
  });

  // Envoy repeats a caller's in its own calls: one of 17 KB made each of them fail, and each
  // request pass every limit.
  it("takes a trace context as long as Envoy lets headers be", () => {
    const peer = Http2Peer.greeted();
    sendInFrames(peer, [...requestFields, ["tracestate", `a=${"x".repeat(61_438)}`]]);
    expect(peer.requests.map(({ stream }) => stream.id)).toEqual([1]);
  });

  function sendInFrames(peer: Http2Peer, fields: Parameters<typeof request>[2]): void {
    const block = request(1, 0x5, fields).subarray(9);
    for (let at = 0; at < block.length; at += 16_384) {
      const payload = block.subarray(at, at + 16_384);
      const flags = (at === 0 ? 0x1 : 0) + (at + 16_384 >= block.length ? 0x4 : 0);
      peer.send(frame({ type: at === 0 ? 1 : 9, flags, streamId: 1, payload }));
    }
  }
});

describe("Http2Connection, open streams", () => {
  it("refuses a stream above the bound, and takes one when another has ended", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    openMany(peer, streamCountMax);
    expect(peer.connection.streamCount).toBe(streamCountMax);
    peer.send(request(5_001));
    expect(peer.takeLines()).toEqual([`5001 RST_STREAM ${http2ErrorCodes.refusedStream}`]);
    peer.requests[0]?.stream.reset(8);
    peer.send(request(5_003));
    expect(peer.requests).toHaveLength(streamCountMax + 1);
  });

  it("counts a stream that was reset until nobody works for it any more", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    openMany(peer, streamCountMax);
    for (let i = 0; i < streamCountMax; i += 1) peer.send(resetOf(1 + 2 * i));
    expect(peer.connection.streamCount).toBe(0);
    expect(peer.requests[0]?.reported).toEqual(["reset"]);
    peer.send(request(5_001));
    expect(peer.takeLines()).toEqual([`5001 RST_STREAM ${http2ErrorCodes.refusedStream}`]);
    peer.requests[0]?.stream.release();
    peer.requests[0]?.stream.release();
    peer.send(request(5_003), request(5_005));
    expect(peer.takeLines()).toEqual([`5005 RST_STREAM ${http2ErrorCodes.refusedStream}`]);
  });

  it("counts a stream that the peer made us reset in the same way", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    openMany(peer, streamCountMax);
    for (let i = 0; i < streamCountMax; i += 1) peer.send(windowUpdate(0, 1 + 2 * i));
    expect(peer.connection.streamCount).toBe(0);
    peer.takeFrames();
    peer.send(request(5_001));
    expect(peer.takeLines()).toEqual([`5001 RST_STREAM ${http2ErrorCodes.refusedStream}`]);
  });

  it("takes a million resets of a proxy that gave up, on one connection", {
    timeout: 60_000,
  }, () => {
    let open = 0;
    const peer = Http2Peer.greeted({
      acceptor: {
        onStream: (stream) => {
          open += 1;
          return {
            onData: () => {},
            onEnd: () => {},
            onReset: () => {
              open -= 1;
              stream.release();
            },
            onDrain: () => {},
          };
        },
      },
    });
    const pairs = 1_000;
    const pair = Buffer.concat([request(1), resetOf(1)]);
    const chunk = Buffer.concat(Array.from({ length: pairs }, () => pair));
    const resetAt = pair.length - 13;
    for (let round = 0; round < 1_000; round += 1) {
      for (let i = 0; i < pairs; i += 1) {
        const id = 1 + 2 * (round * pairs + i);
        chunk.writeUInt32BE(id, i * pair.length + 5);
        chunk.writeUInt32BE(id, i * pair.length + resetAt + 5);
      }
      peer.socket.feed(chunk);
    }
    expect(peer.socket.isEnded).toBe(false);
    expect(peer.connection.streamCount).toBe(0);
    expect(open).toBe(0);
    expect(peer.takeLines()).toEqual([]);
  });

  it("ends the connection of a peer that makes it reset more streams than it may", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    const malformed = (i: number): Buffer => request(1 + 2 * i, 0x5, [[":method", "GET"]]);
    const most = provokedResetsPerSecondMax;
    for (let i = 0; i < 2 * most; i += 1) {
      if (i % most === 0) peer.clock.advance(1_000);
      peer.send(malformed(i));
    }
    expect(peer.socket.isEnded).toBe(false);
    peer.send(malformed(2 * most));
    expect(peer.endCode()).toBe(calm);
    expect(peer.streamErrors).toHaveLength(2 * most + 1);
  });

  it("ignores what comes late on the streams that it has reset last, and on no others", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    for (let i = 0; i <= resetStreamsKeptMax; i += 1) {
      peer.send(request(1 + 2 * i, 0x4));
      peer.requests[i]?.stream.reset(8);
    }
    peer.send(data(3, "late"));
    expect(peer.socket.isEnded).toBe(false);
    peer.send(data(1, "late"));
    expect(peer.endCode()).toBe(http2ErrorCodes.streamClosed);
  });

  it("tells a stream that ended from one that never was, for the last ones", () => {
    for (const [id, code] of [
      [3, http2ErrorCodes.streamClosed],
      [1, http2ErrorCodes.protocolError],
    ] as const) {
      const peer = Http2Peer.greeted();
      for (let i = 0; i <= endedStreamsKeptMax; i += 1) peer.send(request(1 + 2 * i));
      peer.send(request(id));
      expect(peer.endCode()).toBe(code);
    }
  });
});

describe("Http2Connection, what waits", () => {
  const frameBytes = 16_384;

  function sendBody(peer: Http2Peer, streamId: number, byteCount: number): void {
    for (let left = byteCount; left > 0 && !peer.socket.isEnded; left -= frameBytes) {
      peer.send(data(streamId, Buffer.alloc(Math.min(left, frameBytes))));
    }
  }

  it("takes as much of a body as a stream's window, and resets it for a byte more", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1, 0x4));
    sendBody(peer, 1, streamWindowBytes);
    expect(peer.takeLines()).toEqual([]);
    peer.send(data(1, "x"));
    expect(peer.takeLines()).toEqual([`1 RST_STREAM ${http2ErrorCodes.flowControlError}`]);
    expect(peer.requests[0]?.bodyBytes).toBe(streamWindowBytes);
  });

  it("takes as much as the connection's window, and ends it for a byte more", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    openMany(peer, 8);
    const share = connectionWindowBytes / 8;
    for (let i = 0; i < 8; i += 1) sendBody(peer, 1 + 2 * i, share);
    expect(peer.socket.isEnded).toBe(false);
    peer.send(data(1, "x"));
    expect(peer.endCode()).toBe(http2ErrorCodes.flowControlError);
  });

  it("opens both windows as the body is consumed, padding and all", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1, 0x4));
    const padded = Buffer.concat([Buffer.of(255), Buffer.alloc(frameBytes - 1)]);
    const updates: string[] = [];
    for (let sent = 0; sent < 4 * connectionWindowBytes; sent += frameBytes) {
      peer.send(data(1, padded, 0x8));
      peer.requests[0]?.stream.consumed(frameBytes - 256);
      updates.push(...peer.takeLines());
    }
    expect(updates.filter((line) => line.startsWith("0 "))).toHaveLength(8);
    expect(updates.filter((line) => line.startsWith("1 ")).length).toBeGreaterThan(16);
    expect(peer.connection.streamCount).toBe(1);
  });

  it("gives back to the connection what nobody has read of a stream that ended", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    const updates: string[] = [];
    for (let i = 0; i < 8; i += 1) {
      peer.send(request(1 + 2 * i, 0x4));
      sendBody(peer, 1 + 2 * i, connectionWindowBytes / 8);
      peer.send(resetOf(1 + 2 * i));
      updates.push(...peer.takeLines());
    }
    expect(updates).toEqual(Array(2).fill(`0 WINDOW_UPDATE ${connectionWindowBytes / 2}`));
  });

  it("gives back to the connection what came for a stream that we had reset", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1, 0x4));
    peer.requests[0]?.stream.reset(8);
    sendBody(peer, 1, connectionWindowBytes);
    expect(peer.takeLines()).toEqual([
      "1 RST_STREAM 8",
      ...Array(2).fill(`0 WINDOW_UPDATE ${connectionWindowBytes / 2}`),
    ]);
  });

  it("says when a stream's queue is full, and when half of it has left", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([4, 0]) }), windowUpdate(2 ** 30), request(1));
    const [taken] = peer.requests;
    taken?.stream.sendHeaders([[":status", "200"]], false);
    expect(taken?.stream.sendData(Buffer.alloc(streamQueueBytesMax - 1), false)).toBe(true);
    expect(taken?.stream.sendData(Buffer.of(1), false)).toBe(false);
    expect(taken?.stream.queuedBytes).toBe(streamQueueBytesMax);
    peer.send(windowUpdate(streamQueueBytesMax / 2 - 1, 1));
    expect(taken?.reported).toEqual(["end"]);
    peer.send(windowUpdate(1, 1));
    expect(taken?.reported).toEqual(["end", "drain"]);
    expect(taken?.stream.queuedBytes).toBe(streamQueueBytesMax / 2);
  });

  it("ends the connection when more waits on all streams than may", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([4, 0]) }));
    const piece = Buffer.alloc(1_048_576);
    const pieces = connectionQueueBytesMax / piece.length;
    openMany(peer, pieces + 1);
    for (let i = 0; i < pieces; i += 1) peer.requests[i]?.stream.sendData(piece, true);
    expect(peer.socket.isEnded).toBe(false);
    peer.requests[pieces]?.stream.sendData(Buffer.of(1), true);
    expect(peer.endCode()).toBe(calm);
    expect(peer.requests[pieces - 1]?.reported).toEqual(["reset"]);
  });

  it("forgets what waited on streams that were reset", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([4, 0]) }));
    const piece = Buffer.alloc(1_048_576);
    for (let i = 0; i < 2 * (connectionQueueBytesMax / piece.length); i += 1) {
      peer.send(request(1 + 2 * i));
      peer.requests[i]?.stream.sendData(piece, true);
      peer.send(resetOf(1 + 2 * i));
    }
    expect(peer.socket.isEnded).toBe(false);
  });

  it("reads nothing behind the request that was answered by too much", () => {
    const reported: string[] = [];
    const peer = Http2Peer.greeted({
      acceptor: {
        onStream: (stream) => {
          reported.push(`stream ${stream.id}`);
          stream.sendData(Buffer.alloc(connectionQueueBytesMax + 1), false);
          return {
            onData: () => {},
            onEnd: () => reported.push("end"),
            onReset: () => reported.push("reset"),
            onDrain: () => {},
          };
        },
      },
    });
    peer.send(request(1), request(3));
    expect(peer.endCode()).toBe(calm);
    expect(reported).toEqual(["stream 1", "reset"]);
  });

  it("reads no more while the socket holds more than it may, until it has drained", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.socket.isFull = true;
    peer.send(ping);
    const answered = peer.socket.writes.length;
    const value = "v".repeat(8_192);
    for (let id = 1; !peer.socket.isPaused && id < 1_000; id += 2) {
      peer.send(request(id));
      peer.requests.at(-1)?.stream.sendHeaders([["x", value]], true);
      peer.runFlushes();
    }
    expect(peer.socket.isPaused).toBe(true);
    expect(peer.socket.writes).toHaveLength(answered);
    peer.socket.isFull = false;
    peer.socket.emit("drain");
    expect(peer.socket.isPaused).toBe(false);
    expect(peer.socket.writes.at(-1)?.length).toBeGreaterThanOrEqual(outputBytesMax);
  });

  it("leaves bodies in their streams while the socket is full", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(
      frame({ type: 4, payload: settings([4, 2 ** 30]) }),
      windowUpdate(2 ** 30),
      request(1),
    );
    peer.socket.isFull = true;
    peer.send(ping);
    peer.requests[0]?.stream.sendData(Buffer.alloc(2 * outputBytesMax), true);
    peer.runFlushes();
    expect(peer.requests[0]?.stream.queuedBytes).toBe(2 * outputBytesMax);
    peer.socket.emit("drain");
    expect(peer.socket.writes.at(-1)?.length).toBeLessThan(outputBytesMax + 2 * frameBytes);
    expect(peer.requests[0]?.stream.queuedBytes).toBeGreaterThan(0);
    peer.socket.isFull = false;
    peer.socket.emit("drain");
    expect(peer.connection.streamCount).toBe(0);
  });
});
