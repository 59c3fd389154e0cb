import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { comparePolicies } from "../../../../src/policy/diff/policy-diff.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { policyForm } from "../../../../src/policy/policy-form.js";
import { proxies } from "../../../../src/policy/proxies/proxies.js";
import { quota } from "../../../../src/policy/quotas/quota-policy.js";
import { service } from "../../../../src/policy/services/service-form.js";
import type { Form, MapForm } from "../../../../src/policy/text/form.js";
import { room } from "../../../../src/policy/waiting-rooms/room-form.js";

const root = "test/golden/policy";

/** Policies that say between them everything that a policy can say. */
const files = [
  "policy-every-name/shop.yaml",
  "services-every-name/policy.yaml",
  "envoy-every-name/policy.yaml",
  "quotas-every-name/policy.yaml",
  "rooms-every-name/policy.yaml",
  "budgets-every-name/policy.yaml",
];

/** What cannot be changed alone there, and can here. */
const more = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: more}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: k
          value: a*
          detailed_metric: true
          metadata: {x: y}
          headers: ietf
          body: problem+json
          rate_limit: {name: n, unit: day, requests_per_unit: 5, time_zone: Europe/Stockholm}
        - key: l
          value: b*
          share_threshold: true
          quota_mode: true
          rate_limit:
            {unit: day, requests_per_unit: 5, algorithm: fixed_window, replaces: [{name: n}]}
        - {key: m, value: c*, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 5}}
        - key: user
          rate_limit: {unit: second, requests_per_unit: 5}
          descriptors: [{key: remote_address, rate_limit: {unit: day, requests_per_unit: 5}}]
        - {key: other, rate_limit: {name: other, unit: day, requests_per_unit: 5}}
    - domain: other
      descriptors:
        - {key: user, rate_limit: {unit: second, requests_per_unit: 5}}
  services:
    - name: a
      rateLimit:
        domain: shop
        inExtProc: true
        descriptors: [{entries: [{header: x-user, as: user}, remote_address]}]
      admission:
        shedAt: {low: 0.4, normal: 0.5, high: 0.6}
        estimatedWait: {max: 1s, sigmoid: {midpoint: 2x, slope: 10}}
        deadline: {}
        throttle: {}
        load: {}
        queue: {}
        reject:
          status: {deadline: 500, throttle: 500, waitCap: 500, sigmoid: 500, load: 500,
            concurrency: 500, queueFull: 500, rateLimit: 500, ownOverload: 500, budget: 500}
      concurrency: {law: aimd, limits: {initial: 5, min: 3, max: 9}}
      outlierDetection: {baseEjectionTime: 10s}
      healthChecks: {timeout: 1s, interval: 5m}
      retries: {backOff: {base: 10ms}}
    - {name: b, rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}}
    - {name: c, concurrency: {law: signal, signal: {redis: lag, every: 10s, timeout: 1s}}}
    - name: d
      concurrency:
        law: signal
        per: {header: x-a, names: [e, e2]}
        signal: {redis: lag, thresholds: [{name: e, target: 1, critical: 2}]}
    - {name: f, concurrency: {law: signal, signal: {fixed: 3}}}
  prices: {currency: EUR, models: [{model: a, input: 1}]}
  budgets: [{name: b, per: [model, service], amount: 5 calls, period: day}]
  quotas: [{name: q, domain: shop, bucket: [{header: x-user, as: user}]}]
  proxies:
    secretsFolder: /secrets
    listener: {statisticsPort: 8003, tls: {secret: a, mutual: true}}
    tcpListeners:
      - name: t
        port: 20000
        upstream: {address: a.example, port: 1}
        rateLimit: {domain: shop, descriptors: [[{value: v, as: user}]]}
