import { describe, expect, it } from "vitest";
import type { ServerStream, StreamReader } from "../../../../src/wire/base/http2.js";
import { http2ErrorCodes } from "../../../../src/wire/base/http2-error.js";
import { streamWindowBytes } from "../../../../src/wire/base/http2-limits.js";
import {
  data,
  frame,
  Http2Peer,
  preface,
  request,
  settings,
  uint32,
} from "../../../support/http2-peer.js";

const pingAck = (low: number): Buffer => frame({ type: 6, flags: 1, payload: uint32(0, low) });
const windowUpdate = (byteCount: number, streamId = 0): Buffer =>
  frame({ type: 8, streamId, payload: uint32(byteCount) });

function ignorant(over: Partial<StreamReader> = {}): StreamReader {
  return { onData: () => {}, onEnd: () => {}, onReset: () => {}, onDrain: () => {}, ...over };
}

describe("Http2Connection, turns", () => {
  it("greets before it is greeted", () => {
    const peer = new Http2Peer();
    const [first, second] = peer.takeFrames();
    expect(first).toMatchObject({ type: 4, flags: 0, streamId: 0 });
    expect(second).toMatchObject({ type: 8, streamId: 0 });
  });

  it("answers all requests of one read in one write", () => {
    const peer = Http2Peer.greeted();
    const before = peer.socket.writes.length;
    peer.send(...Array.from({ length: 50 }, (_, i) => request(1 + 2 * i)));
    expect(peer.socket.writes.length - before).toBe(1);
    expect(peer.takeLines()).toHaveLength(150);
  });

  it("sends what becomes ready later in one turn in one write", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(...Array.from({ length: 50 }, (_, i) => request(1 + 2 * i)));
    const before = peer.socket.writes.length;
    for (const { stream } of peer.requests) stream.sendHeaders([[":status", "200"]], true);
    expect(peer.socket.writes.length).toBe(before);
    peer.runFlushes();
    expect(peer.socket.writes.length - before).toBe(1);
  });

  it("does the same wherever what it reads is cut", () => {
    const bytes = Buffer.concat([
      preface,
      frame({ type: 4, payload: settings([4, 3]) }),
      request(1, 0x4),
      data(1, "hello", 1),
      frame({ type: 6, payload: Buffer.alloc(8) }),
      windowUpdate(2, 1),
    ]);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const peer = new Http2Peer();
      peer.send(bytes.subarray(0, cut));
      peer.send(bytes.subarray(cut));
      const sent = peer.takeFrames();
      const bodies = sent.filter(({ type }) => type === 0).map(({ payload }) => payload);
      expect(Buffer.concat(bodies).toString()).toBe("hello");
      expect(sent.filter(({ type }) => type === 6)).toHaveLength(1);
      expect(sent.at(-1)).toMatchObject({ type: 1, flags: 5, streamId: 1 });
      expect(peer.requests[0]?.reported).toEqual(["data 5, end"]);
      expect(peer.connection.streamCount).toBe(0);
    }
  });

  it("frees every stream wherever the connection is cut", () => {
    const bytes = Buffer.concat([
      preface,
      frame({ type: 4, payload: settings([4, 3]) }),
      request(1, 0x4),
      data(1, "hello"),
      request(3),
      frame({ type: 3, streamId: 3, payload: uint32(8) }),
      data(1, "", 1),
    ]);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const peer = new Http2Peer();
      peer.send(bytes.subarray(0, cut));
      peer.socket.destroy();
      expect(peer.ends).toEqual([{ kind: "peer" }]);
      expect(peer.connection.streamCount).toBe(0);
      for (const { reported, stream } of peer.requests) {
        expect(reported.filter((line) => line === "reset").length).toBeLessThanOrEqual(1);
        stream.sendHeaders([[":status", "200"]], true);
        stream.consumed(5);
        stream.reset(8);
        stream.release();
      }
      peer.runFlushes();
      expect(peer.clock.timerCount).toBe(0);
    }
  });
});

