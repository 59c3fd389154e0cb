import type { RejectSettings } from "./refusal.js";

/** Maximum wait that an estimate asks for, in seconds: estimates are coarse. */
export const estimatedSecondsMax = 60;

/** Maximum `retry-after`, in seconds: the maximum of a signed 32-bit number. */
export const retryAfterSecondsMax = 2_147_483_647;

/** Wait until the same request may be admitted. */
export type RetryWait =
  | { readonly kind: "unknown" }
  /** By the state of a queue, which may have changed by then. */
  | { readonly kind: "estimated"; readonly ms: number }
  /** As a rate limit or a budget computes it. */
  | { readonly kind: "known"; readonly ms: number };

/**
 * Returns the `retry-after` value: the wait in whole seconds, rounded up, at least 1 and at least
 * `retryAfterSecondsMin`. It adds up to `retryAfterJitterRatio` of it, rounded up, so that callers
 * refused together return apart, and never subtracts: an early return is refused again.
 *
 * Example: a wait of 9.2 s, jitter 0.5: 10 to 15, equally likely. Unknown, minimum 1: 1 or 2.
 *
 * @param draw uniform in [0, 1)
 *
 * Source: RFC 9110, section 10.2.3 (delay-seconds).
 */
export function retryAfterSeconds(
  settings: Pick<RejectSettings, "retryAfterSecondsMin" | "retryAfterJitterRatio">,
  wait: RetryWait,
  draw: number,
): number {
  const { retryAfterSecondsMin, retryAfterJitterRatio } = settings;
  const baseSeconds = Math.max(1, Math.ceil(retryAfterSecondsMin), waitSeconds(wait));
  const jitterSeconds = Math.ceil(baseSeconds * retryAfterJitterRatio);
  const seconds = baseSeconds + Math.floor(draw * (jitterSeconds + 1));
  return Math.min(seconds, retryAfterSecondsMax);
}

function waitSeconds(wait: RetryWait): number {
  switch (wait.kind) {
    case "unknown":
      return 0;
    case "estimated":
      return Math.min(estimatedSecondsMax, Math.ceil(wait.ms / 1_000));
    case "known":
      return Math.ceil(wait.ms / 1_000);
  }
}
