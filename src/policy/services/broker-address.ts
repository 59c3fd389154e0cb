/** Address of a broker: a host, without brackets around IPv6, and a port from 1. */
interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

const addressPattern = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9])?)):([0-9]{1,5})$/i;

/** Reads `kafka.example:9092` or `[fd00::1]:9092`. Undefined for anything else. */
export function parseBroker(text: string): BrokerAddress | undefined {
  const [, address, name = "", digits] = addressPattern.exec(text) ?? [];
  const port = Number(digits ?? 0);
  return port >= 1 && port <= 65_535 ? { host: address ?? name, port } : undefined;
}
