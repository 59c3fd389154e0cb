import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { judgeService, mergeServices } from "../../../../src/console/data/services.js";
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
    expect(word({ recentAdmitted: 8n, recentRefused: 2n })).toBe("shedding");
    expect(word({ waiting: 1n })).toBe("full");
    expect(word({ waiting: 1n }, { signals: [{ isMissing: true }] })).toBe("signal missing");
    expect(word({ overflowPerSecond: 2 })).toBe("breakers refuse");
  });

  it("sheds what admission refused in the last ten seconds, at all replicas together", () => {
    const [service] = mergeServices([
      seen("a", { admitted: 1_000n, recentAdmitted: 10n, recentRefused: 30n, rejectRatio: 0.75 }),
      seen("b", { refused: 1_000n, recentAdmitted: 60n }),
    ]);
    expect(service?.shedRatio).toBe(0.3);
  });
});
