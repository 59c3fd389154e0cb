import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Envoy } from "../support/envoy.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAsk, HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import {
  recordedTranslation,
  translatedBootstrap,
  translatedCases,
} from "../support/translated.js";
import { startUpstream } from "../support/upstream.js";

/**
 * A real Envoy with what Envoy Gateway's own translator made of generated objects and of those
 * around them, and a real Headgate behind it.
 */
const stage = useStage("file");

/** Ports and addresses as the objects around a case have them. */
const httpPort = 8_080;
const httpsPort = 8_443;
const serviceAddress = "192.0.2.1";
const headgateAddress = "192.0.2.2";

async function startTranslated(name: string) {
  const given = translatedCases().find((one) => one.name === name);
  if (given === undefined) throw new Error(`no case ${name}`);
  const upstream = await startUpstream(stage);
  const policy = await readFile(join(given.folder, "policy.yaml"), "utf8");
  const headgate = await HostedHeadgate.start(stage, { policy });
  const [port, otherPort, adminPort] = [await freePort(), await freePort(), await freePort()];
  const bootstrap = translatedBootstrap(recordedTranslation(given), {
    adminPort,
    listenerPorts: { [httpPort]: port, [httpsPort]: otherPort },
    endpointPorts: { [serviceAddress]: upstream.port, [headgateAddress]: headgate.grpcPort },
  });
  const path = join(stage.folder, `${name.replaceAll("/", "-")}.json`);
  await writeFile(path, JSON.stringify(bootstrap));
  const envoy = await Envoy.startFile(stage, { path, port, adminPort });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return { envoy, http, ports: [port, otherPort] };
}

describe("Envoy Gateway's own translation, at a real Envoy", () => {
  it("asks for the API key whatever the class of a request, and sheds classes alone", async () => {
    const { envoy, http, ports } = await startTranslated("gateway/authentication");
    /** Every listener has to answer alike. */
    const statusOf = async ({ headers, ...ask }: Omit<HttpAsk, "port">): Promise<number> => {
      const sent = { ...ask, headers: { host: "orders.example.com", ...headers } };
      const answers = await Promise.all(ports.map((port) => http.send({ ...sent, port })));
      const [first, ...others] = answers.map(({ status }) => status);
      expect(others).toEqual([first]);
      return first ?? 0;
    };
    const ways: Readonly<Record<string, Omit<HttpAsk, "port">>> = {
      rest: { path: "/orders" },
      auth: { path: "/auth/x" },
      login: { path: "/login/y?z=1" },
      oauth: { path: "/oauth2/y" },
      bypass: { path: "/healthz/z" },
      critical: { path: "/admin/delete", method: "DELETE", headers: { "x-team": "payments" } },
      "half critical": { path: "/admin/delete", method: "DELETE" },
      low: { path: "/orders", headers: { "x-batch": "1" } },
    };
    const statuses = async (headers: Readonly<Record<string, string>>) => {
      const entries = Object.entries(ways).map(async ([way, ask]) => {
        return [way, await statusOf({ ...ask, headers: { ...ask.headers, ...headers } })];
      });
      return Object.fromEntries(await Promise.all(entries));
    };
    const key = { "x-api-key": "the-key" };
    const all = (status: number) =>
      Object.fromEntries(Object.keys(ways).map((way) => [way, status]));
    expect(await statuses({})).toEqual(all(401));
    expect(await statuses(key)).toEqual(all(200));

    await envoy.setRuntime({ "headgate.shed.orders.normal": "100" });
    const restShed = { rest: 503, "half critical": 503 };
    expect(await statuses(key)).toEqual({ ...all(200), ...restShed });
    expect(await statuses({})).toEqual({ ...all(401), ...restShed });
    await envoy.setRuntime({ "headgate.shed.orders.low": "100" });
    expect(await statuses(key)).toEqual({ ...all(200), ...restShed, low: 503 });
  });
});
