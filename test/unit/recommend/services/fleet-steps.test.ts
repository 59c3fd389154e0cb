import { describe, expect, test } from "vitest";
import { FleetSteps, fleetWindowsMax } from "../../../../src/recommend/services/fleet-steps.js";

/** Ten seconds of a replica, up to `endMs`. */
function addWindow(
  steps: FleetSteps,
  replica: string,
  fields: { readonly endMs: number; readonly inFlight: number; readonly rttMs?: number },
): void {
  const { endMs, inFlight, rttMs = 0 } = fields;
  for (let i = 9; i >= 0; i -= 1) {
    steps.add(replica, { endMs: endMs - 1_000 * i, inFlight, admitted: 5, limit: 20, rttMs });
  }
}

describe("FleetSteps", () => {
  test("adds up what replicas admit", () => {
    const steps = new FleetSteps();
    addWindow(steps, "a", { endMs: 20_000, inFlight: 3 });
    addWindow(steps, "b", { endMs: 20_000, inFlight: 4 });
    expect(steps.windows()).toEqual([
      { startMs: 10_000, lengthMs: 10_000, inFlight: 7, perSecond: 10, limit: 40 },
    ]);
  });

  test("takes what Envoys report once, whichever replica repeats it", () => {
    const steps = new FleetSteps();
    addWindow(steps, "a", { endMs: 20_000, inFlight: 30, rttMs: 50 });
    addWindow(steps, "b", { endMs: 20_000, inFlight: 30, rttMs: 50 });
    expect(steps.windows()).toEqual([
      { startMs: 10_000, lengthMs: 10_000, inFlight: 30, limit: 20, latencyMs: 50 },
    ]);
  });

  test("leaves out a window in which seconds of a replica are missing", () => {
    const steps = new FleetSteps();
    addWindow(steps, "a", { endMs: 30_000, inFlight: 3 });
    addWindow(steps, "a", { endMs: 20_000, inFlight: 3 });
    steps.add("b", { endMs: 25_000, inFlight: 1, admitted: 1, limit: 0, rttMs: 0 });
    expect(steps.windows()).toMatchObject([{ startMs: 10_000 }]);
  });

  test("holds a day", () => {
    const steps = new FleetSteps();
    for (let i = 1; i <= fleetWindowsMax + 5; i += 1) {
      addWindow(steps, "a", { endMs: 10_000 * i, inFlight: 1 });
    }
    expect(steps.windows()).toHaveLength(fleetWindowsMax);
  });
});
