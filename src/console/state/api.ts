import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { signal } from "@preact/signals";
import {
  BudgetService,
  FleetService,
  LimitService,
  PolicyService,
  QuotaService,
  RoomService,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { nowMs } from "./browser.js";
import { noteSignedOut, user } from "./session.js";

/** Whether the server responds; otherwise, since when it has not. */
export const connection = signal<{ readonly lostAtMs: number | undefined }>({
  lostAtMs: undefined,
});

const lost: readonly Code[] = [Code.Unavailable, Code.Unknown];

/** Adds the CSRF token to each call, and derives the state of the connection from the results. */
const watch: Interceptor = (next) => async (request) => {
  const csrf = user.peek()?.csrf ?? "";
  if (csrf !== "") request.header.set("x-headgate-csrf", csrf);
  try {
    const response = await next(request);
    if (connection.peek().lostAtMs !== undefined) connection.value = { lostAtMs: undefined };
    return response;
  } catch (error) {
    const { code } = ConnectError.from(error);
    if (code === Code.Unauthenticated) noteSignedOut();
    if (!lost.includes(code)) connection.value = { lostAtMs: undefined };
    else if (connection.peek().lostAtMs === undefined) connection.value = { lostAtMs: nowMs() };
    throw error;
  }
};

const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  interceptors: [watch],
});

/** The admin API of the Headgate that serves this page. */
export const api = {
  limits: createClient(LimitService, transport),
  policies: createClient(PolicyService, transport),
  quotas: createClient(QuotaService, transport),
  rooms: createClient(RoomService, transport),
  budgets: createClient(BudgetService, transport),
  fleet: createClient(FleetService, transport),
};

/** Returns an error as a sentence. */
export function errorText(error: unknown): string {
  const { code, rawMessage } = ConnectError.from(error);
  switch (code) {
    case Code.Unauthenticated:
      return "Your session has ended. Sign in again; what you entered is kept.";
    case Code.PermissionDenied:
      return `You may not do this: ${rawMessage}`;
    case Code.Aborted:
      return `Somebody else has changed it meanwhile: ${rawMessage}`;
    case Code.Unavailable:
    case Code.Unknown:
      return rawMessage === "" || rawMessage === "Failed to fetch"
        ? "Headgate does not answer."
        : rawMessage;
    default:
      return rawMessage === "" ? `Headgate answers ${Code[code] ?? code}.` : rawMessage;
  }
}
