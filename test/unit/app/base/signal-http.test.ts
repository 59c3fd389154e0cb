import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { askSource, type SignalAsk } from "../../../../src/app/base/signal-http.js";
import { isServiceError, ServiceError } from "../../../../src/core/base/errors.js";
import { TestAuthority } from "../../../support/certificates.js";
import { freePort } from "../../../support/free-port.js";
import { realClock } from "../../../support/real-clock.js";
import { SignalServer } from "../../../support/signal-server.js";
import { useStage } from "../../../support/stage.js";
import { waitFor } from "../../../support/wait.js";

const stage = useStage("test");

interface Asked {
  readonly text: string;
  /** Of the failure; undefined where it went well. */
  readonly code: string | undefined;
  readonly message: string;
}

async function ask(authority: string, fields: Partial<SignalAsk> = {}): Promise<Asked> {
  const pieces: string[] = [];
  const asked = askSource({
    url: new URL(`http://${authority}/secret-path?secret=query`),
    accept: "text/plain",
    bytesMax: 1_000,
    deadlineMs: realClock.monotonicMs() + 10_000,
    clock: realClock,
    onPiece: (piece) => pieces.push(piece),
    ...fields,
  });
  const failure = await asked.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (failure !== undefined && !isServiceError(failure)) throw failure;
  return { text: pieces.join(""), code: failure?.code, message: failure?.message ?? "" };
}

describe("askSource()", () => {
  it("hands an answer on, characters whole wherever it is cut", async () => {
    const server = await SignalServer.start(stage);
    const bytes = Buffer.from("läg: 5 €");
    server.answer = (response) => {
      response.write(bytes.subarray(0, 2));
      setImmediate(() => response.end(bytes.subarray(2)));
    };
    expect(await ask(server.authority, { authorization: "Bearer abc" })).toMatchObject({
      text: "läg: 5 €",
      code: undefined,
    });
    const question = { url: "/secret-path?secret=query", authorization: "Bearer abc" };
    expect(server.questions).toEqual([{ ...question, accept: "text/plain" }]);
  });

  it.each<readonly [string, string, (response: ServerResponse) => void]>([
    ["an error", "SIGNAL_REFUSED", (response) => response.writeHead(503).end("secret")],
    [
      "a redirect, which it does not follow",
      "SIGNAL_REFUSED",
      (response) => response.writeHead(302, { location: "/elsewhere" }).end(),
    ],
    ["no content", "SIGNAL_REFUSED", (response) => response.writeHead(204).end()],
    [
      "what is compressed",
      "SIGNAL_MALFORMED",
      (response) => {
        response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("5"));
      },
    ],
    ["too much", "SIGNAL_TOO_LARGE", (response) => response.end("x".repeat(1_001))],
    [
      "more than its length says",
      "SIGNAL_TOO_LARGE",
      (response) => {
        response.write("x".repeat(600));
        setImmediate(() => response.end("x".repeat(600)));
      },
    ],
    [
      "a connection that breaks",
      "SIGNAL_UNAVAILABLE",
      (response) => {
        response.write("5");
        setImmediate(() => response.destroy());
      },
    ],
    ["a connection that ends at once", "SIGNAL_UNAVAILABLE", (response) => response.destroy()],
    ["what is no HTTP", "SIGNAL_UNAVAILABLE", (response) => response.socket?.end("secret\r\n\r\n")],
    [
      "too large a head",
      "SIGNAL_UNAVAILABLE",
      (response) => response.writeHead(200, { secret: "x".repeat(20_000) }).end(),
    ],
  ])("fails for %s", async (_, code, answer) => {
    const server = await SignalServer.start(stage);
    server.answer = answer;
    const asked = await ask(server.authority);
    expect(asked.code).toBe(code);
    expect(asked.message).not.toContain("secret");
    expect(server.questions).toHaveLength(1);
    await waitFor("the connection is gone", () => server.connectionCount === 0);
  });

  it("takes as many bytes as it may", async () => {
    const server = await SignalServer.start(stage, "x".repeat(1_000));
    expect(await ask(server.authority)).toMatchObject({ code: undefined });
  });

  it.each<readonly [string, (response: ServerResponse) => void]>([
    ["does not answer", () => {}],
    ["never ends its answer", (response) => response.write("5")],
  ])("gives one up that %s", async (_, answer) => {
    const server = await SignalServer.start(stage);
    server.answer = answer;
    const deadlineMs = realClock.monotonicMs() + 100;
    expect((await ask(server.authority, { deadlineMs })).code).toBe("SIGNAL_TIMEOUT");
    await waitFor("the connection is gone", () => server.connectionCount === 0);
  });

  it("says what kept it from a source, and not where that is", async () => {
    const port = await freePort();
    const asked = await ask(`127.0.0.1:${port}`);
    expect(asked.code).toBe("SIGNAL_UNAVAILABLE");
    expect(asked.message).toContain("ECONNREFUSED");
    expect(asked.message).not.toContain(String(port));
  });

  it("trusts no certificate that nobody vouches for", async () => {
    const tls = new TestAuthority().issue({ addresses: ["127.0.0.1"] });
    const server = await SignalServer.start(stage, "5", tls);
    const url = new URL(`https://${server.authority}/`);
    const asked = await ask("", { url, authorization: "Bearer abc" }).catch(() => undefined);
    expect(asked).toMatchObject({ code: "SIGNAL_UNAVAILABLE" });
    expect(server.questions).toEqual([]);
  });

  it("ends where the reader of the answer has enough", async () => {
    const server = await SignalServer.start(stage);
    server.answer = (response) => response.write("5");
    const onPiece = (): void => {
      throw new ServiceError("SIGNAL_EMPTY");
    };
    expect((await ask(server.authority, { onPiece })).code).toBe("SIGNAL_EMPTY");
    await waitFor("the connection is gone", () => server.connectionCount === 0);
  });
});
