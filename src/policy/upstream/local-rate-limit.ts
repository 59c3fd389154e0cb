import { duration, whole, words } from "../text/form.js";
import { field, object } from "../text/object.js";
import type { DurationBounds } from "../text/quantities.js";
import { thresholdBounds, thresholdMax } from "./circuit-breakers.js";

/** Minimum interval at which Envoy fills a bucket, in milliseconds. */
export const fillMsMin = 50;

/** Maximum interval, in milliseconds: a day. */
export const fillMsMax = 86_400_000;

/** The bounds of `per`. */
export const fillBounds: DurationBounds = { minMs: fillMsMin, maxMs: fillMsMax };

/** Times at which a protection may act. */
const protectionTimes = ["always", "withoutHeadgate"] as const;

/** When a local protection of Envoy acts. */
type ProtectionTime = (typeof protectionTimes)[number];

/** `when` of a protection. */
export const whenField = (defaultTime: ProtectionTime) =>
  field(
    words(...protectionTimes),
    "`withoutHeadgate`: enforced only while Headgate does not refresh the proxy's runtime.",
    { default: defaultTime },
  );

/** `localRateLimit`. */
export const localRateLimit = object(
  {
    title: "a localRateLimit",
    docs: "A token bucket in each proxy: a backstop for the global limits.",
  },
  {
    requests: field(whole(thresholdBounds), "Requests allowed in each interval, in one proxy.", {
      larger: "looser",
      needs: `requests allowed in each interval, 1 to ${thresholdMax}`,
    }),
    per: field(duration(fillBounds), "The length of an interval.", {
      larger: "stricter",
      as: "perMs",
      default: 1_000,
    }),
    burst: field(
      whole(thresholdBounds),
      "Requests that may arrive at once, at least `requests`. Default: `requests`.",
      { larger: "looser" },
    ),
    when: whenField("withoutHeadgate"),
  },
  {
    data: ({ requests = 1, perMs, burst = requests, when }) => {
      return { requests, perMs, burst, when };
    },
    check(block, { requests, burst }) {
      if (burst >= requests) return;
      const message = `burst is ${burst}, and each interval adds ${requests} requests`;
      block.refuseOrder(["burst"], message, "at least requests");
    },
  },
);

/** A token bucket in each proxy. Source: envoy.extensions.filters.http.local_ratelimit.v3. */
export type LocalRateLimitPolicy = typeof localRateLimit.defaults;
