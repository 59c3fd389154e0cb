import { describe, expect, it } from "vitest";
import { SessionTable } from "../../../../src/core/waiting-room/session-table.js";

describe("SessionTable", () => {
  it("counts a session as ended when it is free, or another visitor has it", () => {
    const table = new SessionTable(3);
    table.read(0, Uint32Array.of(1, 50, 2, 50, 3, 50));
    expect(table.takeEndedCount()).toBe(0);
    // The first goes on, the second has ended, and the third is somebody else's.
    table.read(0, Uint32Array.of(1, 60, 2, 0, 4, 60));
    expect(table.takeEndedCount()).toBe(2);
    expect(table.takeEndedCount()).toBe(0);
    // A free one that is taken has not ended again.
    table.read(1, Uint32Array.of(5, 70));
    expect(table.takeEndedCount()).toBe(0);
    expect(table.oldestNumber(6)).toBe(1);
  });
});
