import { AdmissionQueue } from "../../core/admission/admission-queue.js";
import { Brownout, defaultBrownoutSettings } from "../../core/admission/brownout.js";
import {
  type Deadline,
  type DeadlineSettings,
  isTooLittle,
  requestDeadline,
} from "../../core/admission/deadline.js";
import { isExpectedLate } from "../../core/admission/expected-time.js";
import { ImmediateResponseCache } from "../../core/admission/immediate-response-cache.js";
import { loadRatioMax } from "../../core/admission/load.js";
import { PermitPool } from "../../core/admission/permit-pool.js";
import {
  callerHashRatio,
  fullThresholds,
  type Priority,
  type ShedThresholds,
  sheds,
} from "../../core/admission/priority.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { QueueRefusal } from "../../core/admission/request-queue.js";
import type { Clock, Random } from "../../core/base/clock.js";
import { leftEarly, type RequestEnding, requestOutcome } from "../../core/calls/request-outcome.js";
import { defaultDisclosure } from "../../core/limits/reported-rule.js";
import { systemClock, systemRandom } from "../../host/clock.js";
import { InboundRequest, type PermitHost } from "./inbound-request.js";
import { LoadReport } from "./load-report.js";
import { type ClassifyRequest, createRequestClassifier } from "./request-classifier.js";
import type { RequestPermit, ServerRefusal, ServerVerdict } from "./request-permit.js";
import { ServerCounts, type ServerSnapshot } from "./server-counts.js";
import type { LoadSource, ServerAdmissionOptions, ServerRequest } from "./server-options.js";
import { checkServerOptions, serverPoolSettings, serverShedThresholds } from "./server-settings.js";

/** The answer of `begin` to a request. */
export type ServerAnswer =
  | Exclude<ServerVerdict, { readonly kind: "left" }>
  | {
      readonly kind: "waiting";
      readonly decided: Promise<ServerVerdict>;
      /** Called when the client leaves: gives up its place, or the permit if it was admitted. */
      leave(): void;
    };

/** Admission of requests to a service, in the service. */
export interface ServerAdmission {
  readonly name: string;
  /** Decides on a request that has arrived, before any of its work is done. */
  begin(request: ServerRequest): ServerAnswer;
  /** Returns the response's `endpoint-load-metrics` value. Undefined if it is not reported. */
  loadReport(request: ServerRequest): string | undefined;
  /** Returns state and counts, for metrics and people. */
  snapshot(): ServerSnapshot;
}

/**
 * Creates an admission inside a service, with the classes, checks, permits, queue and refusals of
 * the proxy layer.
 *
 * @throws RangeError that names the option that is out of bounds
 */
export function createServerAdmission(options: ServerAdmissionOptions): ServerAdmission {
  return new AdmissionOfServer(options);
}

class AdmissionOfServer implements ServerAdmission, PermitHost {
  readonly name: string;
  readonly #options: ServerAdmissionOptions;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #classify: ClassifyRequest;
  readonly #deadline: Omit<DeadlineSettings, "marginMs"> | undefined;
  readonly #shedAt: ShedThresholds | undefined;
  readonly #sources: readonly LoadSource[];
  readonly #pool: PermitPool<InboundRequest>;
  readonly #queue: AdmissionQueue<InboundRequest>;
  readonly #refusals: ImmediateResponseCache;
  readonly #brownout: Brownout;
  readonly #report: LoadReport;
  readonly #counts = new ServerCounts();

