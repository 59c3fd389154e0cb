import type { ServerHttp2Session } from "node:http2";
import type { Server } from "@grpc/grpc-js";
import type { Clock } from "../core/clock.js";

/** Says that every stream the client opened, or is about to open, is served. Source: RFC 9113, 6.8. */
const lastStreamIdMax = 2 ** 31 - 1;

const noError = 0;

/**
 * Asks clients to open no more streams here, and waits until each has answered a ping sent after
 * that: frames arrive in order, so by then every stream it opened before it knew has arrived.
 *
 * A server that closes at once answers nothing to what was on its way, and the proxy in front
 * would fail those requests. Resolves after `waitMs` at the latest.
 */
export async function tellClientsToLeave(
  sessions: readonly ServerHttp2Session[],
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number },
): Promise<void> {
  const answers = sessions.filter((session) => !session.closed && !session.destroyed).map(askToGo);
  let cancel = (): void => {};
  const late = new Promise<void>((resolve) => {
    cancel = clock.schedule(waitMs, resolve);
  });
  await Promise.race([Promise.all(answers), late]);
  cancel();
}

function askToGo(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    session.once("close", resolve);
    try {
      session.goaway(noError, lastStreamIdMax);
      if (!session.ping(() => resolve())) resolve();
    } catch {
      // The session ended between the check and here: nobody is left to be told.
      resolve();
    }
  });
}

/**
 * The sessions of a grpc-js server. The library keeps them in a private field and offers no two-step
 * end, so the field is read with doubt: what does not look as expected is left out, and clients then
 * get the library's one-step end.
 */
export function openSessions(server: Server): readonly ServerHttp2Session[] {
  const servers: unknown = Reflect.get(server, "http2Servers");
  if (!(servers instanceof Map)) return [];
  const sessions: ServerHttp2Session[] = [];
  for (const entry of servers.values()) {
    const known: unknown = Reflect.get(Object(entry), "sessions");
    if (known instanceof Set) sessions.push(...[...known].filter(isSession));
  }
  return sessions;
}

function isSession(value: unknown): value is ServerHttp2Session {
  return typeof Reflect.get(Object(value), "goaway") === "function";
}
