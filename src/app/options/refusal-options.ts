import { toldRefusalsPerSecondMax } from "../../decide/rate-limit/refusal-log.js";
import { wholeNumberOption } from "./option.js";

/** How refusals are told in the log. */
export const refusalOptionRows = {
  refusalsLoggedPerSecond: wholeNumberOption({
    section: "Logs",
    env: "HEADGATE_REFUSALS_LOGGED_PER_SECOND",
    flag: "refusals-logged-per-second",
    min: 0,
    max: toldRefusalsPerSecondMax,
    defaultValue: 1,
    docs:
      "Lines at level `info` of refused requests, for each rule that a policy does not keep out " +
      "of the log (`tellRule`), and each cause of a service; 0 for none. All together they are " +
      `${toldRefusalsPerSecondMax} a second at most; each says how many requests it stands for.`,
  }),
} as const;
