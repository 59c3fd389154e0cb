import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { Limit, LimitKey } from "../../core/limits/limit.js";
import type { Override } from "../../core/limits/override.js";
import type { OverrideTable } from "../../core/limits/override-table.js";
import type { LimitStore } from "../../store/limit-store.js";
import type { PolicySource } from "../rate-limit/policy-source.js";
import type { ExplainedLimit, Explainer } from "./explain.js";

/** A key that somebody asks about: a descriptor, and where a rule has several limits, which. */
export interface KeySelector {
  readonly domain: string;
  /** From the outermost; at least one. */
  readonly entries: readonly DescriptorEntry[];
  /** Undefined: all limits of the rule. */
  readonly limitName?: string;
}

/** One bucket as it is. */
export interface KeyState {
  readonly ruleLabel: string;
  /** As it holds now, under an override where there is one. */
  readonly limit: Limit;
  /** As `ExplainedLimit` has them. */
  readonly regionCount: number;
  readonly burst: number;
  readonly override: Override | undefined;
  /** What the bucket is called in the store; it holds callers' values. */
  readonly key: LimitKey;
  readonly usedHits: number;
  readonly remainingHits: number;
  /** Until one more hit fits; 0: it does. Undefined: it never will. */
  readonly retryAfterUs: number | undefined;
  /** Until nothing is in use; undefined: it does not drain. */
  readonly fullAfterUs: number | undefined;
}

/** What is found under a key. */
export type KeyLookup<T> =
  | { readonly kind: "found"; readonly value: T }
  /** The policy has no such domain. */
  | { readonly kind: "domainUnknown" }
  /** No rule of the domain meets the descriptor, or the one that does limits nothing. */
  | { readonly kind: "unmatched" }
  /** The rule has limits, and none of that name. @property names of those that it has */
  | { readonly kind: "limitUnknown"; readonly names: readonly string[] };

interface KeyInspectorParts {
  readonly policies: PolicySource;
  readonly overrides: { current(): OverrideTable };
  readonly explainer: Pick<Explainer, "explain">;
  readonly store: Pick<LimitStore, "peek" | "forget">;
  readonly clock: Clock;
  /** Whether a call has carried a limit of its own. */
  readonly areLimitsCarried: () => boolean;
  /** Told after buckets were emptied. */
  readonly onReset: () => void;
}

/** The longest that looking, or emptying, takes, in milliseconds: nobody's request waits for it. */
export const inspectionMsMax = 1_000;

/** Looks at keys in the store, and empties them: in the buckets that decisions charge. */
export class KeyInspector {
  readonly #parts: KeyInspectorParts;

  constructor(parts: KeyInspectorParts) {
    this.#parts = parts;
  }

  /**
   * What a key holds now; charges nothing.
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

  /** Whether requests carry limits: no reset reaches those, since nobody knows their sizes. */
  get leavesCarriedLimits(): boolean {
    return this.#parts.areLimitsCarried();
  }

  /**
   * Empties a key's buckets; answers how many there were. Another replica that was told a moment
   * ago that the key is over may believe so for up to a second (`refusalMsMax`).
   *
   * @throws ServiceError POLICY_MISSING, REQUEST_INVALID, STORE_ codes
   */
  async reset(selector: KeySelector): Promise<KeyLookup<number>> {
    const found = await this.get(selector);
    if (found.kind !== "found") return found;
    const { store, clock, onReset } = this.#parts;
    const keys = found.value.map(({ key }) => key);
    const deadlineMs = clock.monotonicMs() + inspectionMsMax;
    // Also where the answer was lost, since the buckets may be gone.
    const value = await store.forget(keys, deadlineMs).finally(onReset);
    return { kind: "found", value };
  }
}

function stateOf(explained: ExplainedLimit, ruleLabel: string): KeyState {
  const { isOver: _, ...state } = explained;
  return { ...state, ruleLabel };
}
