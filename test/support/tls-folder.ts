import { mkdir, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TlsChoice } from "../../src/app/config/tls-choice.js";
import type { TestCertificate } from "./certificates.js";

/** What a server's folder holds. */
export interface TlsFolderContents {
  readonly server: TestCertificate;
  /** The certificates of those who vouch for clients. */
  readonly clientAuthority?: string;
}

/** The files of a TLS server, in a folder of a test. */
export class TlsFolder {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get certificatePath(): string {
    return join(this.#folder, "tls.crt");
  }

  get keyPath(): string {
    return join(this.#folder, "tls.key");
  }

  get authorityPath(): string {
    return join(this.#folder, "ca.crt");
  }

  /** The settings that name the files, with TLS switched on. */
  get env(): Readonly<Record<string, string>> {
    return {
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: this.certificatePath,
      GRPC_SERVER_TLS_KEY: this.keyPath,
    };
  }

  /** As `env`, with clients' certificates required. */
  get mutualEnv(): Readonly<Record<string, string>> {
    return { ...this.env, GRPC_CLIENT_TLS_CACERT: this.authorityPath };
  }

  /** What the settings of `env`, or of `mutualEnv`, choose. */
  choice(clients: "any" | "known" = "any"): TlsChoice {
    return {
      certificate: { setting: "GRPC_SERVER_TLS_CERT", path: this.certificatePath },
      key: { setting: "GRPC_SERVER_TLS_KEY", path: this.keyPath },
      ...(clients === "any"
        ? {}
        : {
            clientAuthority: { setting: "GRPC_CLIENT_TLS_CACERT", path: this.authorityPath },
          }),
    };
  }

  /** Writes the files in place, one after the other. */
  async write({ server, clientAuthority }: TlsFolderContents): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    await writeFile(this.certificatePath, server.certificate);
    await writeFile(this.keyPath, server.key);
    if (clientAuthority !== undefined) await writeFile(this.authorityPath, clientAuthority);
  }

  /**
   * Puts the files there as Kubernetes mounts a Secret: links to links, of which one is swapped.
   *
   * @param version names this content; a new one for each swap
   */
  async swap(version: string, { server, clientAuthority }: TlsFolderContents): Promise<void> {
    const target = join(this.#folder, `..${version}`);
    await new TlsFolder(target).write({
      server,
      ...(clientAuthority === undefined ? {} : { clientAuthority }),
    });
    await symlink(`..${version}`, join(this.#folder, "..data_tmp"));
    await rename(join(this.#folder, "..data_tmp"), join(this.#folder, "..data"));
    for (const name of ["tls.crt", "tls.key", "ca.crt"]) {
      const link = join(this.#folder, name);
      // Kubernetes makes these once: whoever is told of the swap reads through them at once.
      if ((await readlink(link).catch(() => "")) === `..data/${name}`) continue;
      await rm(link, { force: true });
      await symlink(`..data/${name}`, link);
    }
  }
}
