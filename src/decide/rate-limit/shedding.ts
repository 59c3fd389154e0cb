import { type FailureMode, isSettled } from "../../core/limits/limit.js";
import type { Policy } from "../../policy/policy.js";

/** How a call is answered of which nothing is read. */
export type ShedMode = Exclude<FailureMode, "local">;

/**
 * How calls are answered while nobody knows which limits they meet: by the strictest failure mode
 * of all that could refuse one. What would be counted locally cannot be, and is refused: whoever
 * makes a process run out of memory must not be rid of his limits.
 *
 * @param carried the failure mode of limits that calls carry; undefined: none has carried any
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
