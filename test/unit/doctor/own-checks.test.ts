import { describe, expect, it } from "vitest";
import { diagnoseOwn, type OwnView } from "../../../src/doctor/own-checks.js";

const well: OwnView = {
  headgate: {
    status: "ready",
    storeState: "ok",
    policyVersion: "v1",
    lastReloadProblem: false,
    version: "0.1.0",
    totals: new Map(),
    decisionMsP99: undefined,
  },
  envoys: [{ name: "edge-1", version: "1.40.0", refusal: undefined }],
  services: [{ name: "orders", overflowPerSecond: 0, isDriven: true }],
};

const found = (view: OwnView) =>
  diagnoseOwn(view).flatMap((look) => (look.kind === "finding" ? [[look.id, look.seen]] : []));

describe("diagnoseOwn()", () => {
  it("finds nothing where all is well, and says what is right", () => {
    expect(found(well)).toEqual([]);
    const passes = diagnoseOwn(well).map(({ kind, id }) => `${kind} ${id}`);
    expect(passes).toEqual(["pass HG512", "pass HG505", "pass HG542", "pass HG554", "pass HG560"]);
  });

  it("finds a store that is away, a refused policy, refusing Envoys, and breakers", () => {
    const { headgate } = well;
    const away = { ...headgate, status: "degraded", storeState: "unavailable" };
    expect(found({ ...well, headgate: away })).toEqual([
      ["HG512", "/readyz reports that the store is unavailable"],
    ]);
    const refused = { ...headgate, status: "degraded", lastReloadProblem: true };
    expect(found({ ...well, headgate: refused })[0]?.[0]).toBe("HG505");
    const envoys = [
      { name: "edge-1", version: "1.20.0", refusal: `no\u001b[2J${"x".repeat(999)}` },
    ];
    const services = [{ name: "orders", overflowPerSecond: 2.25, isDriven: true }];
    const all = found({ ...well, envoys, services });
    expect(all.map(([id]) => id)).toEqual(["HG542", "HG554", "HG560"]);
    expect(all[0]?.[1]).not.toContain("\u001b");
    expect(all[0]?.[1]?.length).toBeLessThan(400);
    expect(all[1]?.[1]).toBe("breakers refuse 2.3 requests/s of orders");
  });

  it("says that no Envoy was there to be looked at", () => {
    const looks = diagnoseOwn({ ...well, envoys: [] });
    expect(looks).toContainEqual(expect.objectContaining({ kind: "unseen", id: "HG541" }));
  });
});
