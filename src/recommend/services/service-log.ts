import { many } from "../../core/base/many.js";
import type { Policy } from "../../policy/policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { LoggedRequest } from "../../simulate/logged-request.js";
import { RequestSweep, sweptRequestsMax } from "./request-sweep.js";
import type { ServiceObservations } from "./service-observations.js";

/** Maximum number of services observed in a log. */
const sweptServicesMax = 32;

/** Observes services in a log of their requests. The policy's hosts assign requests to services. */
export class ServiceLog {
  readonly #policy: Policy;
  readonly #sweeps = new Map<string, RequestSweep>();
  /** The only service of a policy, if it has no hosts. */
  readonly #only: ServicePolicy | undefined;
  #untimedCount = 0;

  constructor(policy: Policy) {
    this.#policy = policy;
    const [only, ...others] = policy.services;
    this.#only = others.length === 0 && only?.hosts.length === 0 ? only : undefined;
  }

  take({ authority, timeUs: startUs, timing, wasLimited }: LoggedRequest): void {
    const found = authority === "" ? undefined : this.#policy.serviceIndex.at(authority)?.service;
    const service = found ?? this.#only;
    if (service === undefined || timing === undefined) return;
    const { durationUs, isError, isServed } = timing;
    // Requests refused on their way are not load of the service.
    if (wasLimited || !isServed) return;
    if (!(durationUs >= 0)) {
      this.#untimedCount += 1;
      return;
    }
    this.#sweep(service.name)?.add({ startUs, durationUs, isError });
  }

  /** Returns observations of each service with requests. */
  finish(): readonly ServiceObservations[] {
    return [...this.#sweeps].map(([service, sweep]) =>
      sweep.finish({ service, source: "the access log" }),
    );
  }

  /**
   * Returns sentences about requests that could not be used.
   *
   * @param isExpected whether to warn about a log without any duration
   */
  warnings(isExpected: boolean): readonly string[] {
    if (this.#untimedCount === 0 || (this.#sweeps.size === 0 && !isExpected)) return [];
    return [
      `${many(this.#untimedCount, "request")} of services have no duration: log %DURATION%, or ` +
        "name its field with --field duration=NAME (milliseconds), for numbers of services.",
    ];
  }

  #sweep(service: string): RequestSweep | undefined {
    const known = this.#sweeps.get(service);
    if (known !== undefined || this.#sweeps.size >= sweptServicesMax) return known;
    const each = Math.floor((2 * sweptRequestsMax) / this.#policy.services.length);
    const sweep = new RequestSweep(Math.min(sweptRequestsMax, Math.max(firstRequests, each)));
    this.#sweeps.set(service, sweep);
    return sweep;
  }
}

/** Number of requests that each service may have at least. */
const firstRequests = 100_000;
