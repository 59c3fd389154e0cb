import { errorRows, ServiceError, toServiceError } from "../../core/base/errors.js";
import { throttleCharge, throttleReply } from "../../core/limits/throttle.js";
import type { Decider } from "../../decide/rate-limit/decider.js";
import type { AnswersCommands, RespReply } from "../../wire/resp/resp-connection.js";
import {
  arrayReply,
  bulkReply,
  errorReply,
  integerReply,
  mapReply,
  okReply,
  type RespVersion,
  simpleReply,
} from "../../wire/resp/resp-writer.js";
import type { RespCommand, RespCounts } from "./resp-counts.js";
import { parseThrottle, type ThrottleCommand } from "./throttle-command.js";

/** Dependencies and settings that sessions of RESP share. */
export interface RespSessionParts {
  readonly decider: Pick<Decider, "decideCharge">;
  /** Whether no key is limited, whatever the numbers are. */
  readonly isShadow: boolean;
  /** A cryptographic hash in hexadecimal, for keys that are long or not text. */
  readonly digest: (text: string) => string;
  /** Whether a password is correct. Undefined: none is required. */
  readonly isPassword: ((password: Buffer) => boolean) | undefined;
  readonly counts: RespCounts;
  /** The version of this program. */
  readonly version: string;
  readonly onBug: (thrown: unknown) => void;
}

/**
 * Starts the session of a connection: `CL.THROTTLE`, and what clients send when they connect.
 * Errors state what is supported, and contain nothing that was sent.
 */
export function createRespSession(parts: RespSessionParts): AnswersCommands {
  const session = new RespSession(parts);
  return (command) => session.answer(command);
}

/** How a command is answered: the whole command in, a reply out. */
type Answers = (command: readonly Buffer[]) => RespReply | Promise<RespReply>;

/** Maximum length of the name of a command, in bytes. */
const nameBytesMax = 32;

class RespSession {
  readonly #parts: RespSessionParts;
  #version: RespVersion = 2;
  #isAuthenticated: boolean;
  readonly #answers: Readonly<Record<RespCommand, Answers>> = {
    throttle: (command) => this.#throttle(command),
    ping: ([, text]) => reply(text === undefined ? simpleReply("PONG") : bulkReply(latin1(text))),
    hello: (command) => this.#hello(command),
    auth: ([, ...words]) => this.#authenticate(words) ?? reply(okReply),
    client: ([, word]) => reply(clientWords.has(wordOf(word)) ? okReply : noClientWord),
    command: ([, word]) => reply(this.#describeCommands(wordOf(word))),
    info: () =>
      reply(bulkReply(`# Server\r\nheadgate_version:${this.#parts.version}\r\nloading:0\r\n`)),
    select: ([, database]) => reply(wordOf(database) === "0" ? okReply : noDatabase),
    quit: () => ({ text: okReply, isLast: true }),
    other: () => reply(unknownCommand),
  };

  constructor(parts: RespSessionParts) {
    this.#parts = parts;
    this.#isAuthenticated = parts.isPassword === undefined;
  }

  answer(command: readonly Buffer[]): RespReply | Promise<RespReply> {
    const name = commandNames.get(wordOf(command[0])) ?? "other";
    const isOpen = this.#isAuthenticated || beforeAuthentication.has(name);
    const answer = isOpen ? this.#answers[name](command) : reply(unauthenticated);
    // An asynchronous throttle counts itself, by its result.
    if (!(answer instanceof Promise)) {
      this.#parts.counts.count(name, answer.text.startsWith("-") ? "error" : "ok");
    }
    return answer;
  }

  #throttle(command: readonly Buffer[]): RespReply | Promise<RespReply> {
    const asked = parseThrottle(command, this.#parts.digest);
    return typeof asked === "string" ? reply(errorReply(asked)) : this.#decide(asked);
  }

