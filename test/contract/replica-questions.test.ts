import { describe, expect, it } from "vitest";
import { ReplicaQuestions } from "../../src/fleet/claims/replica-questions.js";
import { answersBytesMax } from "../../src/store/coordination/question-store.js";
import { RedisQuestions } from "../../src/store/redis/coordination/redis-questions.js";
import { enginesFor } from "../support/engines.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { waitFor } from "../support/wait.js";

const question = { method: "Any", request: Buffer.from("a"), caller: {} };

describe.each(enginesFor.behaviour)("ReplicaQuestions on %s", (engine) => {
  const store = shareTestStore(engine);

  function join(keyPrefix: string, replica: string, onUnreadable = () => {}): ReplicaQuestions {
    const connection = store.opened.connections.background;
    const shared = { clock: realClock, random: realRandom };
    const questions = new RedisQuestions({ ...shared, connection, keyPrefix });
    return new ReplicaQuestions({ ...shared, store: questions, replica, onUnreadable });
  }

  const once = (body: Uint8Array) => {
    const bodies = [body];
    return () => ({ take: async () => bodies.pop(), close: () => {} });
  };

  it("answers others beside a question that is none, and tells of it once", async () => {
    const one = join("none:", "one");
    const asked = await one.put(question);
    const [seconds] = await store.control.time();
    const untilMs = Number(seconds) * 1_000 + 60_000;
    const questions = "none:{fleet}:questions";
    const broken = ["no JSON", "[]", '{"method":7}', "line\nfeed", "[".repeat(10_000)];
    for (const [i, text] of broken.entries()) {
      await store.control.hset(questions, `0${i}`, `${untilMs} ${text}`);
    }
    await store.control.hset(questions, "too long", `${untilMs} {}`);
    await store.control.hset(questions, "0f", `${untilMs} "${"x".repeat(70_000)}"`);
    let reportedCount = 0;
    const other = join("none:", "other", () => {
      reportedCount += 1;
    });
    const body = Buffer.from([0, 10, 255, 10]);
    other.answer(once(body));
    const [answer] = await waitFor("it is answered", async () => {
      const answers = await asked.take();
      return answers.length > 0 ? answers : undefined;
    });
    expect(answer).toEqual({ replica: "other", body });
    expect(reportedCount).toBe(1);
    await asked.close();
    other.close();
  });

  it("keeps the newest answers, and of all of them no more bytes than its bound", async () => {
    const one = join("sum:", "one");
    const asked = await one.put(question);
    const body = Buffer.alloc(1_000_000, 7);
    // A busy machine may need more time for megabytes than a question holds.
    const hold = async (): Promise<readonly string[]> => {
      const [seconds] = await store.control.time();
      const untilMs = Number(seconds) * 1_000 + 60_000;
      const questions = await store.control.hgetall("sum:{fleet}:questions");
      for (const [id, text] of Object.entries(questions)) {
        const words = text.slice(text.indexOf(" "));
        await store.control.hset("sum:{fleet}:questions", id, `${untilMs}${words}`);
      }
      const keys = await store.control.keys("sum:*");
      for (const key of keys) await store.control.persist(key);
      return keys.filter((key) => key.includes("answers:"));
    };
    for (const replica of ["r1", "r2", "r3", "r4", "r5"]) {
      const other = join("sum:", replica);
      other.answer(once(body));
      await waitFor("it has answered", async () => {
        const [key = "none"] = await hold();
        const [newest = ""] = await store.control.lrange(key, 0, 0);
        return newest.startsWith(`${replica}\n`);
      });
      other.close();
    }
    const answers = await asked.take();
    const bytes = answers.reduce((sum, answer) => sum + answer.body.length, 0);
    expect(answers.map(({ replica }) => replica)).toEqual(["r2", "r3", "r4", "r5"]);
    expect(bytes).toBeLessThanOrEqual(answersBytesMax);
    await asked.close();
  });
});
