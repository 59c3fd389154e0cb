import { expect, it } from "vitest";
import {
  formatMillis,
  formatNumber,
  formatPercent,
  formatRate,
  formatSpan,
  formatTime,
} from "../../../../src/console/data/format.js";

it("writes numbers as people read them", () => {
  expect([0, 0.04, 0.5, 12.34, 1_234.5].map(formatNumber)).toEqual([
    "0",
    "0.04",
    "0.5",
    "12.3",
    "1,235",
  ]);
  expect([0, 0.0001, 0.025, 0.5].map(formatPercent)).toEqual(["0 %", "<0.1 %", "2.5 %", "50 %"]);
  expect([0.4, 120, 1_500].map(formatMillis)).toEqual(["0.4 ms", "120 ms", "1.5 s"]);
  expect([50, 0.05, 0.001, undefined].map(formatRate)).toEqual([
    "50/s",
    "3/min",
    "3.6/h",
    "no bound",
  ]);
  expect([180, 1_800, 60_000, 5_400_000, 90_061_000].map(formatSpan)).toEqual([
    "180ms",
    "1.8s",
    "1m",
    "1h30m",
    "1d1h",
  ]);
  expect(formatTime(1_767_600_000_000)).toBe("2026-01-05 08:00:00Z");
});
