import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { type App, startApp } from "../../../src/app/app.js";
import { type LogEvent, silentLogger } from "../../../src/app/base/logger.js";
import { configOf, quietEnv } from "../../support/configured-store.js";
import { openExchange, requestHeaders } from "../../support/ext-proc.js";
import { parseHere } from "../../support/parse-here.js";
import { useStage } from "../../support/stage.js";

const stage = useStage("test");

const policyText = (maxInFlight: number): string => `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - name: orders
      hosts: [orders.example]
      admission: {maxInFlight: ${maxInFlight}}
`;

async function start(events: LogEvent[] = []): Promise<{ app: App; client: Client; path: string }> {
  const path = join(stage.folder, "policy.yaml");
  await writeFile(path, policyText(1));
  const note = (event: LogEvent): void => {
    events.push(event);
  };
  const logger = { ...silentLogger, info: note, warn: note };
  const app = await startApp(configOf({ HEADGATE_POLICY: path, ...quietEnv }), {
    logger,
    parser: parseHere,
  });
  stage.atEnd(() => app.close(0));
  if (app.grpcAddress.kind !== "tcp") throw new Error("the test asked for a port");
  const client = new Client(`127.0.0.1:${app.grpcAddress.port}`, credentials.createInsecure());
  stage.atEnd(() => client.close());
  return { app, client, path };
}

describe("startApp()", () => {
  it("admits over ext_proc what the policy has room for, and shows it", async () => {
    const { app, client } = await start();
    const fields = { ":path": "/", ":method": "GET", ":authority": "orders.example" };
    const first = openExchange({ client });
    first.send(requestHeaders(fields));
    const [answer] = await first.answered(1);
    expect(answer?.response.case).toBe("requestHeaders");
    const second = openExchange({ client }, { "x-headgate-service": "orders" });
    second.send(requestHeaders(fields));
    const [refusal] = await second.answered(1);
    expect(refusal?.response).toMatchObject({ case: "immediateResponse" });
    const page = await fetch(`http://127.0.0.1:${app.httpAddress?.port}/metrics`);
    const text = await page.text();
    expect(text).toContain('headgate_admission_inflight{service="orders",key=""} 1');
    expect(text).toContain('headgate_admission_inflight_max{service="orders",key=""} 1');
    first.end();
    await first.over();
    const third = openExchange({ client });
    third.send(requestHeaders(fields));
    expect((await third.answered(1))[0]?.response.case).toBe("requestHeaders");
    third.end();
  });

  it("says at the start that limits are each process's own without a shared store", async () => {
    const events: LogEvent[] = [];
    await start(events);
    expect(events).toContainEqual({ event: "permitsPerProcess", services: ["orders"] });
  });
});
