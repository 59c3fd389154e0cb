import type { Cancel, Clock, Random } from "../core/clock.js";
import { ServiceError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../store/connection.js";
import { replyBytes, runFleetScript } from "./fleet-script.js";
import { parseObject } from "./record-text.js";
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
}

/** How often questions are looked for, in milliseconds. */
export const questionsEveryMs = 250;

/** How long a question holds that nobody takes answers to, in milliseconds. */
const questionMs = 3_000;

/** Questions of all replicas at a time. */
const questionsMax = 16;

/** Answers to one question that wait. */
const answersMax = 64;

/** The longest question and the longest answer, in bytes; longer ones are not put or given. */
const questionBytesMax = 65_536;
const answerBytesMax = 1_048_576;

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
    if (text.length > questionBytesMax) throw new ServiceError("STORE_FULL");
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
    const reply = await this.#run(takeAnswersScript, [answersKey(id), questionsKey], [ended]);
    const lines = textOf(reply).split("\n");
    // The newest stands first.
    return lines.reverse().flatMap((line) => {
      if (line === "") return [];
      const { replica, body } = parseObject(line);
      if (typeof replica !== "string" || typeof body !== "string") return [];
      return [{ replica, body: Buffer.from(body, "base64") }];
    });
  }

  async #look(open: (question: ReplicaQuestion) => OpenAnswer | undefined): Promise<void> {
    const lines = textOf(await this.#run(questionsScript, [questionsKey], [])).split("\n");
    const asked = new Set<string>();
    for (const line of lines) {
      const [id = ""] = line.split(" ", 1);
      if (id === "") continue;
      asked.add(id);
      if (this.#open.has(id)) continue;
      const { by, method, request, caller } = parseObject(line.slice(id.length + 1));
      if (by === this.#options.replica || this.#isClosed) continue;
      if (typeof method !== "string" || typeof request !== "string") continue;
      const question = { method, request: Buffer.from(request, "base64"), caller: caller ?? false };
      this.#open.set(id, open(question) ?? nothing);
    }
    for (const [id, answer] of this.#open) {
      if (asked.has(id)) await this.#give(id, answer);
      else {
        answer.close();
        this.#open.delete(id);
      }
    }
  }

  async #give(id: string, answer: OpenAnswer): Promise<void> {
    const bytes = await answer.take();
    if (bytes === undefined || bytes.length > answerBytesMax) return;
    const body = Buffer.from(bytes).toString("base64");
    const text = JSON.stringify({ replica: this.#options.replica, body });
    await this.#run(answerScript, [answersKey(id)], [text, String(answersMax), String(questionMs)]);
  }

  #run(
    script: StoreScript,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<ScriptReply> {
    return runFleetScript(this.#options, { script, keys, args });
  }
}

const questionsKey = "questions";

function answersKey(id: string): string {
  return `questions:${id}`;
}

const nothing: OpenAnswer = { take: async () => undefined, close: () => {} };

function textOf(reply: ScriptReply): string {
  return replyBytes(reply).toString("utf8");
}
