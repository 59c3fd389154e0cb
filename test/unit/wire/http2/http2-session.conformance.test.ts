import { describe, expect, it } from "vitest";
import {
  block,
  data,
  frame,
  Http2Peer,
  preface,
  request,
  requestFields,
  settings,
  uint32,
} from "../../../support/http2-peer.js";

/** What a peer sends that it must not, and what comes of it. */
interface BrokenRow {
  readonly section: string;
  readonly what: string;
  readonly send: readonly Buffer[];
  /** The code that ends the stream, or the connection. */
  readonly stream?: number;
  readonly connection?: number;
}

const codes = {
  protocol: 1,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refused: 7,
  compression: 9,
} as const;

const openStream = request(1, 0x4);
const halfClosed = request(1, 0x5);
const reset = frame({ type: 3, streamId: 1, payload: uint32(8) });
const selfDependency = Buffer.concat([uint32(1), Buffer.of(0xff)]);

const withFields = (...more: (readonly [string, string])[]): Buffer =>
  request(1, 0x5, [...requestFields, ...more]);
const without = (name: string): Buffer =>
  request(
    1,
    0x5,
    requestFields.filter(([other]) => other !== name),
  );

/** Connections of requests that nobody answers: streams stay as the peer leaves them. */
const brokenRows: readonly BrokenRow[] = [
  {
    section: "4.1",
    what: "a frame with a length above what we take",
    send: [openStream, data(1, Buffer.alloc(16_385))],
    connection: codes.frameSize,
  },
  {
    section: "4.2",
    what: "a large HEADERS frame",
    send: [frame({ type: 1, flags: 5, streamId: 1, payload: Buffer.alloc(16_385) })],
    connection: codes.frameSize,
  },
  {
    section: "4.3",
    what: "a header block that is none",
    send: [frame({ type: 1, flags: 5, streamId: 1, payload: Buffer.of(0xff, 0xff, 0xff, 0xff) })],
    connection: codes.compression,
  },
  {
    section: "4.3",
    what: "PRIORITY inside a header block",
    send: [
      request(1, 0x1),
      frame({ type: 2, streamId: 1, payload: Buffer.alloc(5) }),
      frame({ type: 9, flags: 4, streamId: 1 }),
    ],
    connection: codes.protocol,
  },
  {
    section: "4.3",
    what: "HEADERS of another stream inside a header block",
    send: [request(1, 0x1), request(3)],
    connection: codes.protocol,
  },
  {
    section: "5.1 idle",
    what: "DATA",
    send: [data(1, "x", 1)],
    connection: codes.protocol,
  },
  { section: "5.1 idle", what: "RST_STREAM", send: [reset], connection: codes.protocol },
  {
    section: "5.1 idle",
    what: "WINDOW_UPDATE",
    send: [frame({ type: 8, streamId: 1, payload: uint32(100) })],
    connection: codes.protocol,
  },
  {
    section: "5.1 idle",
    what: "CONTINUATION",
    send: [frame({ type: 9, flags: 4, streamId: 1 })],
    connection: codes.protocol,
  },
  {
    section: "5.1 half-closed (remote)",
    what: "DATA",
    send: [halfClosed, data(1, "x", 1)],
    stream: codes.streamClosed,
  },
  {
    section: "5.1 half-closed (remote)",
    what: "HEADERS",
    send: [halfClosed, halfClosed],
    stream: codes.streamClosed,
  },
  {
    section: "5.1 half-closed (remote)",
    what: "CONTINUATION",
    send: [halfClosed, frame({ type: 9, flags: 4, streamId: 1 })],
    connection: codes.protocol,
  },
  {
    section: "5.1 closed by RST_STREAM",
    what: "DATA",
    send: [openStream, reset, data(1, "x", 1)],
    connection: codes.streamClosed,
  },
  {
    section: "5.1 closed by RST_STREAM",
    what: "HEADERS",
    send: [openStream, reset, halfClosed],
    connection: codes.streamClosed,
  },
  {
    section: "5.1 closed by RST_STREAM",
    what: "CONTINUATION",
    send: [openStream, reset, frame({ type: 9, flags: 4, streamId: 1 })],
    connection: codes.protocol,
  },
  {
    section: "5.1.1",
    what: "a stream with an even number",
    send: [request(2)],
    connection: codes.protocol,
  },
  {
    section: "5.1.1",
    what: "a stream with a number below the last one",
    send: [request(5), request(3)],
    connection: codes.protocol,
  },
  {
    section: "5.3.1",
    what: "HEADERS of a stream that depends on itself",
    send: [
      frame({
        type: 1,
        flags: 0x25,
        streamId: 1,
        payload: Buffer.concat([selfDependency, block(requestFields)]),
      }),
    ],
    stream: codes.protocol,
  },
  {
    section: "5.3.1",
    what: "PRIORITY of a stream that depends on itself",
    send: [openStream, frame({ type: 2, streamId: 1, payload: selfDependency })],
    stream: codes.protocol,
  },
  {
    section: "5.5",
    what: "an unknown frame inside a header block",
    send: [request(1, 0x1), frame({ type: 0x55, streamId: 1 })],
    connection: codes.protocol,
  },
  { section: "6.1", what: "DATA on stream 0", send: [data(0, "x")], connection: codes.protocol },
  {
    section: "6.1",
    what: "DATA with a padding as long as its payload",
    send: [openStream, data(1, Buffer.of(6, 0, 0, 0, 0, 0), 0x8)],
    connection: codes.protocol,
  },
  {
    section: "6.1",
    what: "padded DATA without a length of the padding",
    send: [openStream, data(1, "", 0x8)],
    connection: codes.frameSize,
  },
  {
    section: "6.2",
    what: "HEADERS on stream 0",
    send: [request(0)],
    connection: codes.protocol,
  },
  {
    section: "6.2",
    what: "HEADERS with a padding longer than its payload",
    send: [frame({ type: 1, flags: 0xd, streamId: 1, payload: Buffer.of(2, 0) })],
    connection: codes.protocol,
  },
  {
    section: "6.2",
    what: "HEADERS with a part of a priority",
    send: [frame({ type: 1, flags: 0x25, streamId: 1, payload: Buffer.alloc(4) })],
    connection: codes.frameSize,
  },
  {
    section: "6.3",
    what: "PRIORITY on stream 0",
    send: [frame({ type: 2, payload: Buffer.alloc(5) })],
    connection: codes.protocol,
  },
  {
    section: "6.3",
    what: "PRIORITY of four bytes on an open stream",
    send: [openStream, frame({ type: 2, streamId: 1, payload: Buffer.alloc(4) })],
    stream: codes.frameSize,
  },
  {
    section: "6.3",
    what: "PRIORITY of four bytes on an idle stream",
    send: [frame({ type: 2, streamId: 1, payload: Buffer.alloc(4) })],
    connection: codes.frameSize,
  },
  {
    section: "6.4",
    what: "RST_STREAM on stream 0",
    send: [frame({ type: 3, payload: uint32(8) })],
    connection: codes.protocol,
  },
  {
    section: "6.4",
    what: "RST_STREAM of three bytes",
    send: [openStream, frame({ type: 3, streamId: 1, payload: Buffer.alloc(3) })],
    connection: codes.frameSize,
  },
  {
    section: "6.5",
    what: "an acknowledgement with settings",
    send: [frame({ type: 4, flags: 1, payload: settings([3, 1]) })],
    connection: codes.frameSize,
  },
  {
    section: "6.5",
    what: "SETTINGS on a stream",
    send: [frame({ type: 4, streamId: 1, payload: settings([3, 1]) })],
    connection: codes.protocol,
  },
  {
    section: "6.5",
    what: "SETTINGS of three bytes",
    send: [frame({ type: 4, payload: Buffer.alloc(3) })],
    connection: codes.frameSize,
  },
  {
    section: "6.5.2",
    what: "SETTINGS_ENABLE_PUSH of 2",
    send: [frame({ type: 4, payload: settings([2, 2]) })],
    connection: codes.protocol,
  },
  {
    section: "6.5.2",
    what: "SETTINGS_INITIAL_WINDOW_SIZE of 2^31",
    send: [frame({ type: 4, payload: settings([4, 2 ** 31]) })],
    connection: codes.flowControl,
  },
  {
    section: "6.5.2",
    what: "SETTINGS_MAX_FRAME_SIZE below the least",
    send: [frame({ type: 4, payload: settings([5, 16_383]) })],
    connection: codes.protocol,
  },
  {
    section: "6.5.2",
    what: "SETTINGS_MAX_FRAME_SIZE above the most",
    send: [frame({ type: 4, payload: settings([5, 2 ** 24]) })],
    connection: codes.protocol,
  },
  {
    section: "6.6",
    what: "PUSH_PROMISE",
    send: [openStream, frame({ type: 5, flags: 4, streamId: 1, payload: uint32(2) })],
    connection: codes.protocol,
  },
  {
    section: "6.7",
    what: "PING on a stream",
    send: [frame({ type: 6, streamId: 1, payload: Buffer.alloc(8) })],
    connection: codes.protocol,
  },
  {
    section: "6.7",
    what: "PING of six bytes",
    send: [frame({ type: 6, payload: Buffer.alloc(6) })],
    connection: codes.frameSize,
  },
  {
    section: "6.8",
    what: "GOAWAY on a stream",
    send: [frame({ type: 7, streamId: 1, payload: uint32(0, 0) })],
    connection: codes.protocol,
  },
  {
    section: "6.8",
    what: "GOAWAY of four bytes",
    send: [frame({ type: 7, payload: uint32(0) })],
    connection: codes.frameSize,
  },
  {
    section: "6.9",
    what: "WINDOW_UPDATE by 0 for the connection",
    send: [frame({ type: 8, payload: uint32(0) })],
    connection: codes.protocol,
  },
  {
    section: "6.9",
    what: "WINDOW_UPDATE by 0 for a stream",
    send: [openStream, frame({ type: 8, streamId: 1, payload: uint32(0) })],
    stream: codes.protocol,
  },
  {
    section: "6.9",
    what: "WINDOW_UPDATE of three bytes",
    send: [openStream, frame({ type: 8, streamId: 1, payload: Buffer.alloc(3) })],
    connection: codes.frameSize,
  },
  {
    section: "6.9.1",
    what: "a window of the connection above 2^31 - 1",
    send: [frame({ type: 8, payload: uint32(2 ** 31 - 1) })],
    connection: codes.flowControl,
  },
  {
    section: "6.9.1",
    what: "a window of a stream above 2^31 - 1",
    send: [openStream, frame({ type: 8, streamId: 1, payload: uint32(2 ** 31 - 1) })],
    stream: codes.flowControl,
  },
  {
    section: "6.9.2",
    what: "a setting that makes a stream's window larger than 2^31 - 1",
    send: [
      openStream,
      frame({ type: 8, streamId: 1, payload: uint32(2 ** 31 - 1 - 65_535) }),
      frame({ type: 4, payload: settings([4, 65_536]) }),
    ],
    connection: codes.flowControl,
  },
  {
    section: "6.10",
    what: "CONTINUATION on stream 0",
    send: [request(1, 0x1), frame({ type: 9, flags: 4 })],
    connection: codes.protocol,
  },
  {
    section: "6.10",
    what: "CONTINUATION after HEADERS with END_HEADERS",
    send: [openStream, frame({ type: 9, flags: 4, streamId: 1 })],
    connection: codes.protocol,
  },
  {
    section: "6.10",
    what: "CONTINUATION after CONTINUATION with END_HEADERS",
    send: [
      request(1, 0x1),
      frame({ type: 9, flags: 4, streamId: 1 }),
      frame({ type: 9, flags: 4, streamId: 1 }),
    ],
    connection: codes.protocol,
  },
  {
    section: "6.10",
    what: "CONTINUATION of another stream",
    send: [request(1, 0x1), frame({ type: 9, flags: 4, streamId: 3 })],
    connection: codes.protocol,
  },
  {
    section: "6.10",
    what: "CONTINUATION after DATA",
    send: [openStream, data(1, "x"), frame({ type: 9, flags: 4, streamId: 1 })],
    connection: codes.protocol,
  },
  {
    section: "8.1",
    what: "a second header block without END_STREAM",
    send: [openStream, frame({ type: 1, flags: 4, streamId: 1, payload: block([["x", "1"]]) })],
    stream: codes.protocol,
  },
  {
    section: "8.1",
    what: "trailers with a pseudo-field",
    send: [openStream, request(1, 0x5, [[":method", "POST"]])],
    stream: codes.protocol,
  },
  {
    section: "8.1.1",
    what: "a content-length above what comes",
    send: [request(1, 0x4, [...requestFields, ["content-length", "2"]]), data(1, "x", 1)],
    stream: codes.protocol,
  },
  {
    section: "8.1.1",
    what: "a content-length below what comes in several frames",
    send: [
      request(1, 0x4, [...requestFields, ["content-length", "1"]]),
      data(1, "x"),
      data(1, "x", 1),
    ],
    stream: codes.protocol,
  },
  {
    section: "8.1.1",
    what: "a content-length above what comes before trailers",
    send: [
      request(1, 0x4, [...requestFields, ["content-length", "2"]]),
      data(1, "x"),
      request(1, 0x5, [["x-test", "ok"]]),
    ],
    stream: codes.protocol,
  },
  {
    section: "8.1.1",
    what: "a content-length and no body",
    send: [withFields(["content-length", "1"])],
    stream: codes.protocol,
  },
  {
    section: "8.2.1",
    what: "a name in upper case",
    send: [withFields(["X-Test", "ok"])],
    stream: codes.protocol,
  },
  {
    section: "8.2.2",
    what: "a connection field",
    send: [withFields(["connection", "keep-alive"])],
    stream: codes.protocol,
  },
  {
    section: "8.2.2",
    what: "te other than trailers",
    send: [withFields(["te", "trailers, deflate"])],
    stream: codes.protocol,
  },
  {
    section: "8.3",
    what: "an unknown pseudo-field",
    send: [withFields([":test", "ok"])],
    stream: codes.protocol,
  },
  {
    section: "8.3",
    what: "a pseudo-field of answers",
    send: [request(1, 0x5, [[":status", "200"], ...requestFields])],
    stream: codes.protocol,
  },
  {
    section: "8.3",
    what: "a pseudo-field after others",
    send: [request(1, 0x5, [["x", "1"], ...requestFields])],
    stream: codes.protocol,
  },
  { section: "8.3.1", what: "no :method", send: [without(":method")], stream: codes.protocol },
  { section: "8.3.1", what: "no :scheme", send: [without(":scheme")], stream: codes.protocol },
  { section: "8.3.1", what: "no :path", send: [without(":path")], stream: codes.protocol },
  {
    section: "8.3.1",
    what: "an empty :path",
    send: [
      request(
        1,
        0x5,
        requestFields.map(([n, v]) => [n, n === ":path" ? "" : v]),
      ),
    ],
    stream: codes.protocol,
  },
  {
    section: "8.3.1",
    what: "a repeated :method",
    send: [request(1, 0x5, [[":method", "POST"], ...requestFields])],
    stream: codes.protocol,
  },
];

