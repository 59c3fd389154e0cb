import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import type { Stage } from "./stage.js";

/** What may be wrong with a provider. */
export interface ProviderFaults {
  /** The audience of its tokens. */
  audience?: string;
  /** What its tokens were made for, in place of what was asked. */
  nonce?: string;
  /** The issuer that its discovery names. */
  issuer?: string;
  /** Its token endpoint answers this. */
  tokenAnswer?: string;
  /** It refuses whom it is asked to let in. */
  error?: string;
  /** Its token endpoint keeps who asks waiting. */
  isSlow?: boolean;
}

/** An OpenID Connect provider at which people sign in, until the stage's end. */
export interface SignInProvider {
  readonly issuer: string;
  faults: ProviderFaults;
  /** What its next token says of who signs in. */
  claims: Record<string, unknown>;
  /** Does what a browser does there: answers where it is sent back to. */
  visit(location: string): Promise<URL>;
  /** How often its discovery and its token endpoint were asked. */
  readonly asked: { discovery: number; token: number };
}

/** Its port. */
async function listenUntilEnd(stage: Stage, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(typeof value === "string" ? value : JSON.stringify(value));
}

/** A client and its secret; each is encoded as in forms. */
function pairOf({ headers }: IncomingMessage): string {
  const said = /^Basic (.*)$/.exec(headers.authorization ?? "")?.[1] ?? "";
  return new URLSearchParams(`p=${Buffer.from(said, "base64").toString()}`).get("p") ?? "";
}

/** Whether a code is redeemed by who asked for it, and from there. */
function fits(form: URLSearchParams, asked: URLSearchParams): boolean {
  const challenge = createHash("sha256").update(form.get("code_verifier") ?? "");
  return (
    form.get("redirect_uri") === asked.get("redirect_uri") &&
    challenge.digest("base64url") === asked.get("code_challenge")
  );
}

/** Sends a browser back at once, as that of somebody who is signed in at the provider. */
async function sendBack(
  provider: SignInProvider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { href } = await provider.visit(new URL(request.url ?? "", provider.issuer).href);
  response.writeHead(303, { location: href });
  response.end();
}

/** Where a browser is sent back to, with a code or why there is none. */
function backOf(
  asked: URLSearchParams,
  { error }: ProviderFaults,
  codes: Map<string, URLSearchParams>,
): URL {
  const back = new URL(asked.get("redirect_uri") ?? "");
  back.searchParams.set("state", asked.get("state") ?? "");
  if (error !== undefined) {
    back.searchParams.set("error", error);
    return back;
  }
  const code = randomUUID();
  codes.set(code, asked);
  back.searchParams.set("code", code);
  return back;
}

/**
 * Starts one, strict as real ones are: a code is good once, for the client and the address that
 * asked, and for who knows the verifier.
 */
export async function startSignInProvider(
  stage: Stage,
  { clientId, secret }: { readonly clientId: string; readonly secret?: string },
): Promise<SignInProvider> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "k", alg: "ES256" }] };
  const codes = new Map<string, URLSearchParams>();
  const redeem = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const form = new URLSearchParams(text);
    const code = form.get("code") ?? "";
    const asked = codes.get(code);
    codes.delete(code);
    const pair = pairOf(request);
    const isRight = pair === (secret === undefined ? "" : `${clientId}:${secret}`);
    if (
      asked === undefined ||
      !isRight ||
      form.get("client_id") !== clientId ||
      !fits(form, asked)
    ) {
      return json(response, { error: "invalid_grant" }, 400);
    }
    const { faults } = provider;
    if (faults.tokenAnswer !== undefined) return json(response, faults.tokenAnswer);
    const token = new SignJWT({
      nonce: faults.nonce ?? asked.get("nonce") ?? undefined,
      ...provider.claims,
    })
      .setProtectedHeader({ alg: "ES256", kid: "k" })
      .setIssuer(provider.issuer)
      .setAudience(faults.audience ?? clientId)
      .setExpirationTime("5m");
    return json(response, { token_type: "Bearer", id_token: await token.sign(privateKey) });
  };
  const server = createServer((request, response) => {
    const { issuer, faults } = provider;
    if (request.url === "/keys") return json(response, keys);
    if (request.url === "/token") {
      provider.asked.token += 1;
      return faults.isSlow === true ? undefined : void redeem(request, response);
    }
    if (request.url?.startsWith("/authorize?")) return void sendBack(provider, request, response);
    provider.asked.discovery += 1;
    json(response, {
      issuer: faults.issuer ?? issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
    });
  });
  const port = await listenUntilEnd(stage, server);
  const provider: SignInProvider = {
    issuer: `http://127.0.0.1:${port}`,
    faults: {},
    claims: { sub: "ann" },
    asked: { discovery: 0, token: 0 },
    visit: async (location) => {
      const asked = new URL(location).searchParams;
      const isOurs = asked.get("client_id") === clientId;
      return backOf(asked, provider.faults, isOurs ? codes : new Map());
    },
  };
  return provider;
}
