import { describe, expect, it } from "vitest";
import {
  LayerLedger,
  type NodeLayer,
  unacknowledgedMax,
} from "../../../../src/rpc/nodes/layer-ledger.js";

const ttlMs = 15_000;
const configured = 1_024;

function ledgerOf(): LayerLedger {
  return new LayerLedger({ ttlMs, configuredShare: () => configured });
}

function layer(version: number, share?: number): NodeLayer {
  const shares = new Map(share === undefined ? [] : [["orders", share]]);
  return { version: `1.${version}`, values: new Map(), shares };
}

describe("LayerLedger", () => {
  it("knows of nothing held where nothing was ever sent", () => {
    expect(ledgerOf().held("orders", 0)).toBe(0);
  });

  it("counts the configured default until the first layer is acknowledged", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 5), 0);
    expect(ledger.held("orders", 10)).toBe(configured);
    expect(ledger.noteAcknowledged("a", 20)).toBe(true);
    expect(ledger.held("orders", 20)).toBe(5);
    expect(ledger.acknowledgedLayer?.version).toBe("1.1");
  });

  it("counts the larger of what is acknowledged and what is on its way", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 5), 0);
    ledger.noteAcknowledged("a", 10);
    ledger.noteSent("b", layer(2, 9), 100);
    expect(ledger.held("orders", 100)).toBe(9);
    ledger.noteSent("c", layer(3, 2), 200);
    expect(ledger.held("orders", 200)).toBe(9);
    // Who has the newer one has nothing older any more.
    ledger.noteAcknowledged("c", 210);
    expect(ledger.held("orders", 210)).toBe(2);
    expect(ledger.noteAcknowledged("b", 220)).toBe(false);
  });

  it("counts a smaller share only when it is acknowledged", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 50), 0);
    ledger.noteAcknowledged("a", 10);
    ledger.noteSent("b", layer(2, 5), 100);
    expect(ledger.held("orders", 5_000)).toBe(50);
  });

  it("keeps to what was acknowledged when a newer one is refused", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 5), 0);
    ledger.noteAcknowledged("a", 10);
    ledger.noteSent("b", layer(2, 9), 100);
    expect(ledger.noteRefused("b")).toBe(true);
    expect(ledger.noteRefused("b")).toBe(false);
    expect(ledger.held("orders", 110)).toBe(5);
  });

  it("counts the default when its time may have run out, and the share until it must have", () => {
    const small = ledgerOf();
    small.noteSent("a", layer(1, 5), 0);
    small.noteAcknowledged("a", 400);
    expect(small.held("orders", ttlMs - 1)).toBe(5);
    expect(small.held("orders", ttlMs)).toBe(configured);
    const large = ledgerOf();
    large.noteSent("a", layer(1, 5_000), 0);
    large.noteAcknowledged("a", 400);
    expect(large.held("orders", ttlMs)).toBe(5_000);
    expect(large.held("orders", ttlMs + 399)).toBe(5_000);
    expect(large.held("orders", ttlMs + 400)).toBe(configured);
  });

  it("is renewed by each acknowledged layer", () => {
    const ledger = ledgerOf();
    for (const atMs of [0, 5_000, 10_000, 15_000]) {
      ledger.noteSent(`at ${atMs}`, layer(1, 5), atMs);
      ledger.noteAcknowledged(`at ${atMs}`, atMs + 10);
    }
    expect(ledger.held("orders", 29_999)).toBe(5);
  });

  it("counts what was on its way on a lost stream until it must have run out", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 5), 0);
    ledger.noteAcknowledged("a", 10);
    ledger.noteSent("b", layer(2, 5_000), 1_000);
    ledger.noteStreamEnded(2_000);
    expect(ledger.held("orders", 2_000 + ttlMs - 1)).toBe(5_000);
    expect(ledger.held("orders", 2_000 + ttlMs)).toBe(configured);
  });

  it("forgets a lost stream's layers with the first that a new one acknowledges", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 5_000), 0);
    ledger.noteStreamEnded(100);
    ledger.noteSent("b", layer(2, 5), 200);
    ledger.noteAcknowledged("b", 210);
    expect(ledger.held("orders", 210)).toBe(5);
  });

  it("counts the default of a service that a layer leaves out", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 5), 0);
    ledger.noteAcknowledged("a", 10);
    ledger.noteSent("b", layer(2), 100);
    expect(ledger.held("orders", 110)).toBe(configured);
    expect([...ledger.services(110)]).toEqual(["orders"]);
    ledger.noteAcknowledged("b", 120);
    expect([...ledger.services(120)]).toEqual([]);
  });

  it("says until when that is all: after a stream has ended others may have given more", () => {
    const ledger = ledgerOf();
    expect(ledger.heldAtMs(5)).toBe(5);
    ledger.noteSent("a", layer(1, 5), 10);
    expect(ledger.heldAtMs(20)).toBe(Number.NEGATIVE_INFINITY);
    ledger.noteAcknowledged("a", 30);
    expect(ledger.heldAtMs(40)).toBe(40);
    ledger.noteStreamEnded(50);
    ledger.noteSent("b", layer(2, 5), 60);
    expect(ledger.heldAtMs(70)).toBe(50);
    ledger.noteAcknowledged("b", 80);
    expect(ledger.heldAtMs(90)).toBe(90);
  });

  it("says so up to half of a ttl before the layer may run out, whatever is on its way", () => {
    const ledger = ledgerOf();
    ledger.noteSent("a", layer(1, 5), 10);
    ledger.noteAcknowledged("a", 30);
    ledger.noteSent("b", layer(2, 5), 5_000);
    expect(ledger.heldAtMs(10 + ttlMs / 2)).toBe(10 + ttlMs / 2);
    expect(ledger.heldAtMs(9_000)).toBe(10 + ttlMs / 2);
    ledger.noteStreamEnded(9_000);
    expect(ledger.heldAtMs(9_500)).toBe(10 + ttlMs / 2);
  });

  it("has room for so many layers that nobody acknowledges, and for more when they ran out", () => {
    const ledger = ledgerOf();
    for (let i = 0; i < unacknowledgedMax; i += 1) {
      expect(ledger.hasRoom(0)).toBe(true);
      ledger.noteSent(`n${i}`, layer(i, 1), 0);
    }
    expect(ledger.hasRoom(0)).toBe(false);
    expect(ledger.waitingMs(700)).toBe(700);
    ledger.noteStreamEnded(1_000);
    expect(ledger.waitingMs(1_000)).toBe(0);
    expect(ledger.hasRoom(1_000 + ttlMs - 1)).toBe(false);
    expect(ledger.hasRoom(1_000 + ttlMs)).toBe(true);
  });
});
