import type { FailureMode, Limit, Role } from "../../src/core/limits/limit.js";
import type { DescriptorQuery, RateLimitQuery } from "../../src/decide/rate-limit/query.js";
import type { Policy } from "../../src/policy/policy.js";
import { type TestRule, testLimit, testPolicy } from "../support/policies.js";
import type { Dice } from "./dice.js";

/** The rules of every policy by the key of their one entry, and how many limits each has. */
const ruleLimitCounts: Readonly<Record<string, number>> = { user: 1, path: 2, tenant: 2, plan: 3 };

/** Each limit in the order of the rules; edits change one at a time. */
export type Limits = readonly Limit[];

const periods = [
  { unit: "second", unitMultiplier: 1, periodUs: 1_000_000 },
  { unit: "second", unitMultiplier: 10, periodUs: 10_000_000 },
  { unit: "minute", unitMultiplier: 1, periodUs: 60_000_000 },
] as const;

const failureModes: readonly FailureMode[] = ["local", "local", "local", "allow", "deny", "error"];

const roles: readonly Role[] = ["enforce", "enforce", "enforce", "shadow", "quota", "settle"];

/** Any limits; the first is a plain one, so that every run has what most policies are made of. */
export function drawLimits(dice: Dice): Limits {
  const limits: Limit[] = [];
  for (const [rule, count] of Object.entries(ruleLimitCounts)) {
    for (let i = 0; i < count; i += 1) limits.push(drawLimit(dice, `${rule}-${i}`));
  }
  return limits.map((limit, i) => {
    return i === 0 ? { ...limit, role: "enforce", onStoreFailure: "local" } : limit;
  });
}

/** The same with one limit drawn anew; its name, and so its state, stays. */
export function editLimits(dice: Dice, limits: Limits): Limits {
  const edited = dice.below(limits.length);
  return limits.map((limit, i) => {
    if (i !== edited) return limit;
    const drawn = drawLimit(dice, limit.name ?? "");
    // Mostly the numbers are edited, and the rest stays.
    const { role, onStoreFailure } = dice.chance(0.7) ? limit : drawn;
    return { ...drawn, role, onStoreFailure };
  });
}

function drawLimit(dice: Dice, name: string): Limit {
  const period = dice.pick(periods);
  const hits = dice.chance(0.03) ? 0 : 1 + dice.below(dice.pick([5, 30, 200]));
  const burst = hits === 0 ? 0 : 1 + dice.below(dice.pick([2, 10, 60]));
  return testLimit(hits, {
    ...period,
    name,
    burst,
    role: dice.pick(roles),
    peek: dice.pick(["debt", "exhausted"]),
    onStoreFailure: dice.pick(failureModes),
  });
}

/** The policy of these limits. */
export function policyOf(limits: Limits, version: number): Policy {
  const left = [...limits];
  const rules = Object.entries(ruleLimitCounts).map(([rule, count]): TestRule => {
    return { path: [rule], effect: left.splice(0, count) };
  });
  return testPolicy(rules, `v${version}`);
}

const values = ["hot", "hot", "hot", "warm", "cold"];

/** What callers ask again and again in a run; each is one object, as a cache would keep it. */
export function drawQueries(dice: Dice, count: number): readonly RateLimitQuery[] {
  const plain = queryOf([{ key: "user", value: "hot", hits: 1 }]);
  const drawn = Array.from({ length: count - 1 }, () => {
    const descriptorCount = dice.pick([1, 1, 1, 2, 3]);
    const isRefund = dice.chance(0.06);
    const hits = dice.pick([1, 1, 1, 1, 0, 2, 5]);
    const key = (): string => dice.pick(["user", "path", "tenant", "plan", "unknown"]);
    return queryOf(
      Array.from({ length: descriptorCount }, () => {
        return { key: key(), value: dice.pick(values), hits: isRefund ? 1 : hits, isRefund };
      }),
    );
  });
  return [plain, ...drawn];
}

interface Descriptor extends Pick<DescriptorQuery, "hits"> {
  readonly key: string;
  readonly value: string;
  readonly isRefund?: boolean;
}

function queryOf(descriptors: readonly Descriptor[]): RateLimitQuery {
  return {
    domain: "shop",
    descriptors: descriptors.map(({ key, value, hits, isRefund = false }) => {
      return { entries: [{ key, value }], hits, isRefund };
    }),
  };
}