  constructor(options: ServerAdmissionOptions) {
    checkServerOptions(options);
    const { name, clock = systemClock, random = systemRandom, deadline = {}, load = [] } = options;
    this.name = name;
    this.#options = options;
    this.#clock = clock;
    this.#random = random;
    this.#classify = createRequestClassifier(options.priority ?? {});
    const { minRemainingMs = 5, header } = deadline === false ? {} : deadline;
    this.#deadline =
      deadline === false ? undefined : { minRemainingMs, header: header?.toLowerCase() };
    this.#shedAt = serverShedThresholds(options.shedAt);
    this.#sources = [load].flat();
    const { fromRatios, ...brownout } = options.brownout ?? {};
    const defaults = defaultBrownoutSettings;
    this.#brownout = new Brownout({
      ...defaults,
      ...brownout,
      fromRatios: { ...defaults.fromRatios, ...fromRatios },
    });
    this.#report = new LoadReport(this.#sources);
    const onGrown = (): void => this.#queue.serve(clock.monotonicMs());
    const alone = { peerPercentMax: 100, name, label: "", shares: undefined };
    this.#pool = new PermitPool({ ...alone, onGrown }, serverPoolSettings(options));
    this.#queue = new AdmissionQueue({
      clock,
      whole: this.#pool,
      admit: (pending, nowMs) => {
        this.#take(pending, nowMs);
        pending.admitted();
      },
      dismiss: (dismissed, nowMs) => this.#dismiss(dismissed, nowMs),
    });
    const { secondsMin = 1, jitterRatio = 0.5 } = options.retryAfter ?? {};
    this.#refusals = new ImmediateResponseCache({
      service: name,
      settings: {
        retryAfterSecondsMin: secondsMin,
        retryAfterJitterRatio: jitterRatio,
        statusByCause: options.statusByCause ?? {},
        disclosure: { ...defaultDisclosure, header: options.tellRule === true },
      },
      draw: () => random.next(),
    });
  }

  begin(request: ServerRequest): ServerAnswer {
    const priority = this.#classify(request);
    if (priority === "bypass") {
      this.#counts.bypassedCount += 1;
      return { kind: "admitted", permit: this.#uncounted() };
    }
    const nowMs = this.nowMs();
    const pool = this.#pool;
    const deadline = this.#deadlineOf(request);
    const pending = new InboundRequest({ host: this, pool, priority, deadline, arrivedMs: nowMs });
    const answer = this.#decide(pending, request, nowMs);
    this.#noteLoad(nowMs);
    return answer;
  }

  loadReport(request: ServerRequest): string | undefined {
    const { loadReport = true } = this.#options;
    const isReported = typeof loadReport === "function" ? loadReport(request) : loadReport;
    if (!isReported) return undefined;
    const nowMs = this.nowMs();
    return this.#report.at(nowMs, () => ({
      applicationRatio: this.#loadRatio(nowMs),
      inFlightCount: this.#pool.inUseCount(),
    }));
  }

  snapshot(): ServerSnapshot {
    const nowMs = this.nowMs();
    return this.#counts.snapshot({
      limit: this.#pool.limit(nowMs),
      inFlight: this.#pool.inUseCount(),
      waiting: this.#pool.waitingCount,
      loadRatio: this.#loadRatio(nowMs),
      brownoutRatio: (priority) => this.#brownout.depthRatio(priority),
    });
  }

  nowMs(): number {
    return this.#clock.monotonicMs();
  }

  isBrownedOut(priority: Priority): boolean {
    return this.#brownout.isOn(priority);
  }

  brownoutRatio(priority: Priority): number {
    return this.#brownout.depthRatio(priority);
  }

  ended(pending: InboundRequest, ending: RequestEnding): void {
    const nowMs = this.nowMs();
    const { stage, place, pool, priority } = pending;
    pending.stage = "over";
    if (stage !== "admitted") {
      if (place !== undefined) pool.leave(place);
      this.#counts.leftCount += 1;
      return;
    }
    const learnt = requestOutcome(pending, { end: ending, nowMs, lateAfterMs: undefined });
    const { outcome, isLeft } = learnt;
    if (leftEarly(learnt)) pool.giveBackLeft("", priority, nowMs);
    else pool.giveBack("", priority, nowMs);
    this.#counts.outcomes[outcome] += 1;
    const { admittedMs: startMs, inFlight, position } = pending;
    const { demand } = pool;
    pool.learn({ startMs, endMs: nowMs, inFlight, position, outcome, isLeft, demand });
    this.#queue.serve(nowMs);
    this.#noteLoad(nowMs);
  }

  /** Returns a permit for a request that is not counted. It holds nothing. */
  #uncounted(): RequestPermit {
    const pending = new InboundRequest({
      host: this,
      pool: this.#pool,
      priority: this.#options.priority?.default ?? "normal",
      deadline: undefined,
      arrivedMs: this.nowMs(),
    });
    pending.stage = "over";
    return pending;
  }

  #deadlineOf(request: ServerRequest): Deadline | undefined {
    if (this.#deadline === undefined) return undefined;
    return requestDeadline({ get: (name) => request.header(name) }, this.#deadline);
  }

  #decide(pending: InboundRequest, request: ServerRequest, nowMs: number): ServerAnswer {
    const cause = this.#firstRefusal(pending, request, nowMs);
    if (cause !== undefined) return this.#refuse(pending, { request, cause, nowMs });
    if (this.#queue.hasRoom(pending, nowMs)) {
      this.#take(pending, nowMs);
      return { kind: "admitted", permit: pending };
    }
    if (this.#queue.mayWait(pending, nowMs)) return this.#wait(pending, request, nowMs);
    return this.#refuse(pending, { request, cause: "concurrency", nowMs });
  }

  /** Checks the proxy layer's causes of refusal, in its order. */
  #firstRefusal(
    pending: InboundRequest,
    request: ServerRequest,
    nowMs: number,
  ): RefusalCause | undefined {
    const { pool, priority, deadline } = pending;
    if (this.#deadline !== undefined && deadline !== undefined) {
      if (isTooLittle(this.#deadline, deadline)) return "deadline";
    }
    if (isExpectedLate(pool, pending, nowMs)) return "deadline";
    const caller = this.#options.caller?.(request);
    const hashRatio = caller === undefined ? this.#random.next() : callerHashRatio(caller);
    const shedsAt = (thresholds: ShedThresholds, loadRatio: number): boolean =>
      sheds(thresholds, { priority, loadRatio, callerHashRatio: hashRatio });
    if (this.#shedAt !== undefined && priority !== "critical") {
      if (shedsAt(this.#shedAt, pool.occupancyFor(priority, nowMs))) return "priority";
    }
    return shedsAt(this.#shedAt ?? fullThresholds, this.#sourceRatio()) ? "load" : undefined;
  }

  #take(pending: InboundRequest, nowMs: number): void {
    const { pool, priority, place } = pending;
    if (place !== undefined) this.#counts.waitedCount += 1;
    pending.place = undefined;
    pending.stage = "admitted";
    pending.admittedMs = nowMs;
    pending.inFlight = pool.take("", priority, nowMs);
    if (pending.position === 0) pending.position = pool.hasQueue ? 1 : pending.inFlight;
    this.#counts.admitted[priority] += 1;
    this.#report.admitted(nowMs);
  }

  #wait(pending: InboundRequest, request: ServerRequest, nowMs: number): ServerAnswer {
    const { place, dismissed } = this.#queue.enter(pending, nowMs);
    this.#dismiss(dismissed, nowMs);
    if (place === undefined) return this.#refuse(pending, { request, cause: "queueFull", nowMs });
    pending.stage = "waiting";
    pending.place = place;
    pending.position = place.position;
    pending.asked = request;
    const decided = pending.verdict();
    // A limit that is learned may have risen without a notification.
    if (this.#pool.isFree(pending.priority, nowMs)) this.#queue.serve(nowMs);
    return { kind: "waiting", decided, leave: () => pending.end("left") };
  }

  #dismiss(dismissed: readonly QueueRefusal<InboundRequest>[], nowMs: number): void {
    for (const { place, cause } of dismissed) {
      const { payload: pending } = place;
      const { asked: request } = pending;
      if (pending.stage !== "waiting" || request === undefined) continue;
      const { refusal } = this.#refuse(pending, { request, cause, nowMs });
      pending.refused(cause, refusal);
    }
  }

  #refuse(
    pending: InboundRequest,
    { request, cause, nowMs }: { request: ServerRequest; cause: RefusalCause; nowMs: number },
  ): ServerRefusal {
    const { pool, priority } = pending;
    pending.stage = "over";
    pending.place = undefined;
    pool.noteRefused(cause, priority);
    this.#counts.refused(priority, cause);
    const get = (name: string): string | undefined =>
      name === ":method" ? request.method : request.header(name);
    const wait = pool.retryWait(nowMs);
    const refusal = this.#refusals.refusal(cause, { headers: { get } }, { wait });
    return { kind: "refused", cause, refusal };
  }

  /** Updates the brownout after the load has changed or time has passed. */
  #noteLoad(nowMs: number): void {
    this.#brownout.update(this.#loadRatio(nowMs), nowMs);
  }

  /** Returns the largest load of the sources. */
  #sourceRatio(): number {
    let largest = 0;
    for (const source of this.#sources) {
      const ratio = typeof source === "function" ? source() : source.loadRatio();
      if (ratio > largest) largest = ratio;
    }
    return Math.min(largest, loadRatioMax);
  }

  /** Returns the larger of the pool's load, including waiting requests, and that of the sources. */
  #loadRatio(nowMs: number): number {
    return Math.max(this.#pool.occupancyRatio(nowMs), this.#sourceRatio());
  }
}
