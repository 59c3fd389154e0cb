import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { layOutQuotas } from "../../../../src/console/data/quota-flow.js";
import { QuotaPoolSchema } from "../../../../src/gen/headgate/admin/v1/admin_pb.js";

it("draws streams as wide as their demand, and no box over another", () => {
  const pools = [60, 40].map((demandRate, i) =>
    create(QuotaPoolSchema, {
      quotas: ["per-user"],
      domain: "shop",
      entries: [{ key: "user", value: String(i) }],
      demandRate,
      bucketCount: 3n,
      shares: [
        { node: "envoy-1", demandRate: demandRate / 2 },
        { node: "envoy-2", demandRate: demandRate / 4 },
      ],
    }),
  );
  const { nodes, links } = layOutQuotas(pools);
  expect(nodes.map(({ label, rate }) => [label, rate])).toEqual([
    ["user=0", 60],
    ["per-user", 100],
    ["envoy-1", 50],
    ["envoy-2", 25],
    ["others", 25],
    ["user=1", 40],
  ]);
  for (const a of nodes) {
    for (const b of nodes) {
      if (a === b || a.column !== b.column) continue;
      expect(a.top + a.height <= b.top || b.top + b.height <= a.top).toBe(true);
    }
  }
  const into = links.filter(({ to }) => to === "2 envoy-1").map(({ width }) => width);
  expect(into[0]).toBeGreaterThan(into[1] ?? 0);
});
