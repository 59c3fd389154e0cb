import { describe, expect, it } from "vitest";
import { numberFieldsMax } from "../../../../../src/store/coordination/number-store.js";
import { RedisNumbers } from "../../../../../src/store/redis/coordination/redis-numbers.js";
import { FakeConnection } from "../../../../support/fake-connection.js";

describe("RedisNumbers", () => {
  const connection = new FakeConnection();
  const read = (reply: string, fieldsMax = 2) => {
    connection.answer = { kind: "reply", reply: Buffer.from(reply) };
    return new RedisNumbers(connection).read({ key: "load", fieldsMax }, 1);
  };

  it.each([
    ["-", { kind: "missing" }],
    ["m", { kind: "tooMany" }],
    ["x", { kind: "other" }],
    ["", { kind: "other" }],
    ["n", { kind: "number", text: "" }],
    ["n4:0.25", { kind: "number", text: "0.25" }],
    ["n10:0123456789", { kind: "number", text: "0123456789" }],
    ["h", { kind: "fields", texts: [] }],
    [
      "h1:a1:11:b2:12",
      {
        kind: "fields",
        texts: [
          ["a", "1"],
          ["b", "12"],
        ],
      },
    ],
    ["h1:a1:11:b", { kind: "fields", texts: [["a", "1"]] }],
  ])("reads %j", async (reply, found) => {
    expect(await read(reply)).toEqual(found);
  });

  it.each(["n:", "n3:12", "n1;1", "n1", `n1000:${"x".repeat(1_000)}`, "n/:1", "h1:a1"])(
    "takes %j for no answer",
    async (reply) => {
      await expect(read(reply)).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
    },
  );

  it("asks for as many fields as there may be, and reads no more", async () => {
    const fields = (count: number, more = "") =>
      read(`h${"1:a1:1".repeat(count)}${more}`, numberFieldsMax + 1);
    await expect(fields(numberFieldsMax)).resolves.toMatchObject({ kind: "fields" });
    expect(connection.calls.at(-1)?.args[1]).toBe(String(numberFieldsMax));
    await expect(fields(numberFieldsMax, "1:a")).rejects.toMatchObject({ code: "STORE_PROTOCOL" });
  });
});