describe("Http2Connection, bodies", () => {
  it("lets streams take turns, a frame each", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([4, 2 ** 20]) }), request(1), request(3));
    for (const { stream } of peer.requests) stream.sendData(Buffer.alloc(40_000), true);
    expect(peer.takeLines()).toEqual([
      "SETTINGS ack",
      "1 DATA 16384",
      "3 DATA 16384",
      "1 DATA 16384",
      // The connection's window is 65,535.
      "3 DATA 16383",
    ]);
    peer.send(windowUpdate(2 ** 20));
    expect(peer.takeLines()).toEqual(["1 DATA 7232, end", "3 DATA 7233, end"]);
  });

  it("sends a head and what it is of in one frame", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1));
    const head = Buffer.from("head-");
    peer.requests[0]?.stream.sendDataWithHead(head, Buffer.from("body"), true);
    head.fill(0);
    const [sent] = peer.takeFrames();
    expect(sent?.payload.toString()).toBe("head-body");
  });

  it("keeps a head that waits, though its memory is the caller's again", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([4, 0]) }), request(1));
    peer.takeFrames();
    const head = Buffer.from("head-");
    peer.requests[0]?.stream.sendDataWithHead(head, Buffer.from("body"), false);
    head.fill(0);
    peer.requests[0]?.stream.sendData(Buffer.alloc(0), true);
    peer.send(windowUpdate(100, 1));
    const sent = peer.takeFrames();
    expect(Buffer.concat(sent.map(({ payload }) => payload)).toString()).toBe("head-body");
    expect(sent.map(({ flags }) => flags)).toEqual([0, 1]);
    expect(peer.connection.streamCount).toBe(0);
  });

  it("sends an end without bytes though no window is open", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([4, 0]) }), request(1));
    peer.requests[0]?.stream.sendHeaders([[":status", "200"]], false);
    peer.requests[0]?.stream.sendData(Buffer.alloc(0), true);
    expect(peer.takeLines().at(-1)).toBe("1 DATA 0, end");
  });

  it("sends an end without bytes though a window is below nothing", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1));
    peer.requests[0]?.stream.sendData(Buffer.alloc(100), false);
    peer.send(frame({ type: 4, payload: settings([4, 0]) }));
    peer.takeLines();
    peer.requests[0]?.stream.sendData(Buffer.alloc(0), true);
    expect(peer.takeLines()).toEqual(["1 DATA 0, end"]);
  });

  it("sends nothing behind an end that waits", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([4, 0]) }), request(1));
    const [taken] = peer.requests;
    taken?.stream.sendData(Buffer.from("all"), true);
    taken?.stream.sendData(Buffer.from("more"), false);
    taken?.stream.sendHeaders([["grpc-status", "0"]], true);
    peer.takeLines();
    peer.send(windowUpdate(100, 1));
    expect(peer.takeLines()).toEqual(["1 DATA 3, end"]);
  });

  it("opens no window for a body that has ended, or for more than has come", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    const part = Buffer.alloc(16_384);
    peer.send(request(1, 0x4), request(3, 0x4), data(3, part));
    const parts = Math.ceil(streamWindowBytes / 2 / part.length);
    for (let i = 0; i < parts; i += 1) peer.send(data(1, part, i === parts - 1 ? 1 : 0));
    peer.requests[0]?.stream.consumed(parts * part.length);
    peer.requests[1]?.stream.consumed(2 ** 30);
    expect(peer.takeLines()).toEqual([]);
  });

  it("drops what waits when the peer resets the stream", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 4, payload: settings([4, 1]) }), request(1));
    peer.takeLines();
    peer.send(frame({ type: 3, streamId: 1, payload: uint32(8) }), windowUpdate(10, 1));
    expect(peer.takeLines()).toEqual([]);
    expect(peer.requests[0]?.stream.queuedBytes).toBe(0);
    // Its handler had answered, so nobody works for it.
    expect(peer.requests[0]?.reported).toEqual(["end", "reset"]);
  });

  it("writes a large header block in several frames", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1));
    peer.requests[0]?.stream.sendHeaders([["x-large", "\u00ff".repeat(40_000)]], true);
    const sent = peer.takeFrames();
    expect(sent.map(({ type, flags }) => [type, flags])).toEqual([
      [1, 1],
      [9, 0],
      [9, 4],
    ]);
  });
});

