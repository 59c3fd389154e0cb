import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { type ConnectionOptions, createSecureContext } from "node:tls";
import type { TlsSource } from "../../store/redis/dial.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { readErrorWords } from "./policy-files.js";
import type { RedisTlsChoice } from "./store-choice.js";

/** Maximum size of a file, in bytes. The authorities of a whole system need half of it. */
export const redisTlsFileBytesMax = 524_288;

/**
 * Returns a source of TLS settings that reads the files for each new connection. If files are
 * missing or only half written, the last valid ones stay in use, and it is logged once.
 *
 * @throws StartFailure if the files are invalid at the start; it names only settings
 */
export function openRedisTls(choice: RedisTlsChoice, logger: Logger): TlsSource {
  const first = load(choice);
  if (first.kind === "problem") throw new StartFailure(exitCodes.failure, first.problem);
  let active = first;
  let isStale = false;
  return () => {
    const loaded = load(choice, active);
    if (loaded.kind === "material") {
      active = loaded;
      if (isStale) logger.info({ event: "redisTlsLoaded" }, "Redis's TLS files are valid again.");
    } else if (!isStale) {
      logger.warn(
        { event: "redisTlsRefused", problem: loaded.problem },
        "Redis's TLS files are invalid; the last valid ones stay in use.",
      );
    }
    isStale = loaded.kind === "problem";
    return active.options;
  };
}

interface Material {
  readonly kind: "material";
  /** Contents of the files, to detect changes. */
  readonly texts: readonly (string | undefined)[];
  readonly options: ConnectionOptions;
}

type Loaded = Material | { readonly kind: "problem"; readonly problem: string };

function load({ authorityPath, pair, skipsHostName }: RedisTlsChoice, before?: Material): Loaded {
  try {
    const ca = readSetting("REDIS_TLS_CACERT", authorityPath);
    const cert = readSetting("REDIS_TLS_CLIENT_CERT", pair?.certificatePath);
    const key = readSetting("REDIS_TLS_CLIENT_KEY", pair?.keyPath);
    const texts = [ca, cert, key];
    // Parsing the authorities of a whole system takes longer than a decision may.
    if (before?.texts.every((text, i) => text === texts[i])) return before;
    if (ca !== undefined) checkAuthorities(ca);
    const shown = cert === undefined || key === undefined ? {} : { cert, key };
    const secureContext = createContext({ ...(ca === undefined ? {} : { ca }), ...shown });
    const checks = skipsHostName ? { checkServerIdentity: () => undefined } : {};
    return { kind: "material", texts, options: { secureContext, ...checks } };
  } catch (thrown) {
    if (!(thrown instanceof FileProblem)) throw thrown;
    return { kind: "problem", problem: thrown.message };
  }
}

/** Problem with a file, by its setting. Never contains the contents of the file. */
class FileProblem extends Error {}

function readSetting(setting: string, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  let text: string;
  try {
    if (statSync(path).size > redisTlsFileBytesMax) {
      throw new FileProblem(`${setting} names a file of more than ${redisTlsFileBytesMax} bytes`);
    }
    text = readFileSync(path, "latin1");
  } catch (thrown) {
    if (thrown instanceof FileProblem) throw thrown;
    const words = readErrorWords(thrown);
    throw new FileProblem(
      `${setting} names a file that cannot be read: ${words}; mount it or correct it`,
    );
  }
  return text;
}

/** Checks the authorities. Node accepts any text here, and then trusts no certificate. */
function checkAuthorities(text: string): void {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  const begunCount = text.split("-----BEGIN CERTIFICATE-----").length - 1;
  try {
    for (const block of blocks) new X509Certificate(block);
    if (blocks.length > 0 && blocks.length === begunCount) return;
  } catch {
    // The error below reports it.
  }
  throw new FileProblem(
    "REDIS_TLS_CACERT names a file without a complete certificate; it must be PEM",
  );
}

function createContext(given: {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}) {
  try {
    // Node treats an empty file, as it is while it is written, as no file at all.
    if (given.cert === "" || given.key === "") throw new Error("an empty file");
    return createSecureContext({ ...given, minVersion: "TLSv1.2" });
  } catch {
    throw new FileProblem(
      "REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY do not match: both must be " +
        "PEM, without a passphrase, and belong together",
    );
  }
}
