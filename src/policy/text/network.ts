/** An IP address as 4 or 16 bytes. An IPv4 address inside IPv6 (`::ffff:`) is the IPv4 address. */
export type IpAddress = readonly number[];

/** The addresses that begin with the same bits. */
export interface Network {
  readonly address: IpAddress;
  /** Number of leading bits that count. */
  readonly prefixBits: number;
}

/** Maximum length of an address text: a zone-free IPv6 address, a port and brackets. */
const addressCharsMax = 64;

/**
 * Reads a network as `address/bits`, or a single address. Undefined for anything else, and if a bit
 * after the prefix is set: `10.0.0.1/8` could mean one caller or all of them.
 *
 * Source: RFC 4632 (CIDR), RFC 4291 section 2.3.
 */
export function parseNetwork(text: string): Network | undefined {
  const [addressText = "", bitsText, ...rest] = text.split("/");
  const address = parseIpAddress(addressText);
  if (address === undefined || rest.length > 0) return undefined;
  const bitsMax = address.length * 8;
  if (bitsText === undefined) return { address, prefixBits: bitsMax };
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(bitsText)) return undefined;
  // `::ffff:10.0.0.0/104` is 10.0.0.0/8, because its address is read as IPv4.
  const isMapped = address.length === 4 && addressText.includes(":");
  const prefixBits = Number(bitsText) - (isMapped ? 96 : 0);
  if (prefixBits < 0 || prefixBits > bitsMax) return undefined;
  const network = { address, prefixBits };
  return hasHostBits(network) ? undefined : network;
}

/** Reports whether an address is in a network; false if one is IPv4 and the other IPv6. */
export function networkContains({ address, prefixBits }: Network, candidate: IpAddress): boolean {
  if (address.length !== candidate.length) return false;
  for (let i = 0; i < address.length; i += 1) {
    const differing = (candidate[i] ?? 0) ^ (address[i] ?? 0);
    if ((differing & maskOf(prefixBits, i)) !== 0) return false;
  }
  return true;
}

/**
 * Reads the source address of a connection in Envoy's format, `10.0.0.1:1234` or `[::1]:1234`. The
 * port may be missing. Undefined for anything else, such as a Unix socket's path.
 *
 * Source: the attribute `source.address`.
 */
export function parseSourceAddress(text: string): IpAddress | undefined {
  if (text.length > addressCharsMax) return undefined;
  const colon = text.indexOf(":");
  if (text.startsWith("[")) {
    const inside = /^\[([^\]]*:[^\]]*)\](?::[0-9]{1,5})?$/.exec(text)?.[1];
    return inside === undefined ? undefined : parseVersion6(inside);
  }
  // No colon, or more than the one before a port: an address alone.
  if (colon === -1 || text.includes(":", colon + 1)) return parseIpAddress(text);
  return isPort(text, colon + 1) ? parseVersion4(text.slice(0, colon)) : undefined;
}

/** Reports whether the text from `start` is one to five digits. */
function isPort(text: string, start: number): boolean {
  const count = text.length - start;
  if (count < 1 || count > 5) return false;
  for (let i = start; i < text.length; i += 1) {
    const digit = text.charCodeAt(i) - zeroCode;
    if (!(digit >= 0 && digit <= 9)) return false;
  }
  return true;
}

/** Reads an address; undefined for anything else. Zones (`fe80::1%eth0`) are not accepted. */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (text.length > addressCharsMax) return undefined;
  return text.includes(":") ? parseVersion6(text) : parseVersion4(text);
}

/** Formats an address as `parseIpAddress` reads it. IPv6 is not shortened. */
export function formatIpAddress(address: IpAddress): string {
  if (address.length === 4) return address.join(".");
  const groups = Array.from({ length: groupCount }, (_, i) => {
    return ((address[2 * i] ?? 0) << 8) | (address[2 * i + 1] ?? 0);
  });
  return groups.map((group) => group.toString(16)).join(":");
}

const dotCode = 46;
const zeroCode = 48;

/**
 * Reads four decimal numbers. A leading zero is refused, because some readers take it as octal. It
 * works by character, because it runs for requests: a class that is believed by address takes 0.3
 * us, and took 5.9 us when this function split and matched the text.
 */
function parseVersion4(text: string): IpAddress | undefined {
  const bytes: number[] = [];
  // Undefined until a digit is read.
  let byte: number | undefined;
  for (let i = 0; i <= text.length; i += 1) {
    const code = i === text.length ? dotCode : text.charCodeAt(i);
    const digit = code - zeroCode;
    if (code === dotCode) {
      if (byte === undefined) return undefined;
      bytes.push(byte);
      byte = undefined;
    } else {
      if (!(digit >= 0 && digit <= 9) || byte === 0) return undefined;
      byte = (byte ?? 0) * 10 + digit;
      if (byte > 255) return undefined;
    }
  }
  return bytes.length === 4 ? bytes : undefined;
}

/** Number of 16-bit groups of an IPv6 address. */
const groupCount = 8;

/** Source: RFC 4291 section 2.2: eight groups, one run of zeros left out, or IPv4 at the end. */
function parseVersion6(text: string): IpAddress | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head = "", tail] = halves;
  const first = parseGroups(head, tail === undefined);
  const last = tail === undefined ? [] : parseGroups(tail, true);
  if (first === undefined || last === undefined) return undefined;
  const missingCount = groupCount - first.length - last.length;
  // `::` stands for at least one group.
  if (tail === undefined ? missingCount !== 0 : missingCount < 1) return undefined;
  const groups = [...first, ...Array.from({ length: missingCount }, () => 0), ...last];
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff]);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  return isMapped ? bytes.slice(12) : bytes;
}

/** Reads 16-bit groups; `isEnd` allows the last two to be written as an IPv4 address. */
function parseGroups(text: string, isEnd: boolean): readonly number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [i, part] of parts.entries()) {
    if (isEnd && i === parts.length - 1 && part.includes(".")) {
      const [a, b, c, d] = parseVersion4(part) ?? [];
      if (a === undefined || b === undefined || c === undefined || d === undefined)
        return undefined;
      groups.push((a << 8) | b, (c << 8) | d);
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16));
    } else {
      return undefined;
    }
  }
  return groups;
}

function hasHostBits({ address, prefixBits }: Network): boolean {
  return address.some((byte, i) => (byte & ~maskOf(prefixBits, i)) !== 0);
}

/** Returns the bits of byte `i` that a prefix covers. Example: 12 bits cover 0xff, 0xf0, 0, 0. */
function maskOf(prefixBits: number, i: number): number {
  const bits = Math.min(8, Math.max(0, prefixBits - i * 8));
  return (0xff << (8 - bits)) & 0xff;
}
