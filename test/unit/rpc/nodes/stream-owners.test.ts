import { describe, expect, it } from "vitest";
import type { Peer } from "../../../../src/core/base/peer.js";
import { parseNodeRules } from "../../../../src/rpc/nodes/node-rules.js";
import {
  ownedAfterMs,
  StreamOwners,
  type StreamOwnersParts,
} from "../../../../src/rpc/nodes/stream-owners.js";

function certified(name: string): Peer {
  return { kind: "certificate", identity: `uri:${name}`, names: [name] };
}

function at(address: string): Peer {
  return { kind: "address", identity: `address:${address}`, names: [] };
}

const [first, second] = [certified("spiffe://a/one"), certified("spiffe://a/two")];

function ownersOf(parts: Partial<StreamOwnersParts> = {}) {
  const time = { nowMs: 0 };
  const bounds = { streamsMax: 3, namesMax: 2, allNamesMax: 4 };
  const owners = new StreamOwners({ nowMs: () => time.nowMs, rules: [], ...bounds, ...parts });
  return { owners, time };
}

describe("StreamOwners", () => {
  it("keeps a name for the certificate that had it, and a while after its last stream", () => {
    const { owners, time } = ownersOf();
    expect(owners.claim(first, { node: "edge" })).toBeUndefined();
    expect(owners.claim(first, { node: "edge" })).toBeUndefined();
    owners.release("edge");
    time.nowMs = 10 * ownedAfterMs;
    expect(owners.claim(second, { node: "edge" })).toBe("owned_by_another");
    owners.release("edge");
    time.nowMs += ownedAfterMs - 1;
    expect(owners.claim(second, { node: "edge" })).toBe("owned_by_another");
    time.nowMs += 1;
    expect(owners.claim(second, { node: "edge" })).toBeUndefined();
    expect(owners.claim(first, { node: "edge" })).toBe("owned_by_another");
  });

  it("begins the while anew with each stream of its owner", () => {
    const { owners, time } = ownersOf();
    owners.claim(first, { node: "edge" });
    owners.release("edge");
    time.nowMs = ownedAfterMs - 1;
    owners.claim(first, { node: "edge" });
    time.nowMs = 2 * ownedAfterMs;
    expect(owners.claim(second, { node: "edge" })).toBe("owned_by_another");
    owners.release("edge");
    time.nowMs += ownedAfterMs;
    expect(owners.claim(second, { node: "edge" })).toBeUndefined();
  });

  it("lets an Envoy without a certificate come back from another address", () => {
    const { owners } = ownersOf();
    expect(owners.claim(at("10.0.0.1"), { node: "edge" })).toBeUndefined();
    expect(owners.claim(at("10.0.0.2"), { node: "edge" })).toBeUndefined();
    // It is the other one's now, and counts there.
    for (const node of ["a", "b"]) owners.claim(at("10.0.0.1"), { node });
    expect(owners.claim(at("10.0.0.2"), { node: "c" })).toBeUndefined();
    expect(owners.claim(at("10.0.0.2"), { node: "d" })).toBe("too_many_of_identity");
  });

  it("lets one identity have so many streams, and others theirs", () => {
    const { owners } = ownersOf();
    const opened = [1, 2, 3, 4].map(() => owners.open(first));
    expect(opened).toEqual([undefined, undefined, undefined, "too_many_of_identity"]);
    expect(owners.open(second)).toBeUndefined();
    owners.close(first);
    expect(owners.open(first)).toBeUndefined();
  });

  it("lets one identity and all have so many names, and forgets those that end", () => {
    const { owners, time } = ownersOf();
    const claim = (peer: Peer, node: string) => owners.claim(peer, { node });
    expect(["a", "b", "c"].map((node) => claim(first, node))).toEqual([
      undefined,
      undefined,
      "too_many_of_identity",
    ]);
    expect(claim(first, "a")).toBeUndefined();
    expect(["c", "d"].map((node) => claim(second, node))).toEqual([undefined, undefined]);
    expect(claim(certified("spiffe://a/three"), "e")).toBe("too_many_nodes");
    owners.release("b");
    time.nowMs = ownedAfterMs;
    expect(claim(certified("spiffe://a/three"), "e")).toBeUndefined();
    expect(claim(first, "f")).toBe("too_many_nodes");
  });

  it("goes by rules, and lets nobody in who has no certificate for them", () => {
    const parsed = parseNodeRules("spiffe://a/{node} {node} {node}-*");
    const { owners } = ownersOf({ rules: parsed.kind === "value" ? parsed.value : [] });
    expect(owners.open(first)).toBeUndefined();
    expect(owners.claim(first, { node: "one", cluster: "one-1" })).toBeUndefined();
    expect(owners.claim(first, { node: "one", cluster: "two-1" })).toBe("identity_not_allowed");
    expect(owners.claim(first, { node: "two" })).toBe("identity_not_allowed");
    const others = [certified("spiffe://b/one"), at("10.0.0.1")];
    expect(others.map((peer) => owners.open(peer))).toEqual([
      "identity_not_allowed",
      "identity_not_allowed",
    ]);
  });
});
