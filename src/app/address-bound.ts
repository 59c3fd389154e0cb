import type { Socket } from "node:net";

/** What accepts connections on a port that peers share. */
export interface AddressBound {
  /** The most connections of one address at a time. */
  readonly perAddressMax: number;
  readonly onRefused: () => void;
}

/**
 * Accepts so many connections of an address at a time and closes others at once, so that one peer
 * cannot take all that a port has.
 */
export function boundByAddress(
  accept: (socket: Socket) => void,
  { perAddressMax, onRefused }: AddressBound,
): (socket: Socket) => void {
  const counts = new Map<string, number>();
  return (socket) => {
    const { remoteAddress } = socket;
    // A Unix socket has none, and neither has a peer that has gone by now.
    if (remoteAddress === undefined) {
      accept(socket);
      return;
    }
    const count = counts.get(remoteAddress) ?? 0;
    if (count >= perAddressMax) {
      socket.destroy();
      onRefused();
      return;
    }
    counts.set(remoteAddress, count + 1);
    socket.once("close", () => {
      const left = (counts.get(remoteAddress) ?? 0) - 1;
      if (left > 0) counts.set(remoteAddress, left);
      else counts.delete(remoteAddress);
    });
    accept(socket);
  };
}
