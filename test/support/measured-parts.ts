import { createAdmission } from "../../src/client/create-admission.js";
import type { MeasuredParts } from "../../src/client/metrics/library-metrics.js";
import { createServerAdmission } from "../../src/client/server/server-admission.js";
import { createWindowLimiter } from "../../src/client/window-limiter.js";
import { askAs, permitOf } from "./server-admission.js";

/** One part of each kind that has metrics, each of which has done something. */
export async function measuredParts(): Promise<Required<MeasuredParts>> {
  const orders = createAdmission({ name: "orders", concurrency: { law: "fixed", initial: 1 } });
  const first = orders.run(async () => 1);
  const refused = orders.run(async () => 2).catch(() => "refused");
  await Promise.all([first, refused]);
  const unlimited = createAdmission({ name: "unlimited", retry: {} });

  const shop = createServerAdmission({
    ...{ name: "shop", maxInFlight: 2 },
    priority: { header: "x-request-priority" },
  });
  permitOf(askAs(shop, "high")).end("completed");
  permitOf(askAs(shop, "critical"));
  permitOf(askAs(shop, "critical"));
  askAs(shop, "low");

  const auth = createWindowLimiter({ windowInitial: 20 });
  const { control } = await auth.runRateLimited(() => "done");
  control.success();
  return { calls: [orders, unlimited], requests: [shop], windows: { auth } };
}
