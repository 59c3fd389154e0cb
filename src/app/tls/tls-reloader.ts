import type { Clock } from "../../core/base/clock.js";
import { isoTime } from "../base/clock.js";
import type { Logger } from "../base/logger.js";
import { PathWatcher } from "../base/path-watcher.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import type { TlsChoice } from "../config/tls-choice.js";
import { type ReadTls, readTlsFiles, type TlsMaterial } from "./tls-files.js";

interface TlsReloaderParts {
  readonly choice: TlsChoice;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Result of a look at the files. */
type TlsLook =
  | { readonly kind: "unchanged" }
  | { readonly kind: "loaded"; readonly material: TlsMaterial }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

/** State of the certificate, for metrics. */
export interface CertificateStatus {
  /** End of the active certificate, in microseconds since 1970. 0 before the first one. */
  readonly expiryEpochUs: number;
  /** Whether the newest files are refused, and older ones are active. */
  readonly isStale: boolean;
  readonly loadedCount: number;
  readonly refusedCount: number;
}

/**
 * Keeps the active TLS material: loads it, watches its files and passes on new material. Files that
 * are wrong, or only half written, change only the log and the status, until good ones come.
 */
export class TlsReloader {
  readonly #parts: TlsReloaderParts;
  #active: TlsMaterial | undefined;
  #isStale = false;
  #loadedCount = 0;
  #refusedCount = 0;
  #hasReportedExpiry = false;
  /** Version found by the last look, so that it is neither checked nor reported again. */
  #seen: string | undefined;
  readonly #looks = new SerializedPoll(() => this.#lookOnce());
  #watchers: readonly PathWatcher[] = [];
  #isClosed = false;
  #onLoaded: (material: TlsMaterial) => void = () => {};

  constructor(parts: TlsReloaderParts) {
    this.#parts = parts;
  }

  get status(): CertificateStatus {
    return {
      expiryEpochUs: this.#active?.expiryEpochUs ?? 0,
      isStale: this.#isStale,
      loadedCount: this.#loadedCount,
      refusedCount: this.#refusedCount,
    };
  }

  /** Looks at the files now. Looks never overlap: one requested during a look follows it. */
  look(): Promise<TlsLook> {
    return this.#looks.now();
  }

  /** Looks again whenever a file may have changed, until `close`. Reports new material. */
  watch(onLoaded: (material: TlsMaterial) => void): void {
    const { choice, clock } = this.#parts;
    this.#onLoaded = onLoaded;
    const onChange = (): void => this.#looks.want();
    this.#watchers = [choice.certificate, choice.key, choice.clientAuthority].flatMap((file) => {
      if (file === undefined) return [];
      return [new PathWatcher({ path: file.path, directories: [], clock, onChange })];
    });
  }

  /** Stops watching. A look in progress still ends, but changes and reports nothing. */
  close(): void {
    this.#isClosed = true;
    for (const watcher of this.#watchers) watcher.close();
  }

  async #lookOnce(): Promise<TlsLook> {
    const read = await readTlsFiles(this.#parts.choice);
    if (this.#isClosed) return { kind: "unchanged" };
    const look = this.#judge(read);
    if (look.kind === "loaded") this.#onLoaded(look.material);
    this.#tellExpiry();
    return look;
  }

  #judge(read: ReadTls): TlsLook {
    if (read.version === this.#seen) return { kind: "unchanged" };
    this.#seen = read.version;
    if (read.kind === "problems") return this.#refuse(read.problems);
    const { material } = read;
    const nowUs = this.#parts.clock.epochUs();
    const isWorse = material.expiryEpochUs <= nowUs && this.#isValidAt(nowUs);
    if (isWorse) {
      const { setting } = this.#parts.choice.certificate;
      return this.#refuse([`${setting} names a certificate that has expired; renew it`]);
    }
    return this.#swap(material);
  }

  #isValidAt(epochUs: number): boolean {
    return this.#active !== undefined && epochUs < this.#active.expiryEpochUs;
  }

  #swap(material: TlsMaterial): TlsLook {
    this.#active = material;
    this.#isStale = false;
    this.#hasReportedExpiry = false;
    this.#loadedCount += 1;
    const { logger } = this.#parts;
    const expires = isoTime(material.expiryEpochUs);
    const sentence = "New gRPC connections use this certificate.";
    logger.info({ event: "tlsCertificateLoaded", expires }, sentence);
    return { kind: "loaded", material };
  }

  #refuse(problems: readonly string[]): TlsLook {
    this.#isStale = true;
    this.#refusedCount += 1;
    // At the start, the caller reports the problems, and there are no older files to keep.
    if (this.#active !== undefined) {
      const keptExpires = isoTime(this.#active.expiryEpochUs);
      this.#parts.logger.error(
        { event: "tlsCertificateRefused", problems, keptExpires },
        "The new TLS files are invalid; the old ones stay active until they change " +
          `again:\n  ${problems.join("\n  ")}`,
      );
    }
    return { kind: "refused", problems };
  }

  /** Logs once for each certificate that clients will refuse it, because of the current time. */
  #tellExpiry(): void {
    const { clock, logger, choice } = this.#parts;
    const active = this.#active;
    if (active === undefined || this.#hasReportedExpiry) return;
    const nowUs = clock.epochUs();
    const isEarly = nowUs < active.beginEpochUs;
    if (!isEarly && nowUs < active.expiryEpochUs) return;
    this.#hasReportedExpiry = true;
    const when = isEarly ? "is not valid yet" : "has expired";
    logger.warn(
      { event: isEarly ? "tlsCertificateEarly" : "tlsCertificateExpired" },
      `The certificate of ${choice.certificate.setting} ${when}, so clients reject ` +
        "it. Renew it; Headgate loads new files by itself.",
    );
  }
}
