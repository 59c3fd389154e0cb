import type { Stats } from "node:fs";
import { chmod, lstat, unlink } from "node:fs/promises";
import { connect, type Server } from "node:net";
import { dirname } from "node:path";
import { ServiceError } from "../../core/base/errors.js";
import type { ParsedOption } from "./option.js";

/** The longest path in bytes. Source: Linux, unix(7): sun_path holds 108 with its end mark. */
export const socketPathBytesMax = 107;

/** A path on which a socket can be made; the reason why it is none does not echo it. */
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

/** Who may connect: the socket's owner and group. */
const socketMode = 0o660;

/** Connections that wait to be accepted. */
const backlogMax = 1_024;

/** Where a Unix server listens, and which setting said so. */
interface SocketPlace {
  readonly path: string;
  /** Names the path's setting in errors. */
  readonly setting: string;
  /** The most connections at a time; one more is closed at once. */
  readonly connectionsMax: number;
}

/** A Unix socket that is listened on. */
export interface SocketAddress {
  readonly kind: "unix";
  readonly path: string;
}

/**
 * Listens on a Unix socket. A socket that a dead process left behind is replaced; one that answers,
 * and everything that is not a socket, is left alone. The server removes it when it closes.
 *
 * Two processes that are started at the same moment over one dead socket could both replace it, and
 * the first would be out of reach: one path belongs to one replica.
 *
 * @throws ServiceError LISTEN_FAILED naming the setting and what to do
 */
export async function listenOnSocket(server: Server, place: SocketPlace): Promise<SocketAddress> {
  await removeDeadSocket(place);
  await bind(server, place);
  try {
    // Until here only the owner could connect, unless the umask is wider than any that is common.
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
      // An accept that fails (no file descriptor left) costs that connection only.
      server.on("error", () => {});
      resolve();
    });
  });
}

async function removeDeadSocket(place: SocketPlace): Promise<void> {
  const { path, setting } = place;
  const found = await statOf(place, path);
  if (found === undefined) {
    // Asked for here: bound in a missing directory, the library says that it is not permitted.
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

/** What is at a path; undefined when nothing is. */
async function statOf(place: SocketPlace, path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw listenFailed(place, error);
  }
}

/** "open", or why nobody answers. */
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
