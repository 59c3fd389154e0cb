import { describe, expect, it } from "vitest";
import { defaultGateSettings } from "../../../../src/core/admission/gate.js";
import { addPressures, FleetGates } from "../../../../src/fleet/loop/fleet-gates.js";
import { testPressure } from "../../../support/fleet-reports.js";

describe("addPressures()", () => {
  it("adds up who waits, and weighs ratios by the permits of each replica", () => {
    const sums = addPressures([
      testPressure({ rejectRatio: 0.9, weight: 30, waitingCount: 20, serviceMs: 10 }),
      testPressure({ rejectRatio: 0.1, weight: 10, waitingCount: 1, serviceMs: undefined }),
      testPressure({ service: "payments", rejectRatio: 0.5 }),
    ]);
    expect(sums.get("orders")?.rejectRatio).toBeCloseTo(0.7);
    expect(sums.get("orders")).toMatchObject({ waitingCount: 21, serviceMs: 10 });
    expect(sums.get("payments")).toEqual({
      rejectRatio: 0.5,
      waitingCount: 0,
      serviceMs: undefined,
    });
  });

  it("counts who holds nothing like one who holds one", () => {
    const none = [0.2, 0.4].map((rejectRatio) => testPressure({ rejectRatio, weight: 0 }));
    expect(addPressures(none).get("orders")?.rejectRatio).toBeCloseTo(0.3);
  });
});

describe("FleetGates", () => {
  const settings = new Map([["orders", defaultGateSettings]]);
  const pressed = (rejectRatio: number) => addPressures([testPressure({ rejectRatio })]);

  it("moves gates by the fleet's probability, with one memory for all replicas", () => {
    const gates = new FleetGates();
    const states = [0.3, 0.6, 0.81, 0.75, 0.7].map(
      (ratio) => gates.update(pressed(ratio), settings).get("orders")?.state,
    );
    expect(states).toEqual(["open", "limiting", "closed", "closed", "limiting"]);
  });

  it("goes on from where the last leader's gates stood", () => {
    const last = new Map([["orders", { rejectRatio: 0.9, state: "closed" as const }]]);
    expect(new FleetGates(last).update(pressed(0.75), settings).get("orders")).toEqual({
      rejectRatio: 0.75,
      state: "closed",
    });
    expect(new FleetGates().update(pressed(0.75), settings).get("orders")?.state).toBe("limiting");
  });

  it("opens a closed gate by and by, when replicas hear of nobody any more", () => {
    const gates = new FleetGates();
    const states = [1, 0, 0, 0].map((ratio) => {
      return gates.update(pressed(ratio), settings).get("orders")?.state;
    });
    expect(states).toEqual(["closed", "limiting", "limiting", "open"]);
  });

  it("says nothing of services without a gate, and of those of which nobody tells", () => {
    const gates = new FleetGates();
    expect(gates.update(pressed(1), new Map()).size).toBe(0);
    expect(gates.update(new Map(), settings).size).toBe(0);
  });

  it("takes new thresholds at once", () => {
    const gates = new FleetGates();
    expect(gates.update(pressed(0.5), settings).get("orders")?.state).toBe("limiting");
    const strict = new Map([["orders", { ...defaultGateSettings, closeAboveRatio: 0.45 }]]);
    expect(gates.update(pressed(0.5), strict).get("orders")?.state).toBe("closed");
  });
});
