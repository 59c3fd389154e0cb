import { readFileSync } from "node:fs";
import type { ServerVerdict } from "../../src/client/server/request-permit.js";
import type { ServerAdmission } from "../../src/client/server/server-admission.js";
import type { Refusal } from "../../src/core/admission/exchange-messages.js";
import type { Clock } from "../../src/core/base/clock.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type {
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
} from "../../src/decide/admission/admission-call.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { LayersCaller } from "../../src/demo/three-layers/layers-caller.js";
import {
  figuresOf,
  type LayersCounts,
  type LayersFigures,
} from "../../src/demo/three-layers/layers-counts.js";
import {
  createClientLayer,
  createServerLayer,
} from "../../src/demo/three-layers/layers-protection.js";
import {
  type LayersSettings,
  serviceHosts,
  workHeader,
} from "../../src/demo/three-layers/layers-settings.js";
import { LayersWorkers } from "../../src/demo/three-layers/layers-workers.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import { EventCalendar } from "../../src/simulate/engine/calendar.js";
import { randomStream } from "../../src/simulate/engine/seeded-random.js";
import { createTestDecider } from "../support/decider.js";
import type { LayersWorld } from "../support/layers-conditions.js";

/** The three layers over virtual time: the example's own parts, and an Envoy that only asks. */
export class LayersRun implements LayersWorld {
  readonly #calendar = new EventCalendar();
  readonly #clock: Clock;
  readonly #workers: LayersWorkers;
  readonly #caller: LayersCaller;
  readonly #proxy: Admission;
  readonly #server: ServerAdmission;
  /** None has a body, so that each may answer many requests: to make one takes longer than all. */
  readonly #served = new Response();
  readonly #failed = new Response(undefined, { status: 503 });
  readonly #refused = new WeakMap<Refusal, Response>();
  #settings: LayersSettings;

  constructor(settings: LayersSettings, seed: number) {
    this.#settings = settings;
    const calendar = this.#calendar;
    this.#clock = {
      monotonicMs: () => calendar.nowMs,
      epochUs: () => Math.floor(calendar.nowMs * 1_000),
      schedule: (delayMs, callback) => calendar.after(delayMs, callback),
      scheduleTurn: (callback) => calendar.after(0, callback),
    };
    const clock = this.#clock;
    this.#workers = new LayersWorkers(clock);
    this.#proxy = createProxy(clock, seed);
    this.#server = createServerLayer({ clock, random: randomStream(seed, "server") });
    this.#caller = new LayersCaller(
      {
        clock,
        arrivals: randomStream(seed, "arrivals"),
        retries: randomStream(seed, "retries"),
        send: this.#send,
        createClient: (send) =>
          createClientLayer({ clock, random: randomStream(seed, "client") }, send),
      },
      settings,
    );
  }

  get counts(): LayersCounts {
    return { caller: this.#caller.counts, service: this.#workers.counts };
  }

  async change(settings: Partial<LayersSettings>): Promise<void> {
    this.#settings = { ...this.#settings, ...settings };
    this.#caller.settings = this.#settings;
    this.#workers.setRatio(this.#settings.workersRatio);
  }

  /** Lets time pass, and tells what came of it. */
  async span(spanMs: number): Promise<LayersFigures> {
    const from = this.counts;
    const untilMs = this.#calendar.nowMs + spanMs;
    // All that an event resolves has gone on before the next one.
    while (this.#calendar.step(untilMs)) await new Promise(process.nextTick);
    this.#calendar.runUntil(untilMs);
    return figuresOf(from, this.counts);
  }

  /** Through Envoy, which asks Headgate where the host says so. */
  #send: typeof fetch = (input, init) => {
    const sent = new Sent(fieldsOf(init?.headers), init?.signal ?? undefined);
    if (input === `http://${serviceHosts.protected}/`) this.#ask(sent);
    else this.#serve(sent);
    return sent.answer;
  };

  #ask(sent: Sent): void {
    let ticket: AdmissionTicket | undefined;
    sent.onEnd((status) => {
      if (status !== undefined) ticket?.responded({ ...noResponse, status });
      ticket?.end(status === undefined ? "left" : "completed");
    });
    const decided = (verdict: AdmissionVerdict): void => {
      if (verdict.kind === "refused") this.#refuse(sent, verdict.refusal);
      else if (verdict.kind === "admitted") {
        for (const { name, value } of verdict.terms.setHeaders) sent.headers.set(name, value);
        this.#serve(sent);
      }
    };
    const request: AdmissionRequest = {
      serviceName: "orders",
      peer: "envoy",
      headers: new Map([...pseudoHeaders, ...sent.headers]),
      attributes: new Map(),
      isObserved: false,
    };
    const answer = this.#proxy.begin(request, { decided });
    if (answer.kind !== "refused") ticket = answer.ticket;
    if (answer.kind !== "asking") decided(answer);
  }

  #serve(sent: Sent): void {
    if (!this.#settings.layers.server) {
      this.#work(sent);
      return;
    }
    const answer = this.#server.begin({
      method: "GET",
      path: "/",
      remoteAddress: "127.0.0.1",
      header: (name) => sent.headers.get(name),
    });
    const decided = (verdict: ServerVerdict): void => {
      if (verdict.kind === "refused") this.#refuse(sent, verdict.refusal);
      if (verdict.kind !== "admitted") return;
      const { permit } = verdict;
      sent.onEnd((status) => permit.end(status === undefined ? "left" : "completed", { status }));
      this.#work(sent, permit.signal);
    };
    if (answer.kind !== "waiting") {
      decided(answer);
      return;
    }
    sent.onEnd(answer.leave);
    void answer.decided.then(decided);
  }

  #work(sent: Sent, signal?: AbortSignal): void {
    const workMs = Number(sent.headers.get(workHeader));
    const ticket = this.#workers.enter(workMs, (end) => {
      sent.end(end === "done" ? this.#served : this.#failed);
    });
    sent.onEnd((status) => {
      if (status === undefined) ticket.callerLeft();
    });
    signal?.addEventListener("abort", () => ticket.stop(), { once: true });
  }

  #refuse(sent: Sent, refusal: Refusal): void {
    const response = this.#refused.get(refusal) ?? responseOf(refusal);
    this.#refused.set(refusal, response);
    sent.end(response);
  }
}

