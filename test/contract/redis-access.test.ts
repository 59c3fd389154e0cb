import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRedisTarget, type RedisTargetText } from "../../src/store/redis/target.js";
import { once, testCharge } from "../support/charges.js";
import { enginesFor } from "../support/engines.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore, soon, type TestRedisStore } from "../support/redis-store.js";

const password = "p@ss:w/ord?#%41";

/** What it comes to. */
const letIn = "";
const unknown = "STORE_UNAUTHENTICATED";
const barred = "STORE_ACCESS_DENIED";

/** Its percent sign would otherwise be read as one of a URL. */
const inUrl = password.replace("%", "%25");

describe.each(enginesFor.rights)("RedisLimitStore's access to %s", (engine) => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start({ engine, args: ["--requirepass", password], password });
    const acl = server.client();
    await acl.call("acl", "setuser", "gate", "on", `>${password}`, "~headgate:*", "+@all");
    await acl.call(
      "acl",
      "setuser",
      "reader",
      "on",
      `>${password}`,
      "~headgate:*",
      "+@all",
      "-set",
    );
    await acl.call("acl", "setuser", "stranger", "on", `>${password}`, "~other:*", "+@all");
  });

  afterAll(async () => {
    await server?.stop();
  });

  async function open(text: RedisTargetText): Promise<TestRedisStore> {
    const parsed = parseRedisTarget(text);
    if (parsed.kind === "problem") throw new Error(parsed.message);
    return openTestStore(server, { target: parsed.target, isVerified: false });
  }

  it.each([
    ["a password of its own", { url: "127.0.0.1:PORT", auth: password.slice(0, 4) }, unknown],
    ["no password", { url: "redis://127.0.0.1:PORT" }, unknown],
    ["a user who may not write", { url: `redis://reader:${inUrl}@127.0.0.1:PORT` }, barred],
    ["a database that is not there", { url: `redis://gate:${inUrl}@127.0.0.1:PORT/9999` }, barred],
    ["a user of other keys", { url: `redis://stranger:${inUrl}@127.0.0.1:PORT` }, barred],
    ["the user and the password", { url: "127.0.0.1:PORT", auth: `gate:${password}` }, letIn],
    ["both in the URL", { url: `redis://gate:${inUrl}@127.0.0.1:PORT` }, letIn],
    ["a unix socket", { url: "SOCKET", auth: `gate:${password}` }, letIn],
    ["a database of its own", { url: "redis://127.0.0.1:PORT/3", auth: `gate:${password}` }, letIn],
  ])("verify() tells at start whether we are let in: %s", async (_name, text, code) => {
    const url = text.url.replace("PORT", String(server.port)).replace("SOCKET", server.socketPath);
    const { store, events } = await open({ ...text, url });
    try {
      const verified = store.verify(soon()).then(
        () => undefined,
        (error: unknown) => error,
      );
      const error = await verified;
      if (code === letIn) {
        expect(error).toBeUndefined();
        expect(await store.take([once(testCharge())], soon())).toHaveLength(1);
        return;
      }
      expect(error).toMatchObject({ code, transient: false });
      await expect(store.take([once(testCharge())], soon())).rejects.toMatchObject({ code });
      const reported = JSON.stringify([error, String(error), (error as Error).stack, events]);
      expect(reported).not.toContain(password.slice(0, 4));
      expect((error as Error).cause).toBeUndefined();
    } finally {
      await store.close();
    }
  });

  it("holds three connections with names of their own", async () => {
    const { store } = await open({ url: `127.0.0.1:${server.port}`, auth: `gate:${password}` });
    await store.verify(soon());
    const list = String(await server.client().call("client", "list"));
    for (const role of ["decision", "fleet", "background"]) {
      expect(list).toContain(`name=headgate-${role} `);
    }
    await store.close();
  });
});
