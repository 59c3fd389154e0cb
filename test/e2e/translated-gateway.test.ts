import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { classRequests, everyClass } from "../support/class-requests.js";
import { Envoy } from "../support/envoy.js";
import { freePort } from "../support/free-port.js";
import { startLimiter } from "../support/gateway-limiter.js";
import type { GeneratedCase } from "../support/generated.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAnswer, type HttpAsk, HttpClient } from "../support/http-client.js";
import { expectRoom } from "../support/room-visits.js";
import { useStage } from "../support/stage.js";
import {
  recordedTranslation,
  translatedBootstrap,
  translatedCases,
} from "../support/translated.js";
import { startUpstream, tokensHeader } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

/**
 * A real Envoy with what Envoy Gateway's own translator made of generated objects and of those
 * around them, and a real Headgate behind it.
 */
const stage = useStage("file");

/** Ports and addresses as the objects around a case have them. */
const httpPort = 8_080;
const httpsPort = 8_443;
/** What Envoy Gateway makes of port 80. */
const defaultPort = 10_080;
const serviceAddress = "192.0.2.1";
const headgateAddress = "192.0.2.2";
const strangerAddress = "192.0.2.3";

async function startTranslated(name: string) {
  const given = translatedCases().find((one) => one.name === name);
  if (given === undefined) throw new Error(`no case ${name}`);
  const translation = recordedTranslation(given);
  const upstream = await startUpstream(stage);
  const policy = await readFile(join(given.folder, "policy.yaml"), "utf8");
  const headgate = await HostedHeadgate.start(stage, { policy });
  const limiter = await startLimiter(stage, given, translation);
  const [port, otherPort, adminPort] = [await freePort(), await freePort(), await freePort()];
  const bootstrap = translatedBootstrap(translation, {
    adminPort,
    listenerPorts: { [httpPort]: port, [httpsPort]: otherPort },
    endpointPorts: {
      [serviceAddress]: upstream.port,
      [strangerAddress]: upstream.port,
      [headgateAddress]: headgate.grpcPort,
    },
    rateLimitPort: limiter?.grpcPort,
  });
  const path = join(stage.folder, `${name.replaceAll("/", "-")}.json`);
  await writeFile(path, JSON.stringify(bootstrap));
  const envoy = await Envoy.startFile(stage, { path, port, adminPort });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return { envoy, http, ports: [port, otherPort] as const };
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
    const statuses = async (headers: Readonly<Record<string, string>>) => {
      const entries = Object.entries(classRequests).map(async ([way, ask]) => {
        return [way, await statusOf({ ...ask, headers: { ...ask.headers, ...headers } })];
      });
      return Object.fromEntries(await Promise.all(entries));
    };
    const key = { "x-api-key": "the-key" };
    expect(await statuses({})).toEqual(everyClass(401));
    expect(await statuses(key)).toEqual(everyClass(200));

    await envoy.setRuntime({ "headgate.shed.orders.normal": "100" });
    const restShed = { rest: 503, "half critical": 503 };
    expect(await statuses(key)).toEqual({ ...everyClass(200), ...restShed });
    expect(await statuses({})).toEqual({ ...everyClass(401), ...restShed });
    await envoy.setRuntime({ "headgate.shed.orders.low": "100" });
    expect(await statuses(key)).toEqual({ ...everyClass(200), ...restShed, low: 503 });
  });

  it("lets visitors wait in a room, and turns them away, behind the API key", async () => {
    const { envoy, http, ports } = await startTranslated("gateway/waiting-room");
    const [port] = ports;
    const host = "orders.example.com";
    await expectRoom({ envoy, http, port, host, headers: { "x-api-key": "the-key" } });
    expect((await http.send({ port, path: "/shop", headers: { host } })).status).toBe(401);
    expect((await http.send({ port, path: "/other", headers: { host } })).status).toBe(404);
  });

  it("charges tokens once the response is through, and refuses who has used them up", async () => {
    const { http, ports } = await startTranslated("gateway/token-budgets");
    const [port, otherPort] = ports;
    const host = "chat.example.com";
    const ask = async (who: HttpAsk["headers"], tokens = 0, at = port): Promise<HttpAnswer> => {
      const headers = { host, ...who, [tokensHeader]: `${tokens}` };
      return http.send({ port: at, headers });
    };
    const [large, small, team] = [{ "x-user": "large" }, { "x-user": "small" }, { "x-team": "a" }];
    // More than the budget of 1,000, which nobody knows before; it is charged in a call of its own.
    expect((await ask(large, 1_600)).status).toBe(200);
    const refused = await waitFor("the tokens are charged", async () => {
      const answer = await ask(large);
      return answer.status === 429 ? answer : undefined;
    });
    expect(refused.headers["x-ratelimit-limit"]).toBe("1000, 1000;w=3600");
    expect(refused.headers["x-ratelimit-remaining"]).toBe("0");
    // The debt of 600 is paid in 2,160 s; Envoy's own answers say 1 s.
    const waitSeconds = Number(refused.headers["retry-after"]);
    expect(refused.headers["retry-after"]).toBe(refused.headers["x-ratelimit-reset"]);
    expect([waitSeconds > 60, waitSeconds <= 2_160]).toEqual([true, true]);

    // Who stays within the budget is not refused.
    for (const tokens of [400, 300, 200]) expect((await ask(small, tokens)).status).toBe(200);
    const remaining = await waitFor("all three are charged", async () => {
      const { status, headers } = await ask(small);
      expect(status).toBe(200);
      const left = Number(headers["x-ratelimit-remaining"]);
      return left < 300 ? left : undefined;
    });
    expect(remaining).toBeGreaterThanOrEqual(100);
    // Nor is a team, whose limit only counts.
    expect((await ask(team, 150)).status).toBe(200);
    await waitFor("the team has nothing left", async () => {
      const { status, headers } = await ask(team);
      expect(status).toBe(200);
      return headers["x-ratelimit-remaining"] === "0";
    });
    // Each listener has limits of its own.
    expect((await ask(large, 0, otherPort)).status).toBe(200);
  });

  it("protects services, and takes no notice of others behind the same listeners", async () => {
    const { envoy, http, ports } = await startTranslated("gateway/protections");
    const ask = async (host: string): Promise<number> => {
      const headers = { host: `${host}.example.com`, "x-api-key": "the-key" };
      const answers = await Promise.all(ports.map((port) => http.send({ port, headers })));
      return answers.filter(({ status }) => status === 200).length;
    };
    /** Requests that admission control has looked at. */
    const seen = () => envoy.stat("http.http-8080.admission_control.rq_success");
    for (const host of ["stranger", "search"]) expect(await ask(host)).toBe(2);
    expect(await seen()).toBe(0);
    expect(await ask("orders")).toBe(2);
    expect(await seen()).toBe(1);
  });

  it.concurrent.each(translatedCases())("serves each host: $name", async (given) => {
    const { http, envoy, ports } = await startWhole(given);
    const isAsked = aroundOf(given).includes("kind: SecurityPolicy");
    for (const host of hostsOf(given)) {
      const known = unlikeHosts[`${given.name} ${host}`] ?? 200;
      const unknown = isAsked && !host.startsWith("stranger") ? 401 : known;
      for (const port of ports) {
        const strange = await http.send({ port, headers: { host } });
        const welcome = await http.send({ port, headers: { host, "x-api-key": "the-key" } });
        expect([host, strange.status, welcome.status]).toEqual([host, unknown, known]);
      }
    }
    await envoy.kill();
  });
});

