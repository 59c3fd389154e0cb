import { describe, expect, it } from "vitest";
import { type Priority, priorities } from "../../../../../src/core/admission/priority.js";
import type { TreeMap } from "../../../../../src/generate/base/document.js";
import {
  type RouteClass,
  routeClasses,
} from "../../../../../src/generate/envoy/http/route-classes.js";
import { shedClasses } from "../../../../../src/generate/envoy/http/shed-routes.js";
import { createPriorityClassifier } from "../../../../../src/policy/services/priority-classifier.js";
import type { PriorityPolicy } from "../../../../../src/policy/services/service-priority.js";
import { FakeRandom } from "../../../../support/fake-random.js";
import { firstSeed, metCount, seedCount } from "../../../../support/seeds.js";

/** What a request says. */
type Headers = ReadonlyMap<string, string>;

const conditions: readonly string[] = [
  'request.path.startsWith("/checkout")',
  'request.url_path == "/search"',
  'request.path == "/search?q=1"',
  'request.headers["x-plan"] == "free"',
  '"x-batch" in request.headers',
  'request.method in ["POST", "PUT"] && request.path.startsWith("/a")',
  'request.host.endsWith(".example") || request.path.contains("=1")',
  // These are not for routes.
  '!("x-batch" in request.headers)',
  'size(request.headers["x-plan"]) > 4',
  'request.method != "GET"',
];

const paths: readonly string[] = [
  "/",
  "/checkout",
  "/checkout?q=1",
  "/search",
  "/search?q=1",
  "/a/b",
  "/healthz",
  "/healthz/live",
  "/healthzz",
  "/healthz/..%2forders",
  "/healthz/%2e%2e/a",
  "/health/x",
  "/healthz?a=/../b",
  "/health",
  "/login",
  "/login/now",
  "/login//now",
];

class Choices {
  readonly #random: FakeRandom;

  constructor(seed: number) {
    this.#random = new FakeRandom(seed);
  }

