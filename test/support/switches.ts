import { usualDefaults } from "../../src/core/limit.js";
import type { Switches } from "../../src/decide/switches.js";

/** Every limit as the policy says. */
export const noSwitches: Switches = {
  isShadow: false,
  isQuota: false,
  chargesDenied: false,
  defaults: usualDefaults,
};
