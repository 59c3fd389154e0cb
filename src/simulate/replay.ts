import { type FrequentKey, SpaceSaving } from "../core/collections/space-saving.js";
import { PolicySimulator, type PolicySimulatorParts } from "../decide/shadow/policy-simulator.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import { type AskedPart, AskedServices, type SimulatedDescriptor } from "./asked-service.js";
import { InOrder } from "./in-order.js";
import type { LoggedRequest } from "./logged-request.js";
import { Timeline, type TimelineCounts } from "./timeline.js";

/** Maximum number of requests held back to sort them by their start times. */
const heldMax = 4_096;

/** Maximum number of keys of a rule that are counted at the same time. */
const keyCountersMax = 1_000;

interface ReplayParts extends PolicySimulatorParts {
  /**
   * Service whose limits apply to every request and host; undefined: as the policy's services say,
   * each for its own hosts.
   */
  readonly forAll: Pick<ServicePolicy, "name" | "rateLimit"> | undefined;
  /** Called for each request in turn with whether it is refused. Default: none. */
  readonly onDecided?: (isDenied: boolean) => void;
  /** Called for each descriptor that meets a limit with whether it is over. Default: none. */
  readonly onPart?: (part: AskedPart, isOver: boolean, timeUs: number) => void;
}

/** What a policy would have decided for an access log. */
export interface ReplayReport {
  /** Requests of a service with limits. */
  readonly callCount: number;
  /** Requests of no service, or of one without limits. */
  readonly unasked: {
    readonly count: number;
    /** Hosts that no service has, most frequent first. */
    readonly hosts: readonly FrequentKey<string>[];
  };
  readonly deniedCount: number;
  /** Requests that were limited when they were logged, and those limited both then and now. */
  readonly limitedThenCount: number;
  readonly limitedBothCount: number;
  /** Descriptors that only Envoy can make, by the key of the part. */
  readonly unknownParts: readonly FrequentKey<string>[];
  /** Descriptors that are sent after the response, by the key of their first part. */
  readonly laterParts: readonly FrequentKey<string>[];
  readonly lateCount: number;
  /** Undefined if there was no call. */
  readonly calls: TimelineCounts | undefined;
  readonly denied: TimelineCounts | undefined;
  /** Rules that a request met, most denials first. */
  readonly rules: readonly ReplayedRule[];
}

/** What one rule would have done. */
export interface ReplayedRule {
  readonly domain: string;
  readonly label: string;
  readonly callCount: number;
  readonly overCount: number;
  readonly denied: TimelineCounts | undefined;
  /** Descriptors that were over most often, as `key=value, key=value`. */
  readonly keys: readonly FrequentKey<string>[];
}

interface RuleTally {
  readonly domain: string;
  readonly label: string;
  callCount: number;
  overCount: number;
  readonly denied: Timeline;
  readonly keys: SpaceSaving<string>;
}

/** A request held back for sorting. */
interface Held {
  readonly timeUs: number;
  readonly wasLimited: boolean;
  /** Its host if no limits are checked for it, and undefined otherwise. */
  readonly unaskedHost: string | undefined;
  readonly asked: readonly SimulatedDescriptor[];
}

/** Replays an access log through a policy. */
export class Replay {
  readonly #trial: PolicySimulator;
  readonly #services: AskedServices;
  readonly #onDecided: (isDenied: boolean) => void;
  readonly #onPart: ReplayParts["onPart"];
  readonly #order = new InOrder<Held>(heldMax);
  readonly #rules = new Map<number, RuleTally>();
  readonly #unaskedHosts = new SpaceSaving<string>(100);
  readonly #unknownParts = new SpaceSaving<string>(100);
  readonly #laterParts = new SpaceSaving<string>(100);
  readonly #calls = new Timeline();
  readonly #denied = new Timeline();
  #callCount = 0;
  #deniedCount = 0;
  #limitedThenCount = 0;
  #limitedBothCount = 0;

