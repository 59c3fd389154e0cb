import type { Block } from "../text/block.js";
import { readAddress, readFilePath, readSecretName } from "../text/service-texts.js";
import type { TextRule } from "../text/text-rules.js";
import type { ClientTls, UpstreamPlace, UpstreamTls } from "./upstream-policy.js";
import { upstreamTlsShape } from "./upstream-shapes.js";

/** The port on which TLS is spoken unless the policy says `tls: off`. */
const tlsPort = 443;

/**
 * The system's own trust store, as Envoy's image, Istio's and Envoy Gateway's have it. Source:
 * Debian, ca-certificates.
 */
export const systemCaFile = "/etc/ssl/certs/ca-certificates.crt";

/** The most names of which a certificate has to have one. */
export const subjectAltNamesMax = 16;

/** A name in a certificate: a host, an address, or a URI such as `spiffe://mesh/ns/shop/sa/a`. */
export const subjectAltNameRule: TextRule = {
  charsMax: 1_024,
  forbidden: /[^!-~]/,
  expected: "a name in the certificate: a host, an IP address or a URI",
};

/**
 * Reads what proxies know a TLS server by; a certificate and its key come together.
 *
 * @param usual what holds where `serverName` or `caFile` is left out
 */
export function readClientTls(
  block: Block,
  usual: { readonly address: string; readonly caFile: string },
): ClientTls {
  const { reader } = block;
  const caFile = readFile(block, "caFile") ?? usual.caFile;
  const certificate = readCertificateFiles(block);
  const nameField = block.field("serverName");
  const serverName = (nameField && readAddress(reader, nameField)) ?? usual.address;
  return { caFile, certificate, serverName };
}

function readFile(block: Block, name: string): string | undefined {
  const field = block.field(name);
  return field && readFilePath(block.reader, field);
}

/** Reads a certificate and its key, which come together. */
export function readCertificateFiles(block: Block): ClientTls["certificate"] {
  const certFile = readFile(block, "certFile");
  const keyFile = readFile(block, "keyFile");
  for (const [name, other] of [
    ["certFile", "keyFile"],
    ["keyFile", "certFile"],
  ] as const) {
    if (block.field(name) === undefined || !block.isLeftOut(other)) continue;
    const message = `"${name}" is of no use without "${other}"`;
    block.report(name, { id: "HG207", message, expected: `${other} beside it` });
  }
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
}

/** Reads names of which a certificate has to have one; none where they are left out. */
export function readSubjectAltNames(block: Block): readonly string[] {
  const expected = "a list of names of which the certificate has one";
  const items = block.items("subjectAltNames", expected, subjectAltNamesMax);
  return items.flatMap((item) => block.reader.readText(item, subjectAltNameRule) ?? []);
}

/** Reads `tls` of an upstream: on where it stands, and by itself on port 443. */
export function readUpstreamTls(
  upstream: Block,
  { address, port }: Pick<UpstreamPlace, "address" | "port">,
): UpstreamTls | undefined {
  const block = upstream.blockOrOff("tls", upstreamTlsShape);
  if (block === "off") return undefined;
  if (block === undefined) {
    if (port !== tlsPort) return undefined;
    const usual = { caFile: systemCaFile, certificate: undefined, serverName: address };
    return { kind: "files", ...usual, subjectAltNames: [address] };
  }
  const files = readClientTls(block, { address, caFile: systemCaFile });
  const secret = readSecret(block);
  const tls =
    secret === undefined
      ? ({ kind: "files", ...files } as const)
      : { ...secret, serverName: files.serverName };
  const names = readSubjectAltNames(block);
  return { ...tls, subjectAltNames: names.length === 0 ? [tls.serverName] : names };
}

/** A secret that is named, which stands instead of files; undefined where none is. */
export function readSecret(
  block: Block,
): Pick<Extract<UpstreamTls, { kind: "secret" }>, "kind" | "secret" | "isMutual"> | undefined {
  const isMutual = block.flag("mutual");
  const field = block.field("secret");
  if (field === undefined) {
    if (block.field("mutual") === undefined) return undefined;
    const message = '"mutual" is of a secret, and none is named';
    return block.report("mutual", { id: "HG207", message, expected: "a secret beside it" });
  }
  const files = ["caFile", "clientCaFile", "certFile", "keyFile"];
  const other = files.find((name) => block.field(name) !== undefined);
  if (other !== undefined) return block.refusePair(other, "secret");
  const secret = readSecretName(block.reader, field);
  return secret === undefined ? undefined : { kind: "secret", secret, isMutual };
}
