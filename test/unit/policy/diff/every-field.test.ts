import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { comparePolicies } from "../../../../src/policy/diff/policy-diff.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { policyForm } from "../../../../src/policy/policy-form.js";
import type { Form, MapForm } from "../../../../src/policy/text/form.js";

const root = "test/golden/policy";

/** Policies that say between them everything that a policy can say. */
const files = [
  "policy-every-name/shop.yaml",
  "services-every-name/policy.yaml",
  "envoy-every-name/policy.yaml",
  "quotas-every-name/policy.yaml",
];

/** What a policy is called and written in: it means the same by any other name. */
const meaningless = ["a policy.apiVersion", "a policy.kind", "metadata.name", "metadata.endMarker"];

type Path = readonly (string | number)[];

/** One field of one of the policies. */
interface Place {
  readonly field: string;
  readonly form: Form;
  readonly path: Path;
  readonly value: unknown;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fieldName({ shape }: MapForm, name: string): string {
  return `${shape.title}.${name}`;
}

function placesOf(form: Form, value: unknown, path: Path): readonly Place[] {
  if (form.kind === "any") return form.of.flatMap((each) => placesOf(each, value, path));
  if (form.kind === "list" && Array.isArray(value)) {
    return value.flatMap((item, i) => placesOf(form.item, item, [...path, i]));
  }
  if (form.kind !== "map" || !isMap(value)) return [];
  const map = form.map();
  return Object.entries(value).flatMap(([name, own]) => {
    const row = map.rows[name];
    if (row === undefined) return [];
    const here = [...path, name];
    const place = { field: fieldName(map, name), form: row.form, path: here, value: own };
    return [place, ...placesOf(row.form, own, here)];
  });
}

function allFields(form: Form, seen: Set<MapForm>): readonly string[] {
  if (form.kind === "any") return form.of.flatMap((each) => allFields(each, seen));
  if (form.kind === "list") return allFields(form.item, seen);
  if (form.kind !== "map" || seen.has(form.map())) return [];
  const map = form.map();
  seen.add(map);
  return Object.entries(map.rows).flatMap(([name, row]) => [
    fieldName(map, name),
    ...allFields(row.form, seen),
  ]);
}

const words = ["other", "x-other", "/other", "other.example", "2x", "p50", "1m30s", "41s", "3h"]
  .concat([
    "32Mi",
    "10.9.0.0/16",
    "Europe/Paris",
    "http://other.example/",
    "true",
    "%RESPONSE_CODE%",
  ])
  .concat(["mean", "1d", "request.path == '/'"]);

/** Other values that a field may have, right or wrong beside the rest. */
function othersOf(form: Form, value: unknown): readonly unknown[] {
  switch (form.kind) {
    case "any":
      return form.of.flatMap((each) => othersOf(each, value));
    case "words":
      return form.words.filter((word) => word !== value);
    case "whole":
      return [Number(value) + 1, Number(value) - 1, form.min, form.max, 7];
    case "number":
      return [Number(value) + 0.01, Number(value) - 0.01, form.bounds.max, 0.5];
    case "flag":
    case "ratelimitBoolean":
      return [value !== true];
    case "list":
      return Array.isArray(value) ? [value.slice(1), value.slice(0, -1), []] : [];
    case "texts":
      return [{ other: "other" }, { other: 3 }];
    case "json":
      return [{ other: true }];
    case "map":
      return [{}];
    case "duration":
    case "bytes":
    case "text":
      return [...words, `${value}2`];
  }
}

function changed(policy: unknown, [name, ...rest]: Path, value: unknown): unknown {
  if (name === undefined) return value;
  if (Array.isArray(policy)) {
    return policy.map((item, i) => (i === name ? changed(item, rest, value) : item));
  }
  if (!isMap(policy)) return policy;
  return { ...policy, [name]: changed(policy[name], rest, value) };
}

/** A policy, or undefined where it has problems. */
function read(policy: unknown) {
  const parsed = parsePolicy([{ file: "policy.yaml", text: JSON.stringify(policy) }]);
  return parsed.kind === "policy" ? parsed : undefined;
}

/** What a policy means, as a text. */
function meaningOf({
  domains,
  rules,
  services,
  quotas,
  proxies,
}: NonNullable<ReturnType<typeof read>>) {
  return JSON.stringify([domains, rules, services, quotas, proxies], (_, part: unknown) =>
    part instanceof Set ? [...part] : part,
  );
}

describe("comparePolicies()", () => {
  /**
   * `overrideMax` was read and obeyed, and a policy that changed nothing else had no changes: each
   * field was told by a list of its own, and it was in none.
   */
  it("tells each field of the language, whatever becomes of it", () => {
    const untold = new Set<string>();
    const told = new Set<string>();
    for (const file of files) {
      const policy: unknown = parse(readFileSync(`${root}/${file}`, "utf8"));
      const before = read(policy);
      if (before === undefined) throw new Error(`${file} has problems`);
      for (const { field, form, path, value } of placesOf(
        { kind: "map", map: () => policyForm },
        policy,
        [],
      )) {
        for (const other of [...othersOf(form, value), undefined]) {
          if (told.has(field)) break;
          const after = read(changed(policy, path, other));
          if (after === undefined || meaningOf(after) === meaningOf(before)) continue;
          if (comparePolicies(before, after).length > 0) told.add(field);
          else untold.add(`${field}: ${JSON.stringify(value)} becomes ${JSON.stringify(other)}`);
        }
      }
    }
    expect([...untold]).toEqual([]);
    const fields = allFields({ kind: "map", map: () => policyForm }, new Set());
    expect(fields.filter((field) => !told.has(field) && !meaningless.includes(field))).toEqual([]);
  });
});
