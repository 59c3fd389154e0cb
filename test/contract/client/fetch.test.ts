import { describe } from "vitest";
import { admissionFetch } from "../../../src/client/adapters/fetch.js";
import { type CreateSend, httpCases } from "./http-cases.js";

/** A stream of a text, which can be read once. */
function streamOf(text: string): ReadableStream {
  return new Blob([text]).stream();
}

const createSend: CreateSend = (admission, { asked = {}, ...options }) => {
  const call = admissionFetch(admission, { ...options, optionsOf: () => asked });
  return async (url, { body, isStreamed = false, ...init } = {}) => {
    const response = await call(url, {
      ...init,
      ...(body !== undefined && { body: isStreamed ? streamOf(body) : body }),
      ...(isStreamed && { duplex: "half" }),
    });
    let reader: ReadableStreamDefaultReader | undefined;
    return {
      status: response.status,
      read: async () => {
        reader = response.body?.getReader();
        const chunk = await reader?.read();
        reader?.releaseLock();
        return chunk;
      },
      text: async () => {
        let text = "";
        const decoder = new TextDecoder();
        for await (const chunk of response.body ?? []) text += decoder.decode(chunk);
        return text;
      },
      cancel: async () => response.body?.cancel(),
    };
  };
};

describe("admissionFetch()", () => {
  httpCases(createSend);
});
