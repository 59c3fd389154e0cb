import type { Clock } from "../../src/core/base/clock.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type { AdmissionTicket } from "../../src/decide/admission/admission-call.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { createPolicyBuilder, type Policy } from "../../src/policy/policy.js";
import { createTestDecider } from "../support/decider.js";
import { FakeRandom } from "../support/fake-random.js";
import type { EventCalendar } from "../support/station.js";
import type { GoodputCaller, GoodputTicket, Protection } from "./goodput-run.js";

/** Headgate's admission, as a policy says. */
export class HeadgateProtection implements Protection {
  readonly #calendar: EventCalendar;
  readonly #admission: Admission;

  constructor(calendar: EventCalendar, blocks: string, seed: number) {
    this.#calendar = calendar;
    const random = new FakeRandom(seed * 3 + 7);
    const clock: Clock = {
      monotonicMs: () => calendar.nowMs,
      epochUs: () => Math.floor(calendar.nowMs * 1_000),
      schedule: (delayMs, callback) => calendar.after(delayMs, callback),
      scheduleTurn: (callback) => calendar.after(0, callback),
    };
    const policy = policyOf(blocks);
    const policies = { current: () => policy };
    this.#admission = new Admission({
      policies,
      clock,
      random,
      decider: createTestDecider({ clock, policies, counters: new DecisionCounters() }),
      shares: undefined,
      digest: (text) => text,
      permitLeaseMsMax: 300_000,
      isOverloaded: () => false,
      onEvent: () => {},
    });
  }

  get limit(): number {
    const [service] = this.#admission.services();
    return service?.pools.whole.limit(this.#calendar.nowMs) ?? Number.NaN;
  }

  ask(caller: GoodputCaller): GoodputTicket {
    let ticket: AdmissionTicket | undefined;
    const headers = new Map([
      ["x-request-priority", caller.priority],
      ["x-user", caller.user],
      ["x-envoy-expected-rq-timeout-ms", String(caller.patienceMs)],
    ]);
    ticket = this.#admission.begin(
      { serviceName: "orders", peer: "envoy", headers, attributes: new Map(), isObserved: false },
      { admitted: () => caller.admit(), refused: () => caller.refuse(), waiting: () => {} },
    );
    return {
      ended: (how) => {
        if (how === "served") {
          ticket?.responded(served);
          ticket?.end("completed");
        } else {
          ticket?.end("left");
        }
      },
    };
  }
}

const served = {
  status: 200,
  grpcStatus: undefined,
  isOverloaded: false,
  loadMetrics: undefined,
};

function policyOf(blocks: string): Policy {
  const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - {name: orders, priority: {from: {trust: {anyone: true}}}, ${blocks}}
`;
  const parsed = parsePolicy([{ file: "policy.yaml", text }]);
  if (parsed.kind === "problems") {
    throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  }
  const builder = createPolicyBuilder("v1");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  return builder.finish();
}
