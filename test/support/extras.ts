import { ResponseExtras } from "../../src/rpc/rls/rls-extras.js";

/** Responses with nothing but statuses, unless a rule wants more. */
export const plainExtras = new ResponseExtras({
  headerNames: undefined,
  tellsWait: false,
  hasDynamicMetadata: false,
});
