import { addressAttribute } from "../../policy/cel/request-facts.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type { AdmissionRequest } from "../admission/admission-call.js";
import { RateLimitAsker, type RateLimitDecider } from "../admission/admission-rate-limit.js";
import type { RateLimitQuery } from "../rate-limit/query.js";
import { addressPrefix } from "./room-tickets.js";

/** The domain of limits for joining. No policy can name it. */
const joinLimitDomain = "headgate:waiting-room";

/** Address bits that identify callers: a caller with one IPv6 address has 2^64 of them. */
const callerBits = { v4: 32, v6: 64 } as const;

/** Returns the rate limit per caller for joining a room, checked like all rate limits. */
export function joinLimitOf(
  { name, joinLimit }: Pick<RoomPolicy, "name" | "joinLimit">,
  decider: RateLimitDecider,
): RateLimitAsker | undefined {
  if (joinLimit === undefined) return undefined;
  const { per, requests: hits, periodSeconds, burst } = joinLimit;
  const override = { hits, burst, unit: "second", unitMultiplier: periodSeconds } as const;
  const callerOf = ({ headers, attributes }: Pick<AdmissionRequest, "headers" | "attributes">) =>
    per.kind === "header"
      ? (headers.get(per.header) ?? "")
      : addressPrefix(attributes.get(addressAttribute), callerBits);
  return new RateLimitAsker(decider, (request): RateLimitQuery => {
    const entries = [
      { key: "waiting_room", value: name },
      { key: "caller", value: callerOf(request) },
    ];
    const descriptors = [{ entries, hits: 1, isRefund: false, override }];
    return { domain: joinLimitDomain, descriptors, isOwn: true };
  });
}
