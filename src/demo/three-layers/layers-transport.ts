import { Agent, type IncomingMessage, request } from "node:http";

/** Connections to Envoy, of a caller's own. */
export interface Transport {
  readonly send: typeof fetch;
  close(): void;
}

/**
 * `fetch` to an Envoy on this machine, whatever the host of the URL: Node's own sends no other host
 * than the one that it connects to.
 *
 * @param port Envoy's
 */
export function createTransport(port: number): Transport {
  const agent = new Agent({ keepAlive: true });
  const send: typeof fetch = (input, init) =>
    new Promise((resolve, reject) => {
      const { host, pathname: path } = new URL(String(input));
      const headers = { ...Object.fromEntries(new Headers(init?.headers)), host };
      const signal = init?.signal ?? undefined;
      const options = { host: "127.0.0.1", port, path, agent, headers, ...(signal && { signal }) };
      const sent = request(options, (incoming) => {
        void readBody(incoming).then((body) => {
          const status = incoming.statusCode ?? 0;
          resolve(new Response(body, { status, headers: headersOf(incoming) }));
        }, reject);
      });
      sent.once("error", reject);
      sent.end();
    });
  return { send, close: () => agent.destroy() };
}

/** What the service and Envoy answer is short. */
async function readBody(incoming: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  return headers;
}
