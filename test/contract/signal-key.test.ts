import { describe, expect, it } from "vitest";
import { isServiceError } from "../../src/core/base/errors.js";
import { KeySignalReader } from "../../src/fleet/signals/signal-key.js";
import {
  fieldBytesMax,
  numberBytesMax,
  numberFieldsMax,
} from "../../src/store/coordination/number-store.js";
import { RedisNumbers } from "../../src/store/redis/coordination/redis-numbers.js";
import { markedBlock, signalKeyRights } from "../support/docs.js";
import { enginesFor } from "../support/engines.js";
import { userPassword, withPassword } from "../support/redis.js";
import { openTestStore, shareTestStore, soon } from "../support/redis-store.js";

describe.each(enginesFor.behaviour)("KeySignalReader on %s", (engine) => {
  const store = shareTestStore(engine);

  async function read(key: string, keysMax?: number): Promise<unknown> {
    const connection = store.opened.connections.background;
    const reader = new KeySignalReader({ store: new RedisNumbers(connection), key, keysMax });
    try {
      const readings = await reader.read(soon());
      return readings.kind === "whole" ? readings.reading : Object.fromEntries(readings.readings);
    } catch (thrown) {
      if (!isServiceError(thrown)) throw thrown;
      return thrown.code;
    }
  }

  it("reads a number in a text", async () => {
    const { control } = store;
    await control.set("number", "5.5e4");
    expect(await read("number")).toBe(55_000);
    await control.set("number", "-3");
    expect(await read("number", 5)).toBe(-3);
    for (const text of ["", "NaN", "inf", "many", "0x5"]) {
      await control.set("number", text);
      expect(await read("number")).toBe("SIGNAL_EMPTY");
    }
  });

  it("reads a number of as many bytes as it may have", async () => {
    await store.control.set("long", "1".padStart(numberBytesMax, "0"));
    expect(await read("long")).toBe(1);
    await store.control.set("long", "1".padStart(numberBytesMax + 1, "0"));
    expect(await read("long")).toBe("SIGNAL_MALFORMED");
  });

  it("reads the length of a list", async () => {
    await store.control.rpush("jobs", "a", "b", "c");
    expect(await read("jobs")).toBe(3);
    expect(await read("jobs", 5)).toBe(3);
  });

  it("reads numbers by key from a hash, where the limit is split", async () => {
    const { control } = store;
    await control.hset("lags", { orders: "7", "a:3:b": "8", ü: "9", "": "1", text: "many" });
    expect(await read("lags", 5)).toEqual({ orders: 7, "a:3:b": 8, ü: 9 });
    expect(await read("lags")).toBe("SIGNAL_MALFORMED");
    expect(await read("lags", 4)).toBe("SIGNAL_TOO_LARGE");
  });

  it("leaves aside fields that are too long", async () => {
    const longest = "x".repeat(fieldBytesMax);
    await store.control.hset("long-fields", { [longest]: "1", [`${longest}x`]: "2", a: "3" });
    expect(await read("long-fields", 5)).toEqual({ [longest]: 1, a: 3 });
  });

  it("reads hashes up to its bound", async () => {
    const fields = Array.from({ length: numberFieldsMax }, (_, i) => [`k${i}`, String(i)]).flat();
    await store.control.hset("many", ...fields);
    expect(Object.keys(Object(await read("many", 100_000)))).toHaveLength(numberFieldsMax);
    await store.control.hset("many", "one more", "1");
    expect(await read("many", 100_000)).toBe("SIGNAL_TOO_LARGE");
  });

  it("finds nothing in what is not there, or is of another type", async () => {
    await store.control.sadd("set", "a");
    expect(await read("nothing")).toBe("SIGNAL_EMPTY");
    expect(await read("set", 5)).toBe("SIGNAL_MALFORMED");
  });
});

describe.each(enginesFor.rights)("KeySignalReader as a user of %s", (engine) => {
  const store = shareTestStore(engine);

  it("needs no more rights than are documented beside those of the store", async () => {
    const acl = markedBlock("acl");
    const [command, ...words] = withPassword(`${acl} ~lag:* ${signalKeyRights()}`);
    await store.control.call(command, ...words);
    await store.control.set("lag:number", "1");
    await store.control.rpush("lag:list", "a");
    await store.control.hset("lag:hash", { a: "1" });
    const target = { username: "gate", password: userPassword };
    const { store: opened, connections } = await openTestStore(store.server, { target });
    try {
      for (const key of ["lag:number", "lag:list", "lag:hash"]) {
        const connection = connections.background;
        const reader = new KeySignalReader({
          store: new RedisNumbers(connection),
          key,
          keysMax: 5,
        });
        expect(await reader.read(soon())).toBeDefined();
      }
      const connection = connections.background;
      const other = new KeySignalReader({
        store: new RedisNumbers(connection),
        key: "other",
        keysMax: 5,
      });
      await expect(other.read(soon())).rejects.toMatchObject({ code: "STORE_ACCESS_DENIED" });
    } finally {
      await opened.close();
    }
  });
});
