import { describe, expect, it } from "vitest";
import { type EndedRequest, requestOutcome } from "../../../../src/core/calls/request-outcome.js";
import { AdmissionRig, testService } from "../../../support/admission.js";

type End = "completed" | "left" | "broken";

interface Row {
  readonly end: End;
  readonly afterMs?: number;
  readonly status?: number;
  readonly grpcStatus?: number;
  readonly isOverloaded?: boolean;
  readonly outcome: "success" | "ignore" | "dropped";
}

const rows: readonly Row[] = [
  { end: "completed", outcome: "success" },
  { end: "completed", status: 200, outcome: "success" },
  { end: "completed", status: 404, outcome: "success" },
  { end: "completed", status: 500, outcome: "ignore" },
  { end: "completed", status: 502, outcome: "ignore" },
  { end: "completed", status: 429, outcome: "dropped" },
  { end: "completed", status: 503, outcome: "dropped" },
  { end: "completed", status: 504, outcome: "dropped" },
  { end: "completed", status: 200, isOverloaded: true, outcome: "dropped" },
  { end: "completed", status: 200, grpcStatus: 0, outcome: "success" },
  { end: "completed", status: 200, grpcStatus: 5, outcome: "success" },
  { end: "completed", status: 200, grpcStatus: 13, outcome: "ignore" },
  { end: "completed", status: 200, grpcStatus: 4, outcome: "dropped" },
  { end: "completed", status: 200, grpcStatus: 8, outcome: "dropped" },
  { end: "completed", status: 200, grpcStatus: 14, outcome: "dropped" },
  { end: "completed", afterMs: 999, outcome: "success" },
  { end: "completed", afterMs: 1_000, outcome: "dropped" },
  { end: "completed", afterMs: 1_000, status: 500, outcome: "dropped" },
  { end: "left", outcome: "ignore" },
  { end: "left", afterMs: 999, outcome: "ignore" },
  { end: "left", afterMs: 1_000, outcome: "dropped" },
  { end: "broken", outcome: "ignore" },
  { end: "broken", afterMs: 5_000, outcome: "ignore" },
];

describe("requestOutcome()", () => {
  it.each(rows)(
    "takes what ended $end after $afterMs ms with $status, $grpcStatus for $outcome",
    (row) => {
      for (const by of ["deadline", "lateAfter"] as const) {
        const lateAfterMs = by === "lateAfter" ? 1_000 : undefined;
        const rig = new AdmissionRig([testService({ lateAfterMs })]);
        const headers = by === "deadline" ? { "grpc-timeout": "1S" } : {};
        const visit = rig.ask({ headers });
        rig.clock.advance(row.afterMs ?? 10);
        const { status, grpcStatus, isOverloaded = false } = row;
        if (status !== undefined || isOverloaded) {
          visit.ticket?.responded({ status, grpcStatus, isOverloaded, loadMetrics: undefined });
        }
        visit.ticket?.end(row.end);
        const { outcomes } = rig.service().counts;
        expect(outcomes).toEqual({ success: 0, ignore: 0, dropped: 0, [row.outcome]: 1 });
      }
    },
  );

  it.each([
    { deadlineMs: undefined, afterMs: 10, isAnswered: false, isLeft: true },
    { deadlineMs: 1_000, afterMs: 10, isAnswered: false, isLeft: false },
    { deadlineMs: 1_000, afterMs: 1_000, isAnswered: false, isLeft: true },
    { deadlineMs: 1_000, afterMs: 1_000, isAnswered: true, isLeft: false },
  ])("tells whether it takes longer than its caller stayed: %o", (row) => {
    const { deadlineMs, afterMs, isAnswered, isLeft } = row;
    const status = { status: 200, grpcStatus: undefined, isOverloaded: false };
    const ended: EndedRequest = {
      arrivedMs: 0,
      deadline: deadlineMs === undefined ? undefined : { remainingMs: deadlineMs, statedIn: [] },
      response: isAnswered ? status : undefined,
      remainingMs: (nowMs) => (deadlineMs === undefined ? undefined : deadlineMs - nowMs),
    };
    const end = { end: "left", nowMs: afterMs, lateAfterMs: undefined } as const;
    expect(requestOutcome(ended, end).isLeft).toBe(isLeft);
  });

  it.each([
    { what: "stated no deadline", headers: {}, waitMs: 2_000 },
    { what: "stated one", headers: { "grpc-timeout": "60S" }, waitMs: 200 },
    { what: "was out of time", headers: { "grpc-timeout": "200m" }, waitMs: 200 },
    { what: "was answered", headers: {}, waitMs: 200, status: 200 },
  ])("tells the pace of the service without who left, but $what: $waitMs ms", (row) => {
    const rig = new AdmissionRig([testService({})]);
    const { pools } = rig.service();
    const stay = rig.ask();
    rig.clock.advance(200);
    stay.ticket?.end("completed");
    for (let i = 0; i < 9; i += 1) {
      const visit = rig.ask({ headers: row.headers });
      rig.clock.advance(200);
      if (row.status !== undefined) visit.respond(row.status);
      visit.ticket?.end("left");
    }
    // All the time one was in work, and one has ended or ten have.
    const { serviceMs } = pools.whole.state(rig.clock.monotonicMs());
    expect(serviceMs).toBeCloseTo(row.waitMs, -3);
  });

  it("knows the status of headers and that of trailers together", () => {
    const rig = new AdmissionRig([testService({})]);
    const visit = rig.ask();
    visit.respond(200);
    visit.ticket?.responded({
      status: undefined,
      grpcStatus: 14,
      isOverloaded: false,
      loadMetrics: undefined,
    });
    visit.ticket?.end("completed");
    expect(rig.service().counts.outcomes.dropped).toBe(1);
  });
});
