import { describe, expect, it } from "vitest";
import type { NodeReport } from "../../../../src/core/feedback/feedback.js";
import { shareTargets } from "../../../../src/core/feedback/feedback-shares.js";
import { recordRowsMax } from "../../../../src/fleet/loop/report-format.js";
import { type ReadReport, readReport } from "../../../../src/fleet/loop/report-reader.js";
import { deadbandRatio } from "../../../../src/fleet/loop/report-scale.js";
import {
  type EncodedReport,
  fullRecordMsMax,
  type ReplicaReport,
  ReportWriter,
} from "../../../../src/fleet/loop/report-writer.js";
import { allTurns } from "../../../support/all-turns.js";
import { FakeRandom } from "../../../support/fake-random.js";
import {
  contentOf,
  fullRecord,
  readRecord,
  testPressure,
  testReport,
} from "../../../support/fleet-reports.js";
import { RecordReader, ReplicaRecords } from "../../../support/replica-records.js";
import { firstSeed, runSeeds, seedCount, seedsFrom } from "../../../support/seeds.js";

/** How much older numbers of an Envoy may be told than they are, in milliseconds. */
const toldLateMsMax = 300;

const full: ReplicaReport = {
  nodes: [
    testReport(),
    testReport({ nodeId: "node-2", highInFlight: 2, heldAtMs: 1_500, held: 2 ** 32 - 1 }),
    testReport({ service: "näme", owner: "spiffe://shop.example/ns/a/sa/edge" }),
    testReport({ nodeId: "node-3", latency: { count: 3, sumMs: 12.5, p50: 4.5 }, errorCount: 7 }),
  ],
  services: [
    testPressure({ rejectRatio: 0.8, weight: 30, waitingCount: 12, serviceMs: 2.5 }),
    testPressure({ service: "payments" }),
  ],
};

/** A replica that writes, and a reader that reads all of it, or what it is handed. */
class Pair {
  readonly #writer = new ReportWriter();
  #number = 0;
  #base: ReadReport | undefined;
  #baseNumber = 0;
  fullCount = 0;