  async #decide({ key, numbers }: ThrottleCommand): Promise<RespReply> {
    const { decider, isShadow, counts, onBug } = this.#parts;
    try {
      const charge = throttleCharge(key, numbers, isShadow ? "shadow" : "enforce");
      const { isDenied, charges, results, nowUs } = await decider.decideCharge(charge);
      const [decided] = charges;
      const [result] = results;
      if (decided === undefined || result === undefined) throw new ServiceError("STORE_PROTOCOL");
      counts.count("throttle", isDenied ? "limited" : "allowed");
      const { bucket } = result;
      const integers = throttleReply(numbers, decided, { isDenied, bucket, nowUs });
      return reply(arrayReply(integers.map(integerReply)));
    } catch (thrown) {
      const { code } = toServiceError(thrown);
      if (code === "INTERNAL") onBug(thrown);
      counts.count("throttle", "error");
      return reply(errorReply(`ERR ${code} ${errorRows[code].meaning}`));
    }
  }

  /** Source: https://redis.io/docs/latest/commands/hello */
  #hello([, version, ...options]: readonly Buffer[]): RespReply {
    const wanted = version === undefined ? String(this.#version) : wordOf(version);
    if (wanted !== "2" && wanted !== "3") return reply(unsupportedVersion);
    for (let at = 0; at < options.length; ) {
      const word = wordOf(options[at]);
      const size = word === "auth" ? 2 : word === "setname" ? 1 : options.length;
      const values = options.slice(at + 1, at + 1 + size);
      if (values.length < size) return reply(helloSyntax);
      const refusal = word === "auth" ? this.#authenticate(values) : undefined;
      if (refusal !== undefined) return refusal;
      at += 1 + size;
    }
    if (!this.#isAuthenticated) return reply(unauthenticated);
    this.#version = wanted === "3" ? 3 : 2;
    return reply(
      mapReply(
        [
          ["server", bulkReply("headgate")],
          ["version", bulkReply(this.#parts.version)],
          ["proto", integerReply(this.#version)],
          ["id", integerReply(0)],
          ["mode", bulkReply("standalone")],
          ["role", bulkReply("master")],
          ["modules", arrayReply([])],
        ],
        this.#version,
      ),
    );
  }

  /** A wrong password ends the connection. Undefined: it is right. */
  #authenticate(words: readonly Buffer[]): RespReply | undefined {
    const { isPassword } = this.#parts;
    const [user, password] = words.length === 1 ? [undefined, words[0]] : words;
    if (password === undefined || words.length > 2) return reply(authSyntax);
    if (isPassword === undefined) return reply(noPassword);
    const isUser = user === undefined || wordOf(user) === "default";
    if (!isUser || !isPassword(password)) return { text: wrongPassword, isLast: true };
    this.#isAuthenticated = true;
    return undefined;
  }

  /** Source: https://redis.io/docs/latest/commands/command; for clients that look for keys. */
  #describeCommands(word: string): string {
    if (word === "count") return integerReply(commandNames.size);
    if (word === "docs") return mapReply([], this.#version);
    const flags = ["write", "fast"].map(simpleReply);
    const keyPlaces = [1, 1, 1].map(integerReply);
    return arrayReply([
      arrayReply([bulkReply("cl.throttle"), integerReply(-5), arrayReply(flags), ...keyPlaces]),
    ]);
  }
}

/** The commands by their names, which clients write in any case. */
const commandNames: ReadonlyMap<string, RespCommand> = new Map([
  ["cl.throttle", "throttle"],
  ["ping", "ping"],
  ["hello", "hello"],
  ["auth", "auth"],
  ["client", "client"],
  ["command", "command"],
  ["info", "info"],
  ["select", "select"],
  ["quit", "quit"],
]);

const beforeAuthentication: ReadonlySet<RespCommand> = new Set(["auth", "hello", "quit"]);

/** What clients state about themselves. It is accepted, but not kept. */
const clientWords: ReadonlySet<string> = new Set(["setinfo", "setname"]);

const unknownCommand = errorReply(
  "ERR unknown command; this is Headgate, which answers CL.THROTTLE, PING, HELLO, AUTH, CLIENT, " +
    "COMMAND, INFO, SELECT 0 and QUIT",
);
const noClientWord = errorReply("ERR unknown subcommand; CLIENT has SETINFO and SETNAME");
const noDatabase = errorReply("ERR DB index is out of range; there is only 0");
const unauthenticated = errorReply("NOAUTH Authentication required.");
const wrongPassword = errorReply("WRONGPASS invalid username-password pair");
const noPassword = errorReply("ERR AUTH called, but no password is set");
const authSyntax = errorReply("ERR wrong number of arguments: AUTH [username] password");
const helloSyntax = errorReply("ERR syntax error in HELLO");
const unsupportedVersion = errorReply("NOPROTO unsupported protocol version");

function reply(text: string): RespReply {
  return { text };
}

/** Returns a word of the protocol in lower case. Empty if it is too long to be one. */
function wordOf(bytes: Buffer | undefined): string {
  return bytes === undefined || bytes.length > nameBytesMax ? "" : latin1(bytes).toLowerCase();
}

function latin1(bytes: Buffer): string {
  return bytes.toString("latin1");
}
