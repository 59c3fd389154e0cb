import type { Block } from "../text/block.js";
import { percentBounds } from "../text/quantities.js";
import { readHeaderName } from "../text/service-texts.js";
import { keyRule, type TextRule } from "../text/text-rules.js";
import { thresholdBounds } from "./circuit-breakers.js";
import { defaultLoadBalancing, defaultSlowStart, defaultZoneAware } from "./default-upstream.js";
import { requestTimeBounds, tryTimeBounds } from "./retries.js";
import type {
  HashSource,
  LoadBalancingPolicy,
  SlowStartPolicy,
  ZoneAwarePolicy,
} from "./upstream-policy.js";
import {
  consistentHashShape,
  hashCookieShape,
  loadBalancingShape,
  slowStartShape,
  zoneAwareShape,
} from "./upstream-shapes.js";

/** The bounds of `minWeightPercent`: at 0 a new host would never get a request. */
export const weightBounds = { min: 1, max: 100 } as const;

/** The form of a cookie's name, which is a token as a header's is. Source: RFC 6265. */
export const cookiePattern = /^[\w!#$%&'*+.^`|~-]+$/;

const cookieRule: TextRule = {
  charsMax: 128,
  forbidden: /[^\w!#$%&'*+.^`|~-]/,
  expected: "a cookie's name, such as session",
};

/** Reads `loadBalancing` of a service; what is left out is as usual. */
export function readLoadBalancing(service: Block): LoadBalancingPolicy {
  const block = service.block("loadBalancing", loadBalancingShape);
  if (block === undefined) return defaultLoadBalancing;
  const hash = readHash(block);
  const slowStart = readSlowStart(block);
  if (block.field("slowStart") !== undefined && block.field("consistentHash") !== undefined) {
    block.refusePair("slowStart", "consistentHash");
  }
  if (block.field("zoneAware") !== undefined && block.field("consistentHash") !== undefined) {
    block.refusePair("zoneAware", "consistentHash");
  }
  return {
    panicThresholdPercent: block.whole("healthyPanicThreshold", undefined, percentBounds),
    hash,
    slowStart,
    zoneAware: readZoneAware(block),
  };
}

function readSlowStart(balancing: Block): SlowStartPolicy | undefined {
  const block = balancing.block("slowStart", slowStartShape);
  return (
    block && {
      windowMs: block.durationMs("window", defaultSlowStart.windowMs, tryTimeBounds),
      weightPercentMin: block.whole(
        "minWeightPercent",
        defaultSlowStart.weightPercentMin,
        weightBounds,
      ),
    }
  );
}

function readZoneAware(balancing: Block): ZoneAwarePolicy | undefined {
  const block = balancing.block("zoneAware", zoneAwareShape);
  const { clusterSizeMin: usual } = defaultZoneAware;
  return block && { clusterSizeMin: block.whole("minClusterSize", usual, thresholdBounds) };
}

const hashNames = consistentHashShape.names;

/** Exactly one of them: what Envoy makes of several is hard to foresee. */
function readHash(balancing: Block): HashSource | undefined {
  const block = balancing.block("consistentHash", consistentHashShape);
  if (block === undefined) return undefined;
  const [name, other] = hashNames.filter((one) => block.field(one) !== undefined);
  const expected = "one of header, cookie, queryParameter and sourceIp";
  if (name === undefined) {
    const message = "nothing says by what requests are told apart";
    return balancing.report("consistentHash", { id: "HG125", message, expected });
  }
  if (other !== undefined) return block.refusePair(other, name);
  return readSource(block, name);
}

function readSource(block: Block, name: (typeof hashNames)[number]): HashSource | undefined {
  const { reader } = block;
  const field = block.field(name);
  switch (name) {
    case "header": {
      const header = field && readHeaderName(reader, field);
      return header === undefined ? undefined : { kind: "header", name: header };
    }
    case "queryParameter": {
      const parameter = block.text(name, keyRule);
      return parameter === undefined ? undefined : { kind: "query", name: parameter };
    }
    case "cookie": {
      const cookie = block.block(name, hashCookieShape);
      if (cookie === undefined) return undefined;
      reader.requiredField(cookie.fields, "name", "the cookie's name");
      const ttlMs = cookie.durationMs("ttl", 0, requestTimeBounds);
      if (ttlMs % 1_000 !== 0) {
        const message = "a cookie lasts for whole seconds";
        cookie.report("ttl", { id: "HG141", message, expected: "whole seconds, as 30s" });
      }
      return { kind: "cookie", name: cookie.text("name", cookieRule) ?? "", ttlMs };
    }
    case "sourceIp": {
      if (block.flag(name)) return { kind: "sourceIp" };
      const message = "without it nothing says by what requests are told apart";
      return block.report(name, { id: "HG133", message, expected: "true" });
    }
  }
}
