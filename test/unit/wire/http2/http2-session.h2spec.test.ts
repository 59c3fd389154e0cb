import { describe, expect, it } from "vitest";
import {
  block,
  data,
  frame,
  Http2Peer,
  type PeerField,
  request,
  requestFields,
  settings,
  uint32,
} from "../../../support/http2-peer.js";

/**
 * What the public conformance suite for servers asks besides the rules that peers may break: its
 * sections on error codes, requests as such, and header blocks on the wire.
 */

const openStream = request(1, 0x4);
const halfClosed = request(1, 0x5);
const okay = ["1 HEADERS :status=200", "1 DATA 5", "1 HEADERS grpc-status=0, end"];
const ping = frame({ type: 6, payload: Buffer.from("h2 check") });
const pingAnswer = "PING 683220636865636b ack";

const compressionError = 9;

function withMethod(method: string): readonly PeerField[] {
  return requestFields.map(([name, value]) => [name, name === ":method" ? method : value]);
}

describe("Http2Connection, requests of every kind", () => {
  it.each(["GET", "HEAD", "POST", "OPTIONS"])("8.3: takes %s, and answers it", (method) => {
    const peer = Http2Peer.greeted();
    peer.send(request(1, 0x5, withMethod(method)));
    expect(peer.takeLines()).toEqual(okay);
  });

  it.each([":scheme", ":path"])("8.3.1: refuses a second %s", (name) => {
    const peer = Http2Peer.greeted();
    const again = requestFields.filter(([other]) => other === name);
    peer.send(request(1, 0x5, [...again, ...requestFields]));
    expect(peer.takeLines()).toEqual(["1 RST_STREAM 1"]);
  });

  it("4.2: takes DATA of 2^14 bytes, and not of one more", () => {
    for (const [byteCount, end] of [
      [16_384, undefined],
      [16_385, 6],
    ] as const) {
      const peer = Http2Peer.greeted();
      peer.send(openStream, data(1, Buffer.alloc(byteCount), 1));
      expect(peer.endCode()).toBe(end);
    }
  });
});

describe("Http2Connection, settings", () => {
  it("6.5.3: follows the last of several values in one frame", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 4, payload: settings([4, 100], [4, 1]) }), halfClosed);
    expect(peer.takeLines()).toEqual(["SETTINGS ack", "1 HEADERS :status=200", "1 DATA 1"]);
  });
});

describe("Http2Connection, error codes that nobody knows", () => {
  const unknownCode = uint32(0xff);

  it("7: treats a reset with one like any other", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(openStream, frame({ type: 3, streamId: 1, payload: unknownCode }), ping);
    expect(peer.takeLines()).toEqual([pingAnswer]);
    expect(peer.requests[0]?.reported).toEqual(["reset"]);
  });

  it("7: serves on what is open behind a GOAWAY with one", () => {
    const peer = Http2Peer.greeted();
    const goaway = frame({ type: 7, payload: Buffer.concat([uint32(0), unknownCode]) });
    peer.send(openStream, goaway, ping);
    expect(peer.takeLines()).toEqual([pingAnswer]);
    peer.send(data(1, "", 1));
    expect(peer.takeLines()).toEqual(okay);
    expect(peer.socket.isEnded).toBe(true);
  });
});

describe("Http2Connection, header blocks on the wire (RFC 7541)", () => {
  it.each([
    { section: "2.3.3", what: "an index behind both tables", bytes: "ffff00" },
    { section: "2.3.3", what: "a literal's name by such an index", bytes: "7fff000161" },
    { section: "4.2", what: "a size of the table behind a field", bytes: "8220" },
    { section: "5.2", what: "a padding of eight bits and more", bytes: "0085f2b24a84ff8449509fff" },
    { section: "5.2", what: "a padding of zeros", bytes: "0085f2b24a84ff83495090" },
    { section: "5.2", what: "the end symbol in a text", bytes: "0085f2b24a84ff87fffffffd25427f" },
    { section: "6.1", what: "the index 0", bytes: "80" },
    { section: "6.3", what: "a size of the table above the setting", bytes: "3fe21f" },
  ])("$section: ends the connection for $what", ({ bytes }) => {
    const peer = Http2Peer.greeted();
    const payload = Buffer.concat([block(requestFields), Buffer.from(bytes, "hex")]);
    const first = bytes === "3fe21f" ? Buffer.from(bytes, "hex") : payload;
    peer.send(frame({ type: 1, flags: 5, streamId: 1, payload: first }));
    expect(peer.endCode()).toBe(compressionError);
    expect(peer.requests).toEqual([]);
  });
});
