import { computed, signal } from "@preact/signals";
import { httpStatuses } from "../../core/base/http-status.js";

/** Ways to sign in: with a bearer token, or through the identity provider. */
export type SignInWay = "token" | "oidc";

/** The session, as far as this page knows. */
export type PageSession =
  | { readonly kind: "unknown" }
  /** With the user who was signed in before, whose unfinished work is kept. */
  | {
      readonly kind: "out";
      readonly ways: readonly SignInWay[];
      readonly before: User | undefined;
    }
  | { readonly kind: "in"; readonly user: User };

/** The signed-in user, and the user's permissions. */
export interface User {
  /** As in the audit log. */
  readonly name: string;
  /** Name for display. */
  readonly shownName: string;
  readonly role: "reader" | "operator";
  /** Domains in which the user is an operator; undefined: all. */
  readonly operatorDomains: readonly string[] | undefined;
  readonly isReadOnly: boolean;
  readonly csrf: string;
  readonly ways: readonly SignInWay[];
  readonly replica: string;
  readonly version: string;
}

/** The session of this page. */
export const session = signal<PageSession>({ kind: "unknown" });

/** The user, also while the session must be renewed; undefined before the first sign-in. */
export const user = computed(() => {
  const { value } = session;
  if (value.kind === "unknown") return undefined;
  return value.kind === "in" ? value.user : value.before;
});

/** Reports whether the user may change a domain's limits here; without a domain: the policy. */
export function mayChange(domain?: string): boolean {
  const known = user.value;
  if (known === undefined || known.isReadOnly || known.role !== "operator") return false;
  if (known.operatorDomains === undefined) return true;
  return domain !== undefined && known.operatorDomains.includes(domain);
}

/** Requests the current session. If the server does not respond, the known state is kept. */
export async function refreshSession(): Promise<void> {
  await ask({ method: "GET" });
}

/** Signs in. Returns an error as a sentence if that fails. */
export async function signInWithToken(token: string): Promise<string | undefined> {
  const response = await fetch("/console/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  }).catch(() => undefined);
  if (response === undefined) return "Headgate does not answer. Try again.";
  if (response.status === httpStatuses.unauthorized) return "Headgate does not know this token.";
  if (response.status === httpStatuses.tooManyRequests)
    return "Too many attempts. Try again in a minute.";
  if (!response.ok) return `Headgate answers ${response.status}.`;
  await refreshSession();
  return session.peek().kind === "in" ? undefined : "The browser did not keep the session.";
}

/** Whether the session was ended on this page, but other replicas have not been informed yet. */
export const isEndedHereOnly = signal(false);

/** Ends the session. */
export async function signOut(): Promise<void> {
  const csrf = user.peek()?.csrf ?? "";
  const body = await ask({ method: "DELETE", headers: { "x-headgate-csrf": csrf } });
  isEndedHereOnly.value = fieldsOf(body)["isEverywhere"] === false;
  session.value = { kind: "unknown" };
  await refreshSession();
}

/** Handles a call that was refused because there is no session. */
export function noteSignedOut(): void {
  if (session.peek().kind === "in") void refreshSession();
}

async function ask(init: RequestInit): Promise<unknown> {
  const response = await fetch("/console/session", init).catch(() => undefined);
  if (response === undefined) return undefined;
  const body: unknown = await response.json().catch(() => undefined);
  if (response.ok && init.method === "GET") session.value = { kind: "in", user: readUser(body) };
  else if (response.status === httpStatuses.unauthorized) {
    session.value = { kind: "out", ways: readWays(fieldsOf(body)["signIn"]), before: user.peek() };
  }
  return body;
}

function readUser(body: unknown): User {
  const fields = fieldsOf(body);
  const { name, shownName, role, operatorDomains, mode, csrf, signIn, replica, version } = fields;
  return {
    name: textOf(name),
    shownName: textOf(shownName) || textOf(name),
    role: role === "operator" ? "operator" : "reader",
    operatorDomains: Array.isArray(operatorDomains) ? operatorDomains.map(textOf) : undefined,
    isReadOnly: mode !== "full",
    csrf: textOf(csrf),
    ways: readWays(signIn),
    replica: textOf(replica),
    version: textOf(version),
  };
}

function readWays(value: unknown): readonly SignInWay[] {
  const ways: readonly unknown[] = Array.isArray(value) ? value : [];
  return (["token", "oidc"] as const).filter((way) => ways.includes(way));
}

function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return typeof body === "object" ? { ...body } : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
