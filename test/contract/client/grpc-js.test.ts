import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { describe } from "vitest";
import { admissionInterceptor } from "../../../src/client/adapters/grpc-js.js";
import { type CreateClient, describeSending, grpcCases, type SentCall } from "./grpc-cases.js";
import {
  getMethod,
  grpcJsMethod,
  putMethod,
  startConnectService,
  startGrpcJsService,
  watchMethod,
} from "./grpc-servers.js";

const get = grpcJsMethod(getMethod);
const put = grpcJsMethod(putMethod);
const watch = grpcJsMethod(watchMethod);

const createClient: CreateClient = (admission, { asked, port, stage, ...options }) => {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    interceptors: [admissionInterceptor(admission, { ...options, optionsOf: () => asked })],
  });
  stage.atEnd(() => client.close());
  const parts = ({ timeoutMs, headers = {} }: SentCall) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const deadline = admission.clock.epochUs() / 1_000 + (timeoutMs ?? 0);
    return [metadata, timeoutMs === undefined ? {} : { deadline }] as const;
  };
  return {
    unary: (message, sent = {}) =>
      new Promise((resolve, reject) => {
        const call = client.makeUnaryRequest(
          get.path,
          get.requestSerialize,
          get.responseDeserialize,
          message,
          ...parts(sent),
          (error, response) => {
            if (error === null) resolve(response ?? "");
            else reject(error);
          },
        );
        sent.signal?.addEventListener("abort", () => call.cancel());
      }),
    put: (messages) =>
      new Promise((resolve, reject) => {
        const call = client.makeClientStreamRequest(
          put.path,
          put.requestSerialize,
          put.responseDeserialize,
          ...parts({}),
          (error, response) => {
            if (error === null) resolve(response ?? "");
            else reject(error);
          },
        );
        for (const message of messages) call.write(message);
        call.end();
      }),
    stream: (message, sent = {}) => {
      const call = client.makeServerStreamRequest(
        watch.path,
        watch.requestSerialize,
        watch.responseDeserialize,
        message,
        ...parts(sent),
      );
      sent.signal?.addEventListener("abort", () => call.cancel());
      return call;
    },
  };
};

describe("admissionInterceptor() of grpc-js, served by grpc-js", () => {
  grpcCases(createClient, { startService: startGrpcJsService, showsTimeout: false });
  describeSending(createClient);
});

describe("admissionInterceptor() of grpc-js, served by Connect", () => {
  grpcCases(createClient, { startService: startConnectService, showsTimeout: true });
});
