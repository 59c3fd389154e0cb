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

/** A question of one replica to all others. */
export interface ReplicaQuestion {
  /** One of a fixed set. Replicas that do not know it do not answer. */
  readonly method: string;
  readonly request: Uint8Array;
  /** The caller on whose behalf it is asked, and what that caller may see. */
  readonly caller: JsonValue;
}

/** A question that was asked. */
export interface PutQuestion {
  /**
   * Returns the answers since the last call, and keeps the question open.
   *
   * @throws ServiceError STORE_ codes
   */
  take(): Promise<readonly ReplicaAnswer[]>;
  /** Stops collecting answers. Never rejects. */
  close(): Promise<void>;
}

/** A question that is being answered. */
export interface OpenAnswer {
  /** Returns the next answer. Undefined if there is none, now or at all. */
  take(): Promise<Uint8Array | undefined>;
  close(): void;
}

/** The dependencies of `ReplicaQuestions`. */
export interface ReplicaQuestionsOptions {
  readonly store: QuestionStore;
  readonly clock: Clock;
  readonly random: Random;
  /** The id of this replica. */
  readonly replica: string;
  /**
   * Called once if a question was skipped because it is invalid, for example from another version.
   */
  readonly onUnreadable?: () => void;
}

/** Poll interval for questions, in milliseconds. */
export const questionsEveryMs = 250;

/**
 * Lets replicas ask each other questions through their shared store. A caller that reaches one
 * replica, through a Service or a forwarded port, may not reach the admin ports of the others.
 * Answers contain keys of callers, as the names of buckets do. Questions and answers are stored for
 * seconds.
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
   * Answers the questions of other replicas, until `close`.
   *
   * @param open returns undefined if this replica does not answer the question
   */
  answer(open: (question: ReplicaQuestion) => OpenAnswer | undefined): void {
    const next = (): void => {
      if (this.#isClosed) return;
      this.#cancelNext = this.#options.clock.schedule(questionsEveryMs, () => {
        // The module that reads records reports outages of the store.
        this.#look(open)
          .catch(() => {})
          .finally(next);
      });
    };
    next();
  }

  /**
   * Asks all other replicas a question.
   *
   * @throws ServiceError STORE_ codes; STORE_FULL if there are too many questions
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
          // It expires by itself.
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
      // Each question takes up to 2 ms. Other work can run in between.
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

/** Returns undefined for an invalid question, for example from another version. */
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
