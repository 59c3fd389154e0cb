import { describe, expect, it } from "vitest";
import { textsMax } from "../../../../src/fleet/loop/byte-fields.js";
import {
  decodeSnapshot,
  encodeSnapshot,
  type FleetSnapshot,
  snapshotServicesMax,
} from "../../../../src/fleet/loop/snapshot-codec.js";
import { allTurns } from "../../../support/all-turns.js";
import { testFleetSnapshot, testShares } from "../../../support/fleet-reports.js";

const rank = { term: 7, leaderId: "a1", version: 42 };

function fleetSnapshot(serviceCount = 2): FleetSnapshot {
  const shares = new Map([
    ["node-1", { default: 2 ** 32 - 1, high: 3 }],
    ["node-2", { default: 1, high: 0 }],
  ]);
  const measured = { rttMs: 12.5, minRttMs: 8, gradient: 0.75 };
  const facts = { inFlight: 31, rps: 250.5, overflowPerSecond: 4.5, ...measured };
  const services = new Map([["näme", testShares({ limit: 99, shares, rejectRatio: 0.4, facts })]]);
  for (let i = 1; i < serviceCount; i += 1) {
    services.set(`service-${i}`, testShares({ gate: "closed", shares }));
  }
  const verdicts = new Map([["orders", { rejectRatio: 0.8, state: "limiting" as const }]]);
  return { snapshot: { ...rank, services }, verdicts };
}

/** With maps for tables. */
function plain(fleet: FleetSnapshot | undefined): FleetSnapshot | undefined {
  if (fleet === undefined) return undefined;
  const services = [...fleet.snapshot.services].map(
    ([name, service]) => [name, { ...service, shares: new Map(service.shares) }] as const,
  );
  return { ...fleet, snapshot: { ...fleet.snapshot, services: new Map(services) } };
}

describe("encodeSnapshot()", () => {
  it("is read back as it was, under the rank that travels beside it", () => {
    const fleet = fleetSnapshot();
    const { bytes, leftOutCount } = allTurns(encodeSnapshot(fleet));
    expect(leftOutCount).toBe(0);
    expect(plain(allTurns(decodeSnapshot(bytes, rank)))).toEqual(plain(fleet));
    expect(allTurns(decodeSnapshot(bytes, { ...rank, term: 8 }))?.snapshot.term).toBe(8);
  });

  it("is read back where services have their Envoys in another order, or some of them", () => {
    const share = (value: number) => ({ default: value, high: value - 1 });
    const orders: readonly (readonly string[])[] = [["a", "b", "c"], ["c", "a"], ["b"], []];
    const services = new Map(
      orders.map((ids, i) => {
        const shares = new Map(ids.map((id, place) => [id, share(10 * i + place + 1)]));
        return [`s${i}`, testShares({ shares })] as const;
      }),
    );
    const { bytes } = allTurns(
      encodeSnapshot({ snapshot: { ...rank, services }, verdicts: new Map() }),
    );
    const read = allTurns(decodeSnapshot(bytes, rank))?.snapshot.services;
    for (const [name, { shares }] of services) {
      const table = read?.get(name)?.shares;
      expect(new Map(table)).toEqual(shares);
      for (const id of ["a", "b", "c", "d"]) {
        expect([table?.get(id), table?.has(id)]).toEqual([shares.get(id), shares.has(id)]);
      }
    }
  });

  it("writes each name once, and leaves the last services out beyond its bound", () => {
    const fleet = fleetSnapshot(50);
    const whole = allTurns(encodeSnapshot(fleet));
    expect(whole.bytes.toString("latin1").split("node-1")).toHaveLength(2);
    const bytesMax = 1_500;
    const { bytes, leftOutCount } = allTurns(encodeSnapshot(fleet, bytesMax));
    expect(bytes.length).toBeLessThanOrEqual(bytesMax);
    expect(bytes.length).toBeGreaterThan(bytesMax - 100);
    const read = allTurns(decodeSnapshot(bytes, rank));
    expect(read?.verdicts).toEqual(fleet.verdicts);
    expect([...(plain(read)?.snapshot.services ?? [])]).toEqual(
      [...fleet.snapshot.services].slice(0, 50 - leftOutCount),
    );
  });
});

