import { ServiceError } from "../../../core/base/errors.js";
import {
  answersBytesMax,
  answersMax,
  type QuestionStore,
  questionBytesMax,
  questionMs,
  questionsMax,
  type ReplicaAnswer,
  replicaNameBytesMax,
  type WaitingQuestion,
} from "../../coordination/question-store.js";
import type { ScriptReply, StoreScript } from "../scripts/connection.js";
import { type FleetStore, replyBytes, runFleetScript } from "./fleet-script.js";
import { PageReader } from "./record-pages.js";
import {
  answerScript,
  askScript,
  questionsScript,
  takeAnswersScript,
} from "./replica-questions-script.js";

/**
 * Questions in Redis: a hash of those that hold, and a list of answers for each. Callers' keys are
 * in answers, as they are in the names of buckets; both are kept for seconds.
 */
export class RedisQuestions implements QuestionStore {
  readonly #store: FleetStore;

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async ask({ id, text }: WaitingQuestion): Promise<void> {
    const args = [id, text, String(questionMs), String(questionsMax)];
    const reply = replyBytes(await this.#run(askScript, [questionsKey], args));
    if (reply.toString() !== "asked") throw new ServiceError("STORE_FULL");
  }

  async waiting(): Promise<readonly WaitingQuestion[]> {
    const args = [String(questionsMax), String(questionBytesMax)];
    return decodeQuestions(replyBytes(await this.#run(questionsScript, [questionsKey], args)));
  }

  async answer(id: string, { replica, body }: ReplicaAnswer): Promise<void> {
    const answered = Buffer.concat([Buffer.from(`${replica}\n`), body]);
    const bounds = [answersMax, questionMs, answersBytesMax].map(String);
    await this.#run(answerScript, [answersKey(id)], [answered, ...bounds]);
  }

  take(id: string): Promise<readonly ReplicaAnswer[]> {
    return this.#take(id, "");
  }

  async end(id: string): Promise<void> {
    await this.#take(id, id);
  }

  async #take(id: string, ended: string): Promise<readonly ReplicaAnswer[]> {
    const args = [ended, String(answersMax), String(answersBytesMax)];
    const keys = [answersKey(id), questionsKey];
    return decodeAnswers(replyBytes(await this.#run(takeAnswersScript, keys, args)));
  }

  #run(
    script: StoreScript,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
  ): Promise<ScriptReply> {
    return runFleetScript(this.#store, { script, keys, args });
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
    if (end < 1 || end > replicaNameBytesMax) continue;
    answers.push({ replica: answer.toString("utf8", 0, end), body: answer.subarray(end + 1) });
  }
  return answers;
}

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
