import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { sendRefusal } from "../../src/client/server/node-http.js";
import { refusalOf, refusalRows } from "../../src/core/admission/refusal.js";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.js";
import { createExternalProcessorService } from "../../src/rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../src/rpc/ext-proc/ext-proc-codec.js";
import { Envoy } from "../support/envoy.js";
import { DoorKeeper } from "../support/ext-proc.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { useTransports } from "../support/transports.js";
import { startUpstream } from "../support/upstream.js";

const stage = useStage("test");
const transports = useTransports();

/** Sees also what tells gRPC from the rest. */
class Refuser extends DoorKeeper {
  override readonly requestHeaderNames = new Set([":method", "content-type"]);
}

/** A real Envoy that refuses everything, for one cause. */
async function start() {
  const keeper = new Refuser(({ headers }, call) => {
    const request = { method: headers.get(":method"), contentType: headers.get("content-type") };
    const question = { service: "orders", cause: "queueFull", request, retrySeconds: 7 } as const;
    call.refused(refusalOf({ statusByCause: {} }, question));
  });
  const codec = new ExtProcCodec(keeper);
  const counts = new ExchangeCounts();
  const service = createExternalProcessorService({ admission: keeper, codec, counts });
  const running = await transports.startServices([service]);
  const upstream = await startUpstream(stage);
  const envoy = await Envoy.start(stage, {
    upstreamPort: upstream.port,
    headgatePorts: [running.port],
    rateLimits: [],
    extProc: {},
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return { envoy, http };
}

/** A service that refuses everything for the same cause, without a proxy. */
async function startService(): Promise<number> {
  const server = createServer(({ headers, method }, response) => {
    const request = { method, contentType: headers["content-type"] };
    const question = { service: "orders", cause: "queueFull", request, retrySeconds: 7 } as const;
    sendRefusal(response, refusalOf({ statusByCause: {} }, question));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return port;
}

/** Fields that differ between any two servers. */
const serverFields = new Set(["date", "server", "connection", "keep-alive", "transfer-encoding"]);

describe("refusalOf(), answered by a real Envoy", () => {
  it("reaches callers whole: over HTTP with a body, to HEAD without, and as gRPC", async () => {
    const { envoy, http } = await start();
    const { reason } = refusalRows.queueFull;
    const common = { "retry-after": "7", "x-headgate-reason": reason };
    const get = await http.send({ port: envoy.port });
    expect(get).toMatchObject({
      status: 429,
      headers: { ...common, "content-type": "application/problem+json" },
    });
    expect(JSON.parse(get.body)).toMatchObject({ status: 429, detail: reason, cause: "queueFull" });

    const head = await http.send({ port: envoy.port, method: "HEAD" });
    expect(head).toMatchObject({ status: 429, headers: common, body: "" });

    const headers = { "content-type": "application/grpc" };
    const grpc = await http.send({ port: envoy.port, method: "POST", headers });
    expect(grpc).toMatchObject({
      status: 200,
      headers: { ...common, "content-type": "application/grpc", "grpc-status": "8" },
      body: "",
    });
    expect(decodeURIComponent(String(grpc.headers["grpc-message"]))).toBe(reason);
    const details = Buffer.from(String(grpc.headers["grpc-status-details-bin"]), "base64");
    expect(fromBinary(StatusSchema, details)).toMatchObject({ code: 8, message: reason });
  });

  it("is the same from Envoy and from a service that refuses by itself", async () => {
    const { envoy, http } = await start();
    const port = await startService();
    for (const ask of [
      { method: "GET" },
      { method: "POST", body: "text" },
      { method: "POST", headers: { "content-type": "application/grpc" } },
    ]) {
      const [fromEnvoy, fromService] = await Promise.all(
        [envoy.port, port].map((asked) => http.send({ ...ask, port: asked })),
      );
      const seen = [fromEnvoy, fromService].map((answer) => ({
        status: answer?.status,
        body: answer?.body,
        headers: Object.fromEntries(
          Object.entries(answer?.headers ?? {}).filter(([name]) => !serverFields.has(name)),
        ),
      }));
      expect(seen[1]).toEqual(seen[0]);
    }
  });
});
