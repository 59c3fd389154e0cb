import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { judgeService, mergeServices, ShedMeter } from "../../../../src/console/data/services.js";
import { ServiceSchema } from "../../../../src/gen/headgate/admin/v1/admin_pb.js";

function seen(replica: string, more: object) {
  return create(ServiceSchema, { name: "orders", replica, concurrencyLimit: 10n, ...more });
}

describe("a service of a fleet", () => {
  it("has one limit, and in flight what replicas tell together, unless Envoys share it", () => {
    const own = mergeServices([seen("a", { inFlight: 3n }), seen("b", { inFlight: 4n })]);
    expect(own[0]).toMatchObject({ limit: 10, inFlight: 7, isShared: false });
    const shares = [{ node: "envoy", share: 10n }];
    const shared = mergeServices([
      seen("a", { inFlight: 7n, shares }),
      seen("b", { inFlight: 7n }),
    ]);
    expect(shared[0]).toMatchObject({ limit: 10, inFlight: 7, isShared: true });
  });

  it("is as bad as the worst replica says", () => {
    const word = (...more: object[]): string => {
      const [service] = mergeServices(more.map((one, i) => seen(String(i), one)));
      return service === undefined ? "" : judgeService(service).word;
    };
    expect(word({ gate: "open" }, { gate: "open" })).toBe("healthy");
    expect(word({ gate: "open" }, { gate: "closed" })).toBe("gate closed");
    expect(word({ rejectRatio: 0.2 })).toBe("shedding");
    expect(word({ waiting: 1n })).toBe("full");
    expect(word({ overflowPerSecond: 2 })).toBe("breakers refuse");
  });

  it("sheds what admission refuses, for whatever cause, in the last ten seconds", () => {
    const meter = new ShedMeter();
    const told = (atMs: number, admitted: bigint, refused: bigint): string[] => {
      const services = [seen("a", { admitted, refused }), seen("b", {})];
      const merged = mergeServices(services, meter.measure(services, atMs));
      return merged.map((one) => `${one.shedRatio} ${judgeService(one).word}`);
    };
    // Totals are of all the time that the replica runs.
    expect(told(0, 1_000n, 0n)).toEqual(["0 healthy"]);
    expect(told(1_000, 1_010n, 30n)).toEqual(["0.75 shedding"]);
    expect(told(5_000, 1_020n, 30n)).toEqual(["0.6 shedding"]);
    expect(told(15_000, 1_030n, 30n)).toEqual(["0 healthy"]);
  });
});
