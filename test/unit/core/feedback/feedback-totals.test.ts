import { describe, expect, it } from "vitest";
import { FeedbackNodes } from "../../../../src/core/feedback/feedback-nodes.js";
import { defaultLoopTimes } from "../../../../src/core/feedback/feedback-settings.js";
import { fleetTotals } from "../../../../src/core/feedback/feedback-totals.js";
import { ShareLedger } from "../../../../src/core/feedback/share-ledger.js";
import { nodeReportOf } from "../../../support/node-reports.js";

const times = { numbersMsMax: 3_500, nodeLeaseMs: 15_000 };

const ledger = new ShareLedger({ times: defaultLoopTimes, configuredShare: 10 });

/** Four Envoys with a share of ten each, of which the last one told its numbers ten seconds ago. */
function totals({ inFlight = 9, rps = 90, overflowCount = 0, heardAgoMs = 10_000 } = {}) {
  const nodes = new FeedbackNodes(times);
  const nowMs = 20_000;
  const reported = { inFlight, overflowCount, rps };
  nodes.take(nodeReportOf({ nodeId: "edge-4", ...reported, atMs: 10_000 }), 10_000);
  for (const nodeId of ["edge-1", "edge-2", "edge-3"]) {
    nodes.take(nodeReportOf({ nodeId, ...reported, atMs: nowMs - 500 }), nowMs);
  }
  for (const node of nodes.all) {
    node.entry = ledger.restore(node.nodeId, 10, nowMs);
    if (node.nodeId === "edge-4") nodes.noteHeard(node, nowMs - heardAgoMs);
  }
  return fleetTotals({ nodes, limit: 40, nowMs });
}

describe("fleetTotals()", () => {
  it("adds up what is of now, and the share of who is silent as in use", () => {
    expect(totals()).toEqual({
      inFlight: 27,
      inUse: 37,
      rps: 270,
      allRps: 360,
      overflowPerSecond: 0,
      fromMs: 19_500,
      askingCount: 3,
      isPartial: true,
    });
  });

  it.each([
    { inFlight: 0, rps: 9, askingCount: 0 },
    { inFlight: 0, rps: 10, askingCount: 3 },
    { inFlight: 1, rps: 0, askingCount: 3 },
  ])("has $askingCount that ask by $inFlight in flight and $rps a second of 50 ms", (row) => {
    expect(totals(row).askingCount).toBe(row.askingCount);
  });

  it.each([
    { inFlight: 9, overflowCount: 1, inUse: 40 },
    { inFlight: 12, overflowCount: 0, inUse: 40 },
    { inFlight: 14, overflowCount: 0, inUse: 42 },
  ])("has $inUse in use of 40 by $inFlight each and $overflowCount refused", (row) => {
    expect(totals(row).inUse).toBe(row.inUse);
  });

  it("adds up what breakers refuse a second, of Envoys whose numbers are of now", () => {
    expect(totals({ overflowCount: 4 }).overflowPerSecond).toBe(12);
  });

  it("is whole where those who are silent are known to take their layers", () => {
    expect(totals({ heardAgoMs: 3_500 }).isPartial).toBe(false);
    expect(totals({ heardAgoMs: 3_501 }).isPartial).toBe(true);
  });

  it("is whole without more than a tenth of the limit out of reach", () => {
    const nodes = new FeedbackNodes(times);
    const node = nodes.restore("edge-1", 0);
    const partial = (share: number) => {
      node.entry = ledger.restore("edge-1", share, 0);
      return fleetTotals({ nodes, limit: 40, nowMs: 10_000 }).isPartial;
    };
    expect([partial(4), partial(5)]).toEqual([false, true]);
  });
});
