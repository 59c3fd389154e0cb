import { expect, it } from "vitest";
import { formatTicks, timeRange, timeSteps } from "../../../../src/console/data/time-axis.js";

/** The beginning of 2026-11-27. */
const midnight = 1_795_737_600;

it.each(timeSteps)("says no label twice between two dates, at steps of %d s", (step) => {
  const labels = formatTicks(Array.from({ length: 12 }, (_, i) => midnight + i * step));
  const days = labels.join(" ").split(/(?=[0-9]{2}-[0-9]{2}(?: |$))/);
  for (const day of days) expect(day.split(" ")).toEqual([...new Set(day.split(" "))]);
});

it("shows no more of a time than tells labels apart", () => {
  const noon = midnight + 43_200;
  expect(formatTicks([noon])).toEqual(["12:00:00"]);
  expect(formatTicks([noon, noon + 5])).toEqual(["12:00:00", "12:00:05"]);
  expect(formatTicks([noon, noon + 300])).toEqual(["12:00", "12:05"]);
  expect(formatTicks([midnight, midnight + 300])).toEqual(["00:00", "00:05"]);
  expect(formatTicks([midnight, midnight + 21_600])).toEqual(["11-27", "06:00"]);
  expect(formatTicks([midnight, midnight + 604_800])).toEqual(["2026-11-27", "2026-12-04"]);
});

it("gives a single point an axis of seconds", () => {
  expect(timeRange(midnight, midnight)).toEqual([midnight - 10, midnight]);
  expect(timeRange(midnight - 900, midnight)).toEqual([midnight - 900, midnight]);
});
