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
import { PageReader } from "./page-reader.js";

/**
 * Questions in Redis: a hash of the open ones, and a list of answers for each. Answers may contain
 * callers' keys, as names of buckets do. Questions and answers are kept for seconds.
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
 * Reads the reply of `takeAnswersScript`. Skips answers without a valid replica name.
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
 * Reads the reply of `questionsScript`.
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

/**
 * Asks a question, or keeps it open. KEYS: the questions, a hash by id. ARGV: the id, the question,
 * how long it stays open in ms, the maximum number of questions. Returns `asked` or `full`.
 */
const askScript: StoreScript = {
  name: "questions-ask",
  text: `
local questions, id = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local all = redis.call('HGETALL', questions)
local count = 0
for i = 1, #all, 2 do
  local untilMs = tonumber(string.match(all[i + 1], '^(%d+) ')) or 0
  if untilMs < ms then redis.call('HDEL', questions, all[i])
  elseif all[i] ~= id then count = count + 1 end
end
if count >= tonumber(ARGV[4]) then return 'full' end
redis.call('HSET', questions, id, string.format('%.0f ', ms + tonumber(ARGV[3])) .. ARGV[2])
redis.call('PEXPIRE', questions, ARGV[3])
return 'asked'
`,
};

/**
 * Reads the open questions. KEYS: the questions. ARGV: their maximum number, and the maximum bytes
 * of one. Returns for each a line with its id and its length in bytes, then the question.
 */
const questionsScript: StoreScript = {
  name: "questions-read",
  text: `
local time = redis.call('TIME')
local ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local all = redis.call('HGETALL', KEYS[1])
local most, bytesMax = tonumber(ARGV[1]), tonumber(ARGV[2])
local parts = {}
for i = 1, #all, 2 do
  local untilMs, text = string.match(all[i + 1], '^(%d+) (.*)$')
  local isSound = untilMs and #text <= bytesMax and string.match(all[i], '^[0-9a-f]+$')
  if isSound and tonumber(untilMs) >= ms and #all[i] <= 64 and #parts < most then
    parts[#parts + 1] = all[i] .. ' ' .. string.format('%.0f', #text) .. '\\n' .. text
  end
end
return table.concat(parts)
`,
};

/**
 * Answers a question. KEYS: its answers, a list. ARGV: the answer, the maximum number of waiting
 * answers, how long they are kept in ms, their maximum total bytes. The oldest are removed.
 */
const answerScript: StoreScript = {
  name: "questions-answer",
  text: `
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[2]) - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local kept, bytes = 0, 0
for _, answer in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  bytes = bytes + #answer
  if bytes > tonumber(ARGV[4]) then
    redis.call('LTRIM', KEYS[1], 0, kept - 1)
    break
  end
  kept = kept + 1
end
return 1
`,
};

/**
 * Takes the answers, oldest first. KEYS: the answers, the questions. ARGV: the id of a question to
 * close, or nothing; the maximum number of answers; their maximum total bytes. Returns for each a
 * line with its length in bytes, then the answer.
 */
const takeAnswersScript: StoreScript = {
  name: "questions-take",
  text: `
local answers = redis.call('LRANGE', KEYS[1], 0, tonumber(ARGV[2]) - 1)
redis.call('DEL', KEYS[1])
if ARGV[1] ~= '' then redis.call('HDEL', KEYS[2], ARGV[1]) end
local parts, room = {}, tonumber(ARGV[3])
for i = #answers, 1, -1 do
  room = room - #answers[i]
  if room < 0 then break end
  parts[#parts + 1] = string.format('%.0f\\n', #answers[i]) .. answers[i]
end
return table.concat(parts)
`,
};
