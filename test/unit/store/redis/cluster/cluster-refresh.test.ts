import { beforeEach, describe, expect, it } from "vitest";
import { ServiceError } from "../../../../../src/core/base/errors.js";
import {
  ClusterRefresh,
  refreshMsMin,
} from "../../../../../src/store/redis/cluster/cluster-refresh.js";
import { ClusterTopology } from "../../../../../src/store/redis/cluster/cluster-topology.js";
import { FakeClock } from "../../../../support/fake-clock.js";
import { FakeNodes } from "../../../../support/fake-nodes.js";

const reply = [
  [0, 8_191, [Buffer.from("b"), 1]],
  [8_192, 16_383, [Buffer.from("c"), 1]],
];

let clock: FakeClock;
let nodes: FakeNodes;
let topology: ClusterTopology;

beforeEach(() => {
  clock = new FakeClock();
  nodes = new FakeNodes();
  topology = new ClusterTopology();
  nodes.slots = () => reply;
});

function open(seeds: readonly string[] = ["a:1"]): ClusterRefresh {
  return new ClusterRefresh({ seeds, topology, nodes, clock });
}

describe("ClusterRefresh", () => {
  it("asks a node that the user named, and keeps the nodes that it tells of", async () => {
    const refresh = open();
    await clock.advanceAsync(1);
    expect(nodes.asked).toEqual(["a:1"]);
    expect([topology.owner(0), topology.owner(16_383)]).toEqual(["b:1", "c:1"]);
    expect([...(nodes.kept ?? [])]).toEqual(["b:1", "c:1"]);
    expect(refresh.failure).toBeUndefined();
    refresh.close();
  });

  it("asks the next node when one fails, and goes on until one answers", async () => {
    nodes.slots = (address) => {
      if (address === "a:1") throw new ServiceError("STORE_ACCESS_DENIED");
      throw new ServiceError("STORE_UNAVAILABLE");
    };
    const refresh = open(["a:1", "b:1"]);
    await clock.advanceAsync(1);
    expect([...nodes.asked].sort()).toEqual(["a:1", "b:1"]);
    expect(refresh.failure?.code).toMatch(/^STORE_/);
    nodes.slots = () => reply;
    await clock.advanceAsync(2 * refreshMsMin, 10);
    expect(topology.owner(0)).toBe("b:1");
    expect(refresh.failure).toBeUndefined();
    refresh.close();
  });

  it("takes a view without any slots for none", async () => {
    nodes.slots = () => [];
    const refresh = open();
    await clock.advanceAsync(1);
    expect(refresh.failure).toMatchObject({ code: "STORE_UNAVAILABLE" });
    refresh.close();
  });

  it("looks again when told to doubt, at most so often", async () => {
    const refresh = open();
    await clock.advanceAsync(1);
    nodes.ready.add("b:1").add("c:1");
    for (let i = 0; i < 10; i += 1) refresh.doubt();
    await clock.advanceAsync(refreshMsMin - 2, 1);
    expect(nodes.asked).toHaveLength(1);
    await clock.advanceAsync(2, 1);
    expect(nodes.asked).toHaveLength(2);
    await clock.advanceAsync(10 * refreshMsMin, 10);
    expect(nodes.asked).toHaveLength(2);
    refresh.close();
  });

  it("asks the node of the hint first, and otherwise another one each time", async () => {
    const refresh = open();
    await clock.advanceAsync(1);
    nodes.ready.add("b:1").add("c:1").add("d:1");
    for (const hint of [undefined, undefined, undefined, "d:1", "d:1"]) {
      refresh.doubt(hint);
      await clock.advanceAsync(refreshMsMin + 1, 1);
    }
    expect(new Set(nodes.asked.slice(1, 4))).toEqual(new Set(["b:1", "c:1", "d:1"]));
    expect(nodes.asked.slice(4)).toEqual(["d:1", "d:1"]);
    refresh.close();
  });

  it("looks no more when closed", async () => {
    const refresh = open();
    refresh.close();
    refresh.doubt();
    await clock.advanceAsync(10 * refreshMsMin, 10);
    expect(nodes.asked).toEqual([]);
    expect(clock.timerCount).toBe(0);
  });
});
