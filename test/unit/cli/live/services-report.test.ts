import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { createStyle } from "../../../../src/app/base/style.js";
import { drawFleet, drawServices } from "../../../../src/cli/live/services-report.js";
import {
  GetFleetResponseSchema,
  ListServicesResponseSchema,
  type ServiceSchema,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";

function drawn(...services: readonly MessageInitShape<typeof ServiceSchema>[]): readonly string[] {
  const answer = create(ListServicesResponseSchema, { services: [...services] });
  return drawServices(answer, { style: createStyle(false), columnsMax: 80 });
}

const shared = {
  name: "orders",
  law: "gradient",
  concurrencyLimit: 40n,
  inFlight: 38n,
  rttMs: 12,
  reservedHigh: 4n,
  overflowPerSecond: 3.25,
  gate: "open",
  shares: [{ node: "edge-1", share: 40n, inFlight: 38n }],
};

describe("drawServices()", () => {
  it("says once what is the fleet's, and in a row of each replica what is its own", () => {
    const rows = drawn(
      {
        ...shared,
        replica: "aaaaaaaa",
        refused: 5n,
        waiting: 1n,
        rejectRatio: 0.25,
        recentAdmitted: 15n,
        recentRefused: 5n,
      },
      { ...shared, replica: "bbbbbbbb", refused: 7n, waiting: 2n, recentAdmitted: 80n },
    );
    expect(rows).toEqual([
      "service  limiter     in use  HIGH  gate    shed  waiting  refused  overflow  replica",
      "orders   gradient  38 of 40     4  open   5.0 %        3       12     3.3/s  all",
      "                                         25.0 %        1        5            aaaaaa",
      "                                          0.0 %        2        7            bbbbbb",
    ]);
  });

  it("gives each replica a whole row where every one of them has a limit of its own", () => {
    const own = { name: "orders", law: "none", concurrencyLimit: 2n };
    const rows = drawn(
      { ...own, inFlight: 2n, replica: "aaaaaaaa" },
      { ...own, inFlight: 1n, replica: "bbbbbbbb" },
    );
    expect(rows).toEqual([
      "service  limiter  in use  rtt  gate   shed  waiting  refused  replica",
      "orders   none     2 of 2    -  -     0.0 %        0        0  aaaaaa",
      "orders   none     1 of 2    -  -     0.0 %        0        0  bbbbbb",
    ]);
  });
});

describe("load signals", () => {
  it("have a table of their own: what each reads, and since when", () => {
    const age = { seconds: 2n, nanos: 0 };
    const rows = drawn({
      name: "db",
      law: "none",
      signals: [
        { key: "", source: "http", reading: 0.512345, age },
        {
          key: "eu",
          source: "http",
          age: { seconds: 75n },
          isMissing: true,
          error: "SIGNAL_TIMEOUT",
        },
      ],
    });
    expect(rows.slice(2)).toEqual([
      "",
      "service  key  signal   reads   answered  state",
      "db       all  http    0.5123     2s ago  ok",
      "db       eu   http      none  1m15s ago  missing SIGNAL_TIMEOUT",
    ]);
  });
});

describe("drawFleet()", () => {
  it("shows the other regions, and what was borrowed from each", () => {
    const counts = { calls: 9n, failedCalls: 1n, askedHits: 1_200n, borrowedHits: 1_000n };
    const fleet = create(GetFleetResponseSchema, {
      replica: "a",
      replicaCount: 2,
      leader: "b",
      store: "redis",
      region: "eu",
      regions: [
        { name: "asia", isReachable: false, ...counts, lostHits: 3n },
        { name: "us", isReachable: true, roundTrip: { nanos: 82_000_000 }, ...counts },
      ],
    });
    const lines = drawFleet(fleet, { style: createStyle(false), columnsMax: 80 });
    expect(lines.slice(2, 6).map((line) => line.trimEnd())).toEqual([
      "Region: eu; 1/3 of each global limit is here. This replica's calls:",
      "  other region  store  round trip  asked  borrowed  lost",
      "  asia          down            -  1,200     1,000     3",
      "  us            up           82ms  1,200     1,000     0",
    ]);
  });

  it.each([
    ["none", 0n, "no concurrency limit", "the policy has no concurrency block for the service"],
    ["none", 2n, "2 at a time", "the policy has no concurrency block for the service"],
    [
      "knee",
      0n,
      "no limit yet",
      "the policy sets no concurrency.feedback, or no Envoy is connected",
    ],
  ])("says why no Envoy has a share: %s, %s", (law, concurrencyLimit, limit, why) => {
    const fleet = create(GetFleetResponseSchema, {
      replica: "a",
      replicaCount: 1,
      services: [{ name: "orders", law, concurrencyLimit }],
    });
    const lines = drawFleet(fleet, { style: createStyle(false), columnsMax: 80 });
    expect(lines.slice(-2)).toEqual([`orders: ${limit}`, `  no Envoy has a share: ${why}`]);
  });
});
