import type { HttpAsk } from "./http-client.js";

/** A request of every class that the policies of the cases `authentication` know. */
export const classRequests: Readonly<Record<string, Omit<HttpAsk, "port">>> = {
  rest: { path: "/orders" },
  auth: { path: "/auth/x" },
  login: { path: "/login/y?z=1" },
  oauth: { path: "/oauth2/y" },
  bypass: { path: "/healthz/z" },
  critical: { path: "/admin/delete", method: "DELETE", headers: { "x-team": "payments" } },
  "half critical": { path: "/admin/delete", method: "DELETE" },
  low: { path: "/orders", headers: { "x-batch": "1" } },
};

/** What is expected where each of them gets the same status. */
export function everyClass(status: number): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.keys(classRequests).map((name) => [name, status]));
}
