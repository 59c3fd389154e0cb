import { ServiceError } from "../../core/base/errors.js";
import type { Bucket, Charge } from "../../core/limits/bucket.js";
import { decideRepeated, decideRequest } from "../../core/limits/gcra.js";
import type { LimitKey } from "../../core/limits/limit.js";
import { noOverrides } from "../../core/limits/override-table.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { Policy } from "../../policy/policy.js";
import { requestChargesMax } from "../../store/limit-store.js";
import { present } from "../rate-limit/answers.js";
import { DecisionCounters } from "../rate-limit/counters.js";
import { chargesFor } from "../rate-limit/decision.js";
import type { DecidedRequest } from "../rate-limit/decision-observer.js";
import { KeyRecords } from "../rate-limit/key-records.js";
import { NewKeyGuard } from "../rate-limit/new-keys.js";
import { PeekedRules } from "../rate-limit/peeked-rules.js";
import { type PreparedQuery, prepareQuery } from "../rate-limit/prepared-query.js";
import type { DescriptorQuery, Hits, RateLimitQuery } from "../rate-limit/query.js";
import { type LimitSwitches, switchedRole } from "../rate-limit/switches.js";
import { WindowSource } from "../rate-limit/window-source.js";
import { CallBuckets, SimulatedBuckets } from "./simulated-buckets.js";
import {
  isReplaced,
  type PartKey,
  PartShapes,
  replacedNames,
  type SimulatedPart,
} from "./simulated-parts.js";

/** Maximum number of keys with hits in use at the same time. */
const trialKeysMax = 2_000_000;

/** Dependencies of a `PolicySimulator`. */
export interface PolicySimulatorParts {
  readonly policy: Policy;
  readonly switches: LimitSwitches;
  /** A cryptographic hash in hexadecimal. */
  readonly digest: (text: string) => string;
  /** Default `trialKeysMax`. */
  readonly keysMax?: number;
}

/** The decision of a policy on a call. */
export interface SimulatedDecision {
  readonly verdict: Verdict;
  readonly request: DecidedRequest;
}

/** The decision of a policy on a call whose descriptors were matched one by one. */
interface PartsDecision {
  readonly isDenied: boolean;
  /** The result of each part, in their order. */
  readonly parts: readonly PartFinding[];
}

/** `unasked`: no limit, or only limits that another part replaces. */
type PartFinding = "unasked" | "within" | "over";

/**
 * Simulates a policy, without a store and in its own time: for tests of policies, for past access
 * logs, and for a candidate next to the active policy. Matching, algorithm and answers are those of
 * the `Decider`. What belongs to a process (batches, deadlines, failure modes, floods of new keys)
 * is not simulated.
 */
export class PolicySimulator {
  readonly #parts: PolicySimulatorParts;
  readonly #buckets: SimulatedBuckets;
  readonly #callBuckets: CallBuckets;
  readonly #shapes = new PartShapes();
  readonly #counters = new DecisionCounters();
  readonly #records = new KeyRecords(0);
  readonly #windows = new WindowSource();
  readonly #peeked = new PeekedRules();
  readonly #newKeys = new NewKeyGuard({ newKeysPerSecondMax: Number.POSITIVE_INFINITY });
  readonly #hasReplaces: boolean;

  constructor(parts: PolicySimulatorParts) {
    this.#parts = parts;
    this.#hasReplaces = parts.policy.rules.some(({ replaces }) => replaces !== undefined);
    this.#buckets = new SimulatedBuckets(parts.keysMax ?? trialKeysMax);
    this.#callBuckets = new CallBuckets(this.#buckets);
  }

  /** The simulated policy. */
  get policy(): Policy {
    return this.#parts.policy;
  }

  /**
   * Matches a query, for reuse by identical calls.
   *
   * @param nowUs as for `ask`
   * @throws ServiceError REQUEST_INVALID
   */
  prepare(query: RateLimitQuery, nowUs: number): PreparedQuery {
    const { policy, switches, digest } = this.#parts;
    return prepareQuery(query, {
      policy,
      overrides: noOverrides,
      peekedRules: this.#peeked.under(policy),
      counters: this.#counters,
      switches,
      records: this.#records,
      isKept: false,
      nameOf: (key) => key,
      newKeys: this.#newKeys,
      digest,
      nowMs: 0,
      windowSource: this.#windows,
      epochUs: nowUs,
    });
  }

