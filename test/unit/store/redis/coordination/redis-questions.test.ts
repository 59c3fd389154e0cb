import { describe, expect, it } from "vitest";
import {
  answersMax,
  questionsMax,
  replicaNameBytesMax,
} from "../../../../../src/store/coordination/question-store.js";
import {
  decodeAnswers,
  decodeQuestions,
  RedisQuestions,
} from "../../../../../src/store/redis/coordination/redis-questions.js";
import { FakeClock } from "../../../../support/fake-clock.js";
import { FakeConnection } from "../../../../support/fake-connection.js";
import { FakeRandom } from "../../../../support/fake-random.js";

const protocol = expect.objectContaining({ code: "STORE_PROTOCOL" });

/** An answer as the script hands it on, behind its length. */
function answerOf(replica: string, body = "x"): string {
  const text = `${replica}\n${body}`;
  return `${text.length}\n${text}`;
}

describe("RedisQuestions", () => {
  it("says that there are as many questions as there may be", async () => {
    const connection = new FakeConnection();
    const parts = { connection, clock: new FakeClock(), random: new FakeRandom(), keyPrefix: "" };
    const ask = () => new RedisQuestions(parts).ask({ id: "a", text: "?" });
    connection.answer = { kind: "reply", reply: Buffer.from("asked") };
    await expect(ask()).resolves.toBeUndefined();
    connection.answer = { kind: "reply", reply: Buffer.from("full") };
    await expect(ask()).rejects.toMatchObject({ code: "STORE_FULL" });
  });
});

describe("decodeAnswers()", () => {
  it("leaves out what has no replica's name, or one that is too long", () => {
    const longest = "r".repeat(replicaNameBytesMax);
    const texts = [answerOf("a", "1\n2"), answerOf(""), answerOf(`${longest}r`), answerOf(longest)];
    const answers = decodeAnswers(Buffer.from(`${texts.join("")}3\nabc`));
    expect(answers.map(({ replica, body }) => [replica, body.toString()])).toEqual([
      ["a", "1\n2"],
      [longest, "x"],
    ]);
  });

  it("reads as many as there may be", () => {
    const bytes = Buffer.from(answerOf("a").repeat(answersMax + 1));
    expect(decodeAnswers(bytes)).toHaveLength(answersMax);
  });

  it("knows what is cut off, and what is no length", () => {
    expect(() => decodeAnswers(Buffer.from(answerOf("a").slice(0, -1)))).toThrow(protocol);
    expect(() => decodeAnswers(Buffer.from(`x\n${answerOf("a")}`))).toThrow(protocol);
  });
});

describe("decodeQuestions()", () => {
  it("reads as many as there may be, with line breaks in them", () => {
    const bytes = Buffer.from("af 3\na\nb".repeat(questionsMax + 1));
    const questions = decodeQuestions(bytes);
    expect(questions).toHaveLength(questionsMax);
    expect(questions[0]).toEqual({ id: "af", text: "a\nb" });
  });

  it.each(["ag 1\na", "af 2\na", "af\na"])("takes %j for no answer", (text) => {
    expect(() => decodeQuestions(Buffer.from(text))).toThrow(protocol);
  });
});
