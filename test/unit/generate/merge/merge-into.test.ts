import { describe, expect, it } from "vitest";
import type { Tree, TreeMap } from "../../../../src/generate/base/document.js";
import { readExisting } from "../../../../src/generate/base/existing-object.js";
import { plainTree } from "../../../../src/generate/base/plain-tree.js";
import { existingFor, mergeInto } from "../../../../src/generate/merge/merge-into.js";

const istio = "networking.istio.io/v1";
const gateway = "gateway.envoyproxy.io/v1alpha1";

const object = (apiVersion: string, title: string, spec: TreeMap): TreeMap => {
  const [kind = "", namespace = "", name = ""] = title.split(/[ /]/);
  return { apiVersion, kind, metadata: { name, namespace }, spec };
};

const rule = (title: string, spec: TreeMap) => object(istio, `DestinationRule ${title}`, spec);

const host = "orders.shop.svc.cluster.local";

/** What comes of ours beside objects of a user. */
const merge = (users: readonly Tree[], ...ours: readonly Tree[]) => {
  const text = users.map((one) => JSON.stringify(plainTree(one))).join("\n---\n");
  const { objects, problems } = readExisting([{ file: "with.yaml", text }]);
  expect(problems).toEqual([]);
  const made = mergeInto(objects, ours, "orders");
  return {
    objects: made.objects.map(plainTree),
    problems: made.problems.map(({ id, severity, message }) => `${severity} ${id} ${message}`),
    spots: made.problems.map(({ spot }) => spot.path.join(".")),
    merged: made.merged.map(({ name }) => name),
  };
};

const detection = { outlierDetection: { consecutive5xxErrors: 5, interval: "10s" } };
const ours = rule("shop/orders", { host, trafficPolicy: detection });