  /** Whether a query is charged as before: a rule that it matches may settle by now. */
  isCurrent({ peekedRules }: PreparedQuery): boolean {
    return peekedRules === this.#peeked.under(this.policy);
  }

  /**
   * Decides a call, and charges it.
   *
   * @param nowUs microseconds since 1970; an earlier value than before is a clock that stepped back
   * @throws ServiceError STORE_FULL, and charges nothing, if about `keysMax` keys have hits in use
   */
  ask(prepared: PreparedQuery, hits: Hits, nowUs: number): SimulatedDecision {
    this.#windows.renew(prepared, nowUs);
    const charges = chargesFor(prepared, hits);
    this.#peeked.note(prepared, charges);
    this.#buckets.begin(nowUs, charges.length);
    const { isDenied, results } = decideRequest(charges, this.#buckets, nowUs);
    const request = { isDenied, charges, results, nowUs, isFromMemory: false };
    return { verdict: present(prepared, request), request };
  }

  /**
   * Matches one descriptor of a query. Queries in an access log differ from request to request, but
   * each of their descriptors recurs.
   *
   * @throws ServiceError REQUEST_INVALID
   */
  preparePart(domain: string, descriptor: DescriptorQuery, nowUs: number): SimulatedPart {
    const prepared = this.prepare({ domain, descriptors: [descriptor] }, nowUs);
    const { entries, override } = descriptor;
    const matched =
      override === undefined ? this.policy.domains.get(domain)?.match(entries) : undefined;
    return this.#shapes.partOf(descriptor, prepared, matched);
  }

  /**
   * Decides a call with all these parts, and charges it, as `ask` would for a query with all their
   * descriptors.
   *
   * @throws ServiceError STORE_FULL, as `ask`; REQUEST_INVALID
   */
  askParts(parts: readonly SimulatedPart[], nowUs: number): PartsDecision {
    const replaced = this.#hasReplaces ? replacedNames(parts) : undefined;
    let count = 0;
    for (const { shape } of parts) count += shape.asks.length;
    this.#buckets.begin(nowUs, count);
    this.#callBuckets.begin();
    const charges: Charge[] = [];
    for (const part of parts) this.#addCharges(part, { replaced, nowUs, charges });
    this.#peeked.add(parts.flatMap(({ shape }) => shape.peeked));
    if (charges.length > requestChargesMax) {
      const detail = `It matches ${charges.length} limits; ${requestChargesMax} are allowed.`;
      throw new ServiceError("REQUEST_INVALID", detail);
    }
    // For one charge, which most calls have, it allocates less.
    const call = { charges, multiplicity: 1 };
    const { grantedCount, results } = decideRepeated(call, this.#callBuckets, nowUs);
    let next = 0;
    const findings = parts.map(({ shape }): PartFinding => {
      let finding: PartFinding = "unasked";
      for (const { limit } of shape.asks) {
        if (isReplaced(limit, replaced)) continue;
        const isOver = results[next]?.isOver === true && limit.role !== "shadow";
        next += 1;
        if (isOver) finding = "over";
        else if (finding === "unasked") finding = "within";
      }
      return finding;
    });
    return { isDenied: grantedCount === 0 && !this.#parts.switches.isShadow, parts: findings };
  }

  #addCharges(part: SimulatedPart, { replaced, nowUs, charges }: CallParts): void {
    const { rule } = part.shape;
    const isSettling = rule !== undefined && this.#peeked.under(this.policy).has(rule);
    let placed: PartKey | undefined = part;
    for (const { limit, charge } of part.shape.asks) {
      if (placed === undefined) return;
      if (!isReplaced(limit, replaced)) {
        charges.push({
          key: this.#callBuckets.keyOf(placed),
          hits: charge.hits,
          periodUs: charge.periodUs,
          burst: charge.burst,
          cost: charge.cost,
          role: isSettling ? switchedRole(limit.role, this.#parts.switches, true) : charge.role,
          isRefund: charge.isRefund,
          peekExhausted: charge.peekExhausted,
          windows: this.#windows.windowsOf(limit, nowUs),
        });
      }
      placed = placed.next;
    }
  }

  /** Returns the bucket of a key at a time. Undefined: nothing is in use. */
  bucketOf(key: LimitKey, nowUs: number): Bucket | undefined {
    this.#buckets.begin(nowUs, 0);
    return this.#buckets.get(key);
  }
}

/** Inputs for the charges of a call. */
interface CallParts {
  readonly replaced: ReadonlySet<string> | undefined;
  readonly nowUs: number;
  readonly charges: Charge[];
}
