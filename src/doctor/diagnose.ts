import { checkDescriptors } from "./descriptor-checks.js";
import {
  type Diagnostic,
  type DoctorCheck,
  type DoctorInput,
  type DoctorPolicy,
  rankDiagnostics,
} from "./diagnostic.js";
import type { EnvoyDump } from "./envoy-dump.js";
import { checkExtProc } from "./ext-proc-checks.js";
import { checkLimits } from "./limit-checks.js";
import { checkLoop } from "./loop-checks.js";
import { checkAnswers } from "./response-checks.js";
import { checkRouting } from "./routing-checks.js";
import { checkSides } from "./side-checks.js";
import { checkUsage } from "./usage-checks.js";

const areas: readonly DoctorCheck[] = [
  checkRouting,
  checkDescriptors,
  checkAnswers,
  checkExtProc,
  checkUsage,
  checkLoop,
  checkLimits,
  checkSides,
];

/**
 * Compares the configuration of an Envoy that does not run with a policy, and returns problems,
 * worst first. Checks that need a running Envoy are left out.
 */
export function diagnoseBootstrap(
  dump: EnvoyDump,
  { policy, ownVersion }: { readonly policy: DoctorPolicy; readonly ownVersion: string },
): readonly Diagnostic[] {
  const unknown = {
    stats: [],
    deprecated: undefined,
    runtime: undefined,
    envoyVersion: undefined,
    cluster: undefined,
  };
  const nobody = { headgate: undefined, headgateFailure: undefined, clocks: {} };
  const diagnostics = diagnose({
    ...unknown,
    ...nobody,
    dump,
    policy,
    ownVersion,
    envoyNowMs: undefined,
  });
  return diagnostics.filter(({ kind }) => kind === "finding");
}

/**
 * Compares an Envoy with a policy and with Headgate's own state. Returns problems first, worst
 * first, then passed checks, then what could not be checked. Never throws, whatever the input is.
 */
export function diagnose(input: DoctorInput): readonly Diagnostic[] {
  return rankDiagnostics(areas.flatMap((examine) => examine(input)));
}
