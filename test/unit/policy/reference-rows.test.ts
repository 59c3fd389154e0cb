import { describe, expect, it } from "vitest";
import { policyForm } from "../../../src/policy/policy-form.js";
import { referenceRows } from "../../../src/policy/reference-rows.js";
import type { Form, MapForm } from "../../../src/policy/text/form.js";

const rows = referenceRows(policyForm);
const byPath = new Map(rows.map((row) => [row.path, row]));

/** Every map of the language, each once. */
function mapsOf(form: Form, seen = new Set<MapForm>()): ReadonlySet<MapForm> {
  if (form.kind === "any") for (const each of form.of) mapsOf(each, seen);
  if (form.kind === "list") mapsOf(form.item, seen);
  if (form.kind !== "map" || seen.has(form.map())) return seen;
  seen.add(form.map());
  for (const row of Object.values(form.map().rows)) mapsOf(row.form, seen);
  return seen;
}

describe("referenceRows()", () => {
  it("has a row for each name of each map, with what it is for", () => {
    const names = [...mapsOf({ kind: "map", map: () => policyForm })].flatMap(({ rows: own }) =>
      Object.values(own).map(({ docs }) => docs),
    );
    const told = new Set(rows.map(({ docs }) => docs));
    expect(names.filter((docs) => !told.has(docs))).toEqual([]);
    expect(rows.filter(({ docs }) => !docs.endsWith("."))).toEqual([]);
    expect(byPath.size).toBe(rows.length);
  });

  it.each([
    ["retries.numRetries", { type: "whole number", bounds: "1 to 10", writtenDefault: 2 }],
    ["admission.deadline.margin", { type: "duration", bounds: "0s to 1h", writtenDefault: "10ms" }],
    [
      "admission.reject.retryAfter.min",
      { type: "duration", bounds: "1s to 1d", writtenDefault: "1s" },
    ],
    ["outlierDetection", { type: "map, or `off`", bounds: undefined, writtenDefault: undefined }],
    ["circuitBreakers.retryBudget.percent", { type: "percentage", bounds: "above 0 to 100" }],
    ["concurrency.sources", { type: "list of `extProc`, `envoyMetrics`, `loadReports`" }],
    ["priority.rules[].when", { isRequired: true }],
  ])("tells of services[].%s its type, bounds and default", (name, expected) => {
    expect(byPath.get(`spec.services[].${name}`)).toMatchObject(expected);
  });

  it("tells of proxies and limits", () => {
    expect(byPath.get("spec.proxies.overload.maxHeap")).toMatchObject({
      type: "quantity of bytes",
      bounds: "16Mi to 16Ti",
    });
    expect(byPath.get("spec.rateLimits[].descriptors[].rate_limit.unit")?.type).toContain("`hour`");
  });
});
