import { toServiceError } from "../../../core/base/errors.js";
import {
  leaseAsksPerCallMax,
  type QuotaLeaseAnswer,
  type QuotaLeaseAsk,
} from "../../../core/quota/quota-leases.js";
import type { QuotaClaims, QuotaStore } from "../../coordination/quota-store.js";
import type { FleetStore } from "./fleet-script.js";
import { quotaLeaseScript } from "./quota-lease-script.js";
import { parseNumbers } from "./reply-numbers.js";

/** The longest that a claim waits for its answer, in milliseconds; the next one says more. */
const leaseCallMsMax = 750;

/**
 * Hash tags that pools are spread over: so many calls a second at least where there are many
 * pools, and so many places of a cluster that do the work.
 */
const leaseTagCount = 16;

/** Divides pools in Redis: a hash for each. */
export class RedisQuotas implements QuotaStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async exchange(claims: QuotaClaims): Promise<readonly QuotaLeaseAnswer[]> {
    const { asks } = claims;
    const byTag = new Map<string, number[]>();
    asks.forEach(({ pool }, i) => {
      const tag = tagOf(pool);
      const places = byTag.get(tag);
      if (places === undefined) byTag.set(tag, [i]);
      else places.push(i);
    });
    const answers: QuotaLeaseAnswer[] = asks.map(() => unanswered);
    const exchanges = [...byTag].map(async ([tag, places]) => {
      for (let at = 0; at < places.length; at += leaseAsksPerCallMax) {
        const part = places.slice(at, at + leaseAsksPerCallMax);
        const reported = await this.#claim(tag, { ...claims, asks: pick(asks, part) });
        part.forEach((place, i) => {
          answers[place] = reported[i] ?? unanswered;
        });
      }
    });
    await Promise.all(exchanges);
    return answers;
  }

  async #claim(
    tag: string,
    { replicaId, number, asks }: QuotaClaims,
  ): Promise<readonly QuotaLeaseAnswer[]> {
    const { connection, clock, keyPrefix } = this.#store;
    const sentMs = clock.monotonicMs();
    const call = {
      script: quotaLeaseScript,
      keys: asks.map(({ pool }) => `${keyPrefix}{quota-${tag}}:${pool}`),
      args: [replicaId, String(number), ...asks.flatMap(argsOf)],
      deadlineMs: sentMs + leaseCallMsMax,
    };
    try {
      const crowdCount = asks.reduce((sum, { claim }) => sum + claim.crowds.length, 0);
      const reported = parseNumbers(await connection.run(call), asks.length + crowdCount);
      let at = 0;
      return asks.map(({ claim: { crowds }, leaseMs }): QuotaLeaseAnswer => {
        const [rateMicroHz = overtaken, ...counts] = reported.slice(at, at + 1 + crowds.length);
        at += 1 + crowds.length;
        if (rateMicroHz === overtaken) return { kind: "overtaken" };
        const elsewhere = crowds.map(({ identity }, i) => ({ identity, count: counts[i] ?? 0 }));
        return { kind: "leased", lease: { rateMicroHz, untilMs: sentMs + leaseMs, elsewhere } };
      });
    } catch (thrown) {
      const { code } = toServiceError(thrown);
      return asks.map((): QuotaLeaseAnswer => ({ kind: "failed", code }));
    }
  }
}

/** What the script answers to a claim that was overtaken by a later one. */
const overtaken = -1;

const unanswered: QuotaLeaseAnswer = { kind: "failed", code: "STORE_PROTOCOL" };

function argsOf({ claim, leaseMs }: QuotaLeaseAsk): readonly string[] {
  const { metMicroHz, hungryMicroHz, hungryWeight, weight, heldMicroHz, ceilingMicroHz } = claim;
  const metWeight = Math.max(0, weight - hungryWeight);
  const numbers = [leaseMs, metMicroHz, metWeight, hungryMicroHz, hungryWeight];
  const crowds = claim.crowds.map(({ identity, count }) => `${identity}:${count}`);
  return [...[...numbers, heldMicroHz, ceilingMicroHz].map(String), crowds.join(" ")];
}

/** One of `leaseTagCount`, by the first two digits of a pool's name in hexadecimal. */
function tagOf(pool: string): string {
  return String(Number.parseInt(pool.slice(0, 2), 16) % leaseTagCount || 0);
}

function pick(asks: readonly QuotaLeaseAsk[], places: readonly number[]): readonly QuotaLeaseAsk[] {
  return places.flatMap((place) => asks[place] ?? []);
}
