import { defaultDefaults } from "../../src/core/limits/limit.js";
import type { LimitSwitches } from "../../src/decide/rate-limit/switches.js";

/** Every limit as the policy says. */
export const noSwitches: LimitSwitches = {
  isShadow: false,
  isQuota: false,
  chargesDenied: false,
  defaults: defaultDefaults,
};
