import type { PermitsByKey } from "../../core/admission/permits.js";
import type { SharedKeyCounts } from "../../core/admission/shared-key-counts.js";
import type { KeyedPermits } from "../../policy/services/service-admission.js";
import type { AdmittedRequest } from "./admitted-request.js";

interface SharedKeyParts {
  readonly service: string;
  readonly limit: KeyedPermits;
  readonly key: string;
  /** This replica's own count, which refuses without a call to the store. */
  readonly keyed: PermitsByKey;
  readonly sharedKeys: SharedKeyCounts;
  readonly isEnforced: boolean;
  readonly deadlineMs: number;
}

/**
 * Counts a request for its key, in this replica and in the fleet. Both counts are given back when
 * the request is over.
 *
 * @param counted called later, unless the request is over by then: whether the request is in, and
 *   whether it is above the maximum in the fleet but not here
 */
export function takeSharedKey(
  visit: AdmittedRequest,
  { service, limit, key, keyed, sharedKeys, isEnforced, deadlineMs }: SharedKeyParts,
  counted: (answer: { readonly isIn: boolean; readonly isOverInFleet: boolean }) => void,
): void {
  const hadRoom = keyed.hasRoom(key);
  visit.keyCount = keyed.take(key);
  const asked = { service, key, max: limit.max, isEnforced };
  sharedKeys.take(asked, deadlineMs, ({ isOver, giveBack }) => {
    if (visit.stage === "over") {
      giveBack?.();
      return;
    }
    visit.giveBackShared = giveBack;
    counted({ isIn: giveBack !== undefined, isOverInFleet: isOver && hadRoom });
  });
}