describe("Http2Connection, acceptors", () => {
  it("tells no end of a request that was answered as it came", () => {
    const reported: string[] = [];
    const peer = Http2Peer.greeted({
      acceptor: {
        onStream: (stream, _fields, isEnd) => {
          stream.sendHeaders([[":status", "200"]], true);
          reported.push(`is end: ${isEnd}`);
          return ignorant({
            onEnd: () => reported.push("end"),
            onReset: () => reported.push("reset"),
          });
        },
      },
    });
    peer.send(request(1), request(3, 0x4), data(3, "late", 1));
    expect(peer.takeLines()).toEqual([
      "1 HEADERS :status=200, end",
      "3 HEADERS :status=200, end",
      "3 RST_STREAM 0",
    ]);
    expect(reported).toEqual(["is end: true", "is end: false"]);
  });
});

describe("Http2Connection, bugs of its readers", () => {
  const bug = new Error("a bug");
  const fail = (): never => {
    throw bug;
  };

  it.each([
    { what: "the acceptor", reader: undefined },
    { what: "onData", reader: ignorant({ onData: fail }) },
    { what: "onEnd", reader: ignorant({ onEnd: fail }) },
  ])("resets the stream when $what throws, and goes on", ({ reader }) => {
    let count = 0;
    const peer = Http2Peer.greeted({
      acceptor: {
        onStream: (stream: ServerStream) => {
          count += 1;
          if (count === 1) return reader ?? fail();
          stream.sendHeaders([[":status", "200"]], true);
          return ignorant();
        },
      },
    });
    peer.send(request(1, 0x4), data(1, "x"), request(3));
    peer.send(data(1, "", 1));
    const lines = peer.takeLines();
    expect(lines).toContain(`1 RST_STREAM ${http2ErrorCodes.internalError}`);
    expect(lines).toContain("3 HEADERS :status=200, end");
    expect(peer.bugs).toEqual([bug]);
    expect(peer.ends).toEqual([]);
  });

  it("frees the stream when onReset throws", () => {
    const peer = Http2Peer.greeted({
      acceptor: { onStream: () => ignorant({ onReset: fail }) },
    });
    peer.send(request(1), frame({ type: 3, streamId: 1, payload: uint32(8) }));
    expect(peer.bugs).toEqual([bug]);
    expect(peer.connection.streamCount).toBe(0);
  });

  it("resets a stream whose answer has a field that may not be sent", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1, 0x4), request(3));
    peer.requests[0]?.stream.sendHeaders([["x", "a\r\nb"]], true);
    peer.requests[1]?.stream.sendHeaders([["x", "okay"]], true);
    expect(peer.takeLines()).toEqual([
      `1 RST_STREAM ${http2ErrorCodes.internalError}`,
      "3 HEADERS x=okay, end",
    ]);
    expect(peer.bugs).toHaveLength(1);
  });

  it("ends the connection when that field comes with a change of the table", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(frame({ type: 4, payload: settings([1, 0]) }), request(1));
    peer.requests[0]?.stream.sendHeaders([["x", "a\r\nb"]], true);
    expect(peer.endCode()).toBe(http2ErrorCodes.internalError);
  });
});

