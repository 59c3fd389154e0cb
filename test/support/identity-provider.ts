import { createServer, type ServerResponse } from "node:http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import type { Stage } from "./stage.js";

/** What a token says beside its claims; what is left out is right. */
export interface TokenFields {
  readonly issuer?: string;
  readonly aud?: string;
  readonly sub?: string;
  readonly exp?: string;
}

/**
 * An OpenID Connect provider, `https://id.example`, whose keys are served until the stage's end.
 */
export interface IdentityProvider {
  readonly jwksUrl: string;
  /** Its public keys, as it serves them. */
  readonly keys: string;
  /** A token for the audience `headgate`, of `ann` unless it says otherwise. */
  sign(claims: Record<string, unknown>, fields?: TokenFields): Promise<string>;
}

/** @param answer what it answers who asks for the keys, and not these */
export async function startIdentityProvider(
  stage: Stage,
  answer = (response: ServerResponse, keys: string): void => void response.end(keys),
): Promise<IdentityProvider> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: "k", alg: "ES256" };
  const keys = JSON.stringify({ keys: [jwk] });
  const server = createServer((_request, response) => answer(response, keys));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return {
    jwksUrl: `http://127.0.0.1:${port}/keys`,
    keys,
    sign: (claims, { issuer = "https://id.example", aud = "headgate", sub, exp } = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: "ES256", kid: "k" })
        .setIssuer(issuer)
        .setAudience(aud)
        .setSubject(sub ?? "ann")
        .setExpirationTime(exp ?? "5m")
        .sign(privateKey),
  };
}
