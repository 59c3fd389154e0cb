import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../core/base/clock.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { byLabel, type MetricGroup } from "../base/metrics.js";
import type { TlsChoice } from "../config/tls-choice.js";
import type { TlsMaterial } from "./tls-files.js";
import { type TlsRefusal, TlsRefusals } from "./tls-refusal.js";
import { type CertificateStatus, TlsReloader } from "./tls-reloader.js";
import { TlsTermination } from "./tls-termination.js";

/** What is known of the gRPC port's TLS, for metrics. */
interface TlsStatus extends CertificateStatus {
  /** Connections refused before their first call, by cause. */
  readonly refusedByCause: ReadonlyMap<TlsRefusal, number>;
}

/** TLS whose files are read, before anything listens. */
export interface OpenTls {
  readonly status: TlsStatus;
  /**
   * Follows the files, for one port; there may be several. Answers what takes accepted connections
   * and hands them on when they are secured.
   */
  terminate(onSecure: (socket: TLSSocket) => void): (socket: Socket) => void;
  /** Ends following the files. */
  close(): void;
}

/**
 * Reads the TLS files.
 *
 * @throws StartFailure with all problems and the exit code of a wrong configuration
 */
export async function openTls(
  choice: TlsChoice,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<OpenTls> {
  const reloader = new TlsReloader({ choice, clock, logger });
  const look = await reloader.look();
  if (look.kind !== "loaded") {
    const problems = look.kind === "refused" ? look.problems : [];
    const lines = ["The configuration is invalid:", ...problems.map((problem) => `  ${problem}`)];
    throw new StartFailure(exitCodes.usage, lines.join("\n"));
  }
  const refusals = new TlsRefusals({ clock, logger });
  let { material } = look;
  const terminations: TlsTermination[] = [];
  return {
    get status() {
      return { ...reloader.status, refusedByCause: refusals.countByCause };
    },
    terminate: (onSecure) => {
      const { clientSan } = choice;
      const termination = new TlsTermination({
        material,
        ...(clientSan === undefined ? {} : { clientSan }),
        onSecure,
        onRefused: (cause) => refusals.note(cause),
      });
      if (terminations.length === 0) {
        reloader.watch((newer: TlsMaterial) => {
          material = newer;
          for (const one of terminations) one.use(newer);
        });
      }
      terminations.push(termination);
      return (socket) => termination.accept(socket);
    },
    close: () => reloader.close(),
  };
}

/** The metrics of the gRPC port's TLS, by kind. */
export function tlsMetrics(status: () => TlsStatus): MetricGroup {
  return {
    gauges: [
      {
        name: "headgate_tls_certificate_expiry_timestamp_seconds",
        help: "Expiry time of the gRPC port's active certificate.",
        read: (add) => add(status().expiryEpochUs / 1_000_000),
      },
      {
        name: "headgate_tls_certificate_stale",
        help: "1 while the newest TLS files are refused and older ones are active.",
        read: (add) => add(status().isStale ? 1 : 0),
      },
    ],
    counters: [
      {
        name: "headgate_tls_certificate_loads_total",
        help: "TLS files loaded and refused, including the first.",
        labelNames: ["result"],
        read: (add) => {
          add(status().loadedCount, { result: "loaded" });
          add(status().refusedCount, { result: "refused" });
        },
      },
      {
        name: "headgate_tls_refused_connections_total",
        help: "gRPC connections refused before their first call, by cause.",
        ...byLabel("cause", () => status().refusedByCause),
      },
    ],
  };
}