/** Hosts whose service speaks what the one server of the tests does not. */
const unlikeHosts: Readonly<Record<string, number>> = {
  // TLS, and HTTP/2.
  "gateway/options orders.example.com": 503,
  "gateway/http3 orders.example.com": 503,
  "gateway/options cookie.example.com": 502,
};

/** Starts all that a case has: one server stands for all others, and for Headgate. */
async function startWhole(given: GeneratedCase) {
  const translation = recordedTranslation(given);
  const { port: upstream } = await startUpstream(stage);
  const text = JSON.stringify(translation.listeners);
  const own = [httpPort, httpsPort, defaultPort].filter((one) =>
    text.includes(`"portValue":${one}`),
  );
  const places = await Promise.all(own.map(async (one) => [one, await freePort()] as const));
  const ports = places.map(([, port]) => port);
  const adminPort = await freePort();
  const bootstrap = translatedBootstrap(translation, {
    adminPort,
    listenerPorts: Object.fromEntries(places),
    endpointPorts: Object.fromEntries(addressesIn(given).map((one) => [one, upstream])),
    rateLimitPort: upstream,
  });
  const path = join(stage.folder, `whole-${adminPort}.json`);
  await writeFile(path, JSON.stringify(bootstrap));
  const envoy = await Envoy.startFile(stage, { path, port: ports[0] ?? 0, adminPort });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return { envoy, http, ports };
}

function aroundOf({ folder }: GeneratedCase): string {
  return readFileSync(join(folder, "around.yaml"), "utf8");
}

/** The addresses of Services around a case. */
function addressesIn(given: GeneratedCase): readonly string[] {
  return aroundOf(given).match(/\b192\.0\.2\.\d+\b/g) ?? [];
}

/** The first domain of each virtual host. */
function hostsOf(given: GeneratedCase): ReadonlySet<string> {
  const text = JSON.stringify(recordedTranslation(given).routes);
  return new Set(text.match(/(?<="domains":\[")[^"]+/g));
}
