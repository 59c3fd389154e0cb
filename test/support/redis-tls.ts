import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CertificateWish, TestAuthority, TestCertificate } from "./certificates.js";
import { freePort } from "./free-port.js";
import { RedisServer } from "./redis-server.js";
import type { Stage } from "./stage.js";

/** Files of one certificate, its key and the authorities that its owner trusts. */
export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

/** Writes them into a new folder of the stage. */
export async function writeCertificateFiles(
  stage: Stage,
  { certificate, key }: TestCertificate,
  trusted: TestAuthority,
): Promise<CertificateFiles> {
  const folder = await mkdtemp(join(stage.folder, "tls-"));
  const files = {
    certificate: join(folder, "tls.crt"),
    key: join(folder, "tls.key"),
    authority: join(folder, "ca.crt"),
  };
  await writeFile(files.certificate, certificate);
  await writeFile(files.key, key);
  await writeFile(files.authority, trusted.certificate);
  return files;
}

/** How a Redis speaks TLS. */
export interface RedisTlsOptions {
  readonly authority: TestAuthority;
  /** Whom its certificate names. Default 127.0.0.1. */
  readonly wish?: CertificateWish;
  /** Whether it wants certificates of its clients. Default false. */
  readonly knowsClients?: boolean;
  /** More words of its command line. */
  readonly args?: readonly string[];
}

/** Words of a Redis command line that make it listen on a TLS port too. */
export async function redisTlsArgs(
  stage: Stage,
  { authority, wish = { addresses: ["127.0.0.1"] }, knowsClients = false }: RedisTlsOptions,
): Promise<{ readonly args: readonly string[]; readonly tlsPort: number }> {
  const tlsPort = await freePort();
  const files = await writeCertificateFiles(stage, authority.issue(wish), authority);
  const args = ["--tls-port", String(tlsPort), "--tls-auth-clients", knowsClients ? "yes" : "no"];
  args.push("--tls-cert-file", files.certificate, "--tls-key-file", files.key);
  args.push("--tls-ca-cert-file", files.authority);
  return { args, tlsPort };
}

/** A Redis with a TLS port beside its plain one; ends with the stage. */
export async function startTlsRedis(
  stage: Stage,
  options: RedisTlsOptions,
): Promise<{ readonly server: RedisServer; readonly tlsPort: number }> {
  const { args, tlsPort } = await redisTlsArgs(stage, options);
  const all = [...args, ...(options.args ?? [])];
  const server = await RedisServer.start({ engine: "redis", args: all });
  stage.atEnd(() => server.stop());
  return { server, tlsPort };
}