  write(nodes: readonly NodeReport[], nowMs: number): EncodedReport & { readonly number: number } {
    this.#number += 1;
    const terms = { number: this.#number, now: () => nowMs };
    const record = allTurns(this.#writer.encode({ nodes, services: [] }, terms));
    this.#writer.confirm();
    if (record.baseNumber === undefined) this.fullCount += 1;
    return { ...record, number: this.#number };
  }

  read({ bytes, baseNumber, number }: ReturnType<Pair["write"]>, atMs: number) {
    const base = baseNumber === this.#baseNumber ? this.#base : undefined;
    const read = allTurns(readReport({ bytes, atMs }, base));
    if (read === undefined) throw new Error("a record that cannot be read");
    if (baseNumber === undefined) {
      this.#base = read;
      this.#baseNumber = number;
    }
    return contentOf(read);
  }

  pass(nodes: readonly NodeReport[], nowMs: number) {
    return this.read(this.write(nodes, nowMs), nowMs);
  }

  forget(): void {
    this.#writer.forget();
  }
}

describe("ReportWriter", () => {
  it("is read back as it was, with times by the clock of who reads, and never newer", () => {
    const { bytes, leftOutCount } = fullRecord(full, { nowMs: 2_000 });
    expect(leftOutCount).toBe(0);
    const read = readRecord(bytes, 72_000);
    expect(read?.services).toEqual(full.services);
    expect(read?.nodes).toHaveLength(4);
    for (const [i, { atMs, heldAtMs, ...row }] of (read?.nodes ?? []).entries()) {
      const {
        latency,
        errorCount,
        atMs: trueMs,
        heldAtMs: heldMs,
        ...told
      } = full.nodes[i] ?? testReport();
      expect(row).toMatchObject(told);
      expect(row.latency.count).toBe(0);
      expect(atMs).toBeLessThanOrEqual(trueMs + 70_000);
      expect(atMs).toBeGreaterThan(trueMs + 70_000 - toldLateMsMax);
      if (heldMs === undefined) expect(heldAtMs).toBeUndefined();
      else expect(heldAtMs).toBeLessThanOrEqual(heldMs + 70_000);
    }
  });

  it("keeps a ratio exactly: one that is at a threshold is not above it afterwards", () => {
    const { bytes } = fullRecord({ services: full.services });
    expect(readRecord(bytes)?.services[0]?.rejectRatio).toBe(0.8);
  });

  it("cuts numbers that are none, so that one bad row spoils no other", () => {
    const wrong = [Number.NaN, Number.NEGATIVE_INFINITY, -1, Number.POSITIVE_INFINITY];
    const nodes = wrong.map((value, i) =>
      testReport({
        nodeId: `node-${i}`,
        inFlight: value,
        rps: value,
        held: value,
        demand: value,
        latency: { count: 0, sumMs: value },
      }),
    );
    const services = wrong.map((value) => testPressure({ rejectRatio: value, weight: value }));
    const read = readRecord(fullRecord({ nodes, services }, { nowMs: 1_000 }).bytes, 1_000);
    expect(read?.nodes.map(({ inFlight }) => inFlight)).toEqual([0, 0, 0, 2 ** 32]);
    expect(read?.nodes.map(({ held }) => held)).toEqual([0, 0, 0, 2 ** 32 - 1]);
    expect(read?.services.map(({ rejectRatio }) => rejectRatio)).toEqual([0, 0, 0, 1]);
  });

  it("leaves out the last rows beyond its bounds, and a name that is too long", () => {
    const nodes = Array.from({ length: 200 }, (_, i) => testReport({ nodeId: `node-${i}` }));
    const bytesMax = 3_000;
    const { bytes, leftOutCount } = fullRecord({ ...full, nodes }, { nowMs: 1_000, bytesMax });
    expect(bytes.length).toBeLessThanOrEqual(bytesMax);
    expect(bytes.length).toBeGreaterThan(bytesMax - 200);
    const read = readRecord(bytes, 1_000);
    expect(leftOutCount).toBeGreaterThan(0);
    expect(read?.nodes.map(({ nodeId }) => nodeId)).toEqual(
      nodes.slice(0, 200 - leftOutCount).map(({ nodeId }) => nodeId),
    );
    expect(read?.services).toEqual(full.services);
    const long = testReport({ nodeId: "x".repeat(70_000) });
    expect(fullRecord({ nodes: [long] }).leftOutCount).toBe(1);
    const rows = Array.from({ length: recordRowsMax + 10 }, (_, i) =>
      testReport({ nodeId: `n${i >> 6}`, service: `s${i & 63}`, held: 0 }),
    );
    expect(fullRecord({ nodes: rows }).leftOutCount).toBeGreaterThanOrEqual(10);
  });

  it("writes nothing of Envoys whose numbers stay within the deadband, however many", () => {
    const bytesOf = (nodeCount: number): number => {
      const pair = new Pair();
      const random = new FakeRandom(1);
      let last = 0;
      for (let second = 1; second <= 5; second += 1) {
        const nowMs = 1_000 * second + 20 * random.next();
        const nodes = Array.from({ length: nodeCount }, (_, i) => {
          const rps = (100 + i) * (1 + 0.01 * (random.next() - 0.5));
          const latency = { count: 100, sumMs: 1_000 };
          const atMs = 1_000 * second - 300 - 20 * random.next();
          return testReport({
            nodeId: `node-${i}`,
            rps,
            latency,
            atMs,
            inFlight: 20,
            heldAtMs: nowMs,
          });
        });
        const record = pair.write(nodes, nowMs);
        last = record.bytes.length;
        expect(pair.read(record, nowMs).nodes).toHaveLength(nodeCount);
      }
      return last;
    };
    expect(bytesOf(100)).toBeLessThan(100);
    expect(bytesOf(1_000)).toBeLessThan(200);
  });

  it("tells every number within the deadband of what it is, and shares by that", () =>
    runSeeds(seedsFrom(1, 20), (seed) => {
      const random = new FakeRandom(seed);
      const pair = new Pair();
      const nodes = Array.from({ length: 50 }, (_, i) => ({
        nodeId: `n${i}`,
        demand: 1 + 200 * random.next(),
      }));
      for (let second = 1; second <= 20; second += 1) {
        const nowMs = 1_000 * second;
        for (const node of nodes) {
          node.demand = Math.max(0.5, node.demand * (1 + 0.1 * (random.next() - 0.5)));
        }
        const told = pair.pass(
          nodes.map((node) => testReport({ ...node, atMs: nowMs })),
          nowMs,
        ).nodes;
        const demands = told.map(({ demand = 0 }) => demand);
        // One assertion for all: to make one takes longer than what it looks at.
        const isNear = (demand: number, i: number): boolean =>
          Math.abs((demands[i] ?? 0) - demand) <= deadbandRatio * demand;
        expect(nodes.map(({ demand }, i) => isNear(demand, i))).not.toContain(false);
        const claim = (demand: number) => ({ demand, highDemand: undefined, reserved: undefined });
        const shares = (all: readonly number[]) =>
          allTurns(shareTargets(2_000, all.map(claim))).map(({ total }) => total);
        const exact = shares(nodes.map(({ demand }) => demand));
        const isFair = (share: number, i: number): boolean => {
          // Its own demand and those of all others, and what does not divide.
          const most = (exact[i] ?? 0) * ((1 + deadbandRatio) / (1 - deadbandRatio)) + 2;
          const least = (exact[i] ?? 0) * ((1 - deadbandRatio) / (1 + deadbandRatio)) - 2;
          return least <= share && share <= most;
        };
        expect(shares(demands).map(isFair)).not.toContain(false);
      }
    }));

  it("says that nothing is in work, and that somebody asks, at once", () => {
    const pair = new Pair();
    const numbers = (inFlight: number, rps: number, second: number) => {
      const latency = { count: 0, sumMs: 0 };
      const report = testReport({ inFlight, rps, latency, atMs: 1_000 * second });
      const [told] = pair.pass([report], 1_000 * second).nodes;
      return [told?.inFlight, told?.rps];
    };
    expect(numbers(1, 0, 1)).toEqual([1, 0]);
    expect(numbers(0, 0, 2)).toEqual([0, 0]);
    expect(numbers(0, 0.001, 3)[1]).toBeGreaterThan(0);
    const first = testReport({ rps: 0, inFlight: 0, latency: { count: 1, sumMs: 0 }, atMs: 4_000 });
    expect(pair.pass([first], 4_000).nodes[0]?.rps).toBeGreaterThan(0);
  });

  it("tells no numbers of an Envoy that has told none, but what it holds", () => {
    const pair = new Pair();
    const report = testReport({ atMs: 1_000, heldAtMs: 1_000 });
    expect(pair.pass([report], 1_000).nodes[0]?.atMs).toBeGreaterThan(1_000 - toldLateMsMax);
    const [again] = pair.pass([{ ...report, heldAtMs: 2_000, held: 7 }], 2_000).nodes;
    expect(again?.atMs).toBeLessThan(-50_000);
    expect(again).toMatchObject({ held: 7, heldAtMs: expect.closeTo(2_000, -2) });
    expect(pair.pass([{ ...report, held: 0 }], 3_000).nodes).toEqual([]);
    expect(pair.pass([], 4_000).nodes).toEqual([]);
    expect(pair.pass([{ ...report, atMs: 5_000 }], 5_000).nodes).toHaveLength(1);
  });

  it("adds up what Envoys measured, by service and by when it began, each once", () => {
    const pair = new Pair();
    const nodes = (atMs: number) =>
      Array.from({ length: 30 }, (_, i) =>
        testReport({
          nodeId: `node-${i}`,
          atMs,
          service: i < 10 ? "orders" : "carts",
          latency: { count: 10, sumMs: 100 + i, ...(i % 2 === 0 ? { p50: 9 } : {}) },
          errorCount: 1,
        }),
      );
    expect(pair.pass(nodes(1_000), 1_000).samples).toEqual([]);
    const { samples } = pair.pass(nodes(2_000), 2_000);
    const sumOf = (service: string) => {
      const own = samples.filter((sample) => sample.service === service);
      const sum = (of: (sample: (typeof own)[number]) => number) =>
        own.reduce((all, sample) => all + of(sample), 0);
      return [
        sum(({ latency }) => latency.count),
        sum(({ latency }) => latency.sumMs),
        sum(({ latency: { p50 = 0, count } }) => p50 * count),
        sum(({ errorCount }) => errorCount),
      ];
    };
    expect(sumOf("orders")).toEqual([100, 1_045, 450, 10]);
    expect(sumOf("carts")).toEqual([200, 2_390, 900, 20]);
    for (const { fromMs } of samples) {
      expect(fromMs).toBeLessThanOrEqual(1_000);
      expect(fromMs).toBeGreaterThan(500);
    }
    expect(pair.pass(nodes(2_000), 3_000).samples).toEqual([]);
  });

  it("follows Envoys that come, go, move to another identity, or get another service", () => {
    const pair = new Pair();
    const random = new FakeRandom(3);
    const services = ["orders", "carts", "search"];
    for (let second = 1; second <= 60; second += 1) {
      const nowMs = 1_000 * second;
      const nodes = Array.from({ length: 20 }, (_, i) => i)
        .filter(() => random.next() < 0.8)
        .flatMap((i) =>
          services
            .filter(() => random.next() < 0.7)
            .map((service) => {
              const owner = random.next() < 0.1 ? "other" : undefined;
              const inFlight = Math.floor(20 * random.next());
              return testReport({ nodeId: `n${i}`, owner, service, inFlight, atMs: nowMs });
            }),
        )
        .toSorted(() => random.next() - 0.5);
      const keyOf = ({ nodeId, owner, service, inFlight }: NodeReport) =>
        [nodeId, owner, service, inFlight].join(" ");
      expect(pair.pass(nodes, nowMs).nodes.map(keyOf).toSorted()).toEqual(
        nodes.map(keyOf).toSorted(),
      );
    }
    expect(pair.fullCount).toBeGreaterThan(1);
  });

  it("needs none of the records between: each differs from the full one", () => {
    const pair = new Pair();
    const nodes = (second: number) => [testReport({ inFlight: second, atMs: 1_000 * second })];
    pair.pass(nodes(1), 1_000);
    pair.write(nodes(2), 2_000);
    pair.write(nodes(3), 3_000);
    expect(pair.pass(nodes(4), 4_000).nodes).toMatchObject([{ inFlight: 4 }]);
  });

  it("is read as it was told, whatever calls of the store fail, and whatever it loses", () =>
    runSeeds(seedsFrom(1, 30), (seed) => {
      const random = new FakeRandom(seed);
      const records = new ReplicaRecords();
      let reader = new RecordReader();
      let told: readonly NodeReport[] = [];
      let readCount = 0;
      for (let second = 1; second <= 60; second += 1) {
        const nowMs = 1_000 * second;
        const nodes = Array.from({ length: 10 }, (_, i) => i)
          .filter(() => random.next() < 0.9)
          .map((i) =>
            testReport({ nodeId: `n${i}`, rps: 1 + 500 * random.next() ** 3, atMs: nowMs }),
          );
        const before = records.find(nowMs)?.number;
        const draw = random.next();
        records.write(nodes, nowMs, draw < 0.2 ? "lost" : draw < 0.4 ? "unknown" : "written");
        if (records.find(nowMs)?.number !== before) told = nodes;
        if (random.next() < 0.05) reader = new RecordReader();
        const read = reader.read(records, nowMs);
        if (random.next() < 0.05) records.lose();
        if (read === undefined) continue;
        readCount += 1;
        const rows = new Map(contentOf(read).nodes.map((row) => [row.nodeId, row]));
        expect([...rows.keys()].toSorted()).toEqual(told.map(({ nodeId }) => nodeId).toSorted());
        for (const { nodeId, rps } of told) {
          const error = Math.abs((rows.get(nodeId)?.rps ?? Number.NaN) - rps);
          expect(error).toBeLessThanOrEqual(deadbandRatio * rps);
        }
      }
      expect(readCount).toBeGreaterThan(30);
    }));

  it("says all again when the store has lost it, and after five minutes", () => {
    const pair = new Pair();
    const nodes = (nowMs: number) => [testReport({ atMs: nowMs })];
    expect(pair.write(nodes(1_000), 1_000).baseNumber).toBeUndefined();
    expect(pair.write(nodes(2_000), 2_000).baseNumber).toBe(1);
    pair.forget();
    expect(pair.write(nodes(3_000), 3_000).baseNumber).toBeUndefined();
    expect(pair.write(nodes(4_000), 4_000).baseNumber).toBe(3);
    const laterMs = 3_000 + fullRecordMsMax;
    expect(pair.write(nodes(laterMs), laterMs).baseNumber).toBeUndefined();
  });

  it("says all again where nobody knows whether the full record was written", () => {
    const writer = new ReportWriter();
    const encode = (number: number) =>
      allTurns(
        writer.encode({ nodes: [testReport()], services: [] }, { number, now: () => 1_000 }),
      );
    expect(encode(1).baseNumber).toBeUndefined();
    const again = encode(2);
    expect(again.baseNumber).toBeUndefined();
    // What was told then may have reached nobody: it is news once more.
    expect(readRecord(again.bytes, 1_000)?.nodes[0]?.atMs).toBeGreaterThan(1_000 - toldLateMsMax);
  });
});

describe("readReport()", () => {
  const { bytes } = fullRecord(full, { nowMs: 2_000 });
  const pair = new Pair();
  pair.write(full.nodes, 2_000);
  const second = full.nodes.map((node) => ({ ...node, atMs: 2_000, inFlight: 9 }));
  const delta = pair.write([...second, testReport({ nodeId: "new", atMs: 2_000 })], 3_000).bytes;
  const base = allTurns(readReport({ bytes, atMs: 0 }, undefined));
  const deltaOf = (changed: Buffer) => allTurns(readReport({ bytes: changed, atMs: 0 }, base));

  it("reads nothing of another format, nor what differs from what is not there", () => {
    expect(readRecord(Buffer.concat([Buffer.from([2]), bytes.subarray(1)]))).toBeUndefined();
    expect(readRecord(Buffer.alloc(0))).toBeUndefined();
    expect(readRecord(delta)).toBeUndefined();
    expect(deltaOf(delta)).toBeDefined();
  });

  it("reads nothing of a part, and nothing with something behind it", () => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readRecord(bytes.subarray(0, length)), `${length} bytes`).toBeUndefined();
    }
    for (let length = 0; length < delta.length; length += 1) {
      expect(deltaOf(delta.subarray(0, length)), `${length} bytes`).toBeUndefined();
    }
    expect(readRecord(Buffer.concat([bytes, Buffer.from([0])]))).toBeUndefined();
  });

  it("reads no more rows than there may be", () => {
    expect(allTurns(readReport({ bytes, atMs: 0 }, undefined, 4))?.table.rowNodes).toHaveLength(4);
    expect(allTurns(readReport({ bytes, atMs: 0 }, undefined, 3))).toBeUndefined();
    expect(allTurns(readReport({ bytes: delta, atMs: 0 }, base, 4))).toBeUndefined();
  });

  it("never throws, and makes no number that is none, whatever the bytes", () => {
    const seed = firstSeed(20_261_121);
    const random = new FakeRandom(seed);
    for (let round = 0; round < seedCount(1_000); round += 1) {
      const isDelta = round % 2 === 1;
      const broken = Buffer.from(isDelta ? delta : bytes);
      for (let i = 0; i < 3; i += 1) {
        broken[Math.floor(random.next() * broken.length)] = Math.floor(random.next() * 256);
      }
      const read = isDelta
        ? deltaOf(broken)
        : allTurns(readReport({ bytes: broken, atMs: 0 }, undefined));
      const content = read && contentOf(read);
      for (const { atMs, rps, inFlight, held } of content?.nodes ?? []) {
        const areGood = [-atMs, rps, inFlight, held].every((one) => one >= 0 && one < Infinity);
        expect(areGood, `seed ${seed}, round ${round}`).toBe(true);
      }
      for (const { rejectRatio } of content?.services ?? []) {
        expect(rejectRatio >= 0 && rejectRatio <= 1, `seed ${seed}, round ${round}`).toBe(true);
      }
    }
  });
});
