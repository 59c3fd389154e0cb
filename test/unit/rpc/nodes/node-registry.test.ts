import { beforeEach, describe, expect, it } from "vitest";
import type { NodeIdentity } from "../../../../src/rpc/nodes/node-identity.js";
import {
  clusterNameCharsMax,
  forgottenAfterMs,
  isNameShared,
  type Node,
  NodeRegistry,
  nodesMax,
  problemsOf,
  reportsPerTurn,
  settlingMs,
  takeoversMax,
  takeoverWindowMs,
  unclaimedClustersMax,
} from "../../../../src/rpc/nodes/node-registry.js";

let nowMs: number;
let registry: NodeRegistry;

beforeEach(() => {
  nowMs = 1_000;
  registry = new NodeRegistry({
    nowMs: () => nowMs,
    ttlMs: 15_000,
    configuredShare: () => 1_024,
  });
});

function identity(id: string, fields: Partial<NodeIdentity> = {}): NodeIdentity {
  return { id, cluster: "edge", agent: "envoy", version: "1.40.0", ...fields };
}

function meet(id: string, fields: Partial<NodeIdentity> = {}): Node {
  const node = registry.meet(identity(id, fields));
  if (node === undefined) throw new Error(`no room for ${id}`);
  return node;
}

describe("NodeRegistry", () => {
  it("knows an Envoy again by its name, and takes what it says of itself anew", () => {
    const node = meet("edge-1");
    expect(meet("edge-1", { version: "1.41.0" })).toBe(node);
    expect(node.identity.version).toBe("1.41.0");
    expect(registry.nodeCount).toBe(1);
    expect(registry.find("edge-1")).toBe(node);
    expect(registry.find("edge-2")).toBeUndefined();
  });

  it("knows so many Envoys, and one more only where one was silent for long", () => {
    for (let i = 0; i < nodesMax; i += 1) meet(`edge-${i}`);
    expect(registry.meet(identity("one more"))).toBeUndefined();
    expect(registry.meet(identity("edge-7"))).toBeDefined();
    nowMs += forgottenAfterMs;
    expect(registry.meet(identity("one more"))).toBeDefined();
    expect(registry.nodeCount).toBe(1);
  });

  it("knows as many Envoys and clusters as their bytes allow, and gives room back", () => {
    const parts = { nowMs: () => nowMs, ttlMs: 15_000, configuredShare: () => 1 };
    registry = new NodeRegistry({ ...parts, nodesBytesMax: 1_000_000 });
    const isTaken = (node: Node, length: number, i: number): boolean => {
      const before = node.signals.ignoredCount;
      const cluster = `outbound|80|${String(i).padStart(length, "v")}|orders.shop`;
      node.signals.addMetrics([{ kind: "inFlight", cluster, value: 1, stampMs: 0 }], nowMs);
      return node.signals.ignoredCount === before;
    };
    const fill = (length: number): number => {
      const node = meet("talks much");
      let count = 0;
      while (isTaken(node, length, count)) count += 1;
      return count;
    };
    const shortCount = fill(10);
    expect(shortCount).toBeLessThan(1_000_000 / 2_700);
    expect(registry.meet(identity("comes too late"))).toBeUndefined();
    nowMs += forgottenAfterMs;
    registry.forgetSilent();
    const longCount = fill(4_000);
    expect(longCount).toBeGreaterThan(0);
    expect(longCount).toBeLessThan(1_000_000 / 8_000);
    // What leads to no service any more is dropped, and its room is there again.
    const none = { serviceOf: () => undefined, clustersOf: () => [], contested: new Map() };
    registry.takeReports(none, () => false);
    expect(fill(10)).toBe(shortCount);
  });

  it("takes the reports of a large fleet in turns, each of one Envoy more at most", () => {
    const clusters = {
      serviceOf: (name: string) => name,
      clustersOf: () => [],
      contested: new Map(),
    };
    const clusterCount = 20;
    for (let i = 0; i < 200; i += 1) {
      const { signals } = meet(`edge-${i}`);
      for (let k = 0; k < clusterCount; k += 1) {
        const cluster = `service-${k}`;
        signals.addMetrics([{ kind: "inFlight", cluster, value: i, stampMs: 0 }], nowMs);
      }
    }
    const turns = registry.takeReportsInTurns(clusters, () => true);
    let turnCount = 1;
    let last = turns.next();
    for (; last.done !== true; last = turns.next()) turnCount += 1;
    expect(turnCount).toBeGreaterThanOrEqual(
      (200 * clusterCount) / (reportsPerTurn + clusterCount),
    );
    expect(last.value).toHaveLength(200 * clusterCount);
    expect(last.value.at(-1)).toMatchObject({ nodeId: "edge-199", inFlight: 199 });
  });

  it("forgets who was silent for long, but for those that have a stream", () => {
    const silent = meet("silent");
    registry.claim(meet("has a stream"), "metrics", () => {});
    nowMs += forgottenAfterMs - 1;
    registry.noteHeard(meet("heard of"));
    registry.forgetSilent();
    expect(registry.find("silent")).toBe(silent);
    nowMs += 1;
    registry.forgetSilent();
    expect([...registry.nodes].map(({ id }) => id)).toEqual(["has a stream", "heard of"]);
  });

  it("tells a stream when another one of its kind takes it over", () => {
    const node = meet("edge-1");
    const reported: string[] = [];
    const first = (): void => void reported.push("first");
    const second = (): void => void reported.push("second");
    registry.claim(node, "layers", first);
    registry.claim(node, "metrics", () => reported.push("metrics"));
    registry.claim(node, "layers", second);
    expect(reported).toEqual(["first"]);
    // The end of the first says nothing of the second.
    registry.release(node, "layers", first);
    expect(node.claims.has("layers")).toBe(true);
    registry.release(node, "layers", second);
    expect(node.claims.has("layers")).toBe(false);
  });

  it("says that a name is shared when streams take each other over again and again", () => {
    const node = meet("edge-1");
    for (let i = 0; i <= takeoversMax; i += 1) {
      expect(isNameShared(node, nowMs)).toBe(false);
      registry.claim(node, "layers", () => {});
      nowMs += 100;
    }
    expect(isNameShared(node, nowMs)).toBe(true);
    nowMs += takeoverWindowMs;
    expect(isNameShared(node, nowMs)).toBe(false);
  });

  it("does not take an Envoy for two that reconnects now and then", () => {
    const node = meet("edge-1");
    for (let i = 0; i < 10; i += 1) {
      registry.claim(node, "layers", () => {});
      nowMs += takeoverWindowMs / (takeoversMax - 1);
      expect(isNameShared(node, nowMs)).toBe(false);
    }
  });

  it("keeps so many names of clusters without a service, each so long, until a new policy", () => {
    for (let i = 0; i <= unclaimedClustersMax; i += 1) {
      registry.noteUnclaimed(`${i}-${"x".repeat(clusterNameCharsMax)}`);
    }
    const { unclaimedClusters } = registry;
    expect(unclaimedClusters.size).toBe(unclaimedClustersMax);
    for (const name of unclaimedClusters) expect(name).toHaveLength(clusterNameCharsMax);
    registry.forgetUnclaimed();
    expect(registry.unclaimedClusters.size).toBe(0);
  });

  it("counts ignored numbers also of those that it has forgotten", () => {
    const late = { kind: "inFlight", cluster: "orders", value: 1, stampMs: 5 } as const;
    meet("edge-1").signals.addMetrics([late, late], nowMs);
    expect(registry.ignoredCount).toBe(1);
    nowMs += forgottenAfterMs;
    registry.forgetSilent();
    expect(registry.nodeCount).toBe(0);
    expect(registry.ignoredCount).toBe(1);
  });
});

