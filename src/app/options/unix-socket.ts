import type { Stats } from "node:fs";
import { chmod, lstat, unlink } from "node:fs/promises";
import { connect, type Server } from "node:net";
import { dirname } from "node:path";
import { ServiceError } from "../../core/base/errors.js";
import type { ParsedOption } from "./option.js";

/** Maximum length in bytes. Source: Linux, unix(7): sun_path has 108 with the terminator. */
export const socketPathBytesMax = 107;

/** Parses the path of a socket. The reason why it is invalid does not contain it. */
export function parseSocketPath(text: string): ParsedOption<string> {
  if (text.startsWith("@")) {
    const message = "must be a path: a socket without one (`@`) is open to every user";
    return { kind: "problem", message };
  }
  if (text.includes("\0") || Buffer.byteLength(text) > socketPathBytesMax) {
    const message = `must be a path of at most ${socketPathBytesMax} bytes`;
    return { kind: "problem", message };
  }
  return { kind: "value", value: text };
}

/** Mode of the socket: its owner and group may connect. */
const socketMode = 0o660;

/** Maximum number of connections that wait to be accepted. */
const backlogMax = 1_024;

/** The path that a Unix server listens on, and the setting that it comes from. */
interface SocketPlace {
  readonly path: string;
  /** The path's setting, for errors. */
  readonly setting: string;
  /** Maximum number of connections at the same time. Further ones are closed at once. */
  readonly connectionsMax: number;
}

/** A Unix socket that a server listens on. */
export interface SocketAddress {
  readonly kind: "unix";
  readonly path: string;
}

/**
 * Listens on a Unix socket. A socket that a dead process left behind is replaced. A socket with a
 * listener, and anything that is not a socket, is left alone. The server removes it when it closes.
 *
 * If two processes start at the same moment over one dead socket, both could replace it, and the
 * first would be unreachable: one path belongs to one replica.
 *
 * @throws ServiceError LISTEN_FAILED naming the setting and what to do
 */
export async function listenOnSocket(server: Server, place: SocketPlace): Promise<SocketAddress> {
  await removeDeadSocket(place);
  await bind(server, place);
  try {
    // Until here only the owner could connect, unless the umask is wider than any common one.
    await chmod(place.path, socketMode);
  } catch (error) {
    server.close();
    throw listenFailed(place, error);
  }
  return { kind: "unix", path: place.path };
}

function bind(server: Server, place: SocketPlace): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: unknown): void => reject(listenFailed(place, error));
    server.maxConnections = place.connectionsMax;
    server.once("error", onError);
    server.listen({ path: place.path, backlog: backlogMax }, () => {
      server.off("error", onError);
      // If accepting fails (no file descriptor left), only that connection is lost.
      server.on("error", () => {});
      resolve();
    });
  });
}

async function removeDeadSocket(place: SocketPlace): Promise<void> {
  const { path, setting } = place;
  const found = await statOf(place, path);
  if (found === undefined) {
    // Checked here: if the directory is missing, the library reports missing permission instead.
    if ((await statOf(place, dirname(path))) === undefined) throw listenFailed(place, "ENOENT");
    return;
  }
  if (!found.isSocket()) {
    const remedy = "remove it, or choose another path.";
    throw refused(`the path of ${setting} is not a socket: ${remedy}`);
  }
  const answer = await knock(path);
  if (answer === "open") {
    const remedy = "stop the process that listens there, or choose another path.";
    throw refused(`the socket of ${setting} is in use: ${remedy}`);
  }
  if (answer !== "ECONNREFUSED" && answer !== "ENOENT") throw listenFailed(place, answer);
  try {
    await unlink(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw listenFailed(place, error);
  }
}

/** Returns the entry at a path. Undefined if there is none. */
async function statOf(place: SocketPlace, path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw listenFailed(place, error);
  }
}

/** Connects, and returns "open" or the code of the error. */
function knock(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => {
      socket.destroy();
      resolve("open");
    });
    socket.once("error", (error) => resolve(errorCode(error)));
  });
}

function errorCode(error: unknown): string {
  return typeof error === "string" ? error : String(Reflect.get(Object(error), "code"));
}

function listenFailed({ setting }: SocketPlace, error: unknown): ServiceError {
  const code = errorCode(error);
  const words: Readonly<Record<string, string>> = {
    EACCES: "is not accessible for this user: grant write permission on the directory.",
    EPERM: "is not accessible for this user: grant write permission on the directory.",
    EROFS: "is in a read-only directory: mount a writable one.",
    ENOENT: "is in a directory that does not exist: create it.",
    ENOTDIR: "is in a directory that does not exist: create it.",
    EADDRINUSE: "was just taken by another process: give each replica its own path.",
  };
  return refused(`The socket of ${setting} ${words[code] ?? `cannot be opened: ${code}.`}`);
}

function refused(detail: string): ServiceError {
  return new ServiceError("LISTEN_FAILED", detail);
}
