import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { isServiceError, ServiceError } from "../../core/base/errors.js";
import type { JsonValue } from "../../core/base/json.js";
import {
  answerBytesMax,
  type QuestionStore,
  questionBytesMax,
  type ReplicaAnswer,
} from "../../store/coordination/question-store.js";
import { parseObject } from "../../store/coordination/record-text.js";

/** What one replica asks all others. */
export interface ReplicaQuestion {
  /** Of a closed set; who does not know it does not answer. */
  readonly method: string;
  readonly request: Uint8Array;
  /** For whom it is asked, and what they may see. */
  readonly caller: JsonValue;
}

/** A question that was put. */
export interface PutQuestion {
  /**
   * What has been answered since the last time; the question holds on.
   *
   * @throws ServiceError STORE_ codes
   */
  take(): Promise<readonly ReplicaAnswer[]>;
  /** Wants no more answers. Never rejects. */
  close(): Promise<void>;
}

/** A question that is being answered. */
export interface OpenAnswer {
  /** What is to be answered now; undefined: nothing, for the moment or any more. */
  take(): Promise<Uint8Array | undefined>;
  close(): void;
}

/** What `ReplicaQuestions` are made of. */
export interface ReplicaQuestionsOptions {
  readonly store: QuestionStore;
  readonly clock: Clock;
  readonly random: Random;
  /** This replica. */
  readonly replica: string;
  /** A question is left out that is none, as of another version; it is told once. */
  readonly onUnreadable?: () => void;
}

/** How often questions are looked for, in milliseconds. */
export const questionsEveryMs = 250;

/**
 * Replicas ask each other by the store that they share: where a caller reaches one of them, by a
 * Service or a forwarded port, none may reach another one's admin port. Callers' keys are in
 * answers, as they are in the names of buckets; both are kept for seconds.
 */
export class ReplicaQuestions {
  readonly #options: ReplicaQuestionsOptions;
  readonly #open = new Map<string, OpenAnswer>();
  #cancelNext: Cancel | undefined;
  #isClosed = false;
  #isUnreadableReported = false;

  constructor(options: ReplicaQuestionsOptions) {
    this.#options = options;
  }

  /**
   * Answers what others ask, until `close`.
   *
   * @param open undefined: this question is not answered here
   */
  answer(open: (question: ReplicaQuestion) => OpenAnswer | undefined): void {
    const next = (): void => {
      if (this.#isClosed) return;
      this.#cancelNext = this.#options.clock.schedule(questionsEveryMs, () => {
        // An outage of the store is told where records are read.
        this.#look(open)
          .catch(() => {})
          .finally(next);
      });
    };
    next();
  }

  /**
   * Puts a question to all other replicas.
   *
   * @throws ServiceError STORE_ codes; STORE_FULL where too much is being asked
   */
  async put(question: ReplicaQuestion): Promise<PutQuestion> {
    const { random, replica: by } = this.#options;
    const id = random.id();
    const { method, caller } = question;
    const request = Buffer.from(question.request).toString("base64");
    const text = JSON.stringify({ by, method, request, caller });
    if (Buffer.byteLength(text) > questionBytesMax) throw new ServiceError("STORE_FULL");
    const { store } = this.#options;
    await store.ask({ id, text });
    return {
      take: async () => {
        const taken = await store.take(id);
        await store.ask({ id, text });
        return taken;
      },
      close: async () => {
        await store.end(id).catch(() => {
          // It ends by itself.
        });
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext?.();
    for (const open of this.#open.values()) open.close();
    this.#open.clear();
  }

  async #look(open: (question: ReplicaQuestion) => OpenAnswer | undefined): Promise<void> {
    const asked = new Set<string>();
    for (const { id, text } of await this.#options.store.waiting()) {
      asked.add(id);
      if (this.#open.has(id) || this.#isClosed) continue;
      const question = readQuestion(text);
      if (question === undefined) this.#noteUnreadable();
      const isOurs = question?.by === this.#options.replica;
      this.#open.set(id, (question && !isOurs && open(question)) || nothing);
      // Each is read once, and takes 2 ms at most; others have their turn in between.
      await new Promise<void>((resolve) => this.#options.clock.scheduleTurn(resolve));
    }
    for (const [id, answer] of this.#open) {
      if (asked.has(id)) await this.#give(id, answer);
      else {
        answer.close();
        this.#open.delete(id);
      }
    }
  }

  #noteUnreadable(): void {
    if (this.#isUnreadableReported) return;
    this.#isUnreadableReported = true;
    this.#options.onUnreadable?.();
  }

  async #give(id: string, answer: OpenAnswer): Promise<void> {
    const body = await answer.take();
    if (body === undefined || body.length > answerBytesMax) return;
    const { store, replica } = this.#options;
    await store.answer(id, { replica, body });
  }
}

/** Undefined for a text that is no question: of another version, or of nobody's. */
export function readQuestion(
  text: string,
): (ReplicaQuestion & { readonly by: JsonValue | undefined }) | undefined {
  try {
    const { by, method, request, caller = false } = parseObject(text);
    if (typeof method !== "string" || typeof request !== "string") return undefined;
    return { by, method, request: Buffer.from(request, "base64"), caller };
  } catch (thrown) {
    if (isServiceError(thrown)) return undefined;
    throw thrown;
  }
}

const nothing: OpenAnswer = { take: async () => undefined, close: () => {} };
