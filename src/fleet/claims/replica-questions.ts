import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { isServiceError, ServiceError } from "../../core/base/errors.js";
import type { JsonValue } from "../../core/base/json.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../../store/connection.js";
import { replyBytes, runFleetScript } from "../records/fleet-script.js";
import { PageReader } from "../records/record-pages.js";
import { parseObject } from "../records/record-text.js";
import {
  answerScript,
  askScript,
  questionsScript,
  takeAnswersScript,
} from "./replica-questions-script.js";

/** What one replica asks all others. */
export interface ReplicaQuestion {
  /** Of a closed set; who does not know it does not answer. */
  readonly method: string;
  readonly request: Uint8Array;
  /** For whom it is asked, and what they may see. */
  readonly caller: JsonValue;
}

/** What one of them answered. */
export interface ReplicaAnswer {
  readonly replica: string;
  readonly body: Uint8Array;
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
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly keyPrefix: string;
  /** This replica. */
  readonly replica: string;
  /** A question is left out that is none, as of another version; it is told once. */
  readonly onUnreadable?: () => void;
}

/** How often questions are looked for, in milliseconds. */
export const questionsEveryMs = 250;

/** How long a question holds that nobody takes answers to, in milliseconds. */
const questionMs = 3_000;

/** Questions of all replicas at a time. */
export const questionsMax = 16;

/** Answers to one question that wait. */
const answersMax = 64;

/** The longest question and the longest answer, in bytes; longer ones are not put or given. */
export const questionBytesMax = 65_536;
const answerBytesMax = 1_048_576;

/** The most bytes of answers to one question that wait; beyond that the oldest are lost. */
export const answersBytesMax = 4_194_304;

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
  #isUnreadableTold = false;

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
    const ask = async (): Promise<void> => {
      const args = [id, text, String(questionMs), String(questionsMax)];
      const reply = await this.#run(askScript, [questionsKey], args);
      if (textOf(reply) !== "asked") throw new ServiceError("STORE_FULL");
    };
    await ask();
    return {
      take: async () => {
        const taken = await this.#take(id, "");
        await ask();
        return taken;
      },
      close: async () => {
        await this.#take(id, id).catch(() => {
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

  async #take(id: string, ended: string): Promise<readonly ReplicaAnswer[]> {
    const args = [ended, String(answersMax), String(answersBytesMax)];
    const keys = [answersKey(id), questionsKey];
    return decodeAnswers(replyBytes(await this.#run(takeAnswersScript, keys, args)));
  }

  async #look(open: (question: ReplicaQuestion) => OpenAnswer | undefined): Promise<void> {
    const args = [String(questionsMax), String(questionBytesMax)];
    const reply = replyBytes(await this.#run(questionsScript, [questionsKey], args));
    const asked = new Set<string>();
    for (const { id, text } of decodeQuestions(reply)) {
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
    if (this.#isUnreadableTold) return;
    this.#isUnreadableTold = true;
    this.#options.onUnreadable?.();
  }

  async #give(id: string, answer: OpenAnswer): Promise<void> {
    const bytes = await answer.take();
    if (bytes === undefined || bytes.length > answerBytesMax) return;
    const answered = Buffer.concat([Buffer.from(`${this.#options.replica}\n`), bytes]);
    const bounds = [answersMax, questionMs, answersBytesMax].map(String);
    await this.#run(answerScript, [answersKey(id)], [answered, ...bounds]);
  }

  #run(
    script: StoreScript,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
  ): Promise<ScriptReply> {
    return runFleetScript(this.#options, { script, keys, args });
  }
}

const questionsKey = "questions";

function answersKey(id: string): string {
  return `answers:${id}`;
}

/**
 * Reads an answer of `takeAnswersScript`; what is no replica's is left out.
 *
 * @throws ServiceError STORE_PROTOCOL
 */
export function decodeAnswers(bytes: Buffer): readonly ReplicaAnswer[] {
  const page = new PageReader(bytes);
  const answers: ReplicaAnswer[] = [];
  for (let count = 0; !page.isAtEnd && count < answersMax; count += 1) {
    const [length] = page.line(/^(\d{1,7})$/);
    const answer = page.bytes(Number(length));
    const end = answer.indexOf("\n");
    if (end < 1 || end > nameBytesMax) continue;
    answers.push({ replica: answer.toString("utf8", 0, end), body: answer.subarray(end + 1) });
  }
  return answers;
}

/** Of a replica; one that is called by more answers nobody. */
const nameBytesMax = 256;

/**
 * Reads an answer of `questionsScript`.
 *
 * @throws ServiceError STORE_PROTOCOL
 */
export function decodeQuestions(bytes: Buffer): readonly WaitingQuestion[] {
  const page = new PageReader(bytes);
  const questions: WaitingQuestion[] = [];
  while (!page.isAtEnd && questions.length < questionsMax) {
    const [id = "", length] = page.line(/^([0-9a-f]{1,64}) (\d{1,5})$/);
    questions.push({ id, text: page.text(Number(length)) });
  }
  return questions;
}

interface WaitingQuestion {
  readonly id: string;
  readonly text: string;
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

function textOf(reply: ScriptReply): string {
  return replyBytes(reply).toString("utf8");
}
