import { describe, expect, it } from "vitest";
import { ClusterShares, divideShare } from "../../../../src/rpc/nodes/cluster-shares.js";

function demands(byCluster: Readonly<Record<string, number | readonly [number, number]>>) {
  return Object.entries(byCluster).map(([cluster, of]) => {
    const [demand, highDemand] = typeof of === "number" ? [of, 0] : of;
    return { cluster, demand, highDemand };
  });
}

function parts(share: { default: number; high: number }, of: Parameters<typeof demands>[0]) {
  return [...divideShare(share, demands(of)).values()].map((part) => [part.default, part.high]);
}

describe("divideShare()", () => {
  it.each([
    { what: "by demand", share: { default: 12, high: 0 }, of: { a: 30, b: 10 }, is: [9, 3] },
    { what: "one to the idle", share: { default: 12, high: 0 }, of: { a: 30, b: 0 }, is: [11, 1] },
    { what: "evenly among idle", share: { default: 12, high: 0 }, of: { a: 0, b: 0 }, is: [6, 6] },
    {
      what: "one to each at least",
      share: { default: 1, high: 0 },
      of: { a: 9, b: 0 },
      is: [1, 1],
    },
  ])("divides $what", ({ share, of, is }) => {
    expect(parts(share, of)).toEqual(is.map((part) => [part, 0]));
  });

  it("divides HIGH by what is needed there, and DEFAULT by the rest", () => {
    expect(parts({ default: 12, high: 8 }, { a: [40, 30], b: [20, 10] })).toEqual([
      [6, 6],
      [6, 2],
    ]);
    expect(parts({ default: 9, high: 1 }, { a: [10, 10], b: 10 })).toEqual([
      [1, 1],
      [8, 1],
    ]);
  });
});

describe("ClusterShares", () => {
  it("leaves what differs by little, until the share or the clusters are others", () => {
    const shares = new ClusterShares();
    const divide = (most: number, of: Parameters<typeof demands>[0]) =>
      [...shares.divide("orders", { default: most, high: 0 }, demands(of)).values()].map(
        (part) => part.default,
      );
    expect(divide(40, { a: 10, b: 10 })).toEqual([20, 20]);
    expect(divide(40, { a: 12, b: 10 })).toEqual([20, 20]);
    expect(divide(44, { a: 12, b: 10 })).toEqual([24, 20]);
    expect(divide(44, { a: 34, b: 10 })).toEqual([34, 10]);
    expect(divide(44, { a: 34, b: 10, c: 0 })).toEqual([34, 9, 1]);
    shares.forget("orders");
    expect(divide(44, { a: 30, b: 14 })).toEqual([30, 14]);
  });
});
