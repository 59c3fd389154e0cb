import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import {
  BudgetService,
  FleetService,
  LimitService,
  PolicyService,
  QuotaService,
  RoomService,
} from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { startTestApp, type TestApp } from "./app.js";
import type { Env } from "./configured-store.js";
import type { Stage } from "./stage.js";

/** The protocols of the admin port. */
export const adminProtocols = ["connect", "connect over HTTP/1.1", "grpc", "grpc-web"] as const;

/** One of them. */
export type AdminProtocol = (typeof adminProtocols)[number];

/** Clients of all services. */
export interface AdminClients {
  readonly limits: Client<typeof LimitService>;
  readonly policies: Client<typeof PolicyService>;
  readonly quotas: Client<typeof QuotaService>;
  readonly rooms: Client<typeof RoomService>;
  readonly budgets: Client<typeof BudgetService>;
  readonly fleet: Client<typeof FleetService>;
}

/** Clients that call a port of this machine. */
export function adminClients(
  port: number,
  {
    protocol = "connect",
    token,
  }: { readonly protocol?: AdminProtocol; readonly token?: string } = {},
): AdminClients {
  const transport = transportOf(protocol, {
    baseUrl: `http://127.0.0.1:${port}`,
    interceptors: token === undefined ? [] : [bearer(token)],
  });
  return {
    limits: createClient(LimitService, transport),
    policies: createClient(PolicyService, transport),
    quotas: createClient(QuotaService, transport),
    rooms: createClient(RoomService, transport),
    budgets: createClient(BudgetService, transport),
    fleet: createClient(FleetService, transport),
  };
}

interface TransportOptions {
  readonly baseUrl: string;
  readonly interceptors: Interceptor[];
}

function transportOf(protocol: AdminProtocol, options: TransportOptions): Transport {
  switch (protocol) {
    case "connect":
      return createConnectTransport({ ...options, httpVersion: "2" });
    case "connect over HTTP/1.1":
      return createConnectTransport({ ...options, httpVersion: "1.1", useBinaryFormat: false });
    case "grpc":
      return createGrpcTransport(options);
    case "grpc-web":
      return createGrpcWebTransport({ ...options, httpVersion: "1.1" });
  }
}

function bearer(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}

/** A running service of this process with an admin port, until the stage's end. */
export interface AdminApp extends TestApp {
  readonly port: number;
}

/** Starts a service with a policy and these settings. */
export async function startAdminApp(
  stage: Stage,
  policy: string,
  env: Env = {},
): Promise<AdminApp> {
  const started = await startTestApp(stage, policy, env);
  const port = started.app.adminAddress?.port;
  if (port === undefined) throw new Error("there is no admin port");
  return { ...started, port };
}
