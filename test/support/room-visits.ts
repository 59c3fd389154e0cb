import { expect } from "vitest";
import type { Envoy } from "./envoy.js";
import type { HttpAnswer, HttpClient } from "./http-client.js";
import { waitFor } from "./wait.js";

/** A proxy in front of the room "orders". */
interface RoomPlace {
  readonly envoy: Envoy;
  readonly http: HttpClient;
  readonly port: number;
  readonly host: string;
  /** What callers of the service send besides. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a browser sends. */
const navigation = { accept: "text/html", "sec-fetch-mode": "navigate" };

/**
 * Visits a proxy's room, which has to let in, to be asked about where no route of the user's leads,
 * and to turn away at its gate those alone who have no ticket.
 */
export async function expectRoom(place: RoomPlace): Promise<void> {
  const { envoy, http, port, host, headers = {} } = place;
  const visit = (cookie = ""): Promise<HttpAnswer> => {
    const sent = { host, ...navigation, ...headers, ...(cookie === "" ? {} : { cookie }) };
    return http.send({ port, path: "/shop", headers: sent });
  };
  const asked = await waitFor("Headgate answers for the room", async () => {
    const path = "/.waiting-room/orders/position";
    const answer = await http.send({ port, path, headers: { host } });
    return answer.status === 200 ? answer : undefined;
  });
  expect(JSON.parse(asked.body)).toMatchObject({ inWaitingRoom: false, state: "left" });
  const entered = await waitFor("a visitor is let in", async () => {
    const answer = await visit();
    expect(answer.status).toBe(200);
    return answer.headers["refresh"] === undefined ? answer : undefined;
  });
  const [session = ""] = String(entered.headers["set-cookie"]).split(";");
  expect(session).toMatch(/^headgate-orders=/);
  await envoy.setRuntime({ "headgate.waiting_room.orders.reject": "100" });
  const away = await visit();
  expect([away.status, away.headers["retry-after"]]).toEqual([503, "60"]);
  expect((await visit(session)).status).toBe(200);
  await envoy.setRuntime({ "headgate.waiting_room.orders.reject": "" });
  expect((await visit()).status).toBe(200);
}