function responseOf({ status, headers }: Refusal): Response {
  const fields = headers.map(({ name, value }): [string, string] => [name, value]);
  return new Response(undefined, { status, headers: fields });
}

/** A map, which is as good as `Headers` where all names are in lower case, and faster. */
function fieldsOf(headers: RequestInit["headers"]): Map<string, string> {
  return new Map(headers instanceof Headers ? headers : new Headers(headers));
}

const pseudoHeaders = [
  [":method", "GET"],
  [":path", "/"],
  [":authority", serviceHosts.protected],
] as const;

const noResponse = { grpcStatus: undefined, isOverloaded: false, loadMetrics: undefined };

/** A request on its way, until it is answered or its caller leaves. */
class Sent {
  readonly headers: Map<string, string>;
  readonly answer: Promise<Response>;
  #resolve: (response: Response) => void = () => {};
  #isOver = false;
  readonly #ended: ((status: number | undefined) => void)[] = [];

  constructor(headers: Map<string, string>, signal: AbortSignal | undefined) {
    this.headers = headers;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      signal?.addEventListener(
        "abort",
        () => {
          reject(signal.reason);
          this.#over(undefined);
        },
        { once: true },
      );
    });
  }

  /** @param ended told its status; undefined: its caller has left */
  onEnd(ended: (status: number | undefined) => void): void {
    this.#ended.push(ended);
  }

  end(response: Response): void {
    this.#resolve(response);
    this.#over(response.status);
  }

  #over(status: number | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // What came last is the innermost.
    for (const ended of this.#ended.reverse()) ended(status);
  }
}

function createProxy(clock: Clock, seed: number): Admission {
  const policy = readExample();
  const policies = { current: () => policy };
  return new Admission({
    policies,
    clock,
    random: randomStream(seed, "proxy"),
    decider: createTestDecider({ clock, policies, counters: new DecisionCounters() }),
    shares: undefined,
    digest: (text) => text,
    permitLeaseMsMax: 300_000,
    isOverloaded: () => false,
    onEvent: () => {},
  });
}

function readExample(): Policy {
  const file = "envoy/three-layers/policy.yaml";
  const parsed = parsePolicy([{ file, text: readFileSync(file, "utf8") }]);
  if (parsed.kind === "problems") {
    throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  }
  const builder = new PolicyBuilder("v1");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  return builder.finish();
}
