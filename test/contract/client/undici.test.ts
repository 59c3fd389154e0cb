import { Readable } from "node:stream";
import { Agent } from "undici";
import { describe } from "vitest";
import { admissionInterceptor } from "../../../src/client/adapters/undici.js";
import { type CreateSend, httpCases } from "./http-cases.js";

const createSend: CreateSend = (admission, { asked = {}, ...options }) => {
  const agent = new Agent().compose(
    admissionInterceptor(admission, { ...options, optionsOf: () => asked }),
  );
  return async (url, { method = "GET", body, isStreamed = false, signal, headers = {} } = {}) => {
    const { origin, pathname } = new URL(url);
    const { statusCode, body: received } = await agent.request({
      origin,
      path: pathname,
      method,
      headers,
      ...(signal && { signal }),
      ...(body !== undefined && { body: isStreamed ? Readable.from([body]) : body }),
    });
    // It is destroyed in the end of tests which do not read it.
    received.on("error", () => {});
    return {
      status: statusCode,
      read: () => received.iterator({ destroyOnReturn: false }).next(),
      text: async () => {
        let text = "";
        for await (const chunk of received) text += chunk;
        return text;
      },
      cancel: async () => {
        received.destroy();
      },
    };
  };
};

describe("admissionInterceptor() of undici", () => {
  httpCases(createSend);
});
