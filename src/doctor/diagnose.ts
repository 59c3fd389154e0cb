import { lookAtAnswers } from "./answer-looks.js";
import { lookAtDescriptors } from "./descriptor-looks.js";
import type { EnvoyDump } from "./envoy-dump.js";
import { lookAtExtProc } from "./ext-proc-looks.js";
import { lookAtLimits } from "./limit-looks.js";
import { type DoctorPolicy, type Evidence, type Examine, type Look, rankLooks } from "./look.js";
import { lookAtLoop } from "./loop-looks.js";
import { lookAtRoad } from "./road-looks.js";
import { lookAtSides } from "./side-looks.js";

const areas: readonly Examine[] = [
  lookAtRoad,
  lookAtDescriptors,
  lookAtAnswers,
  lookAtExtProc,
  lookAtLoop,
  lookAtLimits,
  lookAtSides,
];

/**
 * Compares the configuration of an Envoy that does not run with a policy: what is wrong, worst
 * first. Nothing is said of what only a running one shows.
 */
export function diagnoseBootstrap(
  dump: EnvoyDump,
  { policy, ownVersion }: { readonly policy: DoctorPolicy; readonly ownVersion: string },
): readonly Look[] {
  const unknown = {
    stats: [],
    deprecated: undefined,
    runtime: undefined,
    envoyVersion: undefined,
    cluster: undefined,
  };
  const nobody = { headgate: undefined, headgateFailure: undefined, clocks: {} };
  const looks = diagnose({
    ...unknown,
    ...nobody,
    dump,
    policy,
    ownVersion,
    envoyNowMs: undefined,
  });
  return looks.filter(({ kind }) => kind === "finding");
}

/**
 * Compares an Envoy with a policy and with what Headgate says of itself: what hurts most first,
 * then what is right, then what could not be looked at. Whatever the evidence holds, nothing is
 * thrown.
 */
export function diagnose(evidence: Evidence): readonly Look[] {
  return rankLooks(areas.flatMap((examine) => examine(evidence)));
}
