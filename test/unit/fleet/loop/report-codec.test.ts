import { describe, expect, it } from "vitest";
import {
  decodeReport,
  encodeReport,
  type ReplicaReport,
} from "../../../../src/fleet/loop/report-codec.js";
import { allTurns } from "../../../support/all-turns.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { testPressure, testReport } from "../../../support/fleet-reports.js";
import { firstSeed, seedCount } from "../../../support/seeds.js";

const gradientFacts = {
  concurrencyLimit: 40,
  gradient: 0.5,
  minRttMs: 8,
  sampleRttMs: 16,
  burstQueueSize: 6,
};

const full: ReplicaReport = {
  nodes: [
    testReport(),
    testReport({ nodeId: "node-2", highInFlight: 2, heldAtMs: 1_500, held: 2 ** 32 - 1 }),
    testReport({ service: "näme", owner: "spiffe://shop.example/ns/a/sa/edge", gradientFacts }),
    testReport({ latency: { count: 3, sumMs: 12.5, p50: 4.5, minMs: 0.5 }, errorCount: 7 }),
  ],
  services: [
    testPressure({ rejectRatio: 0.8, weight: 30, waitingCount: 12, serviceMs: 2.5 }),
    testPressure({ service: "payments" }),
  ],
};

describe("encodeReport()", () => {
  it("is read back as it was, with times by the clock of who reads", () => {
    const { bytes, leftOutCount } = allTurns(encodeReport(full, { now: () => 2_000 }));
    expect(leftOutCount).toBe(0);
    const shifted = full.nodes.map(({ heldAtMs, ...node }) => ({
      ...node,
      atMs: 71_000,
      ...(heldAtMs === undefined ? {} : { heldAtMs: 71_500 }),
    }));
    expect(allTurns(decodeReport(bytes, 72_000))).toEqual({
      nodes: shifted,
      services: full.services,
    });
  });

  it("keeps a ratio exactly: one that is at a threshold is not above it afterwards", () => {
    const { bytes } = allTurns(
      encodeReport({ nodes: [], services: full.services }, { now: () => 0 }),
    );
    expect(allTurns(decodeReport(bytes, 0))?.services[0]?.rejectRatio).toBe(0.8);
  });

  it("cuts numbers that are none, so that one bad row spoils no other", () => {
    const wrong = [Number.NaN, Number.NEGATIVE_INFINITY, -1, Number.POSITIVE_INFINITY];
    const nodes = wrong.map((value) =>
      testReport({ inFlight: value, rps: value, held: value, latency: { count: 1, sumMs: value } }),
    );
    const services = wrong.map((value) => testPressure({ rejectRatio: value, weight: value }));
    const { bytes } = allTurns(encodeReport({ nodes, services }, { now: () => 1_000 }));
    const read = allTurns(decodeReport(bytes, 1_000));
    expect(read?.nodes.map(({ inFlight }) => inFlight)).toEqual([0, 0, 0, 2 ** 32 - 1]);
    expect(read?.services.map(({ rejectRatio }) => rejectRatio)).toEqual([0, 0, 0, 1]);
    expect(read?.nodes[0]?.rps).toBe(0);
    expect(read?.nodes[3]?.rps).toBeGreaterThan(3e38);
  });

  it("leaves out the last rows beyond its bound, and a name that is too long", () => {
    const nodes = Array.from({ length: 100 }, (_, i) => testReport({ nodeId: `node-${i}` }));
    const bytesMax = 3_000;
    const { bytes, leftOutCount } = allTurns(
      encodeReport({ ...full, nodes }, { now: () => 1_000, bytesMax }),
    );
    expect(bytes.length).toBeLessThanOrEqual(bytesMax);
    expect(bytes.length).toBeGreaterThan(bytesMax - 100);
    const read = allTurns(decodeReport(bytes, 1_000));
    expect(read?.nodes).toEqual(nodes.slice(0, 100 - leftOutCount));
    expect(read?.services).toEqual(full.services);
    const long = testReport({ nodeId: "x".repeat(70_000) });
    expect(
      allTurns(encodeReport({ nodes: [long], services: [] }, { now: () => 0 })).leftOutCount,
    ).toBe(1);
  });
});

describe("decodeReport()", () => {
  const { bytes } = allTurns(encodeReport(full, { now: () => 2_000 }));

  it("reads nothing of another format", () => {
    expect(
      allTurns(decodeReport(Buffer.concat([Buffer.from([1]), bytes.subarray(1)]), 0)),
    ).toBeUndefined();
    expect(allTurns(decodeReport(Buffer.alloc(0), 0))).toBeUndefined();
  });

  it("reads nothing of a part, and nothing with something behind it", () => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(
        allTurns(decodeReport(bytes.subarray(0, length), 0)),
        `${length} bytes`,
      ).toBeUndefined();
    }
    expect(allTurns(decodeReport(Buffer.concat([bytes, Buffer.from([0])]), 0))).toBeUndefined();
  });

  it("never throws, and makes no number that is none, whatever the bytes", () => {
    const seed = firstSeed(20_261_121);
    const random = new FakeRandom(seed);
    for (let round = 0; round < seedCount(1_000); round += 1) {
      const broken = Buffer.from(bytes);
      for (let i = 0; i < 3; i += 1) {
        broken[Math.floor(random.next() * broken.length)] = Math.floor(random.next() * 256);
      }
      const read = allTurns(decodeReport(broken, 0));
      for (const { atMs, rps, inFlight, held } of read?.nodes ?? []) {
        const areGood = [-atMs, rps, inFlight, held].every((one) => one >= 0 && one < Infinity);
        expect(areGood, `seed ${seed}, round ${round}`).toBe(true);
      }
      for (const { rejectRatio } of read?.services ?? []) {
        expect(rejectRatio >= 0 && rejectRatio <= 1, `seed ${seed}, round ${round}`).toBe(true);
      }
    }
  });
});
