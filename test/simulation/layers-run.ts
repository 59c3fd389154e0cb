import { readFileSync } from "node:fs";
import type { Clock } from "../../src/core/base/clock.js";
import { Admission } from "../../src/decide/admission/admission.js";
import type {
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
} from "../../src/decide/admission/admission-call.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { LayersCaller, type SendRequest } from "../../src/demo/three-layers/layers-caller.js";
import {
  figuresOf,
  type LayersCounts,
  type LayersFigures,
} from "../../src/demo/three-layers/layers-counts.js";
import {
  type LayersSettings,
  meanWorkMs,
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
    this.#caller = new LayersCaller(
      {
        clock,
        arrivals: randomStream(seed, "arrivals"),
        retries: randomStream(seed, "retries"),
        send: this.#send,
        createClient: () => () => Promise.resolve("refused"),
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
    while (this.#calendar.step(untilMs)) await new Promise(setImmediate);
    this.#calendar.runUntil(untilMs);
    return figuresOf(from, this.counts);
  }

  #send: SendRequest = (url, { headers, signal }) => {
    const isGuarded = new URL(url).host === serviceHosts.protected;
    if (!isGuarded) return this.#serve(headers, signal);
    return new Promise((resolve, reject) => {
      let ticket: AdmissionTicket | undefined;
      const end = (how: "completed" | "left"): void => {
        ticket?.end(how);
        ticket = undefined;
      };
      const decided = (verdict: AdmissionVerdict): void => {
        if (signal.aborted) return;
        if (verdict.kind === "refused") {
          const { headers: fields, status } = verdict.refusal;
          resolve(
            new Response(undefined, {
              status,
              headers: fields.map(({ name, value }) => [name, value]),
            }),
          );
        } else if (verdict.kind === "admitted") {
          void this.#serve(
            {
              ...headers,
              ...Object.fromEntries(
                verdict.terms.setHeaders.map(({ name, value }) => [name, value]),
              ),
            },
            signal,
          ).then(
            (response) => {
              ticket?.responded({
                status: response.status,
                grpcStatus: undefined,
                isOverloaded: false,
                loadMetrics: undefined,
              });
              end("completed");
              resolve(response);
            },
            () => {},
          );
        }
      };
      signal.addEventListener(
        "abort",
        () => {
          end("left");
          reject(signal.reason);
        },
        { once: true },
      );
      const request: AdmissionRequest = {
        serviceName: "orders",
        peer: "envoy",
        headers: new Map([
          [":method", "GET"],
          [":path", "/"],
          [":authority", serviceHosts.protected],
          ...Object.entries(headers),
        ]),
        attributes: new Map(),
        isObserved: false,
      };
      const answer = this.#proxy.begin(request, { decided });
      if (answer.kind !== "refused") ticket = answer.ticket;
      if (answer.kind !== "asking") decided(answer);
    });
  };

  #serve(headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    return new Promise((resolve, reject) => {
      const workMs = Number(headers[workHeader] ?? meanWorkMs);
      const ticket = this.#workers.enter(workMs, (end) => {
        resolve(new Response(undefined, { status: end === "done" ? 200 : 503 }));
      });
      signal.addEventListener(
        "abort",
        () => {
          ticket.callerLeft();
          reject(signal.reason);
        },
        { once: true },
      );
    });
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
  const parsed = parsePolicy([
    {
      file,
      text: readFileSync(file, "utf8")
        .replace(
          "concurrency:",
          process.env["LAW"] ? `concurrency:\n        law: ${process.env["LAW"]}` : "concurrency:",
        )
        .replace(
          "feedback: [circuitBreakers]",
          process.env["LAW"] ? "" : "feedback: [circuitBreakers]",
        )
        .replace("sources: [envoyMetrics]", process.env["LAW"] ? "" : "sources: [envoyMetrics]"),
    },
  ]);
  if (parsed.kind === "problems") {
    throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  }
  const builder = new PolicyBuilder("v1");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  return builder.finish();
}
