import { doctorProblemRows } from "../../doctor/doctor-problems.js";
import { diagnoseOwn, type OwnView } from "../../doctor/own-checks.js";
import { isDriven } from "../../generate/envoy/http/layered-runtime.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { AdminFinding, ServiceState } from "../../rpc/admin/admin-parts.js";
import type { Node } from "../../rpc/nodes/node-registry.js";
import type { PolicyStatus } from "../policy/active-policy.js";

/** What the checks of this replica need. */
export interface AdminFindingsParts {
  readonly version: string;
  readonly policyStatus: () => PolicyStatus;
  /** Whether the store is unreachable. */
  readonly isStoreOut: () => boolean;
  readonly nodes: () => Iterable<Node>;
  readonly services: () => readonly ServicePolicy[];
  readonly states: () => readonly Pick<ServiceState, "name" | "overflowPerSecond">[];
}

/** The findings of `headgate doctor` about this replica that need no Envoy. */
export function findingsOf(parts: AdminFindingsParts): readonly AdminFinding[] {
  return diagnoseOwn(viewOf(parts)).map((look) => {
    const { title, remedy } = doctorProblemRows[look.id];
    const { kind, id, seen } = look;
    if (look.kind !== "finding") return { kind, id, severity: undefined, seen, title, remedy };
    const { severity, todo = remedy } = look;
    return { kind, id, severity, seen, title, remedy: todo };
  });
}

function viewOf(parts: AdminFindingsParts): OwnView {
  const { version: policyVersion, lastProblem, controlPlane } = parts.policyStatus();
  const isStoreOut = parts.isStoreOut();
  const isCutOff = controlPlane?.isConnected === false;
  const isWell = !isStoreOut && !isCutOff && lastProblem === undefined;
  const waiting = policyVersion === undefined ? "waiting for a policy" : undefined;
  const driven = new Set(
    parts
      .services()
      .filter(isDriven)
      .map(({ name }) => name),
  );
  return {
    headgate: {
      status: waiting ?? (isWell ? "ready" : "degraded"),
      storeState: isStoreOut ? "unavailable" : "ok",
      policyVersion,
      lastReloadProblem: lastProblem !== undefined,
      version: parts.version,
      totals: new Map(),
      decisionMsP99: undefined,
    },
    envoys: [...parts.nodes()].map(({ id, identity, refusal }) => {
      return { name: id, version: identity.version || undefined, refusal };
    }),
    services: parts.states().map(({ name, overflowPerSecond }) => {
      return { name, overflowPerSecond, isDriven: driven.has(name) };
    }),
  };
}
