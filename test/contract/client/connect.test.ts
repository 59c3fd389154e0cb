import { create } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe } from "vitest";
import { admissionInterceptor } from "../../../src/client/adapters/connect.js";
import { type CreateClient, grpcCases } from "./grpc-cases.js";
import { getMethod, startConnectService, startGrpcJsService, watchMethod } from "./grpc-servers.js";

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
});

describe("admissionInterceptor() of Connect, over its own protocol", () => {
  const createClient = clientOf((parts) => createConnectTransport({ ...parts, httpVersion: "2" }));
  grpcCases(createClient, { startService: startConnectService, showsTimeout: true });
});