describe("Http2Connection.leave()", () => {
  it("serves what is under way, says so after a round trip, and ends with the last stream", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    let isKnown = false;
    peer.send(request(1));
    peer.connection.leave(() => {
      isKnown = true;
    });
    expect(peer.takeLines()).toEqual([`GOAWAY ${2 ** 31 - 1} 0`, "PING 0000000000000002"]);
    peer.send(request(3));
    expect(peer.requests).toHaveLength(2);
    expect(isKnown).toBe(false);
    peer.send(pingAck(2));
    expect(isKnown).toBe(true);
    expect(peer.takeLines()).toEqual(["GOAWAY 3 0"]);
    peer.send(request(5));
    expect(peer.takeLines()).toEqual([`5 RST_STREAM ${http2ErrorCodes.refusedStream}`]);
    for (const { stream } of peer.requests) stream.sendHeaders([[":status", "200"]], true);
    expect(peer.takeLines()).toHaveLength(2);
    expect(peer.socket.isEnded).toBe(true);
    peer.send(request(7));
    expect(peer.takeLines()).toEqual([]);
    peer.socket.emit("close");
    expect(peer.ends).toEqual([{ kind: "left" }]);
    expect(peer.clock.timerCount).toBe(0);
  });

  it("waits no longer for that round trip than for any answer", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1));
    peer.connection.leave(() => {});
    peer.takeLines();
    peer.clock.advance(20_000);
    expect(peer.takeLines()).toEqual(["GOAWAY 1 0"]);
  });

  it("tells at once when the connection is gone, or goes", () => {
    const reported: string[] = [];
    const peer = Http2Peer.greeted();
    peer.connection.leave(() => reported.push("first"));
    peer.connection.destroy();
    peer.connection.leave(() => reported.push("second"));
    expect(reported).toEqual(["first", "second"]);
    expect(peer.ends).toEqual([{ kind: "destroyed" }]);
  });

  it("takes only the answer to its own question for one", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    // One that was never asked.
    peer.send(pingAck(2), request(1));
    expect(peer.takeLines()).toEqual([]);
    peer.connection.leave(() => {});
    peer.takeLines();
    peer.send(pingAck(1));
    expect(peer.takeLines()).toEqual([]);
    peer.send(pingAck(2));
    expect(peer.takeLines()).toEqual(["GOAWAY 1 0"]);
  });

  it("tells at once when the peer knows already", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1));
    peer.connection.leave(() => {});
    peer.send(pingAck(2));
    let isKnown = false;
    peer.connection.leave(() => {
      isKnown = true;
    });
    expect(isKnown).toBe(true);
  });

  it("sends what is ready to a peer that has ended its side, and cuts it soon", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1), request(3));
    peer.requests[0]?.stream.sendHeaders([[":status", "200"]], true);
    peer.socket.emit("end");
    expect(peer.takeLines()).toEqual(["1 HEADERS :status=200, end"]);
    expect(peer.requests[1]?.reported).toEqual(["end", "reset"]);
    peer.clock.advance(1_000);
    expect(peer.socket.isDestroyed).toBe(true);
    expect(peer.ends).toEqual([{ kind: "peer" }]);
  });

  it("ends the connection of a peer that leaves, when its streams have ended", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1), frame({ type: 7, payload: uint32(0, 0) }));
    expect(peer.socket.isEnded).toBe(false);
    peer.requests[0]?.stream.sendHeaders([[":status", "200"]], true);
    peer.runFlushes();
    expect(peer.socket.isEnded).toBe(true);
  });

  it("reads on when it ends while it reads no more, so that its last word arrives", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.socket.isFull = true;
    peer.send(frame({ type: 6, payload: Buffer.alloc(8) }), request(1), request(3));
    peer.requests[0]?.stream.sendHeaders([["x", "v".repeat(300_000)]], true);
    peer.runFlushes();
    expect(peer.socket.isPaused).toBe(true);
    peer.requests[1]?.stream.sendData(Buffer.alloc(16_777_217), true);
    expect(peer.endCode()).toBe(http2ErrorCodes.enhanceYourCalm);
    expect(peer.socket.isPaused).toBe(false);
  });

  it("is cut after a moment when the peer does not close its side", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 9, streamId: 1 }));
    expect(peer.socket.isEnded).toBe(true);
    expect(peer.socket.isDestroyed).toBe(false);
    // What still comes is read and dropped.
    peer.send(request(1));
    peer.clock.advance(1_000);
    expect(peer.socket.isDestroyed).toBe(true);
    expect(peer.ends).toEqual([{ kind: "error", code: http2ErrorCodes.protocolError }]);
  });
});