describe("Http2Connection, what peers must not send (RFC 9113)", () => {
  it.each(brokenRows)("$section: refuses $what", ({ send, stream, connection }) => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(...send);
    if (connection !== undefined) {
      expect(peer.endCode()).toBe(connection);
      expect(peer.connection.streamCount).toBe(0);
      peer.socket.emit("close");
      expect(peer.ends).toEqual([{ kind: "error", code: connection }]);
      return;
    }
    expect(peer.takeLines()).toContain(`1 RST_STREAM ${stream}`);
    expect(peer.streamErrors).toEqual([stream]);
    // The connection goes on, and so do its header blocks.
    peer.send(request(7));
    expect(peer.requests.at(-1)?.fields.get(":path")).toBe("/headgate.Test/Echo");
    expect(peer.ends).toEqual([]);
  });

  it.each([
    { what: "another protocol", bytes: Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n") },
    { what: "a wrong preface", bytes: Buffer.from("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n") },
    { what: "no SETTINGS first", bytes: Buffer.concat([preface, request(1)]) },
    {
      what: "an acknowledgement first",
      bytes: Buffer.concat([preface, frame({ type: 4, flags: 1 })]),
    },
  ])("3.4: refuses $what", ({ bytes }) => {
    const peer = new Http2Peer();
    peer.send(bytes);
    expect(peer.endCode()).toBe(codes.protocol);
    expect(peer.requests).toEqual([]);
  });

  it("5.1 closed: ends the connection for a frame on a stream that both sides ended", () => {
    for (const late of [data(1, "x", 1), request(1)]) {
      const peer = Http2Peer.greeted();
      peer.send(halfClosed);
      expect(peer.takeLines().at(-1)).toBe("1 HEADERS grpc-status=0, end");
      peer.send(late);
      expect(peer.endCode()).toBe(codes.streamClosed);
    }
  });
});

