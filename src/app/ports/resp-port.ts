import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type Socket } from "node:net";
import { RespCounts } from "../../rpc/resp/resp-counts.js";
import { createRespSession } from "../../rpc/resp/resp-session.js";
import { RespServer } from "../../wire/resp/resp-server.js";
import { boundByAddress } from "../base/address-bound.js";
import { type ListenAddress, listen } from "../base/listen.js";
import { sha256 } from "../base/sha256.js";
import { readVersion } from "../base/version.js";
import type { RespChoice } from "../config/config.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { respMetrics } from "../metrics/resp-metrics.js";
import { switchesOf } from "../options/decision-options.js";

/** The RESP port. */
interface RespPort {
  readonly address: ListenAddress;
  /** Stops accepting connections. Accepted ones continue. */
  stopAccepting(): void;
  /** Resolves with whether all commands were answered within the grace period. */
  close(graceMs: number): Promise<boolean>;
}

interface RespPortParts extends Pick<Foundation, "tls"> {
  readonly choice: RespChoice;
  readonly decisions: Pick<Decisions, "decider">;
}

/** Maximum number of connections. Each keeps at most one command and its replies in memory. */
const respConnectionsMax = 4_000;

/** Silence after which the system checks whether a client still exists, in milliseconds. */
const keepAliveMs = 60_000;

/**
 * Opens the RESP port.
 *
 * @throws ServiceError LISTEN_FAILED naming the setting
 */
export async function openRespPort(
  { config, clock, metrics, onBug, refusedAt }: Runtime,
  { choice, decisions, tls }: RespPortParts,
): Promise<RespPort> {
  const counts = new RespCounts();
  const parts = {
    decider: decisions.decider,
    isShadow: switchesOf(config).isShadow,
    digest: sha256,
    isPassword: choice.password === undefined ? undefined : passwordCheck(choice.password),
    counts,
    version: readVersion(),
    onBug,
  };
  const resp = new RespServer({
    clock,
    createSession: () => createRespSession(parts),
    scheduleFlush: (run) => process.nextTick(run),
    onBug,
  });
  metrics.add(respMetrics(counts, () => resp.connectionCount));
  const acceptPlain = (socket: Socket): void => resp.accept(socket);
  const accept = tls === undefined ? acceptPlain : tls.terminate(acceptPlain, "other");
  const server = createServer(
    { noDelay: true, allowHalfOpen: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs },
    boundByAddress(accept, {
      perAddressMax: config.connectionsPerAddressMax,
      onRefused: refusedAt("resp"),
    }),
  );
  const setting = "HEADGATE_RESP_ADDR";
  const settings = { hostSetting: setting, portSetting: setting };
  const connectionsMax = respConnectionsMax;
  const address = await listen(server, { ...choice, ...settings, connectionsMax });
  const stopAccepting = (): void => void server.close();
  return {
    address,
    stopAccepting,
    close: (graceMs) => {
      stopAccepting();
      return resp.close(graceMs);
    },
  };
}

/** Checks a password, in the same time for every password. */
function passwordCheck(password: string): (said: Buffer) => boolean {
  const digest = (bytes: Buffer): Buffer => createHash("sha256").update(bytes).digest();
  const right = digest(Buffer.from(password));
  return (said) => timingSafeEqual(digest(said), right);
}
