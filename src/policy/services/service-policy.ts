import type { ServiceUsage } from "../budgets/budget-policy.js";
import type { AdmissionPolicy } from "./service-admission.js";
import type { ServiceConcurrency } from "./service-concurrency.js";
import type { service } from "./service-form.js";
import type { ServiceRateLimit } from "./service-rate-limit.js";

/** `services` as it is written, field by field. */
export type ReadService = typeof service.defaults;

/** Properties of a service that are known after the whole policy is read. */
interface Finished {
  readonly name: string;
  /** Values of `:authority` that select it, in lower case, without a port; may be empty. */
  readonly hosts: readonly string[];
  readonly clusters: readonly string[];
  /** Undefined: its calls are not measured, and no budget charges them. */
  readonly usage: ServiceUsage | undefined;
  /** Undefined: no rate limits are requested. */
  readonly rateLimit: ServiceRateLimit | undefined;
  /** Undefined: admission is off, and every request is admitted. */
  readonly admission: AdmissionPolicy | undefined;
  /** Undefined: only `admission.maxInFlight` applies. */
  readonly concurrency: ServiceConcurrency | undefined;
  readonly circuitBreakers: NonNullable<ReadService["circuitBreakers"]>["data"];
  readonly outlierDetection: Exclude<ReadService["outlierDetection"], "off">;
  readonly retries: NonNullable<ReadService["retries"]>["data"] | undefined;
  readonly workloadLabels: NonNullable<ReadService["workloadLabels"]>;
  readonly adaptiveConcurrency: AfterProxies<ReadService["adaptiveConcurrency"]>;
  readonly admissionControl: AfterProxies<ReadService["admissionControl"]>;
}

type AfterProxies<Read> = Read extends (defaults: infer Data) => unknown ? Data : never;

/** One upstream service of the policy. Plain data, so that it can be sent to other threads. */
export type ServicePolicy = Omit<ReadService, keyof Finished> & Finished;