describe("mergeInto()", () => {
  it("leaves ours alone where the user has none for it", () => {
    const made = merge([rule("shop/other", { host: "other" })], ours);
    expect(made).toEqual({ objects: [ours], problems: [], spots: [], merged: [] });
  });

  it("puts ours into the user's, and keeps all that it says", () => {
    const spec = { host: "orders", exportTo: ["."], subsets: [{ name: "v1", labels: { v: "1" } }] };
    const made = merge([rule("shop/mine", spec)], ours);
    expect(made.objects).toEqual([rule("shop/mine", { ...spec, trafficPolicy: detection })]);
    expect(made.problems).toEqual([]);
  });

  it.each([
    ["orders", "shop", true],
    [host, "web", true],
    ["orders", "web", false],
    ["orders.shop", "shop", false],
    ["*", "shop", false],
    ["order", "shop", false],
  ])("finds host %s of namespace %s as istiod does: %s", (name, namespace, isFound) => {
    const made = merge([rule(`${namespace}/mine`, { host: name })], ours);
    expect(made.merged).toEqual(isFound ? ["mine"] : []);
  });

  it("says where the user's value stays", () => {
    const theirs = { outlierDetection: { interval: "1m", consecutive5xxErrors: 5 } };
    const made = merge([rule("shop/mine", { host, trafficPolicy: theirs })], ours);
    expect(made.objects).toEqual([rule("shop/mine", { host, trafficPolicy: theirs })]);
    expect(made.problems).toEqual([
      "warning HG349 DestinationRule shop/mine, " +
        'spec.trafficPolicy.outlierDetection.interval (with.yaml:1:206) keeps "1m", ' +
        'and the policy has "10s"',
    ]);
    expect(made.spots).toEqual(["outlierDetection"]);
  });

  it("never tells a long value, or a whole map", () => {
    const tls = { mode: "SIMPLE", caCertificates: "x".repeat(500) };
    const theirs = { outlierDetection: { interval: "y".repeat(500) }, tls };
    const settings = { ...detection, tls: { mode: "MUTUAL" } };
    const made = merge(
      [rule("shop/mine", { host, trafficPolicy: theirs })],
      rule("shop/orders", { host, trafficPolicy: settings }),
    );
    const [interval = "", whole] = made.problems;
    expect(interval.length).toBeLessThan(250);
    expect(whole).toMatch(/trafficPolicy\.tls .* keeps its value, and the policy has another one$/);
  });

  it.each([
    ["1m", "60s", true],
    ["0.25s", "250ms", true],
    ["1m30s", "90s", true],
    ["1s", "1000s", false],
    ["1", "1s", false],
  ])("takes %s and %s for one: %s", (interval, other, isSame) => {
    const of = (value: string) => ({ trafficPolicy: { outlierDetection: { interval: value } } });
    const made = merge(
      [rule("shop/mine", { host, ...of(interval) })],
      rule("shop/orders", { host, ...of(other) }),
    );
    expect(made.problems.length).toBe(isSame ? 0 : 1);
  });

  // Two algorithms in one object are refused by istiod.
  it("takes a load balancer as a whole", () => {
    const loadBalancer = { simple: "ROUND_ROBIN" };
    const hashed = { loadBalancer: { consistentHash: { useSourceIp: true } } };
    const made = merge(
      [rule("shop/mine", { host, trafficPolicy: { loadBalancer } })],
      rule("shop/orders", { host, trafficPolicy: hashed }),
    );
    expect(made.objects).toEqual([rule("shop/mine", { host, trafficPolicy: { loadBalancer } })]);
    expect(made.spots).toEqual(["loadBalancing"]);
  });

  // Settings of a port take none from above, and those of a subset no part of what it says.
  it("puts ours where they would be hidden", () => {
    const port = { port: { number: 8080 }, loadBalancer: { simple: "RANDOM" } };
    const own = { outlierDetection: { interval: "10s" } };
    const subsets = [
      { name: "v1", trafficPolicy: own },
      { name: "v2", trafficPolicy: { portLevelSettings: [port] } },
    ];
    const spec = { host, trafficPolicy: { portLevelSettings: [port] }, subsets };
    const made = merge([rule("shop/mine", spec)], ours);
    const reported = { portLevelSettings: [{ ...port, ...detection }] };
    expect(made.objects).toEqual([
      rule("shop/mine", {
        host,
        trafficPolicy: { ...reported, ...detection },
        subsets: [
          { name: "v1", trafficPolicy: detection },
          { name: "v2", trafficPolicy: reported },
        ],
      }),
    ]);
  });

  it("keeps ours for callers whom the user's is not for", () => {
    const selector = { workloadSelector: { matchLabels: { app: "web" } } };
    const made = merge(
      [rule("web/mine", { host }), rule("shop/some", { host, ...selector })],
      ours,
    );
    expect(made.objects).toEqual([
      ours,
      rule("web/mine", { host, trafficPolicy: detection }),
      rule("shop/some", { host, ...selector, trafficPolicy: detection }),
    ]);
    expect(made.problems).toEqual([]);
  });

  it("refuses two for one host", () => {
    const made = merge([rule("shop/a", { host }), rule("shop/b", { host: "orders" })], ours);
    expect(made.problems).toEqual([
      "error HG369 DestinationRule shop/a (with.yaml:1:1) and DestinationRule shop/b " +
        `(with.yaml:3:1) are both for host ${host}`,
    ]);
  });

  it("goes by another name where the user has that one for something else", () => {
    const taken = rule("shop/orders", { host: "other.example.com" });
    expect(merge([taken], ours).objects).toEqual([
      rule("shop/headgate-orders", { host, trafficPolicy: detection }),
    ]);
    const both = [taken, rule("shop/headgate-orders", { host: "other.example.com" })];
    expect(merge(both, ours).problems).toEqual([
      "error HG369 DestinationRule shop/orders (with.yaml:1:1) has another " +
        "target, and a generated object has its name",
    ]);
  });

  it("finds a Sidecar by its pods", () => {
    const of = (title: string, app: string, more: TreeMap) => {
      return object(istio, `Sidecar ${title}`, {
        workloadSelector: { labels: { app } },
        ...more,
      });
    };
    const pool = { inboundConnectionPool: { http: { http2MaxRequests: 10 } } };
    const made = merge(
      [of("shop/mine", "orders", { egress: [] }), of("shop/other", "carts", {})],
      of("shop/orders", "orders", pool),
    );
    expect(made.objects).toEqual([of("shop/mine", "orders", { egress: [], ...pool })]);
  });
});

