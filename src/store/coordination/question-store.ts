/** An open question. */
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

/** How long a question stays open unless it is asked again, in milliseconds. */
export const questionMs = 3_000;

/** Maximum number of open questions of all replicas. */
export const questionsMax = 16;

/** Maximum number of waiting answers to one question. The newest are kept. */
export const answersMax = 64;

/** Maximum size of a question, in bytes. */
export const questionBytesMax = 65_536;

/** Maximum size of an answer, in bytes. */
export const answerBytesMax = 1_048_576;

/** Maximum number of bytes of waiting answers to one question. Beyond it, the oldest are lost. */
export const answersBytesMax = 4_194_304;

/** Maximum length of the name of a replica that answers, in bytes. */
export const replicaNameBytesMax = 256;

/**
 * Questions that replicas ask each other, and their answers. Methods throw ServiceError with STORE_
 * codes.
 */
export interface QuestionStore {
  /** Asks a question, or keeps it open. @throws ServiceError STORE_FULL too */
  ask(question: WaitingQuestion): Promise<void>;
  /** Returns the open questions. */
  waiting(): Promise<readonly WaitingQuestion[]>;
  /** Answers a question. Its asker may no longer be waiting. */
  answer(id: string, answer: ReplicaAnswer): Promise<void>;
  /** Takes the answers that have arrived since the last call, oldest first. */
  take(id: string): Promise<readonly ReplicaAnswer[]>;
  /** Closes a question and drops its answers. */
  end(id: string): Promise<void>;
}
