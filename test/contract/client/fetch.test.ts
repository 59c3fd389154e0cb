import { describe, expect, it } from "vitest";
import { admissionFetch } from "../../../src/client/adapters/fetch.js";
import { createClientRig, promptRetries } from "../../support/client-rig.js";
import { startScriptedService } from "../../support/scripted-service.js";
import { useStage } from "../../support/stage.js";
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

describe("a response of admissionFetch()", () => {
  const stage = useStage("test");

  it("is the one that fetch has, but for its body", async () => {
    const { admission, permitsBack } = createClientRig();
    const service = await startScriptedService(stage);
    service.answer = ({ response }, index) => {
      if (index === 0) response.writeHead(302, { location: "/moved" }).end();
      else response.writeHead(200, "Tr\u00e8s bien", { "set-cookie": ["a=1", "b=2"] }).end("ok");
    };
    const response = await admissionFetch(admission)(service.url);
    const { url, redirected, type, statusText, headers } = response;
    expect({ url, redirected, type, statusText, cookies: headers.getSetCookie() }).toEqual({
      url: service.url.replace("/orders", "/moved"),
      redirected: true,
      type: "basic",
      // Node sends Latin-1, and its fetch reads UTF-8.
      statusText: "Tr\ufffds bien",
      cookies: ["a=1", "b=2"],
    });
    const clone = response.clone();
    expect(clone.url).toBe(url);
    expect([await response.text(), await clone.text()]).toEqual(["ok", "ok"]);
    await permitsBack();
  });

  it("can be read into memory of the reader's own", async () => {
    const { admission, permitsBack } = createClientRig();
    const service = await startScriptedService(stage);
    const response = await admissionFetch(admission)(service.url);
    const reader = response.body?.getReader({ mode: "byob" });
    const first = await reader?.read(new Uint8Array(8));
    expect(new TextDecoder().decode(first?.value)).toBe("ok");
    expect((await reader?.read(new Uint8Array(8)))?.done).toBe(true);
    await permitsBack();
  });

  it("gives its permit back when it is given up, even by a fetch that goes on", async () => {
    const { admission, permitsBack } = createClientRig();
    const send = async (): Promise<Response> => new Response(new ReadableStream({}));
    const controller = new AbortController();
    const { signal } = controller;
    await admissionFetch(admission, { fetch: send })("http://orders.example/", { signal });
    controller.abort();
    await permitsBack();
  });

  it("passes over empty chunks of another fetch, and fails as its body does", async () => {
    const { admission, permitsBack } = createClientRig();
    const send = async (): Promise<Response> => {
      const chunks = [new Uint8Array(), new Uint8Array([104, 105]), undefined];
      const pull = (controller: ReadableStreamDefaultController): void => {
        const chunk = chunks.shift();
        if (chunk === undefined) controller.error(new Error("broken off"));
        else controller.enqueue(chunk);
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }));
    };
    const response = await admissionFetch(admission, { fetch: send })("http://orders.example/");
    const reader = response.body?.getReader();
    expect((await reader?.read())?.value).toEqual(new Uint8Array([104, 105]));
    await expect(reader?.read()).rejects.toThrow("broken off");
    await permitsBack();
  });
});

describe("a request of admissionFetch()", () => {
  const stage = useStage("test");

  it("may be a Request, or have one in the place of options", async () => {
    const { admission, clock, retries } = createClientRig({ retry: promptRetries });
    const service = await startScriptedService(stage);
    const call = admissionFetch(admission);
    const bodies: Promise<string>[] = [];
    service.answer = (request) => {
      bodies.push(request.body());
      request.response.writeHead(503, { "retry-after": "0" }).end();
    };
    const init = { method: "PUT", body: "once", headers: { "x-own": "kept" } };
    expect((await call(new Request(service.url, init))).status).toBe(503);
    expect((await call(service.url, new Request(service.url, init))).status).toBe(503);
    const repeated = call(new Request(service.url, { headers: { "x-own": "kept" } }));
    for (let retry = 1; retry <= 2; retry += 1) {
      await retries(retry);
      clock.advance(1);
    }
    expect((await repeated).status).toBe(503);
    expect(await Promise.all(bodies)).toEqual(["once", "once", "", "", ""]);
    const facts = service.requests.map(({ message: { method, headers } }) => [
      method,
      headers["x-own"],
    ]);
    expect(facts.slice(0, 3)).toEqual([
      ["PUT", "kept"],
      ["PUT", "kept"],
      ["GET", "kept"],
    ]);
  });

  it("has the signal of its options, which may be none", async () => {
    const { admission } = createClientRig();
    const service = await startScriptedService(stage);
    const call = admissionFetch(admission);
    const request = new Request(service.url, { signal: AbortSignal.abort() });
    await expect(call(request)).rejects.toMatchObject({ name: "AbortError" });
    expect(await (await call(request, { signal: null })).text()).toBe("ok");
  });

  it("that is wrong by itself says nothing of the service, and is not repeated", async () => {
    const { admission } = createClientRig({ retry: promptRetries });
    await expect(admissionFetch(admission)("no address")).rejects.toThrow(TypeError);
    expect(admission.snapshot()).toMatchObject({ attemptsCount: 1, outcomes: { cancelled: 1 } });
  });

  it("may go through two admissions, of which each holds its permit", async () => {
    const [outer, inner] = [createClientRig(), createClientRig()];
    const service = await startScriptedService(stage);
    const call = admissionFetch(outer.admission, { fetch: admissionFetch(inner.admission) });
    const response = await call(service.url);
    expect([outer.inFlight(), inner.inFlight()]).toEqual([1, 1]);
    expect(await response.text()).toBe("ok");
    await Promise.all([outer.permitsBack(), inner.permitsBack()]);
  });
});
