import { duration, flag, readBy, ruledText, whole } from "../text/form.js";
import { field, inner, innerBy, object } from "../text/object.js";
import { percentBounds } from "../text/quantities.js";
import { cookieName, headerName } from "../text/service-texts.js";
import { keyRule } from "../text/text-rules.js";
import { thresholdBounds } from "./circuit-breakers.js";
import { requestTimeBounds, tryTimeBounds } from "./retries.js";

/** The bounds of `minWeightPercent`: at 0 a new host would never get a request. */
const weightBounds = { min: 1, max: 100 } as const;

const slowStart = object(
  { title: "a slowStart", docs: "New hosts start with a small share of requests, which grows." },
  {
    window: field(duration(tryTimeBounds), "The duration.", {
      larger: "different",
      as: "windowMs",
      default: 60_000,
    }),
    minWeightPercent: field(
      whole(weightBounds),
      "The initial share, in percent of the full share.",
      {
        larger: "different",
        as: "weightPercentMin",
        default: 10,
      },
    ),
  },
);

const zoneAware = object(
  {
    title: "a zoneAware",
    docs: "Prefers hosts in the proxy's own zone, as far as they have capacity.",
  },
  {
    // Envoy's own default.
    minClusterSize: field(
      whole(thresholdBounds),
      "Zones are ignored if the service has fewer hosts than this.",
      { larger: "different", as: "clusterSizeMin", default: 6 },
    ),
  },
);

const cookie = object(
  { title: "a cookie", docs: "A cookie. Envoy sets it if it is missing." },
  {
    name: field(cookieName, "The name of the cookie.", {
      needs: "the name of the cookie",
    }),
    ttl: field(
      duration(requestTimeBounds),
      "The lifetime of the cookie; 0s makes it a session cookie.",
      {
        larger: "different",
        as: "ttlMs",
        default: 0,
      },
    ),
  },
  {
    data: ({ name = "", ttlMs }) => ({ name, ttlMs }),
    check(block, { ttlMs }) {
      if (ttlMs % 1_000 === 0) return;
      const message = "the lifetime of a cookie must be in whole seconds";
      block.report("ttl", { id: "HG141", message, expected: "whole seconds, as 30s" });
    },
  },
);

const sourceIp = readBy(flag, (reader, place) => {
  if (flag.read(reader, place)) return true;
  const message = "the hash has no source";
  return reader.report(place.key, { id: "HG133", message, expected: "true" });
});

/** What distinguishes requests. Source: envoy.config.route.v3.RouteAction.HashPolicy. */
export type HashSource =
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "query"; readonly name: string }
  /** Created if it is absent; 0: for the session. Whole seconds. */
  | { readonly kind: "cookie"; readonly name: string; readonly ttlMs: number }
  | { readonly kind: "sourceIp" };

const hashNames = ["header", "cookie", "queryParameter", "sourceIp"] as const;

const consistentHash = object(
  {
    title: "a consistentHash",
    docs: "Sends requests with the same hash to the same host, as long as that host exists.",
    needed: [hashNames],
    alternatives: hashNames,
  },
  {
    header: field(headerName, "Hashes a header."),
    cookie: field(inner(cookie), "Hashes a cookie."),
    queryParameter: field(ruledText(keyRule), "Hashes a query parameter."),
    sourceIp: field(sourceIp, "Hashes the caller's address."),
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

/** Exactly one of them, because the result of several in Envoy is hard to predict. */
const hashBlock = innerBy(consistentHash, (block) => block);
const hash = readBy(hashBlock, (reader, place) => {
  const block = hashBlock.read(reader, place);
  if (block === undefined) return undefined;
  if (hashNames.some((name) => block.field(name) !== undefined)) return consistentHash.read(block);
  const message = "the hash has no source";
  const expected = "one of header, cookie, queryParameter and sourceIp";
  return reader.report(place.key, { id: "HG125", message, expected });
});

/** Slow start of a new host if the policy sets no details. */
export const defaultSlowStart = slowStart.defaults;

/** What `zoneAware: {}` means. */
export const defaultZoneAware = zoneAware.defaults;

/** `loadBalancing`. */
export const loadBalancing = object(
  {
    title: "a loadBalancing",
    docs: "How hosts are chosen. Default: the less busy of two random hosts.",
    exclusive: [
      ["consistentHash", "slowStart"],
      ["consistentHash", "zoneAware"],
    ],
  },
  {
    healthyPanicThreshold: field(
      whole(percentBounds),
      "Percent of healthy hosts below which all hosts get requests; 0: never. " +
        "Default: 50 in Envoy, 0 in Istio.",
      { larger: "different", as: "panicThresholdPercent" },
    ),
    consistentHash: field(hash, "Sends requests with the same hash to the same host.", {
      as: "hash",
    }),
    slowStart: field(inner(slowStart), "New hosts start with a small share. Default: off."),
    zoneAware: field(inner(zoneAware), "Prefers hosts in the same zone. Default: off."),
  },
);

/** How hosts of a service are chosen. */
export type LoadBalancingPolicy = typeof loadBalancing.defaults;

/** Source: envoy.config.cluster.v3.Cluster.SlowStartConfig. */
export type SlowStartPolicy = typeof slowStart.defaults;
