import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { Limit, LimitKey } from "../../core/limits/limit.js";
import type { Override } from "../../core/limits/override.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { LimitStore } from "../../store/limit-store.js";
import type { PolicySource } from "../rate-limit/policy-source.js";
import type { ExplainedLimit, Explainer } from "./explain.js";

/** Selects a key: a descriptor and, if its rule has several limits, one of them. */
export interface KeySelector {
  readonly domain: string;
  /** From the outermost; at least one. */
  readonly entries: readonly DescriptorEntry[];
  /** Undefined: all limits of the rule. */
  readonly limitName?: string;
}

/** The current state of one bucket. */
export interface KeyState {
  readonly ruleLabel: string;
  /** The limit that applies now, with its override if there is one. */
  readonly limit: Limit;
  /** See `ExplainedLimit`. */
  readonly regionCount: number;
  readonly burst: number;
  readonly override: Override | undefined;
  /** The bucket's key in the store. It contains callers' values. */
  readonly key: LimitKey;
  readonly usedHits: number;
  readonly remainingHits: number;
  /** Time until one more hit fits. 0: it fits. Undefined: it never will. */
  readonly retryAfterUs: number | undefined;
  /** Time until nothing is in use. Undefined: it does not drain. */
  readonly fullAfterUs: number | undefined;
}

/** The result of looking up a key. */
export type KeyLookup<T> =
  | { readonly kind: "found"; readonly value: T }
  /** The policy has no such domain. */
  | { readonly kind: "domainUnknown" }
  /** No rule of the domain matches the descriptor, or the matching rule has no limits. */
  | { readonly kind: "unmatched" }
  /** The rule has no limit of that name. @property names of the limits that it has */
  | { readonly kind: "limitUnknown"; readonly names: readonly string[] };

interface KeyInspectorParts {
  readonly policies: PolicySource;
  readonly overrides: { current(): OverrideTable };
  readonly explainer: Pick<Explainer, "explain">;
  readonly store: Pick<LimitStore, "peek" | "forget">;
  readonly clock: Clock;
  /** Whether any call has carried a limit. */
  readonly areLimitsCarried: () => boolean;
  /** Called after buckets were emptied. */
  readonly onReset: () => void;
}

/** Maximum duration of a read or a reset, in milliseconds. No request waits for it. */
export const inspectionMsMax = 1_000;

/** Reads and empties keys in the store: the buckets that decisions charge. */
export class KeyInspector {
  readonly #parts: KeyInspectorParts;

  constructor(parts: KeyInspectorParts) {
    this.#parts = parts;
  }

  /**
   * Returns the current state of a key. Charges nothing.
   *
   * @throws ServiceError POLICY_MISSING, REQUEST_INVALID, STORE_ codes
   */
  async get(selector: KeySelector): Promise<KeyLookup<readonly KeyState[]>> {
    const { policies, overrides, explainer, store, clock } = this.#parts;
    const policy = policies.current();
    if (policy === undefined) throw new ServiceError("POLICY_MISSING");
    const { domain, entries, limitName } = selector;
    const deadlineMs = clock.monotonicMs() + inspectionMsMax;
    const explanation = await explainer.explain({
      query: { domain, descriptors: [{ entries, hits: 1, isRefund: false }] },
      policy,
      overrides: overrides.current(),
      peek: (key) => store.peek(key, deadlineMs),
      epochUs: clock.epochUs(),
    });
    if (!explanation.isDomainKnown) return { kind: "domainUnknown" };
    const [descriptor] = explanation.descriptors;
    const ruleLabel = descriptor?.matched;
    if (descriptor?.effect !== "limited" || ruleLabel === undefined) return { kind: "unmatched" };
    const { limits } = descriptor;
    const asked = limits.filter(({ limit }) => limitName === undefined || limit.name === limitName);
    if (asked.length === 0) {
      return { kind: "limitUnknown", names: limits.flatMap(({ limit }) => limit.name ?? []) };
    }
    return { kind: "found", value: asked.map((limit) => stateOf(limit, ruleLabel)) };
  }

  /** Whether requests carry limits. A reset does not reach those, as their sizes are not known. */
  get leavesCarriedLimits(): boolean {
    return this.#parts.areLimitsCarried();
  }

  /**
   * Empties a key's buckets. Returns how many there were. Another replica that has just learned
   * that the key is over may use that for up to a second (`refusalMsMax`).
   *
   * @throws ServiceError POLICY_MISSING, REQUEST_INVALID, STORE_ codes
   */
  async reset(selector: KeySelector): Promise<KeyLookup<number>> {
    const found = await this.get(selector);
    if (found.kind !== "found") return found;
    const { store, clock, onReset } = this.#parts;
    const keys = found.value.map(({ key }) => key);
    const deadlineMs = clock.monotonicMs() + inspectionMsMax;
    // Also if the answer was lost, because the buckets may be empty.
    const value = await store.forget(keys, deadlineMs).finally(onReset);
    return { kind: "found", value };
  }
}

function stateOf(explained: ExplainedLimit, ruleLabel: string): KeyState {
  const { isOver: _, ...state } = explained;
  return { ...state, ruleLabel };
}
