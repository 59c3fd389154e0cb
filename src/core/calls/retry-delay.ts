/** How waits before retries grow, and which part of them is random. */
export interface RetryDelaySettings {
  /** One of `law`, `full`, `equal`, `decorrelated` and `none`; see `retryDelayMs`. */
  readonly jitter: "law" | "full" | "equal" | "decorrelated" | "none";
  /** The first wait, in milliseconds above 0; `law` has its own. */
  readonly baseMs: number;
  /** Maximum wait, in milliseconds, even if `baseMs` is longer. `law` has its own. */
  readonly maxMs: number;
}

/** Circumstances of a retry. */
export interface RetryReason {
  /** Retries before this one, from 0. */
  readonly retryIndex: number;
  /** For `law`: `quota` after 429 and RESOURCE_EXHAUSTED, else `overload`. Default `overload` */
  readonly waitLaw?: "quota" | "overload" | undefined;
  /** Minimum wait that the service asked for, in milliseconds from 0. Default 0 */
  readonly retryAfterMs?: number | undefined;
  /** The wait before the last retry, in milliseconds, for `decorrelated`. Default `baseMs` */
  readonly lastDelayMs?: number | undefined;
}

/** For `law` after a refusal for a quota: first wait, random spread and maximum, in seconds. */
const quotaLaw = { firstSeconds: 1, spreadSeconds: 1, secondsMax: 30 } as const;

/** The same after all other outcomes: an overloaded service needs more time than a quota. */
const overloadLaw = { firstSeconds: 2, spreadSeconds: 2, secondsMax: 60 } as const;

/**
 * Returns the wait before retry n, from 0, in milliseconds with fractions. It is never less than
 * the service asked for, even if that exceeds the maximum wait: check it before.
 *
 * | jitter | wait |
 * |---|---|
 * | `law`, `quota` | `min(2^n + U(0, 1), 30)` seconds |
 * | `law`, `overload` | `min(2^(n+1) + U(0, 2), 60)` seconds |
 * | `none` | `w = min(max, base x 2^n)` |
 * | `full` | `U(0, w)`: spreads callers the most, and so is the least work for the service |
 * | `equal` | `w / 2 + U(0, w / 2)` |
 * | `decorrelated` | `min(max, U(base, 3 x last wait))` |
 *
 * Example: base 100 ms, n 3, draw 0.5: `full` waits 400 ms, `equal` 600 ms; `decorrelated` after
 * 300 ms 500 ms; `law` 8.5 s for a quota and 17 s for an overload.
 *
 * @param draw uniform in [0, 1)
 *
 * Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function retryDelayMs(
  settings: RetryDelaySettings,
  reason: RetryReason,
  draw: number,
): number {
  return Math.max(ownDelayMs(settings, reason, draw), reason.retryAfterMs ?? 0);
}

function ownDelayMs(
  { jitter, baseMs, maxMs }: RetryDelaySettings,
  { retryIndex, waitLaw, lastDelayMs = baseMs }: RetryReason,
  draw: number,
): number {
  const wholeMs = Math.min(maxMs, baseMs * 2 ** retryIndex);
  switch (jitter) {
    case "law": {
      const { firstSeconds, spreadSeconds, secondsMax } =
        waitLaw === "quota" ? quotaLaw : overloadLaw;
      const seconds = firstSeconds * 2 ** retryIndex + spreadSeconds * draw;
      return Math.min(seconds, secondsMax) * 1_000;
    }
    case "none":
      return wholeMs;
    case "full":
      return draw * wholeMs;
    case "equal":
      return wholeMs * (0.5 + draw / 2);
    case "decorrelated":
      return Math.min(maxMs, baseMs + draw * Math.max(0, 3 * lastDelayMs - baseMs));
  }
}
