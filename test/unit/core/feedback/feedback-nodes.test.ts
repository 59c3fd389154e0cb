import { describe, expect, it } from "vitest";
import type { NodeReport } from "../../../../src/core/feedback/feedback.js";
import {
  FeedbackNodes,
  isOfAnother,
  reportGapMsMin,
} from "../../../../src/core/feedback/feedback-nodes.js";
import { loopNodesMax, loopSparePlaces } from "../../../../src/core/feedback/feedback-settings.js";
import { nodeReportOf } from "../../../support/node-reports.js";

const times = { numbersMsMax: 3_500, nodeLeaseMs: 15_000 };

function known(): FeedbackNodes {
  const nodes = new FeedbackNodes(times);
  nodes.take(nodeReportOf({ atMs: 1_000 }), 1_000);
  return nodes;
}

describe("FeedbackNodes", () => {
  it("says when what a report counts began: at the report before it", () => {
    const nodes = new FeedbackNodes(times);
    const first = nodes.take(nodeReportOf({ atMs: 1_000 }), 1_200);
    expect(first).toBe(Number.NEGATIVE_INFINITY);
    expect(nodes.take(nodeReportOf({ atMs: 2_100 }), 2_200)).toBe(1_000);
  });

  it.each([
    { title: "came twice", atMs: 1_000 + reportGapMsMin - 1, nowMs: 2_000 },
    { title: "was overtaken", atMs: 400, nowMs: 2_000 },
    { title: "is stale", atMs: 2_000, nowMs: 5_501 },
  ])("takes no notice of a report that $title", ({ atMs, nowMs }) => {
    const nodes = known();
    expect(nodes.take(nodeReportOf({ atMs, inFlight: 99 }), nowMs)).toBeUndefined();
    expect(nodes.find("edge-1")?.inFlight).toBe(5);
  });

  it("takes a report from the future for one of now", () => {
    const nodes = known();
    nodes.take(nodeReportOf({ atMs: 9_000 }), 2_000);
    expect(nodes.find("edge-1")?.atMs).toBe(2_000);
  });

  it.each([
    { title: "what is in work", report: { inFlight: 7 }, demand: 7 },
    { title: "what Little's law says", report: { inFlight: 0, rps: 400 }, demand: 20 },
    { title: "more by whom it refused", report: { inFlight: 10, overflowCount: 900 }, demand: 100 },
    { title: "no more than a hundred times", report: { overflowCount: 1e9 }, demand: 505 },
    {
      title: "one at least where all were refused",
      report: { inFlight: 0, rps: 0, latency: { count: 0, sumMs: 0 }, overflowCount: 9 },
      demand: 10,
    },
  ])("takes for demand $title", ({ report, demand }) => {
    const nodes = new FeedbackNodes(times);
    nodes.take(nodeReportOf({ atMs: 1_000, ...report }), 1_000);
    expect(nodes.find("edge-1")?.demand).toBeCloseTo(demand, 9);
  });

  it.each([
    { title: "answers without a rate", latency: { count: 3, sumMs: 2 }, askedMs: 1_000 },
    { title: "nothing", latency: { count: 0, sumMs: 0 }, askedMs: undefined },
  ])("knows by a first report of $title whether it had requests", ({ latency, askedMs }) => {
    const nodes = new FeedbackNodes(times);
    nodes.take(nodeReportOf({ atMs: 1_000, inFlight: 0, rps: 0, latency }), 1_000);
    expect(nodes.find("edge-1")?.askedMs).toBe(askedMs);
  });

  it("believes less demand step by step, at both priorities", () => {
    const nodes = new FeedbackNodes(times);
    const idle = { rps: 0, latency: { count: 0, sumMs: 0 } };
    nodes.take(nodeReportOf({ ...idle, atMs: 0, inFlight: 100, highInFlight: 10 }), 0);
    nodes.take(nodeReportOf({ ...idle, atMs: 1_000, inFlight: 10, highInFlight: 0 }), 1_000);
    expect(nodes.find("edge-1")).toMatchObject({ demand: 60, highDemand: 8.5 });
  });

  it("forgets an Envoy when its lease is over, and begins it anew whenever it is heard of", () => {
    const nodes = known();
    const [node] = nodes.all;
    if (node === undefined) throw new Error("it has told something");
    expect(nodes.isFresh(node, 4_500)).toBe(true);
    expect(nodes.isFresh(node, 4_501)).toBe(false);
    nodes.noteHeard(node, 2_000);
    nodes.noteHeard(node, 1_500);
    expect(nodes.takeGone(16_999)).toEqual([]);
    expect(nodes.takeGone(17_000)).toEqual([node]);
    expect([nodes.count, nodes.find("edge-1")]).toEqual([0, undefined]);
  });

  it("gives one of a snapshot its lease, though it has said nothing", () => {
    const nodes = new FeedbackNodes(times);
    const node = nodes.restore("edge-1", 500);
    expect([nodes.isFresh(node, 500), nodes.count]).toEqual([false, 1]);
    expect(nodes.takeGone(15_500)).toEqual([node]);
  });

  it("has places for so many, and counts who found none", () => {
    const nodes = new FeedbackNodes(times);
    for (let i = 0; i < loopNodesMax + 2; i += 1) {
      nodes.take(nodeReportOf({ nodeId: `edge-${i}`, atMs: 0 }), 0);
    }
    expect([nodes.count, nodes.crowdedOutCount]).toEqual([loopNodesMax, 2]);
    expect(nodes.take(nodeReportOf({ nodeId: "edge-0", atMs: 1_000 }), 1_000)).toBeDefined();
  });

  // One certificate's names, at several replicas, once kept everybody else out.
  it("has places left for an identity with few, when another one has taken all", () => {
    const nodes = new FeedbackNodes(times);
    const come = (owner: string, count: number): number => {
      for (let i = 0; i < count; i += 1) {
        nodes.take(nodeReportOf({ nodeId: `${owner}-${i}`, owner, atMs: 0 }), 0);
      }
      return nodes.count;
    };
    expect(come("liar", loopNodesMax + 1)).toBe(loopNodesMax);
    expect(come("honest", 1)).toBe(loopNodesMax + 1);
    expect(come("other", loopSparePlaces + 1)).toBe(loopNodesMax + loopSparePlaces);
    expect(nodes.crowdedOutCount).toBe(3);
    nodes.takeGone(times.nodeLeaseMs);
    expect(come("honest", 1)).toBe(1);
  });

  it("knows whose an Envoy is until it is forgotten, and whom a report of it is from", () => {
    const nodes = new FeedbackNodes(times);
    const mine = nodeReportOf({ owner: "honest", atMs: 0 });
    const liars = { ...mine, owner: "liar" };
    const isAnothers = (report: NodeReport) => isOfAnother(nodes.find("edge-1"), report);
    nodes.restore("edge-1", 0);
    expect(isAnothers(mine)).toBe(false);
    nodes.take(mine, 0);
    expect([nodes.find("edge-1")?.owner, isAnothers(mine)]).toEqual(["honest", false]);
    expect(isAnothers(liars)).toBe(true);
    expect(nodes.takeGone(times.nodeLeaseMs).map(({ owner }) => owner)).toEqual(["honest"]);
    expect(isAnothers(liars)).toBe(false);
  });
});