  constructor(parts: ReplayParts) {
    this.#trial = new PolicySimulator(parts);
    this.#services = new AskedServices({ trial: this.#trial, forAll: parts.forAll });
    this.#onDecided = parts.onDecided ?? (() => {});
    this.#onPart = parts.onPart;
  }

  /**
   * Takes the next request of the log.
   *
   * @throws ServiceError STORE_FULL, REQUEST_INVALID; see `PolicySimulator`
   */
  take(request: LoggedRequest): void {
    const { timeUs, wasLimited } = request;
    // Holds only the descriptors, which many requests share, and not the request's own texts.
    const asked = this.#services.asked(request);
    const next = this.#order.push({
      timeUs,
      wasLimited,
      unaskedHost: asked === undefined ? request.authority : undefined,
      asked: asked ?? nothingAsked,
    });
    if (next !== undefined) this.#decide(next);
  }

  /** Decides the remaining requests. Nothing may be taken afterwards. */
  finish(): ReplayReport {
    for (const request of this.#order.drain()) this.#decide(request);
    const rules = [...this.#rules.values()].sort(
      (one, other) => other.overCount - one.overCount || other.callCount - one.callCount,
    );
    return {
      callCount: this.#callCount,
      unasked: { count: this.#unaskedHosts.totalCount, hosts: this.#unaskedHosts.top(5) },
      deniedCount: this.#deniedCount,
      limitedThenCount: this.#limitedThenCount,
      limitedBothCount: this.#limitedBothCount,
      unknownParts: this.#unknownParts.top(5),
      laterParts: this.#laterParts.top(5),
      lateCount: this.#order.lateCount,
      calls: this.#calls.read(),
      denied: this.#denied.read(),
      rules: rules.map(({ denied, keys, ...rule }) => ({
        ...rule,
        denied: denied.read(),
        keys: keys.top(10),
      })),
    };
  }

  #decide({ timeUs, wasLimited, unaskedHost, asked }: Held): void {
    if (unaskedHost !== undefined) {
      this.#unaskedHosts.add(unaskedHost);
      this.#onDecided(false);
      return;
    }
    this.#callCount += 1;
    this.#calls.add(timeUs);
    const isDenied = this.#ask(asked, timeUs);
    this.#onDecided(isDenied);
    if (wasLimited) this.#limitedThenCount += 1;
    if (!isDenied) return;
    this.#deniedCount += 1;
    this.#denied.add(timeUs);
    if (wasLimited) this.#limitedBothCount += 1;
  }

  #ask(asked: readonly SimulatedDescriptor[], timeUs: number): boolean {
    for (const one of asked) {
      if (one.kind === "unknown") this.#unknownParts.add(one.key);
      else if (one.kind === "later") this.#laterParts.add(one.key);
    }
    const parts = asked.every(isAsked) ? asked : asked.filter(isAsked);
    if (parts.length === 0) return false;
    const { isDenied, parts: findings } = this.#trial.askParts(parts, timeUs);
    findings.forEach((finding, i) => {
      const part = parts[i];
      if (finding === "unasked" || part?.shape.rule === undefined) return;
      const tally = this.#tallyOf(part.shape.rule);
      tally.callCount += 1;
      this.#onPart?.(part, finding === "over", timeUs);
      if (finding !== "over") return;
      tally.overCount += 1;
      tally.denied.add(timeUs);
      tally.keys.add(part.text);
    });
    return isDenied;
  }

  #tallyOf(rule: { readonly index: number; readonly domain: string; readonly label: string }) {
    const known = this.#rules.get(rule.index);
    if (known !== undefined) return known;
    const { domain, label } = rule;
    const tally: RuleTally = {
      domain,
      label,
      callCount: 0,
      overCount: 0,
      denied: new Timeline(),
      keys: new SpaceSaving(keyCountersMax),
    };
    this.#rules.set(rule.index, tally);
    return tally;
  }
}

function isAsked(descriptor: SimulatedDescriptor): descriptor is AskedPart {
  return descriptor.kind === "asked";
}

const nothingAsked: readonly SimulatedDescriptor[] = [];