`;

/** Fields of which another has to change with them; those are told. */
const neverAlone = [
  "a policy.metadata",
  "a policy.spec",
  "a rate_limit.unlimited",
  "an over.delay",
  "an over.annotate",
  "an over.fallback",
  "an over of a budget.annotate",
  "an over of a budget.fallback",
  "a model of a usage.path",
  "a source of usage.headers",
  "a source of usage.metadata",
  "metadata of a usage.fields",
  "an override of a budget.values",
  "a concurrency.latencyShed",
  "a concurrency.signal",
  "signal.kafka",
  "a consistentHash.cookie",
  "a consistentHash.sourceIp",
  "a quota.rate",
  "a match.present",
  "a part of a descriptor.metadata",
  "a page.templateFile",
  "a TCP listener.upstream",
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
  if (form.kind === "texts" && isMap(value)) {
    return Object.keys(value).flatMap((key) => placesOf(form.value, value[key], [...path, key]));
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
  if (form.kind === "texts") return allFields(form.value, seen);
  if (form.kind !== "map" || seen.has(form.map())) return [];
  const map = form.map();
  seen.add(map);
  return Object.entries(map.rows).flatMap(([name, row]) => [
    fieldName(map, name),
    ...allFields(row.form, seen),
  ]);
}

const durations = ["7s", "41s", "1m30s", "3h", "1d"];

const words = ["other", "x-other", "/other", "other.example", "2x", "p50", "10.9.0.0/16"].concat([
  "Europe/Paris",
  "http://other.example/",
  "true",
  "%RESPONSE_CODE%",
  "mean",
  "request.path == '/'",
  "2026-11-28T08:00:00Z",
  "2028-02-29T12:00:00Z",
  "900 EUR",
  "SEK",
  "7000 calls",
  "3.5",
]);

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
      return [`${value}2`, ...durations];
    case "bytes":
      return ["32Mi", `${value}2`];
    case "text":
      return [`${value}2`, ...words, ...durations];
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

/** A policy that has none. */
function readRight(policy: unknown) {
  const parsed = parsePolicy([{ file: "policy.yaml", text: JSON.stringify(policy) }]);
  if (parsed.kind === "problems") throw new Error(JSON.stringify(parsed.problems, null, 1));
  return parsed;
}

/** What a policy means, as a text. */
function meaningOf({
  domains,
  rules,
  services,
  quotas,
  waitingRooms,
  budgets,
  prices,
  proxies,
}: NonNullable<ReturnType<typeof read>>) {
  const meant = [domains, rules, services, quotas, waitingRooms, budgets, prices, proxies];
  return JSON.stringify(meant, (_, part: unknown) =>
    part instanceof Set || part instanceof Map ? [...part] : part,
  );
}

describe("comparePolicies()", () => {
  /**
   * `overrideMax` was read and obeyed, and a policy that changed nothing else had no changes: each
   * field was told by a list of its own, and it was in none.
   */
  it("tells each field of the language, whatever becomes of it", () => {
    const unreported = new Set<string>();
    const reported = new Set<string>();
    const texts = files.map((file) => readFileSync(`${root}/${file}`, "utf8"));
    for (const text of [more, ...texts]) {
      const policy: unknown = parse(text);
      const before = readRight(policy);
      const meant = meaningOf(before);
      for (const { field, form, path, value } of placesOf(
        { kind: "map", map: () => policyForm },
        policy,
        [],
      )) {
        if (meaningless.includes(field)) continue;
        for (const other of [...othersOf(form, value), undefined]) {
          if (reported.has(field)) break;
          const after = read(changed(policy, path, other));
          if (after === undefined || meaningOf(after) === meant) continue;
          if (comparePolicies(before, after).length > 0) reported.add(field);
          else
            unreported.add(`${field}: ${JSON.stringify(value)} becomes ${JSON.stringify(other)}`);
        }
      }
    }
    expect([...unreported]).toEqual([]);
    const fields = allFields({ kind: "map", map: () => policyForm }, new Set());
    expect(
      fields.filter((field) => ![...reported, ...meaningless, ...neverAlone].includes(field)),
    ).toEqual([]);
  });
});

/** Compared as the limit of a domain that it is: of several numbers at once. */
const comparedAsLimit: readonly string[] = [fieldName(quota, "rate")];

const numberKinds: readonly Form["kind"][] = ["whole", "number", "duration", "bytes"];

function isNumeric(form: Form): boolean {
  return form.kind === "any" ? form.of.some(isNumeric) : numberKinds.includes(form.kind);
}

/** Numbers of which nothing says what a larger one does. */
function silentNumbers(form: Form, seen: Set<MapForm>): readonly string[] {
  if (form.kind === "any") return form.of.flatMap((each) => silentNumbers(each, seen));
  if (form.kind === "list") return silentNumbers(form.item, seen);
  if (form.kind === "texts") return silentNumbers(form.value, seen);
  if (form.kind !== "map" || seen.has(form.map())) return [];
  const map = form.map();
  seen.add(map);
  return Object.entries(map.rows).flatMap(([name, row]) => {
    const field = fieldName(map, name);
    if (comparedAsLimit.includes(field)) return [];
    const isSilent = isNumeric(row.form) && row.larger === undefined;
    return [...(isSilent ? [field] : []), ...silentNumbers(row.form, seen)];
  });
}

describe("larger", () => {
  /** What a change of a number did was guessed from the field's name, and a new name was none. */
  it("is said of every number that is compared by itself", () => {
    const silent = [service, quota, room, proxies].flatMap((map) =>
      silentNumbers({ kind: "map", map: () => map }, new Set()),
    );
    expect(silent).toEqual([]);
  });
});
