import { beforeEach, describe, expect, it } from "vitest";
import { ServiceError } from "../../../../../src/core/base/errors.js";
import {
  ClusterConnection,
  redirectionsMax,
} from "../../../../../src/store/redis/cluster/cluster.js";
import { keySlot } from "../../../../../src/store/redis/cluster/cluster-tags.js";
import { ClusterTopology } from "../../../../../src/store/redis/cluster/cluster-topology.js";
import { SlotRefusal } from "../../../../../src/store/redis/redis-error.js";
import type { ScriptCall } from "../../../../../src/store/redis/scripts/connection.js";
import { FakeNodes } from "../../../../support/fake-nodes.js";

const call: ScriptCall = {
  script: { name: "test", text: "return 1" },
  keys: ["headgate:{7}k"],
  args: [],
  deadlineMs: 1_000,
};

let nodes: FakeNodes;
let topology: ClusterTopology;
let doubts: (string | undefined)[];
let failure: ServiceError | undefined;
let connection: ClusterConnection;

beforeEach(() => {
  nodes = new FakeNodes();
  topology = new ClusterTopology();
  topology.replace([{ first: 0, last: 16_383, address: "a:1" }]);
  doubts = [];
  failure = undefined;
  connection = new ClusterConnection({
    role: "decision",
    topology,
    nodes,
    whyUnknown: () => failure,
    onDoubt: (hint) => doubts.push(hint),
  });
});

/** Answers refusals first, in order, then 1. */
function refuseWith(...refusals: readonly Error[]): void {
  const left = [...refusals];
  nodes.answer = () => {
    const refusal = left.shift();
    if (refusal !== undefined) throw refusal;
    return 1;
  };
}

function path(): readonly string[] {
  return nodes.sent.map(({ address, isAsking }) => (isAsking ? `asking ${address}` : address));
}

describe("ClusterConnection.run()", () => {
  it("sends a call to the owner of its keys' slot, at once", () => {
    topology.move(keySlot("{7}"), "b:1");
    void connection.run(call);
    expect(path()).toEqual(["b:1"]);
  });

  it("follows MOVED, remembers it, and wants the whole view anew", async () => {
    refuseWith(new SlotRefusal("moved", "b:2"));
    expect(await connection.run(call)).toBe(1);
    expect(await connection.run(call)).toBe(1);
    expect(path()).toEqual(["a:1", "b:2", "b:2"]);
    expect(doubts).toEqual(["b:2"]);
  });

  it("follows ASK for this call alone", async () => {
    refuseWith(new SlotRefusal("ask", "b:2"));
    expect(await connection.run(call)).toBe(1);
    expect(await connection.run(call)).toBe(1);
    expect(path()).toEqual(["a:1", "asking b:2", "a:1"]);
    expect(doubts).toEqual([]);
  });

  it("takes an address without a host for the host that it asked", async () => {
    refuseWith(new SlotRefusal("moved", ":2"));
    await connection.run(call);
    expect(path()).toEqual(["a:1", "a:2"]);
  });

  it("is sent on a bounded number of times", async () => {
    refuseWith(...Array.from({ length: 10 }, (_, i) => new SlotRefusal("moved", `b:${i + 1}`)));
    await expect(connection.run(call)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(nodes.sent).toHaveLength(1 + redirectionsMax);
  });

  it.each([
    ["a time-out", new ServiceError("STORE_TIMEOUT")],
    ["a lost connection", new ServiceError("STORE_UNAVAILABLE")],
    ["keys in two places", new SlotRefusal("tryAgain", "")],
    ["a redirection that it cannot read", new SlotRefusal("moved", "nowhere")],
  ])("never repeats a call after %s, and wants the view anew", async (_name, error) => {
    refuseWith(error);
    await expect(connection.run(call)).rejects.toMatchObject({ transient: true });
    expect(nodes.sent).toHaveLength(1);
    expect(doubts).toEqual([undefined]);
  });

  it("says why nothing is known of the cluster, if that is known", async () => {
    topology.replace([]);
    await expect(connection.run(call)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    failure = new ServiceError("STORE_ACCESS_DENIED");
    await expect(connection.run(call)).rejects.toBe(failure);
    nodes.isClosed = true;
    await expect(connection.run(call)).rejects.toMatchObject({ code: "STORE_CLOSED" });
    expect(nodes.sent).toEqual([]);
  });
});