  one<T>(list: readonly T[]): T {
    const chosen = list[Math.floor(this.#random.next() * list.length)];
    if (chosen === undefined) throw new Error("nothing to choose from");
    return chosen;
  }

  maybe(ratio = 0.5): boolean {
    return this.#random.next() < ratio;
  }
}

function randomPolicy(choices: Choices): PriorityPolicy {
  const rules = [1, 2, 3, 4]
    .filter(() => choices.maybe())
    .map(() => ({ when: choices.one(conditions), is: choices.one(priorities) }));
  const trust = choices.one([
    { anyone: false, sources: [], principals: [] },
    { anyone: true, sources: [], principals: [] },
    { anyone: false, sources: ["10.0.0.0/8"], principals: [] },
  ]);
  return {
    header: "x-class",
    default: choices.one(priorities),
    rules,
    bypassPaths: choices.one([[], ["/healthz"], ["/health/*", "/healthz"], ["/*"]]),
    authPaths: choices.one([[], ["/login"], ["/login/*"]]),
    trust,
  };
}

function policyOf(more: Partial<PriorityPolicy>): PriorityPolicy {
  return {
    header: "x-class",
    default: "normal",
    rules: [],
    bypassPaths: [],
    authPaths: [],
    trust: { anyone: false, sources: [], principals: [] },
    ...more,
  };
}

function randomHeaders(choices: Choices): Headers {
  const headers = new Map([
    [":path", choices.one(paths)],
    [":method", choices.one(["GET", "POST", "PUT"])],
    [":authority", choices.one(["shop.example", "shop.test"])],
  ]);
  if (choices.maybe()) headers.set("x-plan", choices.one(["free", "partner"]));
  if (choices.maybe(0.3)) headers.set("x-batch", "1");
  if (choices.maybe()) headers.set("x-class", choices.one([...priorities, "LOW", "none"]));
  return headers;
}

/** Whether a route matches, as Envoy reads its match. */
function matches(match: TreeMap, headers: Headers): boolean {
  const path = headers.get(":path") ?? "";
  const urlPath = path.replace(/[?#].*$/, "");
  const { prefix, path: exact, path_separated_prefix: separated, headers: tests } = match;
  if (typeof prefix === "string" && !path.startsWith(prefix)) return false;
  if (typeof exact === "string" && urlPath !== exact) return false;
  if (typeof separated === "string") {
    if (urlPath !== separated && !urlPath.startsWith(`${separated}/`)) return false;
  }
  const all = JSON.parse(JSON.stringify(tests ?? [])) as readonly HeaderTest[];
  return all.every((test) => holds(test, headers));
}

interface HeaderTest {
  readonly name: string;
  readonly present_match?: boolean;
  readonly invert_match?: boolean;
  readonly treat_missing_header_as_empty?: boolean;
  readonly string_match?: {
    readonly exact?: string;
    readonly prefix?: string;
    readonly suffix?: string;
    readonly contains?: string;
    readonly ignore_case?: boolean;
    readonly safe_regex?: { readonly regex: string };
  };
}

function holds(test: HeaderTest, headers: Headers) {
  const { name, present_match, invert_match, string_match } = test;
  const missing = test.treat_missing_header_as_empty === true ? "" : undefined;
  const value = headers.get(name) ?? (present_match === true ? undefined : missing);
  if (present_match === true) return (value !== undefined) !== (invert_match === true);
  if (value === undefined || string_match === undefined) return false;
  const { exact, prefix, suffix, contains, ignore_case, safe_regex } = string_match;
  const is =
    (exact !== undefined && (ignore_case ? value.toLowerCase() : value) === exact) ||
    (prefix !== undefined && value.startsWith(prefix)) ||
    (suffix !== undefined && value.endsWith(suffix)) ||
    (contains !== undefined && value.includes(contains)) ||
    (safe_regex !== undefined &&
      new RegExp(`^(?:${safe_regex.regex.replace("(?i)", "")})$`, "i").test(value));
  return is !== (invert_match === true);
}

function urgency(priority: Priority): number {
  return priorities.indexOf(priority);
}

/** Whether a proxy refuses requests of this class by itself when it is told to. */
function isShed({ mayShed, unlessHeader }: RouteClass, headers: Headers): boolean {
  return mayShed && (unlessHeader === undefined || !headers.has(unlessHeader));
}

describe("routeClasses()", () => {
  it("refuses no request as a less urgent one than Headgate takes it for", () => {
    const seed = firstSeed(20_260_701);
    const choices = new Choices(seed);
    let shedCount = 0;
    let bypassCount = 0;
    for (let count = 0; count < seedCount(400); count += 1) {
      const policy = randomPolicy(choices);
      const classifier = createPriorityClassifier(policy);
      const { classes, leftOut } = routeClasses(policy);
      const headers = randomHeaders(choices);
      const address = choices.one(["10.0.0.1:1", "192.0.2.1:1"]);
      const attributes = new Map([["source.address", address]]);
      const known = classifier.classify({ headers, attributes });
      const found = classes.find(({ match }) => matches(match, headers));
      const story = `seed ${seed}, ${count}: ${JSON.stringify([policy, [...headers], address])}`;
      if (found === undefined) throw new Error(`no route: ${story}`);
      expect(found.priority === "bypass", story).toBe(known === "bypass");
      if (known === "bypass" || found.priority === "bypass") {
        bypassCount += 1;
        continue;
      }
      // Where nothing is left out, both say the same.
      if (leftOut.length === 0) expect(found.priority, story).toBe(known);
      if (!isShed(found, headers)) continue;
      shedCount += 1;
      expect(urgency(found.priority), story).toBeLessThanOrEqual(urgency(known));
    }
    expect(bypassCount).toBeGreaterThan(metCount(20));
    expect(shedCount).toBeGreaterThan(metCount(40));
  });
});

describe("shedClasses()", () => {
  it("takes of each class what its own route would, whatever else matches", () => {
    const seed = firstSeed(20_261_123);
    const choices = new Choices(seed);
    const counts = { shed: 0, spared: 0, unshed: 0 };
    for (let count = 0; count < seedCount(1_000); count += 1) {
      const policy = randomPolicy(choices);
      const headers = randomHeaders(choices);
      const story = `seed ${seed}, ${count}: ${JSON.stringify([policy, [...headers]])}`;
      const first = routeClasses(policy).classes.find(({ match }) => matches(match, headers));
      if (first === undefined) throw new Error(`no route: ${story}`);
      const { classes, unshed } = shedClasses(policy);
      const taking = classes.filter(({ match }) => matches(match, headers));
      const priorities = new Set(taking.map(({ priority }) => priority));
      if (unshed.includes(first.name)) {
        counts.unshed += 1;
        continue;
      }
      counts[first.mayShed ? "shed" : "spared"] += 1;
      expect([...priorities], story).toEqual(first.mayShed ? [first.priority] : []);
    }
    expect(counts.shed).toBeGreaterThan(metCount(300));
    expect(counts.spared).toBeGreaterThan(metCount(300));
    expect(counts.unshed).toBeLessThan(seedCount(100));
  });

  it("leaves to Headgate what would take too many matches", () => {
    const rules = [1, 2, 3, 4, 5, 6].map((number) => ({
      when: `request.method == "M${number}" && request.path.startsWith("/${number}")`,
      is: "critical" as const,
    }));
    const { classes, unshed } = shedClasses(policyOf({ rules }));
    expect(classes).toEqual([]);
    expect(unshed).toEqual(["rest"]);
  });
});
