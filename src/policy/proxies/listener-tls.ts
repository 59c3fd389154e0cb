import type { Block } from "../text/block.js";
import { readFilePath } from "../text/service-texts.js";
import { readCertificateFiles, readSecret, readSubjectAltNames } from "../upstream/client-tls.js";
import type { CertificateSource, ListenerTls } from "./proxy-policy.js";
import { listenerTlsShape } from "./proxy-shapes.js";

/** The oldest version of TLS that callers may be held to. Source: TlsParameters.TlsProtocol. */
export const tlsVersions = ["TLSv1_2", "TLSv1_3"] as const;

/** Reads `tls` of the listener: from files of the proxy, or from a secret. */
export function readListenerTls(listener: Block): ListenerTls | undefined {
  const block = listener.block("tls", listenerTlsShape);
  if (block === undefined) return undefined;
  const source = readSource(block);
  const names = readSubjectAltNames(block);
  const expected = "TLSv1_2 or TLSv1_3";
  const versionMin = block.choice("minVersion", { usual: "TLSv1_2", words: tlsVersions, expected });
  if (source === undefined) return undefined;
  if (names.length > 0 && !asksForCertificate(source)) {
    const message = '"subjectAltNames" are of callers, and none is asked for a certificate';
    block.report("subjectAltNames", { id: "HG207", message, expected: "clientCaFile beside it" });
  }
  return { ...source, subjectAltNames: names, versionMin };
}

/** Whether callers have to show a certificate. */
export function asksForCertificate(source: CertificateSource): boolean {
  return source.kind === "secret" ? source.isMutual : source.clientCaFile !== undefined;
}

function readSource(block: Block): CertificateSource | undefined {
  const { reader } = block;
  const secret = readSecret(block);
  if (block.field("secret") !== undefined) return secret;
  const caField = block.field("clientCaFile");
  const clientCaFile = caField && readFilePath(reader, caField);
  const files = readCertificateFiles(block);
  if (block.field("certFile") === undefined && block.field("keyFile") === undefined) {
    const message = "nothing says which certificate callers are shown";
    const expected = "certFile and keyFile, or a secret";
    return reader.report(block.fields.node, { id: "HG125", message, expected });
  }
  return files && { kind: "files", ...files, clientCaFile };
}
