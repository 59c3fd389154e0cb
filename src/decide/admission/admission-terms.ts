import { budgetHeaders } from "../../core/admission/deadline.js";
import type { ScalarValue } from "../../core/admission/exchange-messages.js";
import type { Priority } from "../../core/admission/priority.js";
import { isGrpcRequest } from "../../core/admission/refusal.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { AdmissionGrant, AdmissionVerdict } from "./admission-call.js";
import type { AdmittedRequest } from "./admitted-request.js";

/** What goes on with admitted requests of a service; nearly always the same few objects. */
export class AdmissionTerms {
  readonly #policy: ServicePolicy;
  readonly #draw: () => number;
  readonly #full: Readonly<Record<Priority, AdmissionGrant>>;
  readonly #sampled: Readonly<Record<Priority, AdmissionGrant>>;
  readonly #unsampled: Readonly<Record<Priority, AdmissionGrant>>;
  /** For requests whose end nobody needs to know. */
  readonly unfollowed: Readonly<Record<Priority, AdmissionVerdict>>;
  /** For a path that is not counted: its class is nobody's business, and not to be believed. */
  readonly bypassed: AdmissionVerdict;

  /** @param draw uniform in [0, 1) */
  constructor(policy: ServicePolicy, draw: () => number) {
    this.#policy = policy;
    this.#draw = draw;
    this.#full = byPriority(policy, { responseHeaders: undefined, isFollowed: true });
    this.#sampled = byPriority(policy, { responseHeaders: "send", isFollowed: true });
    this.#unsampled = byPriority(policy, { responseHeaders: "skip", isFollowed: true });
    const unfollowed = byPriority(policy, { responseHeaders: undefined, isFollowed: false });
    this.unfollowed = {
      critical: passed(unfollowed.critical),
      high: passed(unfollowed.high),
      normal: passed(unfollowed.normal),
      low: passed(unfollowed.low),
    };
    this.bypassed = passed({
      ...unfollowed[policy.priority.default],
      setHeaders: [],
      removeHeaders: [policy.priority.header],
      metadata: undefined,
    });
  }

  /** For a request that holds a permit; `waitedMs` is how long it was here. */
  followed(visit: AdmittedRequest, waitedMs: number): AdmissionGrant {
    const terms = this.#sample()[visit.priority];
    const deadline = this.#policy.admission?.deadline;
    if (deadline === undefined || visit.deadline === undefined) return terms;
    const isGrpc = isGrpcRequest(visit.request.headers.get("content-type"));
    const budget = budgetHeaders(deadline, { deadline: visit.deadline, waitedMs, isGrpc });
    return { ...terms, setHeaders: [...terms.setHeaders, ...budget] };
  }

  #sample(): Readonly<Record<Priority, AdmissionGrant>> {
    const sampleRatio = this.#policy.admission?.sampleRatio ?? 1;
    if (sampleRatio >= 1) return this.#full;
    return this.#draw() < sampleRatio ? this.#sampled : this.#unsampled;
  }
}

function passed(terms: AdmissionGrant): AdmissionVerdict {
  return { kind: "admitted", terms, ticket: undefined };
}

function byPriority(
  { name, priority: { header } }: ServicePolicy,
  fields: Pick<AdmissionGrant, "responseHeaders" | "isFollowed">,
): Readonly<Record<Priority, AdmissionGrant>> {
  const of = (priority: Priority): AdmissionGrant => ({
    priority,
    setHeaders: [{ name: header, value: priority }],
    removeHeaders: [],
    metadata: new Map<string, ScalarValue>([
      ["priority", priority],
      ["service", name],
    ]),
    ...fields,
  });
  return { critical: of("critical"), high: of("high"), normal: of("normal"), low: of("low") };
}