describe("mergeInto(), with policies of Envoy Gateway", () => {
  const target = { group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "orders" };
  const policy = (kind: string, title: string, spec: TreeMap) => {
    return object(gateway, `${kind} ${title}`, spec);
  };
  const traffic = (title: string, spec: TreeMap) => policy("BackendTrafficPolicy", title, spec);
  const oursOf = (more: TreeMap) => traffic("shop/orders", { targetRefs: [target], ...more });

  it.each([
    ["targetRefs", { targetRefs: [target] }, true],
    ["targetRef", { targetRef: target }, true],
    ["a rule of the route", { targetRefs: [{ ...target, sectionName: "r" }] }, false],
    ["another route", { targetRefs: [{ ...target, name: "carts" }] }, false],
  ])("finds one by %s", (_, spec, isFound) => {
    const made = merge([traffic("shop/mine", spec)], oursOf({ circuitBreaker: {} }));
    const merged = traffic("shop/mine", { ...spec, circuitBreaker: {} });
    expect(made.objects).toEqual([isFound ? merged : oursOf({ circuitBreaker: {} })]);
  });

  it("adds rules to the user's, and none twice", () => {
    const limit = (requests: number) => ({ limit: { requests, unit: "Second" } });
    const rateLimit = (...rules: readonly TreeMap[]) => {
      return { rateLimit: { type: "Global", global: { rules } } };
    };
    const made = merge(
      [traffic("shop/mine", { targetRefs: [target], ...rateLimit(limit(1), limit(2)) })],
      oursOf(rateLimit(limit(2), limit(3))),
    );
    expect(made).toMatchObject({
      objects: [{ spec: rateLimit(limit(1), limit(2), limit(3)) }],
      problems: [],
    });
  });

  it("leaves limits of another type as they are", () => {
    const local = { rateLimit: { type: "Local", local: { rules: [] } } };
    const made = merge(
      [traffic("shop/mine", { targetRefs: [target], ...local })],
      oursOf({ rateLimit: { type: "Global", global: { rules: [{ limit: {} }] } } }),
    );
    expect(made.objects).toEqual([traffic("shop/mine", { targetRefs: [target], ...local })]);
    expect(made.spots).toEqual(["rateLimit"]);
  });

  it("puts Headgate behind the user's processors, and finds it there again", () => {
    const item = (name: string, more: TreeMap = {}) => ({ backendRefs: [{ name }], ...more });
    const extension = (title: string, ...extProc: readonly TreeMap[]) => {
      return policy("EnvoyExtensionPolicy", title, { targetRefs: [target], extProc });
    };
    const oursTo = extension("shop/orders", item("headgate", { failOpen: true }));
    const made = merge([extension("shop/mine", item("signer"))], oursTo);
    const all = extension("shop/mine", item("signer"), item("headgate", { failOpen: true }));
    expect(made.objects).toEqual([all]);
    expect(merge([all], oursTo)).toMatchObject({ objects: [all], problems: [] });
    const text = JSON.stringify(all);
    expect(existingFor(readExisting([{ file: "a", text }]).objects, oursTo)?.name).toBe("mine");
  });

  it("refuses one that is for several", () => {
    const made = merge(
      [traffic("shop/all", { targetRefs: [target, { ...target, name: "carts" }] })],
      oursOf({}),
    );
    expect(made.problems).toEqual([
      "error HG369 BackendTrafficPolicy shop/all (with.yaml:1:1) covers more than " +
        "HTTPRoute orders",
    ]);
  });

  it("refuses a name that is taken, which Envoy Gateway makes others of", () => {
    const other = { targetRefs: [{ ...target, name: "carts" }] };
    const made = merge([traffic("shop/orders", other)], oursOf({}));
    expect(made.problems).toEqual([expect.stringContaining("error HG369 BackendTrafficPolicy")]);
  });
});
