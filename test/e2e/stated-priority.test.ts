import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { TestAuthority, type TestCertificate } from "../support/certificates.js";
import { type GeneratedEnvoy, startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { within } from "../support/wait.js";

const stage = useStage("file");

/** Where it stands in an answer what the upstream saw of the caller's header. */
const echoHeader = "x-seen-priority";

/** A caller: its address, as the proxy before this one says, and its certificate. */
interface Caller {
  readonly address: string;
  readonly certificate?: TestCertificate;
}

interface Ask extends Caller {
  readonly host: string;
  readonly path?: string;
}

/** Sends a request that states a class, and answers which one the service saw. */
type Seen = (ask: Ask) => Promise<string>;

const services = (port: number): string => {
  const upstream = `upstream: {address: 127.0.0.1, port: ${port}}`;
  return `
    - {name: nobody, hosts: [nobody], ${upstream}, admission: {maxInFlight: 100}}
    - name: source
      hosts: [source]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {trust: {sources: [10.0.0.0/8, "fd00::/8"]}}}
    - name: principal
      hosts: [principal]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {trust: {principals: ["spiffe://shop/web", "spiffe://shop/batch/*"]}}}
    - name: other-header
      hosts: [other-header]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {header: x-class, trust: {sources: [10.0.0.0/8]}}}
    - name: anyone
      hosts: [anyone]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {trust: {anyone: true}}}
    - {name: unasked, hosts: [unasked], ${upstream}}
  `;
};

/** Lets an edge take certificates of clients, as a person would do in the generated file. */
function withTls(text: string, authority: TestAuthority): string {
  const config = parse(text);
  const [listener] = config.static_resources.listeners;
  const server = authority.issue({ names: ["edge"] });
  const inline = (pem: string) => ({ inline_string: pem });
  listener.filter_chains[0].transport_socket = {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
      common_tls_context: {
        tls_certificates: [
          { certificate_chain: inline(server.certificate), private_key: inline(server.key) },
        ],
        validation_context: { trusted_ca: inline(authority.certificate) },
      },
    },
  };
  return JSON.stringify(config);
}

function askOf({ ports }: GeneratedEnvoy, authority: TestAuthority): Seen {
  return async ({ host, path = "/", address, certificate }) => {
    const answered = new Promise<string>((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port: ports.port,
          path,
          servername: "edge",
          ca: authority.certificate,
          cert: certificate?.certificate,
          key: certificate?.key,
          agent: false,
          headers: {
            host,
            "x-forwarded-for": address,
            "x-request-priority": "critical",
            "X-Class": "critical",
          },
        },
        (response) => {
          response.resume();
          response.once("end", () => {
            resolve(`${response.statusCode} ${response.headers[echoHeader]}`);
          });
        },
      );
      sent.once("error", reject);
      sent.end();
    });
    return within("the edge answers", 30_000, answered);
  };
}

const stranger: Caller = { address: "192.0.2.7" };

/** A class of Headgate's for each request, or what Headgate would have no part in. */
async function startEdge() {
  const authority = new TestAuthority();
  const upstream = await startScriptedUpstream(stage);
  upstream.answer = (_, { headers }) => {
    const seen = `${headers["x-request-priority"]} ${headers["x-class"]}`;
    return { status: 200, headers: { [echoHeader]: seen } };
  };
  const headgate = await HeadgateProcess.prepare(stage, { policy: "" });
  const edge = await startGeneratedEnvoy(stage, {
    services: services(upstream.port),
    listener: { trustedHops: 1 },
    proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, controlPort: 1}`,
    edit: (text) => withTls(text, authority),
  });
  await writeFile(headgate.policyPath, edge.policy);
  await headgate.restart();
  return { authority, headgate, seen: askOf(edge, authority) };
}

describe("a priority header that a caller states", () => {
  it("reaches a service only from trusted callers, with Headgate there and killed", async () => {
    const { authority, headgate, seen } = await startEdge();
    const named = (uri: string): Caller => ({
      ...stranger,
      certificate: authority.issue({ uris: [uri] }),
    });
    const friend: Caller = { address: "10.1.2.3" };
    const sixth: Caller = { address: "fd00::7" };
    const isThere = await seen({ host: "nobody", ...friend });
    expect(isThere).toBe("200 normal critical");
    expect(await seen({ host: "source", ...friend })).toBe("200 critical critical");

    headgate.process.signal("SIGKILL");
    await headgate.process.exited;

    const strangers = {
      "nobody /": await seen({ host: "nobody", ...stranger }),
      "nobody /, from a network that others trust": await seen({ host: "nobody", ...friend }),
      "nobody /healthz": await seen({ host: "nobody", path: "/healthz", ...stranger }),
      "nobody /login": await seen({ host: "nobody", path: "/login", ...stranger }),
      "source /": await seen({ host: "source", ...stranger }),
      "source /healthz": await seen({ host: "source", path: "/healthz", ...stranger }),
      "principal /": await seen({ host: "principal", ...stranger }),
      "principal /, from a network that others trust": await seen({ host: "principal", ...friend }),
      "principal /, named otherwise": await seen({
        host: "principal",
        ...named("spiffe://shop/web/2"),
      }),
      "principal /healthz": await seen({ host: "principal", path: "/healthz", ...stranger }),
      "unasked /": await seen({ host: "unasked", ...stranger }),
    };
    for (const [what, answer] of Object.entries(strangers)) {
      expect(answer, what).toBe("200 undefined critical");
    }
    expect(await seen({ host: "other-header", ...stranger })).toBe("200 critical undefined");

    const trusted = {
      "source /": await seen({ host: "source", ...friend }),
      "source /, IPv6": await seen({ host: "source", ...sixth }),
      "source /healthz": await seen({ host: "source", path: "/healthz", ...friend }),
      "principal /": await seen({ host: "principal", ...named("spiffe://shop/web") }),
      "principal /, by its beginning": await seen({
        host: "principal",
        ...named("spiffe://shop/batch/7"),
      }),
      "principal /healthz": await seen({
        host: "principal",
        path: "/healthz",
        ...named("spiffe://shop/web"),
      }),
      "other-header /": await seen({ host: "other-header", ...friend }),
      "anyone /": await seen({ host: "anyone", ...stranger }),
      "anyone /healthz": await seen({ host: "anyone", path: "/healthz", ...stranger }),
    };
    for (const [what, answer] of Object.entries(trusted)) {
      expect(answer, what).toBe("200 critical critical");
    }
  });
});
