import {
  defaultDefaults,
  denialOf,
  isSettled,
  type LimitDefaults,
  type Role,
  settledRole,
} from "../../core/limits/limit.js";

/** Process-wide settings that change every limit, whatever the policy says. */
export interface LimitSwitches {
  /** Decide and count, but never deny (`SHADOW_MODE`). */
  readonly isShadow: boolean;
  /**
   * Treat every limit as part of a quota: a request is denied only if all of them are over
   * (`QUOTA_MODE`).
   */
  readonly isQuota: boolean;
  /**
   * Charge denied hits too, up to one extra burst, as envoyproxy/ratelimit does. If off, a caller
   * that keeps sending is admitted again as soon as there is room.
   */
  readonly chargesDenied: boolean;
  /** Defaults of limits that requests carry. */
  readonly defaults: LimitDefaults;
}

/** The switches of a process whose settings change none of them. */
export const defaultSwitches: LimitSwitches = {
  isShadow: false,
  isQuota: false,
  chargesDenied: false,
  defaults: defaultDefaults,
};

/**
 * The role of a limit under the process-wide settings.
 *
 * @param isSettling whether its costs are reported after the response although the limit does not
 *   say so
 */
export function switchedRole(
  role: Role,
  { isShadow, isQuota, chargesDenied }: LimitSwitches,
  isSettling: boolean,
): Role {
  const own = denialOf(role);
  // If nothing is denied, each limit is charged independently.
  const denial = isShadow ? "shadow" : isQuota && own === "enforce" ? "quota" : own;
  const isCharged = isSettled(role) || isSettling || (chargesDenied && denial !== "shadow");
  return isCharged ? settledRole(denial) : denial;
}
