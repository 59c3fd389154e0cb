import type { RejectSettings } from "./refusal.js";

/** The longest that an estimate asks a caller to stay away: estimates are coarse. In seconds. */
export const estimatedSecondsMax = 60;

/** The longest that anything asks a caller to stay away, in seconds: what 32 bits hold. */
export const retryAfterSecondsMax = 2_147_483_647;

/** How long it takes until the same request may be let in. */
export type RetryWait =
  | { readonly kind: "unknown" }
  /** By the state of a queue, which may have changed by then. */
  | { readonly kind: "estimated"; readonly ms: number }
  /** As a rate limit knows it. */
  | { readonly kind: "known"; readonly ms: number };

/**
 * What `retry-after` says: the wait in whole seconds, rounded up, at least `retryAfterSecondsMin`
 * and at least 1; and up to `retryAfterJitterRatio` of it more, rounded up, so that callers who
 * were refused together do not return together. Never less: who comes back early is refused again.
 *
 * Example: a wait of 9.2 s, jitter 0.5: 10 to 15, each as likely. Unknown, minimum 1: 1 or 2.
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