describe("Http2Connection, what peers may send (RFC 9113)", () => {
  const okay = ["1 HEADERS :status=200", "1 DATA 5", "1 HEADERS grpc-status=0, end"];

  it.each([
    { section: "3.4", what: "a request with the preface", send: [halfClosed] },
    { section: "4.1", what: "flags that a frame has not", send: [request(1, 0xd7)] },
    {
      section: "4.1",
      what: "the reserved bit of a stream",
      send: [frame({ type: 1, flags: 5, streamId: 0x80_00_00_01, payload: block(requestFields) })],
    },
    {
      section: "4.3",
      what: "a header block in pieces",
      send: [
        frame({ type: 1, flags: 1, streamId: 1, payload: block(requestFields.slice(0, 2)) }),
        frame({ type: 9, streamId: 1, payload: block(requestFields.slice(2, 5)) }),
        frame({ type: 9, flags: 4, streamId: 1, payload: block(requestFields.slice(5)) }),
      ],
    },
    {
      section: "5.3",
      what: "PRIORITY of idle streams and in HEADERS",
      send: [
        frame({ type: 2, streamId: 9, payload: Buffer.concat([uint32(0), Buffer.of(1)]) }),
        frame({
          type: 1,
          flags: 0x25,
          streamId: 1,
          payload: Buffer.concat([uint32(3), Buffer.of(1), block(requestFields)]),
        }),
      ],
    },
    { section: "5.5", what: "an unknown frame", send: [frame({ type: 0x16 }), halfClosed] },
    { section: "6.1", what: "DATA", send: [openStream, data(1, "test", 1)] },
    {
      section: "6.1",
      what: "padded DATA",
      send: [openStream, data(1, Buffer.from([2, 65, 66, 0, 0]), 0x9)],
    },
    {
      section: "6.2",
      what: "padded HEADERS",
      send: [
        frame({
          type: 1,
          flags: 0xd,
          streamId: 1,
          payload: Buffer.concat([Buffer.of(3), block(requestFields), Buffer.alloc(3)]),
        }),
      ],
    },
    {
      section: "8.1",
      what: "trailers",
      send: [openStream, data(1, "test"), request(1, 0x5, [["x-test", "ok"]])],
    },
    { section: "8.1", what: "an empty DATA frame at the end", send: [openStream, data(1, "", 1)] },
    {
      section: "8.1.1",
      what: "a content-length that holds",
      send: [
        request(1, 0x4, [...requestFields, ["content-length", "4"]]),
        data(1, "te"),
        data(1, "st", 1),
      ],
    },
  ])("$section: takes $what", ({ send }) => {
    const peer = Http2Peer.greeted();
    peer.send(...send);
    expect(peer.takeLines()).toEqual(okay);
    expect(peer.connection.streamCount).toBe(0);
  });

  it("5.1 closed: takes PRIORITY, WINDOW_UPDATE and RST_STREAM on a closed stream", () => {
    const peer = Http2Peer.greeted();
    peer.send(halfClosed);
    expect(peer.takeLines()).toEqual(okay);
    peer.send(
      frame({ type: 2, streamId: 1, payload: Buffer.concat([uint32(0), Buffer.of(1)]) }),
      frame({ type: 8, streamId: 1, payload: uint32(10) }),
      reset,
      request(3),
    );
    expect(peer.takeLines()).toHaveLength(3);
    expect(peer.ends).toEqual([]);
  });

  it("5.1 closed: ignores what comes on a stream that it has reset itself", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(openStream);
    peer.requests[0]?.stream.reset(8);
    expect(peer.takeLines()).toEqual(["1 RST_STREAM 8"]);
    peer.send(data(1, "late"), request(1, 0x5, [["x-late", "1"]]), request(3));
    expect(peer.takeLines()).toEqual([]);
    expect(peer.requests).toHaveLength(2);
    expect(peer.requests[0]?.reported).toEqual([]);
  });

  it("6.5.3: acknowledges settings", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 4, payload: settings([3, 100], [0x99, 1]) }));
    expect(peer.takeLines()).toEqual(["SETTINGS ack"]);
  });

  it("6.7: answers PING with its own bytes, and an acknowledgement not", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 6, payload: Buffer.from("h2 check") }));
    peer.send(frame({ type: 6, flags: 1, payload: Buffer.from("h2 check") }));
    expect(peer.takeLines()).toEqual(["PING 683220636865636b ack"]);
  });

  it("6.9.2: follows a setting of 1 byte, and one that opens windows again", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 4, payload: settings([4, 1]) }), halfClosed);
    expect(peer.takeLines()).toEqual(["SETTINGS ack", "1 HEADERS :status=200", "1 DATA 1"]);
    peer.send(frame({ type: 4, payload: settings([4, 0]) }));
    peer.send(frame({ type: 4, payload: settings([4, 2]) }));
    expect(peer.takeLines()).toEqual(["SETTINGS ack", "SETTINGS ack", "1 DATA 1"]);
    // A window below nothing has to be opened by more than that.
    peer.send(frame({ type: 4, payload: settings([4, 0]) }));
    peer.send(frame({ type: 8, streamId: 1, payload: uint32(2) }));
    expect(peer.takeLines()).toEqual(["SETTINGS ack"]);
    peer.send(frame({ type: 8, streamId: 1, payload: uint32(3) }));
    expect(peer.takeLines()).toEqual(["1 DATA 3", "1 HEADERS grpc-status=0, end"]);
  });

  it("8.1: tells a peer to stop whose request is answered before its end", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(openStream);
    peer.requests[0]?.stream.sendHeaders([[":status", "200"]], true);
    expect(peer.takeLines()).toEqual(["1 HEADERS :status=200, end", "1 RST_STREAM 0"]);
    peer.send(data(1, "late", 1));
    expect(peer.ends).toEqual([]);
  });
});
