import type { GeneratedPolicy, GenerateOptions, TargetProblem } from "../../base/generator.js";

/** What the parts of one proxy's configuration are made from. */
export interface EnvoyContext {
  readonly policy: GeneratedPolicy;
  readonly options: GenerateOptions;
  /** An edge proxy serves all services; a sidecar its own inbound, and others' outbound. */
  readonly role: "edge" | "sidecar";
  /** Which way the requests go that a listener or filter chain is for. */
  readonly side: "inbound" | "outbound";
  /** A mesh's gateway that is a caller like others otherwise: strangers reach it first. */
  readonly isMeshGateway?: true;
  /**
   * Its virtual hosts turn no filter on: istiod takes no `config: {}` without a type, and Envoy
   * takes none of any type for a quota's filter. So quotas look at hosts themselves.
   */
  readonly hasQuotasByHost?: true;
  /** It has clusters of these services alone, so that requests fall back to no other cluster. */
  readonly isWhole?: true;
  /** How the proxy names the clusters that lead to Headgate. */
  readonly headgateClusters: {
    /** gRPC of decisions. `headgate` in a bootstrap of ours. */
    readonly decisions: string;
    /** xDS, statistics, load reports. `headgate_control` in a bootstrap of ours. */
    readonly control: string;
    /** Assignments of quotas: the control port, as the mesh calls it where there is one. */
    readonly quotas: string;
  };
  /** Takes what cannot be said, or should not be; the generator goes on to find all. */
  readonly report: (problem: TargetProblem) => void;
}
