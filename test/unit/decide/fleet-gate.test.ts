import { describe, expect, it } from "vitest";
import { Gate } from "../../../src/core/gate.js";
import { moveGate } from "../../../src/decide/fleet-gate.js";

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
