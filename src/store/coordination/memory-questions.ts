import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import {
  answersBytesMax,
  answersMax,
  type QuestionStore,
  questionMs,
  questionsMax,
  type ReplicaAnswer,
  type WaitingQuestion,
} from "./question-store.js";

interface KeptQuestion extends WaitingQuestion {
  readonly untilMs: number;
  /** The newest first. */
  readonly answers: readonly ReplicaAnswer[];
}

/** Questions among the replicas of one process. */
export class MemoryQuestions implements QuestionStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #questions = new Map<string, KeptQuestion>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async ask(question: WaitingQuestion): Promise<void> {
    this.#dropEnded();
    const known = this.#questions.get(question.id);
    if (known === undefined && this.#questions.size >= questionsMax) {
      throw new ServiceError("STORE_FULL");
    }
    const untilMs = this.#clock.monotonicMs() + questionMs;
    this.#questions.set(question.id, { ...question, untilMs, answers: known?.answers ?? [] });
  }

  async waiting(): Promise<readonly WaitingQuestion[]> {
    this.#dropEnded();
    return [...this.#questions.values()].map(({ id, text }) => ({ id, text }));
  }

  async answer(id: string, answer: ReplicaAnswer): Promise<void> {
    const question = this.#questions.get(id);
    if (question === undefined) return;
    let bytes = 0;
    const answers = [answer, ...question.answers].slice(0, answersMax).filter(({ body }) => {
      bytes += body.length;
      return bytes <= answersBytesMax;
    });
    this.#questions.set(id, { ...question, answers });
  }

  async take(id: string): Promise<readonly ReplicaAnswer[]> {
    const question = this.#questions.get(id);
    if (question === undefined) return [];
    this.#questions.set(id, { ...question, answers: [] });
    return question.answers.toReversed();
  }

  async end(id: string): Promise<void> {
    this.#questions.delete(id);
  }

  #dropEnded(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, { untilMs }] of this.#questions)
      if (untilMs < nowMs) this.#questions.delete(id);
  }
}
