import { describe, expect, it } from "vitest";
import { defaultGateSettings, Gate } from "../../../../src/core/admission/gate.js";
import { moveGate, setGate } from "../../../../src/decide/admission/fleet-gate.js";
import { AdmissionRig, testService } from "../../../support/admission.js";

describe("moveGate()", () => {
  it("stands as the fleet says, whatever is seen here", () => {
    const gate = new Gate();
    moveGate(gate, { rejectRatio: 0.75, state: "closed" }, 0);
    expect(gate).toMatchObject({ state: "closed", passRatio: 0, inputRatio: 0.75 });
    moveGate(gate, { rejectRatio: 0.6, state: "limiting" }, 1);
    expect(gate.state).toBe("limiting");
    expect(gate.passRatio).toBeCloseTo(0.55);
    moveGate(gate, { rejectRatio: 0.1, state: "open" }, 1);
    expect(gate).toMatchObject({ state: "open", passRatio: 1 });
  });

  it("goes on by what is seen here where the fleet says nothing", () => {
    const gate = new Gate();
    moveGate(gate, { rejectRatio: 0.9, state: "closed" }, 0);
    moveGate(gate, undefined, 0.75);
    expect(gate.state).toBe("closed");
    moveGate(gate, undefined, 0.2);
    expect(gate.state).toBe("open");
  });
});

describe("setGate()", () => {
  it("gives a gate other thresholds, for its last input at once", () => {
    const gate = new Gate();
    gate.update(0.5);
    expect(gate.state).toBe("limiting");
    setGate(gate, { ...defaultGateSettings, closeAboveRatio: 0.45 });
    expect(gate.state).toBe("closed");
  });

  it("leaves a gate alone whose thresholds are the same", () => {
    const gate = new Gate();
    gate.follow(0.5, "closed");
    setGate(gate, { ...defaultGateSettings });
    expect(gate.state).toBe("closed");
  });

  it("holds in admission from the next second on, through other policies, and not longer", () => {
    const own = testService({ gate: defaultGateSettings });
    let changed = defaultGateSettings;
    const rig = new AdmissionRig([own], { gateSettings: () => changed });
    const gate = () => rig.service().blocks.admission?.gate?.settings;
    expect(gate()).toEqual(defaultGateSettings);
    changed = { ...defaultGateSettings, openBelowRatio: 0.1, closeAboveRatio: 0.2 };
    rig.clock.advance(1_000);
    expect(gate()).toEqual(changed);
    rig.policy = new AdmissionRig([
      testService({ gate: defaultGateSettings, maxInFlight: 9 }),
    ]).policy;
    expect(rig.service().policy.admission?.maxInFlight).toBe(9);
    expect(gate()).toEqual(changed);
    changed = defaultGateSettings;
    rig.clock.advance(1_000);
    expect(gate()).toEqual(defaultGateSettings);
  });
});
