import { type FailureMode, isSettled } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";

/** How to answer a call that is not parsed. */
export type ShedMode = Exclude<FailureMode, "local">;

/**
 * Returns how to answer calls whose limits are unknown because they are not parsed: by the
 * strictest failure mode of all limits that could deny them. `local` counts as `deny` here, because
 * a caller that exhausts the memory of a process must not escape its limits.
 *
 * @param carried the failure mode of limits that calls carry; undefined if no call has carried one
 */
export function shedModeOf({ rules }: Policy, carried: FailureMode | undefined): ShedMode {
  if (carried === "deny" || carried === "local") return "deny";
  let mode: ShedMode = carried ?? "allow";
  for (const { effect } of rules) {
    if (effect.kind !== "limited") continue;
    for (const { role, onStoreFailure } of effect.limits) {
      if (role === "shadow" || isSettled(role)) continue;
      if (onStoreFailure === "deny" || onStoreFailure === "local") return "deny";
      if (onStoreFailure === "error") mode = "error";
    }
  }
  return mode;
}
