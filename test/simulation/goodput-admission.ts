import type { SharesPermits } from "../../src/core/admission/permit-share.js";
import type { Priority } from "../../src/core/admission/priority.js";
import type { Clock } from "../../src/core/base/clock.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type {
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
} from "../../src/decide/admission/admission-call.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import type { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { createTestDecider } from "../support/decider.js";
import { FakeRandom } from "../support/fake-random.js";
import type { GoodputCaller, GoodputTicket, Protection } from "./goodput-run.js";

/** How a Headgate is run. */
export interface HeadgateOrder {
  /** Blocks of the service's policy. */
  readonly blocks: string;
  readonly seed: number;
  /** What it shares with other replicas. Default: it is alone */
  readonly shares?: SharesPermits;
  /** Its process hears of nothing now and then, and then of all at once. Default: never */
  readonly stalls?: StallTimes;
}

/** When an event loop stands still. */
export interface StallTimes {
  readonly everyMs: number;
  readonly lengthMs: number;
}

/** Headgate's admission, as a policy says. */
export class HeadgateProtection implements Protection {
  readonly #calendar: EventCalendar;
  readonly #admission: Admission;
  readonly #requests: Readonly<Record<Priority, Map<string, AdmissionRequest>>> = {
    critical: new Map(),
    high: new Map(),
    normal: new Map(),
    low: new Map(),
  };
  #stalledUntilMs = Number.NEGATIVE_INFINITY;

  constructor(calendar: EventCalendar, { blocks, seed, stalls, shares }: HeadgateOrder) {
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
      shares,
      digest: (text) => text,
      permitLeaseMsMax: 300_000,
      isOverloaded: () => false,
      isLate: (nowMs) => nowMs <= this.#stalledUntilMs,
      onEvent: () => {},
    });
    if (stalls === undefined) return;
    calendar.every(stalls.everyMs, () => {
      this.#stalledUntilMs = calendar.nowMs + stalls.lengthMs;
    });
  }

  get limit(): number {
    const [service] = this.#admission.services();
    return service?.pools.whole.limit(this.#calendar.nowMs) ?? Number.NaN;
  }

  ask(caller: GoodputCaller): GoodputTicket {
    let ticket: AdmissionTicket | undefined;
    let isOver = false;
    const request = this.#requestOf(caller);
    this.#hear(() => {
      if (isOver) return;
      const decided = ({ kind }: AdmissionVerdict): void => {
        if (kind === "admitted") caller.admit();
        else if (kind === "refused") caller.refuse();
      };
      const answer = this.#admission.begin(request, { decided });
      if (answer.kind !== "refused") ticket = answer.ticket;
      if (answer.kind !== "asking") decided(answer);
    });
    return {
      ended: (how) => {
        isOver = true;
        this.#hear(() => {
          if (how !== "left") ticket?.responded(responses[how]);
          ticket?.end(how === "left" ? "left" : "completed");
        });
      },
    };
  }

  /** One for each user and class: most of the time of a run went into making them. */
  #requestOf({ priority, user, statedMs }: GoodputCaller): AdmissionRequest {
    const known = this.#requests[priority].get(user);
    if (known !== undefined) return known;
    const headers = new Map([
      ["x-request-priority", priority],
      ["x-user", user],
    ]);
    if (statedMs !== undefined) headers.set("x-envoy-expected-rq-timeout-ms", String(statedMs));
    const attributes = new Map();
    const request = {
      serviceName: "orders",
      peer: "envoy",
      headers,
      attributes,
      isObserved: false,
    };
    this.#requests[priority].set(user, request);
    return request;
  }

  /** Now, or when the process goes on. */
  #hear(callback: () => void): void {
    const waitMs = this.#stalledUntilMs - this.#calendar.nowMs;
    if (waitMs > 0) this.#calendar.after(waitMs, callback);
    else callback();
  }
}

const served = {
  status: 200,
  grpcStatus: undefined,
  isOverloaded: false,
  loadMetrics: undefined,
};

/** What Envoy says of a request whose connection was lost is 503. */
const responses = { served, failed: { ...served, status: 503 } };

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
  const builder = new PolicyBuilder("v1");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  return builder.finish();
}