describe("the bounds of a snapshot", () => {
  it("are as many services, and as many Envoys, as are read back", () => {
    const services = new Map(
      Array.from({ length: snapshotServicesMax + 1 }, (_, i) => [`s${i}`, testShares()]),
    );
    const verdicts = new Map(
      Array.from({ length: snapshotServicesMax + 1 }, (_, i) => [
        `s${i}`,
        { rejectRatio: 0, state: "open" as const },
      ]),
    );
    const many = allTurns(encodeSnapshot({ snapshot: { ...rank, services }, verdicts }));
    expect(many.leftOutCount).toBe(2);
    const read = allTurns(decodeSnapshot(many.bytes, rank));
    expect([read?.snapshot.services.size, read?.verdicts.size]).toEqual([
      snapshotServicesMax,
      snapshotServicesMax,
    ]);
    const shares = new Map(
      Array.from({ length: textsMax + 1 }, (_, i) => [`n${i}`, { default: 1, high: 0 }]),
    );
    const large = new Map([
      ["large", testShares({ shares })],
      ["small", testShares({ shares: new Map([...shares].slice(0, textsMax)) })],
    ]);
    const { bytes } = allTurns(
      encodeSnapshot({
        snapshot: { ...rank, services: large },
        verdicts: new Map(),
      }),
    );
    const known = allTurns(decodeSnapshot(bytes, rank))?.snapshot.services;
    expect([...(known?.keys() ?? [])]).toEqual(["small"]);
  });

  it("refuse one that says to have more", () => {
    const { bytes } = allTurns(
      encodeSnapshot({
        snapshot: { ...rank, services: new Map() },
        verdicts: new Map(),
      }),
    );
    const claim = (at: number, count: number, rowBytes: number) => {
      const claiming = Buffer.concat([bytes, Buffer.alloc(count * rowBytes)]);
      claiming.writeUInt32LE(count, at);
      return [...decodeSnapshot(claiming, rank)].length;
    };
    expect(claim(1, textsMax + 1, 2)).toBe(0);
    expect(claim(5, snapshotServicesMax + 1, 11)).toBe(0);
    expect(claim(9, snapshotServicesMax + 1, 43)).toBe(0);
    expect(claim(1, textsMax, 2)).toBe(4);
  });
});

describe("decodeSnapshot()", () => {
  it("reads nothing of a part, of another format, and with something behind it", () => {
    const { bytes } = allTurns(encodeSnapshot(fleetSnapshot()));
    for (let length = 0; length < bytes.length; length += 1) {
      expect(
        allTurns(decodeSnapshot(bytes.subarray(0, length), rank)),
        `${length} bytes`,
      ).toBeUndefined();
    }
    expect(
      allTurns(decodeSnapshot(Buffer.concat([bytes, Buffer.from([0])]), rank)),
    ).toBeUndefined();
    expect(
      allTurns(decodeSnapshot(Buffer.concat([Buffer.from([9]), bytes]), rank)),
    ).toBeUndefined();
  });

  it("reads nothing where a ratio, a gate or a name's position is none", () => {
    const { bytes } = allTurns(encodeSnapshot(testFleetSnapshot()));
    const gateAt = bytes.indexOf("orders") + "orders".length + 4 + 8;
    const broken = Buffer.from(bytes);
    broken[gateAt] = 3;
    expect(allTurns(decodeSnapshot(broken, rank))).toBeUndefined();
    broken[gateAt] = 2;
    expect(allTurns(decodeSnapshot(broken, rank))?.snapshot.services.get("orders")?.gate).toBe(
      "closed",
    );
    broken.writeDoubleLE(1.5, gateAt - 8);
    expect(allTurns(decodeSnapshot(broken, rank))).toBeUndefined();
  });
});
