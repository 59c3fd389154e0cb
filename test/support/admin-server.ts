import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type ServerHttp2Session,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  BudgetService,
  FleetService,
  LimitService,
  PolicyService,
  QuotaService,
  RoomService,
} from "../../src/gen/headgate/admin/v1/admin_pb.js";

/** What a scripted admin port answers; methods that are absent are UNIMPLEMENTED. */
export interface AdminScript {
  readonly limits?: Partial<ServiceImpl<typeof LimitService>>;
  readonly policies?: Partial<ServiceImpl<typeof PolicyService>>;
  readonly quotas?: Partial<ServiceImpl<typeof QuotaService>>;
  readonly rooms?: Partial<ServiceImpl<typeof RoomService>>;
  readonly budgets?: Partial<ServiceImpl<typeof BudgetService>>;
  readonly fleet?: Partial<ServiceImpl<typeof FleetService>>;
  /** Serves TLS with these, in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

interface ServerParts {
  readonly server: Http2Server | Http2SecureServer;
  readonly sessions: ReadonlySet<ServerHttp2Session>;
}

/** An admin port whose answers a test writes: a real server, real connections, and the real API. */
export class AdminServer {
  readonly url: string;
  readonly #parts: ServerParts;

  private constructor(parts: ServerParts, scheme: string) {
    this.#parts = parts;
    // It listens on TCP, so its address is no text.
    const { port } = parts.server.address() as AddressInfo;
    this.url = `${scheme}://127.0.0.1:${port}`;
  }

  static async start({ tls, ...services }: AdminScript): Promise<AdminServer> {
    const { limits, policies, quotas, rooms, budgets, fleet } = services;
    const handler = connectNodeAdapter({
      routes: (router) => {
        router.service(LimitService, limits ?? {});
        router.service(PolicyService, policies ?? {});
        router.service(QuotaService, quotas ?? {});
        router.service(RoomService, rooms ?? {});
        router.service(BudgetService, budgets ?? {});
        router.service(FleetService, fleet ?? {});
      },
    });
    const server = tls === undefined ? createServer(handler) : createSecureServer(tls, handler);
    const sessions = new Set<ServerHttp2Session>();
    server.on("session", (session) => sessions.add(session));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new AdminServer({ server, sessions }, tls === undefined ? "http" : "https");
  }

  async close(): Promise<void> {
    const { server, sessions } = this.#parts;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const session of sessions) session.destroy();
    await closed;
  }
}
