import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** Inodes of the sockets that a process holds. */
function socketsOf(pid: number): ReadonlySet<string> {
  const folder = `/proc/${pid}/fd`;
  const links = readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))];
    } catch {
      // It was closed meanwhile.
      return [];
    }
  });
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
}

/** Where a process listens, `host:port` or the path of a Unix socket. Source: proc(5). */
export function listensAt(pid: number): readonly string[] {
  const own = socketsOf(pid);
  const lines = (name: string) =>
    readFileSync(`/proc/${pid}/net/${name}`, "utf8")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  const listening = "0A";
  const tcp = ["tcp", "tcp6"].flatMap((name) =>
    lines(name)
      .filter((cells) => cells[3] === listening && own.has(cells[9] ?? ""))
      .map(([, address = ""]) => placeOf(address)),
  );
  const udp = ["udp", "udp6"].flatMap((name) =>
    lines(name)
      .filter((cells) => own.has(cells[9] ?? ""))
      .map(([, address = ""]) => `udp ${placeOf(address)}`),
  );
  const acceptsConnections = "00010000";
  const unix = lines("unix")
    .filter((cells) => cells[3] === acceptsConnections && own.has(cells[6] ?? ""))
    .map((cells) => cells[7] ?? "");
  return [...tcp, ...udp, ...unix].sort();
}

/** `0100007F:1F91` is 127.0.0.1:8081: the kernel prints the address as a number of this machine. */
function placeOf(text: string): string {
  const [address = "", port = ""] = text.split(":");
  const bytes = address.length === 8 ? [...Buffer.from(address, "hex")].reverse() : [address];
  return `${bytes.join(".")}:${Number.parseInt(port, 16)}`;
}
