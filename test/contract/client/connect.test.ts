import { create } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { admissionInterceptor } from "../../../src/client/adapters/connect.js";
import { AdmissionError } from "../../../src/client/admission-error.js";
import { createClientRig, promptRetries } from "../../support/client-rig.js";
import { freePort } from "../../support/free-port.js";
import { useStage } from "../../support/stage.js";
import { type CreateClient, describeSending, grpcCases } from "./grpc-cases.js";
import {
  getMethod,
  putMethod,
  startConnectService,
  startGrpcJsService,
  watchMethod,
} from "./grpc-servers.js";

type Interceptors = NonNullable<Parameters<typeof createGrpcTransport>[0]["interceptors"]>;
type CreateTransport = (parts: { baseUrl: string; interceptors: Interceptors }) => Transport;

function clientOf(createTransport: CreateTransport): CreateClient {
  return (admission, { asked, port, ...options }) => {
    const transport = createTransport({
      baseUrl: `http://127.0.0.1:${port}`,
      interceptors: [admissionInterceptor(admission, { ...options, optionsOf: () => asked })],
    });
    return {
      unary: async (message, { signal, timeoutMs, headers } = {}) => {
        const value = create(StringValueSchema, { value: message });
        const { message: answer } = await transport.unary(
          getMethod,
          signal,
          timeoutMs,
          headers,
          value,
        );
        return answer.value;
      },
      put: async (messages) => {
        const input = (async function* () {
          for (const value of messages) yield create(StringValueSchema, { value });
        })();
        const response = await transport.stream(putMethod, undefined, undefined, {}, input);
        let all = "";
        for await (const { value } of response.message) all += value;
        return all;
      },
      async *stream(message, { signal, timeoutMs, headers } = {}) {
        const value = create(StringValueSchema, { value: message });
        const input = (async function* () {
          yield value;
        })();
        const response = await transport.stream(watchMethod, signal, timeoutMs, headers, input);
        for await (const answer of response.message) yield answer.value;
      },
    };
  };
}

describe("admissionInterceptor() of Connect, over gRPC, served by grpc-js", () => {
  const createClient = clientOf((parts) => createGrpcTransport(parts));
  grpcCases(createClient, { startService: startGrpcJsService, showsTimeout: false });
  describeSending(createClient);
});

describe("admissionInterceptor() of Connect, over its own protocol", () => {
  const createClient = clientOf((parts) => createConnectTransport({ ...parts, httpVersion: "2" }));
  const stage = useStage("test");
  grpcCases(createClient, { startService: startConnectService, showsTimeout: true });

  it("states the time left in the header of the protocol, too", async () => {
    const { admission } = createClientRig({ deadline: { marginMs: 10 } });
    const { port, calls } = await startConnectService(stage);
    const client = createClient(admission, { asked: {}, port, stage });
    await client.unary("order", { timeoutMs: 9_000 });
    expect(calls[0]?.headers).toMatchObject({
      "connect-timeout-ms": "8990",
      "grpc-timeout": "8990m",
    });
  });

  it("has the refusal of the admission as the cause of its errors", async () => {
    const { admission } = createClientRig();
    const { port } = await startConnectService(stage);
    const client = createClient(admission, { asked: {}, port, stage });
    const refused = await client.unary("order", { timeoutMs: 1 }).catch((error) => error);
    expect(refused.cause).toBeInstanceOf(AdmissionError);
    expect(refused.cause).toMatchObject({ reason: "deadline" });
  });

  it("repeats a call whose connection was refused: nothing was sent", async () => {
    const { admission, clock, retries } = createClientRig({ retry: promptRetries });
    const client = createClient(admission, { asked: {}, port: await freePort(), stage });
    const failed = expect(client.unary("order")).rejects.toMatchObject({ code: 14 });
    for (let retry = 1; retry <= 2; retry += 1) {
      await retries(retry);
      clock.advance(1);
    }
    await failed;
    expect(admission.snapshot().attemptsCount).toBe(3);
  });
});
