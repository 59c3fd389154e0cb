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
      { ...shared, replica: "aaaaaaaa", admitted: 900n, refused: 5n, waiting: 1n },
      { ...shared, replica: "bbbbbbbb", admitted: 800n, refused: 7n, waiting: 2n },
    );
    expect(rows).toEqual([
      "service  limiter     in use  HIGH  gate   shed  waiting  refused  overflow  replica",
      "orders   gradient  38 of 40     4  open  0.0 %        3       12     3.3/s  all",
      "                                                      1        5            aaaaaa",
      "                                                      2        7            bbbbbb",
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

describe("drawFleet()", () => {
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
