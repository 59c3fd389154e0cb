import type { Clock } from "../../src/core/base/clock.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type {
  AdmissionTicket,
  AdmissionVerdict,
} from "../../src/decide/admission/admission-call.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { createPolicyBuilder, type Policy } from "../../src/policy/policy.js";
import { createTestDecider } from "../support/decider.js";
import { FakeRandom } from "../support/fake-random.js";
import type { EventCalendar } from "../support/station.js";
import type { GoodputCaller, GoodputTicket, Protection } from "./goodput-run.js";

/** How a Headgate is run. */
export interface HeadgateOrder {
  /** Blocks of the service's policy. */
  readonly blocks: string;
  readonly seed: number;
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
  #stalledUntilMs = Number.NEGATIVE_INFINITY;

  constructor(calendar: EventCalendar, { blocks, seed, stalls }: HeadgateOrder) {
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
    const headers = new Map([
      ["x-request-priority", caller.priority],
      ["x-user", caller.user],
      ["x-envoy-expected-rq-timeout-ms", String(caller.patienceMs)],
    ]);
    const request = { serviceName: "orders", peer: "envoy", headers, attributes: new Map() };
    this.#hear(() => {
      if (isOver) return;
      const decided = ({ kind }: AdmissionVerdict): void => {
        if (kind === "admitted") caller.admit();
        else if (kind === "refused") caller.refuse();
      };
      const answer = this.#admission.begin({ ...request, isObserved: false }, { decided });
      if (answer.kind !== "refused") ticket = answer.ticket;
      if (answer.kind !== "asking") decided(answer);
    });
    return {
      ended: (how) => {
        isOver = true;
        this.#hear(() => {
          if (how === "served") ticket?.responded(served);
          ticket?.end(how === "served" ? "completed" : "left");
        });
      },
    };
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