describe("problemsOf()", () => {
  it("finds none with an Envoy that does all it should", () => {
    const node = meet("edge-1");
    registry.claim(node, "layers", () => {});
    registry.claim(node, "loadReports", () => {});
    expect(problemsOf(node, nowMs + settlingMs)).toEqual([]);
  });

  it.each([
    ["1.40.0", "envoy", []],
    ["1.40.7", "envoy", []],
    ["1.4.0", "envoy", ["other_version"]],
    ["1.41.0", "envoy", ["other_version"]],
    ["", "envoy", ["other_version"]],
    ["1.40.0", "other", ["other_version"]],
  ])("knows version %j of %s: %j", (version, agent, problems) => {
    expect(problemsOf(meet("edge-1", { version, agent }), nowMs)).toEqual(problems);
  });

  it("names what is missing when an Envoy has had time for it", () => {
    const layered = meet("edge-1");
    registry.claim(layered, "layers", () => {});
    const counted = meet("edge-2");
    registry.claim(counted, "metrics", () => {});
    expect(problemsOf(layered, nowMs + settlingMs - 1)).toEqual([]);
    expect(problemsOf(counted, nowMs + settlingMs - 1)).toEqual([]);
    expect(problemsOf(layered, nowMs + settlingMs)).toEqual(["no_numbers"]);
    expect(problemsOf(counted, nowMs + settlingMs)).toEqual(["no_layer_stream"]);
  });

  it("names a refused layer", () => {
    const node = meet("edge-1");
    node.refusal = "no such layer";
    expect(problemsOf(node, nowMs)).toEqual(["layer_refused"]);
  });
});
