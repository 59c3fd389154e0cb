import { describe, expect, it } from "vitest";
import { type GeneratedEnvoy, startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HttpClient } from "../support/http-client.js";
import {
  type RecordingProcessor,
  startRecordingProcessor,
} from "../support/recording-processor.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

/** A browser that goes to a page. */
const navigation = { accept: "text/html", "sec-fetch-mode": "navigate" };

/** An Envoy in front of a shop with a room, whose processor lets all pass and keeps what it saw. */
async function startEdge(): Promise<GeneratedEnvoy & { readonly asked: RecordingProcessor }> {
  const upstream = await startScriptedUpstream(stage);
  const asked = await startRecordingProcessor(stage);
  const generated = await startGeneratedEnvoy(stage, {
    proxies: `headgate: {address: 127.0.0.1, port: ${asked.port}, controlPort: 1}`,
    services: `
      - name: shop
        upstream: {address: 127.0.0.1, port: ${upstream.port}}
        localRateLimit: {requests: 1000, per: 1s, when: always}
        priority:
          bypassPaths: [/healthz, "/static/*"]
          rules: [{when: 'request.headers["x-plan"] == "gold"', is: high}]
    `,
    more: `
      waitingRooms:
        - name: cart
          service: shop
          match: {paths: ["/cart/*"]}
          capacity: {activeUsers: 10}
        - name: shop
          service: shop
          capacity: {activeUsers: 10}
          estimatedWait: {sigmoid: {midpoint: 10m, slope: 0.02}}
          gate: {}
          bypass: {headers: [{name: x-staff, values: [a-long-random-token]}], priorities: [high]}
    `,
  });
  await waitFor("Envoy finds the processor", async () => {
    return (await generated.envoy.stat("cluster.headgate.membership_healthy")) === 1;
  });
  return { ...generated, asked };
}

describe("waiting rooms at a generated edge", () => {
  it("turns away at the gate those whom the room guards, and nobody else", async () => {
    const { envoy, asked } = await startEdge();
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const send = (path: string, headers: Readonly<Record<string, string>> = navigation) => {
      return http.send({ port: envoy.port, path, headers });
    };
    expect((await send("/")).status).toBe(200);
    await envoy.setRuntime({ "headgate.waiting_room.shop.reject": "100" });
    const before = asked.exchanges.length;
    for (const path of ["/", "/anything?q=1", "/cartons", "/healthz/more"]) {
      const away = await send(path);
      expect([path, away.status]).toEqual([path, 503]);
      expect(away.headers).toMatchObject({
        "retry-after": "60",
        "cache-control": "no-store",
        "x-envoy-ratelimited": "true",
      });
    }
    expect((await send("/", { accept: "text/html" })).status).toBe(503);
    expect(asked.exchanges.length).toBe(before);

    const passing = [
      ["/", { ...navigation, cookie: "a=b; headgate-shop=ticket; c=d" }],
      ["/", { ...navigation, "x-staff": "anything" }],
      ["/", { ...navigation, "x-plan": "gold" }],
      ["/", { accept: "application/json" }],
      ["/", { accept: "text/html", "sec-fetch-mode": "cors" }],
      // Of the room before, which has no gate.
      ["/cart/1", navigation],
      ["/healthz?full", navigation],
      ["/static/shop.css", navigation],
    ] as const;
    for (const [path, headers] of passing) {
      expect([path, headers, (await send(path, headers)).status]).toEqual([path, headers, 200]);
    }
    // Neither of the two bypassed paths.
    expect(asked.exchanges.length).toBe(before + passing.length - 2);
    await envoy.setRuntime({ "headgate.waiting_room.shop.reject": "" });
    expect((await send("/")).status).toBe(200);
  });

  it("asks Headgate at a room's endpoint, which no service answers", async () => {
    const { envoy, asked } = await startEdge();
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const before = asked.exchanges.length;
    const path = "/.waiting-room/shop/position";
    const unanswered = await http.send({ port: envoy.port, path });
    expect(unanswered.status).toBe(503);
    expect(unanswered.headers).toMatchObject({ "retry-after": "5", "cache-control": "no-store" });
    const [seen] = asked.exchanges.slice(before);
    expect(seen?.service).toBe("shop");
  });
});
