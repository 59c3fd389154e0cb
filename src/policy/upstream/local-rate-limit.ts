import type { Block } from "../text/block.js";
import type { DurationBounds } from "../text/quantities.js";
import { thresholdBounds, thresholdMax } from "./circuit-breakers.js";
import { defaultLocalRateLimit } from "./default-upstream.js";
import type { LocalRateLimitPolicy, ProtectionTime } from "./upstream-policy.js";
import { localRateLimitShape } from "./upstream-shapes.js";

/** The shortest interval at which Envoy fills a bucket, in milliseconds. */
export const fillMsMin = 50;

/** The longest one: a day. */
export const fillMsMax = 86_400_000;

/** The bounds of `per`. */
export const fillBounds: DurationBounds = { minMs: fillMsMin, maxMs: fillMsMax };

/** When a protection may act. */
export const protectionTimes = [
  "always",
  "withoutHeadgate",
] as const satisfies readonly ProtectionTime[];

/** Reads `localRateLimit` of a service; undefined where it is left out. */
export function readLocalRateLimit(service: Block): LocalRateLimitPolicy | undefined {
  const block = service.block("localRateLimit", localRateLimitShape);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const expected = `how many requests an interval lets pass, 1 to ${thresholdMax}`;
  reader.requiredField(fields, "requests", expected);
  const requests = block.whole("requests", 1, thresholdBounds);
  const burst = block.whole("burst", requests, thresholdBounds);
  if (burst < requests) {
    const message = `a burst of ${burst} is less than what an interval adds, ${requests}`;
    block.refuseOrder(["burst"], message, "at least requests");
  }
  return {
    requests,
    perMs: block.durationMs("per", defaultLocalRateLimit.perMs, fillBounds),
    burst,
    when: block.choice("when", { usual: defaultLocalRateLimit.when, words: protectionTimes }),
  };
}
