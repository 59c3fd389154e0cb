import type { GeneratedPolicy, GenerateOptions, TargetProblem } from "../../base/generator.js";

/** The context from which the parts of one proxy's configuration are generated. */
export interface EnvoyContext {
  readonly policy: GeneratedPolicy;
  readonly options: GenerateOptions;
  /** An edge proxy serves all services. A sidecar serves its own inbound and others outbound. */
  readonly role: "edge" | "sidecar";
  /** Direction of the requests of a listener or filter chain. */
  readonly side: "inbound" | "outbound";
  /** A mesh gateway that is otherwise a caller like others: untrusted requests reach it first. */
  readonly isMeshGateway?: true;
  /**
   * Virtual hosts cannot enable filters: istiod accepts no `config: {}` without a type, and Envoy
   * accepts none with a type for a quota's filter. So quotas match hosts themselves.
   */
  readonly hasQuotasByHost?: true;
  /** The proxy only has clusters of these services, so requests cannot fall back to others. */
  readonly isWhole?: true;
  /** Names of the clusters that lead to Headgate, in this proxy. */
  readonly headgateClusters: {
    /** gRPC for decisions. `headgate` in our bootstraps. */
    readonly decisions: string;
    /** xDS, statistics, load reports. `headgate_control` in our bootstraps. */
    readonly control: string;
    /** Quota assignments: the control port, by its name in the mesh if there is one. */
    readonly quotas: string;
  };
  /** Receives unsupported or doubtful settings. Generation continues, to find all of them. */
  readonly report: (problem: TargetProblem) => void;
}
