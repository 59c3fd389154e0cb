/** A question that holds. */
export interface WaitingQuestion {
  /** Lower-case hexadecimal, up to 64 digits. */
  readonly id: string;
  readonly text: string;
}

/** An answer to a question. */
export interface ReplicaAnswer {
  readonly replica: string;
  readonly body: Uint8Array;
}

/** How long a question holds that nobody takes answers to, in milliseconds. */
export const questionMs = 3_000;

/** Questions of all replicas at a time. */
export const questionsMax = 16;

/** Answers to one question that wait; the newest stay. */
export const answersMax = 64;

/** The longest question, in bytes. */
export const questionBytesMax = 65_536;

/** The longest answer, in bytes. */
export const answerBytesMax = 1_048_576;

/** The most bytes of answers to one question that wait; beyond that the oldest are lost. */
export const answersBytesMax = 4_194_304;

/** The longest name of a replica that answers, in bytes. */
export const replicaNameBytesMax = 256;

/**
 * What replicas ask each other, and what they answer. Methods throw ServiceError with STORE_
 * codes.
 */
export interface QuestionStore {
  /** Puts a question, or keeps one that was put. @throws ServiceError STORE_FULL too */
  ask(question: WaitingQuestion): Promise<void>;
  /** The questions that hold. */
  waiting(): Promise<readonly WaitingQuestion[]>;
  /** Answers a question; nobody may be waiting any more. */
  answer(id: string, answer: ReplicaAnswer): Promise<void>;
  /** What was answered since the last time, the oldest first. */
  take(id: string): Promise<readonly ReplicaAnswer[]>;
  /** Nobody wants answers any more. */
  end(id: string): Promise<void>;
}
