import { many } from "../../core/base/many.js";
import type { Policy } from "../../policy/policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { LoggedRequest } from "../../simulate/logged-request.js";
import { RequestSweep, sweptRequestsMax } from "./request-sweep.js";
import type { ServiceObservations } from "./service-observations.js";

/** The services of a log that are looked at. */
const sweptServicesMax = 32;

/** Observes services by what a log says of their requests; a policy's hosts tell which is whose. */
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
    // What was refused on its way is no load of the service.
    if (wasLimited || !isServed) return;
    if (!(durationUs >= 0)) {
      this.#untimedCount += 1;
      return;
    }
    this.#sweep(service.name)?.add({ startUs, durationUs, isError });
  }

  /** Of each service with requests. */
  finish(): readonly ServiceObservations[] {
    return [...this.#sweeps].map(([service, sweep]) =>
      sweep.finish({ service, source: "the access log" }),
    );
  }

  /**
   * Sentences about what could not be used.
   *
   * @param isExpected whether a log without any duration is worth a word
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

/** Requests that every service may have. */
const firstRequests = 100_000;
