import { Readable } from "node:stream";
import { Agent, type Dispatcher, fetch } from "undici";
import { describe, expect, it } from "vitest";
import { admissionInterceptor } from "../../../src/client/adapters/undici.js";
import type { AdmissionOptions } from "../../../src/client/admission.js";
import { createClientRig, promptRetries } from "../../support/client-rig.js";
import { startScriptedService } from "../../support/scripted-service.js";
import { useStage } from "../../support/stage.js";
import { waitFor } from "../../support/wait.js";
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

/** A handler that does as another one. */
function passing(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (...facts) => handler.onRequestStart?.(...facts),
    onResponseStart: (...facts) => handler.onResponseStart?.(...facts),
    onResponseData: (...facts) => handler.onResponseData?.(...facts),
    onResponseEnd: (...facts) => handler.onResponseEnd?.(...facts),
    onResponseError: (...facts) => handler.onResponseError?.(...facts),
  };
}

describe("a dispatcher with admissionInterceptor()", () => {
  const stage = useStage("test");

  async function start(options: Partial<AdmissionOptions> = {}, agentOptions: Agent.Options = {}) {
    const rig = createClientRig(options);
    const service = await startScriptedService(stage);
    const agent = new Agent(agentOptions).compose(admissionInterceptor(rig.admission));
    stage.atEnd(() => agent.destroy());
    const { origin, pathname: path } = new URL(service.url);
    return { ...rig, service, agent, request: { origin, path, method: "GET" } as const };
  }

  it("gives a handler no data while it pauses", async () => {
    const { agent, request, service, permitsBack } = await start();
    service.answer = ({ response }) => response.end("x".repeat(1_000_000));
    let [bytes, pausedBytes] = [0, 0];
    await new Promise<void>((resolve, reject) => {
      agent.dispatch(request, {
        onRequestStart: () => {},
        onResponseData: (controller, chunk) => {
          if (controller.paused) pausedBytes += chunk.length;
          bytes += chunk.length;
          controller.pause();
          setImmediate(() => controller.resume());
        },
        onResponseEnd: () => resolve(),
        onResponseError: (_controller, error) => reject(error),
      });
    });
    expect([bytes, pausedBytes]).toEqual([1_000_000, 0]);
    await permitsBack();
  });

  it("gives up a request that waits for a connection, and does not send it", async () => {
    const { agent, request, service, inFlight, permitsBack } = await start(
      {},
      { connections: 1, pipelining: 1 },
    );
    service.answer = () => {};
    const first = agent.request(request);
    await waitFor("the first is there", () => service.requests.length === 1, { everyMs: 1 });
    const controller = new AbortController();
    const second = agent.request({ ...request, signal: controller.signal });
    expect(inFlight()).toBe(2);
    controller.abort(new Error("no longer wanted"));
    await expect(second).rejects.toThrow("no longer wanted");
    await waitFor("one permit is back", () => inFlight() === 1, { everyMs: 1 });
    service.requests[0]?.response.end("served");
    expect(await (await first).body.text()).toBe("served");
    service.answer = ({ response }) => response.end("third");
    expect(await (await agent.request(request)).body.text()).toBe("third");
    await permitsBack();
    expect(service.requests).toHaveLength(2);
  });

  it("keeps no more than a bound of a response that may be repeated", async () => {
    const { admission, clock, retries, request, service } = await start({ retry: promptRetries });
    let [bytes, isPaused] = [0, false];
    const watch: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
      dispatch(options, {
        ...passing(handler),
        onResponseData: (controller, chunk) => {
          bytes += chunk.length;
          handler.onResponseData?.(controller, chunk);
          isPaused = controller.paused;
        },
      });
    const agent = new Agent().compose(watch, admissionInterceptor(admission));
    stage.atEnd(() => agent.destroy());
    service.answer = ({ response }, index) => {
      if (index > 0) response.end("served");
      else response.writeHead(503, { "retry-after": "1" }).end(Buffer.alloc(20_000_000));
    };
    const received = agent.request(request);
    await retries(1);
    await waitFor("it is paused", () => isPaused, { everyMs: 1 });
    expect(bytes).toBeLessThan(2 * 65_536 + 1);
    clock.advance(1_000);
    expect(await (await received).body.text()).toBe("served");
  });

  it("passes on informational responses, and trailers", async () => {
    const { agent, request, service } = await start();
    service.answer = async ({ response }) => {
      await new Promise<void>((resolve) => response.writeEarlyHints({ link: "</a>" }, resolve));
      response.writeHead(200, { trailer: "x-sum" });
      response.addTrailers({ "x-sum": "7" });
      response.end("served");
    };
    const hints: number[] = [];
    const received = await agent.request({
      ...request,
      onInfo: ({ statusCode }) => hints.push(statusCode),
    });
    expect(await received.body.text()).toBe("served");
    expect([hints, received.trailers]).toEqual([[103], { "x-sum": "7" }]);
  });

  it.each([
    ["an object", { "x-own": ["1", "2"], "Grpc-Timeout": "1H" }],
    ["names and values in turn", ["x-own", "1", "x-own", "2", "grpc-timeout", "1H"]],
    [
      "a map",
      new Map<string, string | string[]>([
        ["x-own", ["1", "2"]],
        ["grpc-timeout", "1H"],
      ]),
    ],
  ])("takes headers as %s, and its own win", async (_, headers) => {
    const { agent, request, service } = await start({ deadline: { timeoutMs: 2_000 } });
    const { body } = await agent.request({ ...request, headers });
    await body.text();
    const sent = service.requests[0]?.message.headers;
    expect([sent?.["x-own"], sent?.["grpc-timeout"]]).toEqual(["1, 2", "2000m"]);
  });

  it("serves the fetch of undici, whose errors have the refusal as their cause", async () => {
    const { agent, service, admission } = await start({
      concurrency: { law: "fixed", initial: 1 },
    });
    service.answer = ({ response }) => response.write("begun");
    const first = await fetch(service.url, { dispatcher: agent });
    const refused = await fetch(service.url, { dispatcher: agent }).catch(
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({ cause: { name: "AdmissionError", reason: "concurrency" } });
    service.requests[0]?.response.end();
    expect(await first.text()).toBe("begun");
    expect(admission.snapshot().outcomes.served).toBe(1);
  });

  it("lets upgrades pass without admission", async () => {
    const { agent, request, service, admission } = await start();
    service.onUpgrade = (socket) =>
      socket.write("HTTP/1.1 101 Up\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    const { socket } = await agent.upgrade({ ...request, protocol: "echo" });
    socket.destroy();
    expect(admission.snapshot().callsCount).toBe(0);
  });
});
