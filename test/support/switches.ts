import { defaultDefaults } from "../../src/core/limits/limit.js";
import type { Switches } from "../../src/decide/rate-limit/switches.js";

/** Every limit as the policy says. */
export const noSwitches: Switches = {
  isShadow: false,
  isQuota: false,
  chargesDenied: false,
  defaults: defaultDefaults,
};
