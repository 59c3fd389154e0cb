import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { AdsTls } from "../../rpc/policy-xds/grpc-js-ads-stream.js";
import { readErrorWords } from "../config/policy-files.js";
import type { NamedFile } from "../config/tls-choice.js";
import type { XdsTlsChoice } from "../config/xds-choice.js";

/** Maximum size of a file with a certificate, a key or authorities, in bytes. */
export const xdsTlsFileBytesMax = 524_288;

/**
 * Reads the files for one connection, so that the next one uses renewed certificates.
 *
 * @throws Error naming the setting, never the contents of a file
 */
export function readXdsCredentials(choice: XdsTlsChoice): AdsTls {
  const { authority, identity, serverName } = choice;
  const read: AdsTls = {
    ...(authority === undefined ? {} : { authority: readPem(authority) }),
    ...(identity === undefined
      ? {}
      : {
          identity: { certificate: readPem(identity.certificate), key: readPem(identity.key) },
        }),
    ...(serverName === undefined ? {} : { serverName }),
  };
  checkWithOpenSsl(read, choice);
  return read;
}

function readPem({ setting, path }: NamedFile): string {
  let text: string;
  try {
    if (statSync(path).size > xdsTlsFileBytesMax) {
      throw new Error(`${setting} names a file of more than ${xdsTlsFileBytesMax} bytes`);
    }
    text = readFileSync(path, "latin1");
  } catch (error) {
    if (error instanceof Error && error.message.startsWith(setting)) throw error;
    throw new Error(`${setting} names a file that cannot be read: ${readErrorWords(error)}`);
  }
  if (!text.includes("-----BEGIN ")) throw new Error(`${setting} names a file that is not PEM`);
  return text;
}

/** Checks here, where settings are known by name, that the files belong together. */
function checkWithOpenSsl({ authority, identity }: AdsTls, choice: XdsTlsChoice): void {
  try {
    createSecureContext({
      ...(authority === undefined ? {} : { ca: authority }),
      ...(identity === undefined ? {} : { cert: identity.certificate, key: identity.key }),
    });
  } catch (error) {
    const { authority: ca, identity: own } = choice;
    const files = [own?.certificate, own?.key, ca].flatMap((file) => file?.setting ?? []);
    const code = String(Reflect.get(Object(error), "code"));
    throw new Error(
      `OpenSSL rejects ${files.join(", ")} (${code}): check that they belong together`,
    );
  }
}
