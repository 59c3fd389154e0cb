import { describe, expect, it } from "vitest";
import {
  greetingMsMax,
  headerBlockMsMax,
  idleMsMax,
  keepaliveTimeMs,
  outputStallMsMax,
  pingAnswerMsMax,
} from "../../../../src/wire/base/http2-limits.js";
import {
  data,
  frame,
  Http2Peer,
  preface,
  request,
  settings,
  uint32,
} from "../../../support/http2-peer.js";

const ping = frame({ type: 6, payload: Buffer.alloc(8) });
const keepalivePing = "PING 0000000000000001";
const leaving = [`GOAWAY ${2 ** 31 - 1} 0`, "PING 0000000000000002"];

/** Lets time pass on a connection whose peer says something every second. */
function live(peer: Http2Peer, ms: number): void {
  for (let passed = 0; passed < ms; passed += 1_000) {
    peer.clock.advance(Math.min(1_000, ms - passed));
    if (!peer.socket.isDestroyed) peer.send(frame({ type: 0x99 }));
  }
}

function expectCut(peer: Http2Peer, why: string): void {
  expect(peer.socket.isDestroyed).toBe(true);
  expect(peer.ends).toEqual([{ kind: "time", why }]);
  expect(peer.clock.timerCount).toBe(0);
}

describe("ConnectionLifetime", () => {
  it("cuts a connection that does not greet in time, however slowly it begins", () => {
    for (const begun of [0, 1, preface.length]) {
      const peer = new Http2Peer();
      peer.send(preface.subarray(0, begun));
      peer.clock.advance(greetingMsMax - 1);
      expect(peer.socket.isDestroyed).toBe(false);
      peer.clock.advance(1);
      expectCut(peer, "ungreeted");
    }
  });

  it("asks a silent peer whether it is there, and cuts it when it does not answer", () => {
    const peer = Http2Peer.greeted();
    peer.clock.advance(keepaliveTimeMs - 1);
    expect(peer.takeLines()).toEqual([]);
    peer.clock.advance(1);
    expect(peer.takeLines()).toEqual([keepalivePing]);
    peer.clock.advance(pingAnswerMsMax - 1);
    expect(peer.socket.isDestroyed).toBe(false);
    peer.clock.advance(1);
    expectCut(peer, "silent");
  });

  it("takes anything for an answer, and asks again only after silence", () => {
    const peer = Http2Peer.greeted();
    peer.clock.advance(keepaliveTimeMs);
    peer.send(ping);
    peer.takeLines();
    peer.clock.advance(keepaliveTimeMs - 1);
    expect(peer.takeLines()).toEqual([]);
    peer.clock.advance(1);
    expect(peer.takeLines()).toEqual([keepalivePing]);
    expect(peer.socket.isDestroyed).toBe(false);
  });

  it("cuts a connection whose frame or header block is not finished in time", () => {
    for (const begun of [request(1, 0x1), data(1, "x").subarray(0, 3)]) {
      const peer = Http2Peer.greeted();
      peer.send(begun);
      peer.clock.advance(headerBlockMsMax - 1);
      expect(peer.socket.isDestroyed).toBe(false);
      peer.clock.advance(1);
      expectCut(peer, "unfinished");
    }
  });

  it("leaves a connection alone whose frames end, byte by byte", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    for (const byte of Buffer.concat([request(1), request(3)])) {
      peer.send(Buffer.of(byte));
      peer.clock.advance(50);
    }
    expect(peer.socket.isDestroyed).toBe(false);
    expect(peer.requests).toHaveLength(2);
  });

  it("leaves a busy connection alone whose reads all end inside a frame", () => {
    const peer = Http2Peer.greeted();
    peer.send(ping.subarray(0, 5));
    for (let passed = 0; passed < 3 * headerBlockMsMax; passed += 1_000) {
      peer.clock.advance(1_000);
      peer.send(ping.subarray(5), ping.subarray(0, 5));
    }
    expect(peer.socket.isDestroyed).toBe(false);
    peer.clock.advance(headerBlockMsMax);
    expectCut(peer, "unfinished");
  });

  it("cuts a peer that reads nothing of what it has asked for", () => {
    const peer = Http2Peer.greeted();
    peer.socket.isFull = true;
    peer.send(ping);
    live(peer, outputStallMsMax - 1);
    expect(peer.socket.isDestroyed).toBe(false);
    peer.clock.advance(1);
    expectCut(peer, "stalled");
  });

  it("cuts a peer that opens no window for what it has asked for", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 4, payload: settings([4, 0]) }), request(1));
    live(peer, outputStallMsMax - 1);
    expect(peer.socket.isDestroyed).toBe(false);
    peer.clock.advance(1);
    expectCut(peer, "stalled");
  });

  it("leaves a slow peer alone that takes a byte now and then", () => {
    const peer = Http2Peer.greeted();
    peer.send(frame({ type: 4, payload: settings([4, 0]) }), request(1));
    for (let taken = 0; taken < 5; taken += 1) {
      live(peer, outputStallMsMax - 1_000);
      peer.send(frame({ type: 8, streamId: 1, payload: uint32(1) }));
    }
    expect(peer.takeLines().at(-1)).toBe("1 HEADERS grpc-status=0, end");
    live(peer, 2 * outputStallMsMax);
    expect(peer.socket.isDestroyed).toBe(false);
  });

  it("asks a peer without streams to go, after long", () => {
    const peer = Http2Peer.greeted({ answersAtEnd: false });
    peer.send(request(1));
    live(peer, idleMsMax + 5_000);
    expect(peer.takeLines()).toEqual([]);
    peer.requests[0]?.stream.reset(8);
    peer.takeLines();
    live(peer, idleMsMax - 5_000);
    expect(peer.takeLines()).toEqual([]);
    live(peer, 5_000);
    expect(peer.takeLines()).toEqual(leaving);
  });

  it("asks an old connection to go, at its age and up to a tenth before or after", () => {
    const seeds = [1, 2, 3, 4];
    const agesMs = seeds.map((seed) => {
      const peer = Http2Peer.greeted({ ageMsMax: 100_000, answersAtEnd: false, seed });
      peer.send(request(1));
      let passedMs = 0;
      let lines: readonly string[] = [];
      for (; lines.length === 0; passedMs += 1_000) {
        live(peer, 1_000);
        lines = peer.takeLines();
      }
      expect(lines).toEqual(leaving);
      return passedMs;
    });
    expect(Math.min(...agesMs)).toBeGreaterThanOrEqual(90_000);
    expect(Math.max(...agesMs)).toBeLessThanOrEqual(110_000);
    expect(new Set(agesMs).size).toBeGreaterThan(1);
  });

  it("cuts an old connection whose streams do not end within the grace", () => {
    const peer = Http2Peer.greeted({ ageMsMax: 10_000, ageGraceMs: 5_000, answersAtEnd: false });
    peer.send(request(1));
    peer.clock.advance(11_000);
    peer.send(frame({ type: 6, flags: 1, payload: uint32(0, 2) }));
    expect(peer.socket.isDestroyed).toBe(false);
    peer.clock.advance(5_000);
    expectCut(peer, "old");
    expect(peer.requests[0]?.reported).toEqual(["end", "reset"]);
  });
});
