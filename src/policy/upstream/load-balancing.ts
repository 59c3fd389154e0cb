import { duration, flag, readBy, ruledText, whole } from "../text/form.js";
import { field, inner, innerBy, object } from "../text/object.js";
import { percentBounds } from "../text/quantities.js";
import { headerName } from "../text/service-texts.js";
import { keyRule, type TextRule } from "../text/text-rules.js";
import { thresholdBounds } from "./circuit-breakers.js";
import { requestTimeBounds, tryTimeBounds } from "./retries.js";

/** The bounds of `minWeightPercent`: at 0 a new host would never get a request. */
const weightBounds = { min: 1, max: 100 } as const;

/** The form of a cookie's name, which is a token as a header's is. Source: RFC 6265. */
const cookiePattern = /^[\w!#$%&'*+.^`|~-]+$/;

const cookieRule: TextRule = {
  charsMax: 128,
  forbidden: /[^\w!#$%&'*+.^`|~-]/,
  expected: "a cookie's name, such as session",
};

const slowStart = object(
  { title: "a slowStart", docs: "Hosts that are new get less, and more by and by." },
  {
    window: field(duration(tryTimeBounds), "How long.", {
      larger: "different",
      as: "windowMs",
      default: 60_000,
    }),
    minWeightPercent: field(whole(weightBounds), "Percent of its part that a host gets at first.", {
      larger: "different",
      as: "weightPercentMin",
      default: 10,
    }),
  },
);

const zoneAware = object(
  {
    title: "a zoneAware",
    docs: "Hosts of the proxy's own zone come first, as far as they can take its part.",
  },
  {
    // As Envoy has it by itself.
    minClusterSize: field(
      whole(thresholdBounds),
      "Hosts of the service below which zones are not looked at.",
      { larger: "different", as: "clusterSizeMin", default: 6 },
    ),
  },
);

const cookie = object(
  { title: "a cookie", docs: "A cookie, made where it is not there." },
  {
    name: field(ruledText(cookieRule, cookiePattern), "Its name.", { needs: "the cookie's name" }),
    ttl: field(duration(requestTimeBounds), "How long it lasts; 0s: for the session.", {
      larger: "different",
      as: "ttlMs",
      default: 0,
    }),
  },
  {
    data: ({ name = "", ttlMs }) => ({ name, ttlMs }),
    check(block, { ttlMs }) {
      if (ttlMs % 1_000 === 0) return;
      const message = "a cookie lasts for whole seconds";
      block.report("ttl", { id: "HG141", message, expected: "whole seconds, as 30s" });
    },
  },
);

const sourceIp = readBy(flag, (reader, place) => {
  if (flag.read(reader, place)) return true;
  const message = "without it nothing says by what requests are told apart";
  return reader.report(place.key, { id: "HG133", message, expected: "true" });
});

/** By what requests are told apart. Source: envoy.config.route.v3.RouteAction.HashPolicy. */
export type HashSource =
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "query"; readonly name: string }
  /** Made where it is not there; 0: for the session. Whole seconds. */
  | { readonly kind: "cookie"; readonly name: string; readonly ttlMs: number }
  | { readonly kind: "sourceIp" };

const hashNames = ["header", "cookie", "queryParameter", "sourceIp"] as const;

const consistentHash = object(
  {
    title: "a consistentHash",
    docs: "Requests that are alike in this go to one host, as long as it is there.",
    needed: [hashNames],
    alternatives: hashNames,
  },
  {
    header: field(headerName, "A header's name."),
    cookie: field(inner(cookie), "A cookie."),
    queryParameter: field(ruledText(keyRule), "A query parameter's name."),
    sourceIp: field(sourceIp, "The caller's address."),
  },
  {
    data({ header, cookie, queryParameter, sourceIp }): HashSource | undefined {
      if (header !== undefined) return { kind: "header", name: header };
      if (cookie !== undefined) return { kind: "cookie", ...cookie };
      if (queryParameter !== undefined) return { kind: "query", name: queryParameter };
      return sourceIp ? { kind: "sourceIp" } : undefined;
    },
  },
);

/** Exactly one of them: what Envoy makes of several is hard to foresee. */
const hashBlock = innerBy(consistentHash, (block) => block);
const hash = readBy(hashBlock, (reader, place) => {
  const block = hashBlock.read(reader, place);
  if (block === undefined) return undefined;
  if (hashNames.some((name) => block.field(name) !== undefined)) return consistentHash.read(block);
  const message = "nothing says by what requests are told apart";
  const expected = "one of header, cookie, queryParameter and sourceIp";
  return reader.report(place.key, { id: "HG125", message, expected });
});

/** What a new host gets where the policy only asks for it. */
export const defaultSlowStart = slowStart.defaults;

/** What `zoneAware: {}` means. */
export const defaultZoneAware = zoneAware.defaults;

/** `loadBalancing`. */
export const loadBalancing = object(
  {
    title: "a loadBalancing",
    docs: "How hosts are chosen: the less busy of two, where nothing else is said.",
    exclusive: [
      ["consistentHash", "slowStart"],
      ["consistentHash", "zoneAware"],
    ],
  },
  {
    healthyPanicThreshold: field(
      whole(percentBounds),
      "Percent of healthy hosts below which all get requests; 0: never. Left out: Envoy's 50, " +
        "Istio's 0.",
      { larger: "different", as: "panicThresholdPercent" },
    ),
    consistentHash: field(hash, "Requests that are alike go to one host.", { as: "hash" }),
    slowStart: field(inner(slowStart), "New hosts get less at first. Left out: not."),
    zoneAware: field(inner(zoneAware), "Hosts of the same zone come first. Left out: not."),
  },
);

/** How hosts of a service are chosen. */
export type LoadBalancingPolicy = typeof loadBalancing.defaults;

/** Source: envoy.config.cluster.v3.Cluster.SlowStartConfig. */
export type SlowStartPolicy = typeof slowStart.defaults;
