import { describe, expect, it } from "vitest";
import { isUsageDay, usageDay, usageDays } from "../../../../src/core/budgets/usage-day.js";

describe("usage days", () => {
  it("are days in UTC", () => {
    expect(usageDay(1_700_000_000_000_000)).toBe("2023-11-14");
    expect(usageDay(1_700_006_399_999_999)).toBe("2023-11-14");
    expect(usageDay(1_700_006_400_000_000)).toBe("2023-11-15");
  });

  it("are real ones", () => {
    expect(isUsageDay("2024-02-29")).toBe(true);
    for (const text of ["2023-02-29", "2023-13-01", "2023-1-1", "", "today", "2023-11-14T00:00"]) {
      expect(isUsageDay(text), text).toBe(false);
    }
  });

  it("are listed from one to another, within a bound", () => {
    expect(usageDays("2024-02-28", "2024-03-01", 3)).toEqual([
      "2024-02-28",
      "2024-02-29",
      "2024-03-01",
    ]);
    expect(usageDays("2024-02-28", "2024-02-28", 3)).toEqual(["2024-02-28"]);
    expect(usageDays("2024-02-28", "2024-03-02", 3)).toBeUndefined();
    expect(usageDays("2024-02-28", "2024-02-27", 3)).toBeUndefined();
    expect(usageDays("2024-02-30", "2024-03-01", 3)).toBeUndefined();
  });
});
