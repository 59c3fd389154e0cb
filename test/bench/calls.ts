import { create, toBinary } from "@bufbuild/protobuf";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import type { UnaryAnswer, UnaryHandler } from "../../src/wire/grpc/service.js";

/** Calls in flight: those of one turn make one batch. */
export const inFlight = 200;

/** What calls ask. */
export interface CallShape {
  readonly keyCount: number;
  /** Descriptors of a request, each with a limit of its own. Default 1. */
  readonly limitCount?: number;
  /** Keys of each further limit, which callers share, such as a plan or a path. */
  readonly sharedCounts?: readonly number[];
  /** Calls of a turn, `inFlight` at most. Default `inFlight`. */
  readonly turnCalls?: number;
  /** The number of the first call, for work that goes on with the next keys. Default 0. */
  readonly first?: number;
}

/** Descriptors' keys of limits that callers share. */
export const sharedKeys: readonly string[] = ["plan", "path", "site"];

/** Digits of a key's number: all messages of a scenario are equally long. */
const numberDigits = 7;
const keysMax = 10 ** numberDigits;

/**
 * Requests as a transport has them: just read, so their bytes are in the processor's cache, however
 * many keys there are. Each place of a turn has its own bytes; the key's number is written over.
 */
export class Requests {
  readonly #messages: readonly Buffer[];
  readonly #numberAt: readonly number[];
  /** How many keys each descriptor has, where they are not as many as the callers. */
  readonly #counts: readonly (number | undefined)[];
  /** Digits that differ between keys of each descriptor. */
  readonly #digitCounts: readonly number[];

  constructor(limitCount: number, sharedCounts: readonly number[] = []) {
    const own = ["user", "group"].slice(0, limitCount);
    const shared = sharedKeys.slice(0, sharedCounts.length);
    this.#counts = [...own.map(() => undefined), ...sharedCounts];
    const keys = [...own, ...shared];
    this.#digitCounts = this.#counts.map((count) => `${(count ?? keysMax) - 1}`.length);
    const placeholder = "#".repeat(numberDigits);
    const descriptors = keys.map((key) => ({ entries: [{ key, value: `${key}-${placeholder}` }] }));
    const request = create(RateLimitRequestSchema, { domain: "bench", descriptors });
    const template = Buffer.from(toBinary(RateLimitRequestSchema, request));
    this.#numberAt = [...template.toString("latin1").matchAll(/#+/g)].map(({ index }) => index);
    for (const at of this.#numberAt) template.fill("0", at, at + numberDigits);
    this.#messages = Array.from({ length: inFlight }, () => Buffer.from(template));
  }

  /** The request for a key, at one place of the turn. */
  write(place: number, key: number): Buffer {
    const message = this.#messages[place];
    if (message === undefined) throw new Error("a turn has as many places as calls in flight");
    for (const [i, start] of this.#numberAt.entries()) {
      let rest = key % (this.#counts[i] ?? keysMax);
      const last = start + numberDigits - 1;
      for (let at = last; at > last - (this.#digitCounts[i] ?? 0); at -= 1) {
        message[at] = 48 + (rest % 10);
        rest = (rest / 10) | 0;
      }
    }
    return message;
  }
}

const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined };

/** Waits for all answers of a turn. */
class Turn implements UnaryAnswer {
  #openCount = 0;
  #onEnd: (() => void) | undefined;

  begin(count: number): Promise<void> {
    this.#openCount = count;
    return new Promise((resolve) => {
      this.#onEnd = resolve;
    });
  }

  reply(): void {
    this.#openCount -= 1;
    if (this.#openCount === 0) this.#onEnd?.();
  }

  fail(thrown: unknown): void {
    throw thrown;
  }
}

/** Makes calls, turn after turn, over all keys in an order that caches cannot foresee. */
export async function decideMany(
  handle: UnaryHandler,
  { keyCount, limitCount = 1, sharedCounts, turnCalls = inFlight, first = 0 }: CallShape,
  count: number,
): Promise<void> {
  const requests = new Requests(limitCount, sharedCounts);
  const turn = new Turn();
  let next = first;
  while (next < first + count) {
    const ended = turn.begin(turnCalls);
    for (let place = 0; place < turnCalls; place += 1, next += 1) {
      handle(requests.write(place, (next * 7_919) % keyCount), call, turn);
    }
    await ended;
  }
}
