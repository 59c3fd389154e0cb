import {
  denialOf,
  isSettled,
  type LimitDefaults,
  type Role,
  settledRole,
} from "../../core/limits/limit.js";

/** What the process changes about every limit, whatever the policy says of it. */
export interface LimitSwitches {
  /** Everything is decided and counted, nobody is refused (`SHADOW_MODE`). */
  readonly isShadow: boolean;
  /** Every limit denies only together with all others of a request (`QUOTA_MODE`). */
  readonly isQuota: boolean;
  /**
   * Hits that are denied count all the same, up to one more burst, as in envoyproxy/ratelimit. Off,
   * a caller who keeps asking is let in again as soon as there is room.
   */
  readonly chargesDenied: boolean;
  /** What holds for limits that requests carry themselves. */
  readonly defaults: LimitDefaults;
}

/**
 * The part that a limit plays under the process's switches.
 *
 * @param isSettling whether its costs are told after the response, though the limit does not say so
 */
export function switchedRole(
  role: Role,
  { isShadow, isQuota, chargesDenied }: LimitSwitches,
  isSettling: boolean,
): Role {
  const own = denialOf(role);
  // Where nobody is refused each limit is charged by itself, as if it stood alone.
  const denial = isShadow ? "shadow" : isQuota && own === "enforce" ? "quota" : own;
  const isCharged = isSettled(role) || isSettling || (chargesDenied && denial !== "shadow");
  return isCharged ? settledRole(denial) : denial;
}
