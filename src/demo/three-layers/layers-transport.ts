import { Agent, type IncomingMessage, request } from "node:http";

/** A caller's own connections to Envoy. */
export interface Transport {
  readonly send: typeof fetch;
  close(): void;
}

/**
 * Creates a `fetch` to an Envoy on this machine that sends any host in the URL. Node's own sends
 * only the host that it connects to.
 *
 * @param port Envoy's port
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

/** Reads a body, which is short from both the service and Envoy. */
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
