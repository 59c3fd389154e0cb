import { describe, expect, it } from "vitest";
import {
  ClusterTopology,
  clusterNodesMax,
  parseSlots,
  resolveAddress,
} from "../../../../../src/store/redis/cluster/cluster-topology.js";

/** A range of slots as CLUSTER SLOTS tells it. */
function range(
  [first, last]: readonly [number, number],
  host: string | undefined,
  port: number,
): unknown[] {
  const id = Buffer.from("id");
  const reported = host === undefined ? undefined : Buffer.from(host);
  return [first, last, [reported, port, id, []], [Buffer.from("replica"), 1, id, []]];
}

describe("parseSlots()", () => {
  it("reads which primary serves which slots", () => {
    const reply = [range([0, 99], "10.0.0.1", 7000), range([100, 16_383], "::1", 7001)];
    expect(parseSlots(reply, "asked")).toEqual([
      { first: 0, last: 99, address: "10.0.0.1:7000" },
      { first: 100, last: 16_383, address: "::1:7001" },
    ]);
  });

  it.each([[undefined], [""], ["?"]])("takes the host that was asked for %j", (host) => {
    expect(parseSlots([range([0, 1], host, 7000)], "10.0.0.9")).toEqual([
      { first: 0, last: 1, address: "10.0.0.9:7000" },
    ]);
  });

  it.each([
    ["nothing", undefined],
    ["a text", Buffer.from("OK")],
    ["no range", [1]],
    ["a range without a node", [[0, 1]]],
    ["a slot that is none", [range([0, 16_384], "a", 1)]],
    ["slots upside down", [range([5, 4], "a", 1)]],
    ["a port that is none", [range([0, 1], "a", 0)]],
  ])("refuses %s", (_name, reply) => {
    expect(() => parseSlots(reply, "asked")).toThrow(
      expect.objectContaining({ code: "STORE_PROTOCOL" }),
    );
  });

  it("believes in a bounded number of nodes", () => {
    const ranges = (count: number): unknown[] =>
      Array.from({ length: count }, (_, i) => range([i, i], "a", i + 1));
    expect(parseSlots(ranges(clusterNodesMax), "asked")).toHaveLength(clusterNodesMax);
    expect(() => parseSlots(ranges(clusterNodesMax + 1), "asked")).toThrow("more nodes");
  });
});

describe("ClusterTopology", () => {
  it("knows who owns a slot, and nobody where it was not told", () => {
    const topology = new ClusterTopology();
    expect(topology.owner(0)).toBeUndefined();
    topology.replace([
      { first: 0, last: 9, address: "a:1" },
      { first: 11, last: 16_383, address: "b:1" },
    ]);
    expect([9, 10, 11, 16_383].map((slot) => topology.owner(slot))).toEqual([
      "a:1",
      undefined,
      "b:1",
      "b:1",
    ]);
    expect([...topology.addresses]).toEqual(["a:1", "b:1"]);
  });

  it("moves one slot, and forgets that with the next view of all", () => {
    const topology = new ClusterTopology();
    topology.replace([{ first: 0, last: 9, address: "a:1" }]);
    topology.move(3, "b:1");
    expect([2, 3].map((slot) => topology.owner(slot))).toEqual(["a:1", "b:1"]);
    expect([...topology.addresses]).toEqual(["a:1", "b:1"]);
    topology.replace([{ first: 0, last: 9, address: "a:1" }]);
    expect([...topology.addresses]).toEqual(["a:1"]);
  });
});

describe("resolveAddress()", () => {
  it.each([
    ["10.0.0.1:7000", "10.0.0.1:7000"],
    [":7000", "asked:7000"],
    ["?:7000", "asked:7000"],
    ["10.0.0.1", undefined],
    ["10.0.0.1:", undefined],
    ["", undefined],
  ])("of %j is %j", (address, resolved) => {
    expect(resolveAddress(address, "asked:1")).toBe(resolved);
  });
});
